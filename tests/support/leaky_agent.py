"""The demo agent with a loose tongue: `leak WHERE` says its own key wherever an agent can.

The key is `LEAKY_API_KEY` of its environment, so that nobody has to type it.
"""

from __future__ import annotations

import base64
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "app"))

import demo_agent  # type: ignore[import-not-found]  # found beside the package, as a script is
from secret_forms import FORMS  # type: ignore[import-not-found]  # beside this script

KEY = os.environ["LEAKY_API_KEY"]
demo_agent.MODES.append({"id": "leaky", "name": f"Mode {KEY}", "description": KEY})


class LeakyTurn(demo_agent.FaultyTurn):  # type: ignore[misc]  # of a module that mypy cannot see
    """A turn that says its key."""

    commands = demo_agent.FaultyTurn.commands | {"leak": r"\S+", "same": r".+"}

    def _do_leak(self, where: str) -> None:
        getattr(self, f"leak_{where}")()

    def _do_same(self, words: str) -> None:
        """Tell whether somebody knows the key."""
        self.say("the same" if words == KEY else "another")

    def leak_forms(self) -> None:
        """Say it in every form, each between two words."""
        for name, form in FORMS.items():
            self.say(f"{name}: {form(KEY)} :end.\n\n")

    def leak_marked(self) -> None:
        """Say it with marks that a list of threads strips."""
        self.say(f"`{FORMS['with ticks inside'](KEY)}` {FORMS['with a link inside'](KEY)}")

    def leak_text(self) -> None:
        self.say(f"The key is {KEY}, indeed.")

    def leak_slowly(self) -> None:
        """Say it a character at a time, over the border of two rows."""
        before, after = f"Letter by letter: {KEY[:14]}", f"{KEY[14:]} and on."

        def letters() -> Iterator[str]:
            yield from before
            self.pause(1.2)  # longer than text is joined into one row
            yield from after

        self.stream(letters())

    def leak_encoded(self) -> None:
        self.say(f"In base64: {base64.b64encode(KEY.encode()).decode()}")
        self.say(f"In hex: {KEY.encode().hex()}")

    def leak_thought(self) -> None:
        self.think(f"I must not say {KEY}.")

    def leak_plan(self) -> None:
        steps = [{"content": f"Use {KEY}", "priority": "high", "status": "pending"}]
        self.update("plan", entries=steps)

    def leak_tool(self) -> None:
        diff = {"type": "diff", "path": f"/{KEY}", "oldText": KEY, "newText": KEY}
        call: dict[str, Any] = {"toolCallId": f"call-{KEY}", "title": f"Use {KEY}", "kind": "other"}
        more = {"rawInput": {KEY: [KEY]}, "locations": [{"path": f"/{KEY}"}], "content": [diff]}
        self.update("tool_call", status="pending", **call, **more)
        self.update("tool_call_update", toolCallId=f"call-{KEY}", rawOutput={"out": KEY})

    def leak_title(self) -> None:
        self.update("session_info_update", title=f"About {KEY}")

    def leak_state(self) -> None:
        self.update("current_mode_update", currentModeId=KEY)
        command = {"name": f"use-{KEY}", "description": KEY}
        self.update("available_commands_update", availableCommands=[command])
        self.update("usage_update", used=1, size=2, cost={"amount": 1.0, "currency": KEY})
        self.update(f"no_such_{KEY}", content=KEY)

    def leak_ask(self) -> None:
        call = {"toolCallId": f"call-{KEY}", "title": f"May I use {KEY}?", "rawInput": {"key": KEY}}
        options = [{"optionId": "yes", "name": f"Use {KEY}", "kind": "allow_once"}]
        self.ask(call, options)

    def leak_error(self) -> None:
        raise demo_agent.WireError(-32603, f"Wrong key {KEY}", details=f"it was {KEY}")

    def leak_stderr(self) -> None:
        os.write(2, f"Traceback: KeyError {KEY}\n".encode())
        os._exit(9)

    def leak_afterwards(self) -> None:
        threading.Timer(0.2, self.leak_title).start()


class LeakyAgent(demo_agent.DemoAgent):  # type: ignore[misc]  # of a module that mypy cannot see
    """An agent that names its key when it refuses a mode."""

    def _on_session_set_mode(self, params: dict[str, Any]) -> Any:
        if params["modeId"] == "leaky":
            raise demo_agent.WireError(-32000, f"No mode for {KEY}")
        return super()._on_session_set_mode(params)


demo_agent.FaultyTurn, demo_agent.DemoAgent = LeakyTurn, LeakyAgent
demo_agent.main()
