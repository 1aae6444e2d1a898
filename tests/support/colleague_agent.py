"""The demo agent as a colleague: it reviews by looking for the word `broken`, and repairs that.

It leaves a file `stubborn.txt` as it is, and waits before it reviews a `wait.txt` or repairs a
`hold.txt`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "app"))

import demo_agent  # type: ignore[import-not-found]  # found beside the package, as a script is

BROKEN, REPAIRED = "broken", "repaired"


class ColleagueTurn(demo_agent.FaultyTurn):  # type: ignore[misc]  # of a module that mypy cannot see
    """A turn that can also review and repair."""

    def _command(self, line: str) -> Any:
        if line.startswith("Review the work of "):
            return self._review, line
        if " reviewed your work on " in line:
            return self._repair, line
        return super()._command(line)

    def _review(self, _line: str) -> None:
        if any(path.stem == "wait" for path in self._files()):
            self._do_hold("review")
        found = [
            {"path": path.name, "line": number, "body": f"This is {BROKEN}: {line}"}
            for path in self._files()
            for number, line in enumerate(path.read_text().splitlines(), 1)
            if BROKEN in line
        ]
        verdict = "request_changes" if found else "approve"
        body = f"Found {len(found)}." if found else "Nothing to change."
        asked = {"verdict": verdict, "body": body, "comments": found}
        self._do_tool(f"review_submit {json.dumps(asked)}")

    def _repair(self, _line: str) -> None:
        for path in self._files():
            text = path.read_text()
            if BROKEN in text and path.stem == "hold":
                self._do_hold("repair")
            if BROKEN in text and path.stem != "stubborn":
                self._do_write(f"{path.name} {text.replace(BROKEN, REPAIRED).strip()}")
        self.say("Repaired what was broken.")

    def _files(self) -> list[Path]:
        return sorted(Path(self.session.cwd).glob("*.txt"))


demo_agent.FaultyTurn = ColleagueTurn
demo_agent.main()
