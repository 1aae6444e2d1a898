"""The demo agent with a repertoire: a line with the name of a play does what its JSON file says.

A step is an update as ACP writes it, or `{"ask": call}`, `{"hold": NAME}` or `{"write": PATH}`.
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


class PlayedTurn(demo_agent.FaultyTurn):  # type: ignore[misc]  # of a module that mypy cannot see
    """A turn that can also play."""

    def _command(self, line: str) -> Any:
        for play in PLAYS.glob("*.json"):
            if re.search(rf"\b{play.stem}\b", line):
                return self._play, play.read_text()
        return super()._command(line)

    def _play(self, steps: str) -> None:
        for step in json.loads(steps):
            self.check()
            if "ask" in step:
                self.ask(step["ask"], step.get("options", demo_agent.PERMISSIONS))
            elif "hold" in step:
                self._do_hold(step["hold"])
            elif "write" in step:
                file = Path(self.inside(step["write"]))
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(step["text"])
            else:
                self.update(step.pop("sessionUpdate"), **step)


demo_agent.FaultyTurn = PlayedTurn
demo_agent.main()
