"""Opens sessions on Linear about work that begins elsewhere, if the operator wants that.

Linear gives a session no id that the bridge could choose. One that an earlier attempt opened is
found again by its link.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from app.model.inbound import Begun
from app.services.linear import wording
from app.services.linear.activities import Activities
from app.services.linear.api import LinearApi, LinearRefused
from app.services.linear.identity import Identification
from app.services.linear.render import FIRST, Activity

# An issue as people write it: its name, alone or in its address.
_ISSUE: Final = re.compile(r"(?<![\w-])[A-Z][A-Z0-9]{0,9}-[1-9][0-9]{0,6}(?![\w-])")


def find_issue(texts: Iterable[str]) -> str | None:
    """Find the one issue that texts name; None if they name none, or several."""
    found = {name for text in texts for name in _ISSUE.findall(text)}
    return found.pop() if len(found) == 1 else None


async def open_session(
    api: LinearApi, activities: Activities, identification: Identification, begun: Begun
) -> str | None:
    """Open a session on the issue that people named, and say there that the work began.

    Returns its id, or None if they named none that Linear knows.

    Raises:
        PostDelayed: not now.
        PostRejected: never.
        ServiceRefused: not with these credentials.
    """
    name = find_issue(begun.texts)
    if name is None:
        return None
    me = await identification.wait()
    try:
        found = (await api.call("issue_sessions", id=name))["issue"]
    except LinearRefused as error:
        if error.missing:
            return None
        raise
    session = next(
        (
            str(each["id"])
            for each in found["agentSessions"]["nodes"]
            if each["appUser"]["id"] == me.user
            and any(link["url"] == begun.link for link in each["externalLinks"])
        ),
        None,
    )
    if session is None:
        links = [{"label": wording.CONVERSATION, "url": begun.link}]
        wanted = {"issueId": found["identifier"], "externalUrls": links}
        made = await api.call("create_session", input=wanted)
        session = str(made["agentSessionCreateOnIssue"]["agentSession"]["id"])
    words = {"type": "thought", "body": wording.BEGAN.format(link=begun.link)}
    await activities.create(session, f"{session}:{begun.link}", Activity(FIRST, words))
    return session
