"""The demo agent with a repertoire: `play NAME` does what a JSON file of that name says, in order.

A step is an update as ACP writes it, or `{"ask": call}`, or `{"hold": NAME}`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "app"))

import demo_agent  # type: ignore[import-not-found]  # found beside the package, as a script is

PLAYS = Path(os.environ["PLAYS"])


class PlayedTurn(demo_agent.FaultyTurn):  # type: ignore[misc]  # of a module that mypy cannot see
    """A turn that can also play."""

    commands = demo_agent.FaultyTurn.commands | {"play": r"[\w-]+"}

    def _do_play(self, name: str) -> None:
        for step in json.loads((PLAYS / f"{name}.json").read_text()):
            self.check()
            if "ask" in step:
                self.ask(step["ask"], step.get("options", demo_agent.PERMISSIONS))
            elif "hold" in step:
                self._do_hold(step["hold"])
            else:
                self.update(step.pop("sessionUpdate"), **step)


demo_agent.FaultyTurn = PlayedTurn
demo_agent.main()
