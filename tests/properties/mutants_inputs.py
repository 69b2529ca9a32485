"""Planted bugs in what clients send to the head, what waits in line, and values of branches."""

from tests.properties.planted import Mutant

OF_INPUTS = (
    Mutant(
        bug="the last one in the queue starts first",
        place="engine.core.queued:_ready",
        old="(q for q in state.control.queue if",
        new="(q for q in state.control.queue[::-1] if",
        caught_by="queued_turns_start_in_order_or_are_dropped",
    ),
    Mutant(
        bug="a queued turn starts although the one before it is only parked",
        place="engine.core.queued:_ready",
        old="if state.turn(q.behind) is None",
        new="",
        caught_by="queued_turns_start_in_order_or_are_dropped",
    ),
    Mutant(
        bug="what waits behind a cancelled turn is not dropped",
        place="engine.core.turns:complete",
        old="for queued in draft.state.control.queue if dropping else ():",
        new="for queued in ():",
        caught_by="queued_turns_start_in_order_or_are_dropped",
    ),
    Mutant(
        bug="a turn that ends well takes along what waits behind it",
        place="engine.core.turns:complete",
        old="if dropping else ():",
        new="or ():",
        caught_by="queued_turns_start_in_order_or_are_dropped",
    ),
    Mutant(
        bug="nothing starts what waited behind a turn",
        place="engine.core.queued:start_next",
        old="if ready is None:",
        new="if True:",
        caught_by="the_queue_moves_on",
    ),
    Mutant(
        bug="a turn id that was used starts another turn",
        place="engine.core.inputs:append_messages",
        old="command.turn_id is not None and is_known_turn(draft, command.turn_id)",
        new="False",
        caught_by="turns_start_and_end_once",
    ),
    Mutant(
        bug="input that waits in the queue counts as unknown",
        place="engine.core.branches:accepted_ids",
        old="(*waiting, *queued, *results)",
        new="(*waiting, *results)",
        caught_by="machine",
    ),
    Mutant(
        bug="input that joined is lost when its turn ends",
        place="engine.core.turns:record_input",
        old="if message.id not in draft.state.tree:",
        new="if False:",
        caught_by="what_waits_is_recorded_or_dropped",
    ),
    Mutant(
        bug="input that joins leaves the client's calls open",
        place="engine.core.inputs:join",
        old='if call.kind == "client":',
        new="if False:",
        caught_by="joining_gives_up_client_calls",
    ),
    Mutant(
        bug="an action that waits ends with its turn",
        place="engine.core.turns:_end_decision",
        old="is_new and not dropping",
        new="False",
        caught_by="actions_are_asked_about_or_dropped",
    ),
    Mutant(
        bug="a snapshot forgets the queue",
        place="engine.store.codec:decode_control",
        old="return _control.validator.validate_json(text)",
        new="return __import__('dataclasses').replace("
        "_control.validator.validate_json(text), queue=())",
        caught_by="folding_gives_the_state",
    ),
    Mutant(
        bug="the worker's memory is attached to no message",
        place="engine.core.values:write",
        old="ev.StateUpdated(state=_cleared(response.state), anchor=anchor)",
        new="ev.StateUpdated(state=_cleared(response.state), anchor=None)",
        caught_by="values_are_attached_to_the_head",
    ),
    Mutant(
        bug="another branch is shown with the values of the one that was left",
        place="engine.core.views:_go",
        old="values=values.at(draft, place.head)",
        new="values=None",
        caught_by="values_are_those_of_the_branch",
    ),
    Mutant(
        bug="of two values on a path the one nearer the root holds",
        place="engine.core.tree:Tree.in_force",
        old="found = newest | found",
        new="found = found | newest",
        caught_by="values_are_those_of_the_branch",
    ),
    Mutant(
        bug="a value that is cleared stays as it was",
        place="engine.core.values:write",
        old="if response.state is not None:",
        new="if response.state:",
        caught_by="a_response_writes_what_it_says",
    ),
    Mutant(
        bug="a model is called as it was declared, whatever a worker wrote",
        place="engine.core.calls:request_model_call",
        old="in_force = members(draft.state.control.agent)",
        new="in_force = members(None)",
        caught_by="a_model_is_called_as_configured",
    ),
)
