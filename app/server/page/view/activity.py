"""Says what a tool call does while it runs, as in `running pytest -q`; pure."""

from __future__ import annotations

import re
from typing import Final

from app.model.text import reveal_line
from app.server.page.view.blocks import Call

VERBS: Final = {
    "read": "reading",
    "edit": "editing",
    "delete": "deleting",
    "move": "moving",
    "search": "searching",
    "execute": "running",
    "fetch": "fetching",
}
CHARACTERS: Final = 120
"""More than one line shows."""

_VERB: Final = re.compile(
    r"\A(?:run|running|read|reading|edit|editing|write|writing|delete|deleting|move|moving|"
    r"search|searching|grep|find|fetch|fetching|execute|executing)(?: for)?:?\s+(?=\S)",
    re.IGNORECASE,
)


def describe(call: Call | None) -> tuple[str, str]:
    """Return a verb and its object, such as a command; nothing if no call runs."""
    if call is None:
        return "", ""
    given = call.data.get("input")
    command = given.get("command") if isinstance(given, dict) else None
    verb = VERBS.get(str(call.data.get("kind") or call.kind))
    if verb == "running" and isinstance(command, str) and command.strip():
        words = command.strip().partition("\n")[0]
    else:
        words = _VERB.sub("", call.title, count=1) if verb else call.title
    words = words.strip("`") if words.count("`") == 2 else words
    return verb or "using", reveal_line(words[:CHARACTERS])
