"""Odd and forged GitHub webhooks, sent to a whole bridge: nothing of them becomes a turn."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from uuid import uuid4

import pytest

from tests.sim.github.hooks import Event
from tests.support.github import GithubWorld
from tests.support.variants import quick

ODD_BODIES = {
    "gzip": gzip.compress(b"{}"),
    "brackets": b"[" * 200_000,
    "a null character": b'{"action": "opened\x00"}',
    "lone surrogates": b'{"action": "created", "comment": {"body": "\\ud800"}}',
    "accents": ('{"action": "' + "e\u0301" * 300_000 + '"}').encode(),
    "no JSON": b"hello",
    "nothing": b"",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GithubWorld]:
    with GithubWorld(tmp_path_factory.mktemp("world"), agents=("claude", "codex")) as world:
        yield world


@pytest.fixture
def turns(world: GithubWorld) -> Callable[[], int]:
    """Count the turns since the test began."""
    before = world.turns()
    return lambda: world.turns() - before


def held(world: GithubWorld, words: str) -> Event:
    """Take the event of a mention that GitHub has not delivered yet."""
    world.github.hooks.held = []
    world.issue(words)
    event = next(each for each in world.github.hooks.held if each.app is world.apps["claude"])
    world.github.hooks.held = None
    return event


def signed(event: Event, body: bytes, secret: str) -> dict[str, str]:
    """Sign other bytes than those of an event."""
    signature = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return event.headers() | {
        "x-hub-signature-256": f"sha256={signature}",
        "x-github-delivery": str(uuid4()),
    }


def send(world: GithubWorld, body: bytes, headers: dict[str, str], agent: str = "claude") -> int:
    return world.bridge.http.post(
        f"/webhooks/github/{agent}", content=body, headers=headers
    ).status_code


def test_what_the_other_agent_signs_or_gets_is_refused(
    world: GithubWorld, turns: Callable[[], int]
) -> None:
    event = held(world, "@claude-bridge say hello")
    forged = signed(event, event.body, world.apps["codex"].secret)
    upper = event.headers()["x-hub-signature-256"].upper().replace("SHA256", "sha256")

    assert send(world, event.body, forged) == 401
    assert send(world, event.body, event.headers(), agent="codex") == 401
    assert send(world, event.body, event.headers() | {"x-hub-signature-256": upper}) == 401
    world.settled()
    assert turns() == 0


@pytest.mark.long
@pytest.mark.parametrize("body", quick(3, ODD_BODIES))
def test_odd_bodies_lead_to_nothing_and_the_next_event_is_heard(
    world: GithubWorld, turns: Callable[[], int], body: bytes
) -> None:
    event = held(world, "@claude-bridge say hello")

    assert send(world, body, signed(event, body, world.apps["claude"].secret)) == 200
    world.settled()
    assert turns() == 0
    assert send(world, event.body, event.headers()) == 200
    world.settled(lambda: turns() == 1)


def test_one_event_leads_to_one_turn_however_often_it_is_sent(
    world: GithubWorld, turns: Callable[[], int]
) -> None:
    event = held(world, "@claude-bridge say hello")
    secret = world.apps["claude"].secret
    again = [event.headers() | {"x-github-delivery": str(uuid4())} for _ in range(20)]
    payload = event.payload | {"issue": event.payload["issue"] | {"title": "Another"}}
    other = json.dumps(payload).encode()
    same_id = signed(event, other, secret) | {"x-github-delivery": event.guid}

    assert {send(world, event.body, each) for each in (event.headers(), *again)} == {200}
    assert send(world, other, same_id) == 200
    world.settled(lambda: turns() == 1)
    assert turns() == 1
