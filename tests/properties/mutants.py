"""Planted bugs: what the properties must find.

A mutant whose words are no longer in the function fails its test, so the list cannot
go stale.
"""

from tests.properties.mutants_calls import OF_CALLS
from tests.properties.mutants_inputs import OF_INPUTS
from tests.properties.planted import Mutant

OF_TURNS = (
    Mutant(
        bug="an answered interrupt stays open",
        place="engine.core.apply:_interrupts",
        old="tuple(i for i in interrupts if i.id != body.interrupt_id)",
        new="interrupts",
        caught_by="interrupts_end_once",
    ),
    Mutant(
        bug="a decision in line goes out while paused",
        place="engine.core.decisions:_next_ready",
        old="or is_paused(state)",
        new="or False",
        caught_by="nothing_goes_out_while_paused",
    ),
    Mutant(
        bug="a new trigger is decided although another decision is out",
        place="engine.core.decisions:_next_at_once",
        old="or _waiting_here(draft.state) ",
        new="",
        caught_by="one_decision_is_out",
    ),
    Mutant(
        bug="a report of an older attempt is taken",
        place="engine.core.calls:_running",
        old="call is None or call.attempt != attempt",
        new="call is None",
        caught_by="machine",
    ),
    Mutant(
        bug="a retry keeps the number of the attempt",
        place="engine.core.retries:retry_of",
        old="attempt=attempt + 1",
        new="attempt=attempt",
        caught_by="calls_end_once",
    ),
    Mutant(
        bug="a cancel leaves a tool call without a result",
        place="engine.core.turns:_end_calls",
        old="record_unanswered(draft, call_id, TURN_CANCELLED, turn.id)",
        new="pass",
        caught_by="a_turn_that_is_given_up_answers_its_calls",
    ),
    Mutant(
        bug="what an invalid response did is kept",
        place="engine.core.attempts:_apply",
        old="fork = draft.fork()",
        new="fork = draft",
        caught_by="one_decision_is_out",
    ),
    Mutant(
        bug="a snapshot forgets the head",
        place="engine.store.codec:decode_control",
        old="return _control.validator.validate_json(text)",
        new="return __import__('dataclasses').replace("
        "_control.validator.validate_json(text), head=None)",
        caught_by="folding_gives_the_state",
    ),
    Mutant(
        bug="a cancel leaves a question open that no turn raised",
        place="engine.core.turns:cancel",
        old="for interrupt in draft.state.control.interrupts:",
        new="for interrupt in ():",
        caught_by="a_cancel_ends_everything",
    ),
    Mutant(
        bug="what an answer starts is done although the branch is paused",
        place="engine.core.attempts:answer",
        old="if not _waits(draft, decision):",
        new="if True:",
        caught_by="nothing_goes_out_while_paused",
    ),
    Mutant(
        bug="a decision that fails for good while paused ends the turn",
        place="engine.core.attempts:fail",
        old="if _waits(draft, decision) and (own is None or retry is not None):",
        new="if False:",
        caught_by="a_paused_turn_ends_only_by_a_cancel",
    ),
    Mutant(
        bug="an answer stands in line behind what came before it",
        place="engine.core.apply:_in_line",
        old="(*decisions[:place], waiting, *decisions[place:])",
        new="(*decisions, waiting)",
        caught_by="answers_go_out_first",
    ),
    Mutant(
        bug="tool results are sent in the order they arrived backwards",
        place="engine.core.messages:_ordered",
        old="for call in message.tool_calls:",
        new="for call in message.tool_calls[::-1]:",
        caught_by="the_model_is_sent_a_valid_transcript",
    ),
    Mutant(
        bug="an interrupt id is given out twice",
        place="engine.core.interrupts:raise_interrupt",
        old=" or draft.env.was_used(raised_id)",
        new="",
        caught_by="interrupts_end_once",
    ),
    Mutant(
        bug="a deadline that has passed does nothing",
        place="engine.core.due:pass_time",
        old="work.deadline <= now",
        new="False",
        caught_by="machine",
    ),
    Mutant(
        bug="a turn with nothing left to do stays open",
        place="engine.core.turns:complete_idle",
        old="complete(draft, turn, error=turn.error, reason=TURN_DONE)",
        new="return",
        caught_by="somebody_has_the_next_move",
    ),
    Mutant(
        bug="input that joins is recorded while a call is open",
        place="engine.core.decisions:_first",
        old="for each in line if not state.calls_of(each.turn_id)",
        new="for each in line",
        caught_by="joined_input_waits",
    ),
    Mutant(
        bug="a branch that is left takes its running decision along",
        place="engine.core.turns:park",
        old="decision.turn_id == turn.id and decision.is_out",
        new="False",
        caught_by="a_parked_turn_waits_for_somebody",
    ),
    Mutant(
        bug="a parked turn that waits for nothing stays open",
        place="engine.core.turns:abandon",
        old="complete(draft, turn, error=error, reason=TURN_CANCELLED)",
        new="pass",
        caught_by="a_parked_turn_waits_for_somebody",
    ),
    Mutant(
        bug="a running turn is left",
        place="engine.core.views:_go",
        old='if leaves == "running":',
        new="if False:",
        caught_by="only_what_waits_is_left",
    ),
    Mutant(
        bug="a decision of a parked turn goes out",
        place="engine.core.decisions:_waiting_here",
        old="if not state.is_parked(d.turn_id)",
        new="",
        caught_by="a_parked_turn_waits_for_somebody",
    ),
)
"""Turns, decisions, interrupts and branches."""

OF_STREAMS = (
    Mutant(
        bug="what is open at the end of a run is not closed, if it is a thought",
        place="agui_server.agui.ordering:OpenItems.close_all",
        old="for item_id in list(self._open)",
        new="for item_id in list(self._open) if self._open[item_id].kind != 'reasoning'",
        caught_by="streams",
    ),
    Mutant(
        bug="a run ends twice",
        place="agui_server.agui.translate:Translation._end_paused",
        old="yield from self._end(RunFinishedInterruptOutcome(interrupts=interrupts))",
        new="yield from 2 * [*self._end(RunFinishedInterruptOutcome(interrupts=interrupts))]",
        caught_by="streams",
    ),
    Mutant(
        bug="a tool call that was streamed is announced again with the record",
        place="agui_server.agui.translate:Translation._recorded_reply",
        old="streamed = self._streamed.pop(message.id, {})",
        new="streamed = {}",
        caught_by="streams",
    ),
    Mutant(
        bug="a message is never closed before the next thing",
        place="agui_server.agui.translate:Translation._piece",
        old="if ends:",
        new="if False:",
        caught_by="streams",
    ),
    Mutant(
        bug="a resumed run announces the call again",
        place="agui_server.agui.translate:Translation._told",
        old="case ev.SharedStateUpdated(state=state):",
        new="case ev.CallStarted(call_id=call_id):\n"
        "            yield from self._piece('tool', call_id, '{}', name='again')\n"
        "        case ev.SharedStateUpdated(state=state):",
        caught_by="streams",
    ),
)
"""What a page is sent."""

MUTANTS = (*OF_TURNS, *OF_INPUTS, *OF_CALLS, *OF_STREAMS)
