"""Outside judges of recorded streams: the official client, and `ag-ui-validate`."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

from ag_ui_validate import ValidatorOptions, create_validator

Event: TypeAlias = dict[str, Any]
Stream: TypeAlias = list[Event]

OFF = {"AGUI105": "off", "AGUI204": "off", "AGUI301": "off"}
"""Rules that do not fit AG-UI 1.0: empty deltas, arguments that are not JSON, and a delta
before any snapshot are legal."""

RAISED = {"AGUI008": "error", "AGUI402": "error", "AGUI605": "error", "AGUI606": "error"}
"""Rules that the specification makes a MUST."""


def validated(stream: Stream, *, resumed: bool, two_ends: bool = False) -> list[str]:
    """Return what `ag-ui-validate` finds wrong with a stream, a line each.

    `resumed`: the run continues a call that an earlier one announced. `two_ends`: it
    finishes and then reports an error, as the specification allows.
    """
    overrides = {**OFF, **RAISED}
    overrides |= {"AGUI207": "off"} if resumed else {}
    overrides |= {"AGUI005": "off", "AGUI004": "off"} if two_ends else {}
    validator = create_validator(ValidatorOptions(severity_overrides=overrides))
    found = [d for event in stream for d in validator.feed(event)]
    found += validator.finalize()
    return [f"{d.rule}: {d.message}" for d in found if d.severity in {"error", "warning"}]


def verified(streams: Sequence[Stream]) -> list[str | None]:
    """Return what the official client says of each stream; `None`: it took it silently.

    All streams go through one Node process.
    """
    node = shutil.which("node")
    assert node is not None, "Node 20 or newer is needed"
    judge = Path(__file__).with_name("judge.mjs")
    done = subprocess.run(
        [node, str(judge)],
        input=json.dumps(streams),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    return json.loads(done.stdout)
