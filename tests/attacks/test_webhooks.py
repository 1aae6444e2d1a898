"""Odd and forged GitHub webhooks, sent to a whole bridge: nothing of them becomes a turn."""

from __future__ import annotations

import gzip
import hashlib
import hmac
import json
import re
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import ExitStack, suppress
from pathlib import Path
from uuid import uuid4

import pytest

from sim.github.hooks import Event
from tests.support.github import GithubWorld
from tests.support.variants import quick

SECONDS = 30.0
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


HEAD = "POST /webhooks/github/claude HTTP/1.1\r\nHost: any\r\nContent-Length: {size}\r\n{more}\r\n"
SIGNATURE = f"X-Hub-Signature-256: sha256={'0' * 64}\r\n"
LARGE = 24 * 1024 * 1024


def begin(world: GithubWorld, more: str = "") -> socket.socket:
    """Send the head of a large webhook."""
    connection = socket.create_connection(("127.0.0.1", world.bridge.port), SECONDS)
    connection.sendall(HEAD.format(size=LARGE, more=more).encode())
    return connection


def memory(world: GithubWorld) -> int:
    """Return how much memory the bridge has used at most, in bytes."""
    assert world.bridge.process is not None
    status = Path(f"/proc/{world.bridge.process.pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) * 1024


def test_a_body_without_a_signature_is_refused_before_it_is_sent(world: GithubWorld) -> None:
    with begin(world) as connection:
        said = b"".join(iter(lambda: connection.recv(65536), b""))

    assert said.startswith(b"HTTP/1.1 401 ")
    assert b"X-Hub-Signature-256 is missing" in said


@pytest.mark.long
def test_large_bodies_of_strangers_fill_no_memory_and_the_next_event_is_heard(
    world: GithubWorld, turns: Callable[[], int]
) -> None:
    """24 connections with 24 MB each took 580 MB."""
    before = memory(world)
    event = held(world, "@claude-bridge say hello")

    with ThreadPoolExecutor(24) as strangers, ExitStack() as opened:
        connections = [opened.enter_context(begin(world, SIGNATURE)) for _ in range(24)]
        sent = [strangers.submit(send_most, each) for each in connections]
        assert send(world, event.body, event.headers()) == 200
        wait(sent, SECONDS)
        assert send(world, *signed_again(world, event)) == 200

    world.settled(lambda: turns() == 1)
    assert memory(world) - before < 200 * 1024 * 1024


def send_most(connection: socket.socket) -> None:
    """Send all of a large body but its end, as far as the bridge takes it."""
    with suppress(OSError):
        for _ in range(LARGE // 2**20 - 1):
            connection.sendall(b"x" * 2**20)


def signed_again(world: GithubWorld, event: Event) -> tuple[bytes, dict[str, str]]:
    return event.body, signed(event, event.body, world.apps["claude"].secret)


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
