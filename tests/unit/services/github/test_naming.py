"""Which repository an event is about, and what that was called before."""

from __future__ import annotations

import json

import pytest

from app.core.inbound import Naming
from app.services.github import naming
from tests.support.github_desk import Desk

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("owner", "name"), [("acme", "gadgets"), ("other", "widgets")])
async def test_a_repository_that_got_another_name_is_known_by_its_number(
    desk: Desk, owner: str, name: str
) -> None:
    desk.github.rename(desk.repository, owner, name)

    (event,) = desk.events()

    number, full = desk.repository.id, f"{owner}/{name}"
    told = Naming("github", "git.example", number, full, "acme/widgets")
    assert naming.read(event.kind, event.body, "git.example") == told


async def test_any_event_shows_what_a_repository_is_called(desk: Desk) -> None:
    desk.github.open_issue("ann", desk.repository, "Bug")

    (event,) = desk.events()

    known = Naming("github", "git.example", desk.repository.id, "acme/widgets")
    assert naming.read(event.kind, event.body, "git.example") == known


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"action": "x"}', b'{"repository": {"id": "x"}}'])
def test_what_is_about_no_repository_names_none(body: bytes) -> None:
    assert naming.read("repository", body, "git.example") is None


def test_a_transfer_from_an_organisation_names_it_as_github_does() -> None:
    payload = {
        "action": "transferred",
        "repository": {"id": 7, "full_name": "new/widgets"},
        "changes": {"owner": {"from": {"organization": {"id": 1, "login": "old"}}}},
    }

    found = naming.read("repository", json.dumps(payload).encode(), "h")

    assert found == Naming("github", "h", 7, "new/widgets", "old/widgets")
