"""The demo agent with a repertoire: a line with the name of a play does what its JSON file says.

A step is an update as ACP writes it, or `{"ask": call}`, or `{"hold": NAME}`, or `{"use": call}`: a
call from its beginning to its end, with `options` asked for first, with files that it writes, a
file that it waits for as its `hold`, and with its `end`. `$CWD` is the workspace, and a text
`$FILL WORD COUNT` is so many times that word.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "app"))

import demo_agent  # type: ignore[import-not-found]  # found beside the package, as a script is

PLAYS = Path(os.environ["PLAYS"])
REFUSALS = {"no", "reject", ""}
"""Ids of options with which a call is not made."""


class PlayedTurn(demo_agent.FaultyTurn):  # type: ignore[misc]  # of a module that mypy cannot see
    """A turn that can also play."""

    def _command(self, line: str) -> Any:
        for play in PLAYS.glob("*.json"):
            if re.search(rf"\b{play.stem}\b", line):
                return self._play, play.read_text()
        return super()._command(line)

    _has_price = False

    def update(self, kind: str, /, **fields: Any) -> None:
        """Send an update; the cost that a play names stays the last word."""
        cost = (fields.get("cost") or {}).get("amount")
        if kind != "usage_update" or cost or not self._has_price:
            self._has_price = self._has_price or bool(cost)
            super().update(kind, **fields)

    def _play(self, steps: str) -> None:
        for step in json.loads(steps.replace("$CWD", self.session.cwd)):
            self.check()
            step = _fill(step)
            if "use" in step:
                self._use(step)
            elif "ask" in step:
                self.ask(step["ask"], step.get("options", demo_agent.PERMISSIONS))
            elif "hold" in step:
                self._hold(step["hold"])
            else:
                self.update(step.pop("sessionUpdate"), **step)

    def _use(self, step: dict[str, Any]) -> None:
        call = {**step["use"], "status": "pending"}
        self.update("tool_call", **call)
        end = {"status": "completed", **step.get("end", {})}
        if "options" in step and self.ask(call, step["options"]) in REFUSALS:
            end = {"status": "failed", "rawOutput": "Rejected."}
        else:
            self.update("tool_call_update", toolCallId=call["toolCallId"], status="in_progress")
            if "hold" in step:
                self._hold(step["hold"])
            for name, words in step.get("write", {}).items():
                path = Path(self.inside(name))
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(words)
        self.update("tool_call_update", toolCallId=call["toolCallId"], **end)

    def _hold(self, name: str) -> None:
        while not Path(self.inside(name)).exists():
            self.pause(demo_agent.POLL_SECONDS)


def _fill(value: Any) -> Any:
    if isinstance(value, dict):
        return {_fill(key): _fill(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill(item) for item in value]
    if isinstance(value, str) and value.startswith("$FILL "):
        _, word, count = value.split()
        return word * int(count)
    return value


demo_agent.FaultyTurn = PlayedTurn
demo_agent.main()
