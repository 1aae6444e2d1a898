"""Which repository an event is about, and what that was called before."""

from __future__ import annotations

import json

import pytest

from app.errors import DeliveryUnreadable
from app.model.inbound import Delivery, Naming
from app.services.github.events import name_repository, parse
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
    assert name_repository(parse(event.kind, event.body), "git.example") == told


async def test_any_event_shows_what_a_repository_is_called(desk: Desk) -> None:
    desk.github.open_issue("ann", desk.repository, "Bug")

    (event,) = desk.events()

    known = Naming("github", "git.example", desk.repository.id, "acme/widgets")
    assert name_repository(parse(event.kind, event.body), "git.example") == known


def test_what_is_about_no_repository_names_none() -> None:
    assert name_repository(parse("ping", b'{"action": "x"}'), "git.example") is None


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"action": "x"}', b'{"repository": {"id": "x"}}'])
async def test_what_is_no_event_of_a_repository_is_unreadable_and_names_none(
    desk: Desk, body: bytes
) -> None:
    delivery = Delivery("github:claude", "one", None, {"event": "repository"}, body, 0.0)

    assert desk.claude.naming(delivery) is None
    with pytest.raises(DeliveryUnreadable):
        desk.claude.parse(delivery)


def test_a_transfer_from_an_organisation_names_it_as_github_does() -> None:
    payload = {
        "action": "transferred",
        "repository": {"id": 7, "full_name": "new/widgets"},
        "changes": {"owner": {"from": {"organization": {"id": 1, "login": "old"}}}},
    }

    found = name_repository(parse("repository", json.dumps(payload).encode()), "h")

    assert found == Naming("github", "h", 7, "new/widgets", "old/widgets")
