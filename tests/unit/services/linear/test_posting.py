"""Which issue people mean when they ask elsewhere, and what a session of the agent's own starts."""

from __future__ import annotations

import pytest

from app.model.inbound import Heard
from app.model.keys import PlaceKey
from app.model.types import Speaker
from app.services.linear.events import AUTOMATION, in_own_words
from app.services.linear.posting import find_issue

LINKED: dict[str, object] = {
    "agentSession": {"externalLinks": [{"url": "https://bridge.example.com"}]}
}
ALONE: dict[str, object] = {"agentSession": {"externalLinks": []}}


@pytest.mark.parametrize(
    ("texts", "issue"),
    [
        (["please fix ENG-12"], "ENG-12"),
        (["https://linear.app/acme/issue/ENG-12/make-it-blue"], "ENG-12"),
        (["ENG-12", "ENG-12 again"], "ENG-12"),
        (["ENG-12 and ENG-13"], None),
        (["eng-12", "ENG-0", "x-ENG-12", "ENG-12-b"], None),
        ([], None),
    ],
)
def test_one_issue_must_be_named(texts: list[str], issue: str | None) -> None:
    assert find_issue(texts) == issue


@pytest.mark.parametrize(
    ("speaker", "session", "kind"),
    [
        (AUTOMATION, LINKED, "agent"),
        (AUTOMATION, ALONE, "person"),
        (Speaker("ann", "Ann"), LINKED, "person"),
    ],
)
def test_a_session_that_the_agent_opened_itself_starts_nothing(
    speaker: Speaker, session: dict[str, object], kind: str
) -> None:
    heard = Heard(PlaceKey("linear", "ENG-1"), "s1", "s1", speaker, "Handle this issue.")

    assert in_own_words(heard, session).speaker.kind == kind
