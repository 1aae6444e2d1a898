"""Sentences for what a form has done, by the code in the address that answers it; pure.

Every form of every page is answered with such an address, or with a page that says what is wrong.
The code is in the address, so that any bridge behind it, and a browser without scripts, can tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from app.config import AgentConfig

FIELD: Final = "set-"
"""How the code of a changed field begins; its key follows."""
_MORE: Final = {"extends": "Extends"}
"""Fields of the form that are no keys of an entry by themselves."""
SENTENCES: Final[Mapping[str, str]] = {
    "agent-added": "Agent added.",
    "agent-checked": "Checked.",
    "agent-default": "It is the default now.",
    "agent-isolated": "It has an entry of its own now and runs isolated.",
    "agent-removed": "Agent removed.",
    "agent-renamed": "Agent renamed.",
    "connected": "Credentials saved.",
    "disconnected": "Credentials removed.",
    "env": "Environment saved.",
    "file-delete": "File deleted.",
    "file-restore": "Version restored.",
    "file-save": "File saved.",
    "file-undo": "Last change undone.",
    "grant-ended": "Taken back. The next such call is asked again.",
    "isolation-seen": "Noted.",
    "named": "Name saved.",
    "note-removed": "Note removed.",
    "person-disable": "Disabled. Their log-ins and tokens count no more.",
    "person-enable": "Enabled.",
    "person-sign-out": "Signed out everywhere.",
    "role-given": "Role given.",
    "schedule-added": "Schedule added.",
    "schedule-pause": "Schedule paused.",
    "schedule-remove": "Schedule removed.",
    "schedule-resume": "Schedule resumed.",
    "schedule-run": "The schedule runs now. Follow it in its thread.",
    "thread-archived": "Thread archived. It comes back with the next message in it.",
    "thread-back": "Thread put back into the list.",
    "thread-cleared": "Thread cleared.",
    "thread-deleted": "Thread deleted.",
    "thread-forked": "This is the fork. The other thread stays as it is.",
    "thread-pinned": "Thread pinned to the top.",
    "thread-renamed": "Thread renamed.",
    "thread-unpinned": "Thread no longer pinned.",
    "token-revoked": "Token revoked.",
    "undone": "Change undone.",
}


def address(path: str, code: str, anchor: str = "") -> str:
    """Return the address that a form is answered with."""
    return f"{path}?done={code}{anchor and f'#{anchor}'}"


def sentence(code: str) -> str:
    """Return the words of a code; empty for one that is not known."""
    if not code.startswith(FIELD):
        return SENTENCES.get(code, "")
    key = code.removeprefix(FIELD)
    about = AgentConfig.model_fields.get(key)
    label = about.title if about is not None else _MORE.get(key)
    return f"{label} saved." if label else ""
