"""Attacks over HTTP: guesses at the admin token, odd heads, and what strangers can find out."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.bridge import ADMIN_TOKEN, BridgeProcess, demo
from tests.support.github import Hub
from tests.support.platform import Platform

AGENT = "secret-project"
GUESS = "a-guess-that-must-not-be-logged"
RIGHT = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
WRONG = {"Authorization": f"Bearer {GUESS}"}


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[BridgeProcess]:
    with Platform() as platform:
        bridge = BridgeProcess(tmp_path, platform, agents={AGENT: demo()}, page=True)
        with bridge:
            yield bridge


def client(bridge: BridgeProcess, address: str = "127.0.0.1") -> httpx.Client:
    """Call from an address of this machine."""
    return httpx.Client(
        base_url=f"http://127.0.0.1:{bridge.port}",
        transport=httpx.HTTPTransport(local_address=address),
    )


def guess(
    http: httpx.Client, times: int, path: str = "/api/v1/sessions", **headers: str
) -> set[int]:
    """Guess many times; returns the statuses that came back."""
    return {http.get(path, headers=WRONG | headers).status_code for _ in range(times)}


def test_guesses_at_the_token_are_slowed_down_and_told_once(bridge: BridgeProcess) -> None:
    """Attack 23."""
    with client(bridge) as attacker:
        assert guess(attacker, 100) == {401, 429}

    log = bridge.log.read_text()
    assert log.count("wrong admin token or log-in link from 127.0.0.1") == 1
    assert GUESS not in log


def test_the_right_token_and_a_link_that_works_are_accepted_during_guesses(
    bridge: BridgeProcess,
) -> None:
    """Anyone behind the same proxy, or a page in a browser here, could lock people out."""
    with client(bridge) as http:
        guess(http, 60)
        made = http.post("/api/v1/login-links", headers=RIGHT)
        link = httpx.URL(made.json()["url"])
        opened = http.post(link.path, headers={"Host": link.netloc.decode()})
        assert guess(http, 1) == {429}

    assert made.status_code == 201
    assert (opened.status_code, "set-cookie" in opened.headers) == (303, True)


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_page_of_another_site_cannot_even_guess(bridge: BridgeProcess, site: str) -> None:
    """A script loads `/login/x` in a loop; browsers send no Origin with that."""
    loaded = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "empty"}
    framed = {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}
    with client(bridge) as http:
        found = {
            http.get(path, headers=WRONG | headers).status_code
            for headers in (loaded, framed)
            for path in ("/login/x", "/api/v1/sessions", "/")
            for _ in range(20)
        }
        assert guess(http, 1) == {401}

    assert found == {403}
    assert bridge.log.read_text().count("wrong admin token or log-in link") == 1


def test_a_link_that_a_person_follows_on_another_site_is_opened(bridge: BridgeProcess) -> None:
    followed = {
        "Sec-Fetch-Site": "cross-site",
        "Sec-Fetch-Mode": "navigate",
        "Sec-Fetch-Dest": "document",
    }
    with client(bridge) as http:
        link = httpx.URL(http.post("/api/v1/login-links", headers=RIGHT).json()["url"])
        answer = http.get(link.path, headers={**followed, "Host": link.netloc.decode()})

    assert (answer.status_code, "Sign in" in answer.text) == (200, True)


@pytest.mark.long
def test_a_named_proxy_tells_whose_guesses_they_are(tmp_path: Path) -> None:
    with Platform() as platform:
        bridge = BridgeProcess(tmp_path, platform, agents={AGENT: demo()}, page=True)
        bridge.settings = {"TRUSTED_PROXIES": "127.0.0.1/32,10.0.0.0/8"}
        with bridge, client(bridge) as proxy, client(bridge, "127.0.0.2") as stranger:
            one, other = ({"X-Forwarded-For": f"192.0.2.{each}, 10.1.1.1"} for each in (1, 2))
            assert guess(proxy, 60, **one) == {401, 429}
            assert guess(proxy, 1, **other) == {401}
            assert guess(stranger, 60, **one) == {401, 429}
            assert guess(stranger, 1, **other) == {429}
            claimed = {"X-Forwarded-For": "203.0.113.9, 192.0.2.1"}
            assert guess(proxy, 1, **claimed) == {429}

    told = re.findall(r"wrong admin token or log-in link from (\S+)", bridge.log.read_text())
    assert told == ["192.0.2.1", "192.0.2.2", "127.0.0.2"]


def test_nobody_guesses_on_by_claiming_to_be_a_proxy(bridge: BridgeProcess) -> None:
    """Attack 23."""
    with client(bridge) as attacker:
        claims = [{"X-Forwarded-For": f"192.0.2.{number}"} for number in range(100)]
        found = {
            attacker.get("/api/v1/sessions", headers=WRONG | claim).status_code for claim in claims
        }

    assert found == {401, 429}


@pytest.mark.parametrize("path", ["/api/v1/login-links", "/login/guessed", "/readyz", "/"])
def test_every_door_slows_guesses_down(bridge: BridgeProcess, path: str) -> None:
    """Attack 23."""
    method = "POST" if path.startswith("/api") else "GET"
    with client(bridge) as attacker:
        found = [attacker.request(method, path, headers=WRONG).status_code for _ in range(60)]

    assert found[-1] == 429


def head(bridge: BridgeProcess, *lines: str) -> bytes:
    """Send a head as it stands; returns the first line of the answer."""
    with socket.create_connection(("127.0.0.1", bridge.port), 10) as line:
        line.sendall("\r\n".join(("GET /healthz HTTP/1.1", *lines, "", "")).encode())
        return line.recv(4096).partition(b"\r\n")[0]


def test_two_hosts_are_refused(bridge: BridgeProcess) -> None:
    """Small: of two Host headers the last one counted."""
    own = f"Host: 127.0.0.1:{bridge.port}"

    assert b" 400 " in head(bridge, "Host: evil.example", own)
    assert b" 400 " in head(bridge, own, own)
    assert b" 200 " in head(bridge, own)


def test_another_scheme_is_another_origin(bridge: BridgeProcess) -> None:
    """Small: Origin ignored the scheme."""
    with client(bridge) as http:
        origins = {"http": 200, "https": 403, "ftp": 403}
        found = {
            scheme: http.get(
                "/healthz", headers={"Origin": f"{scheme}://127.0.0.1:{bridge.port}"}
            ).status_code
            for scheme in origins
        }

    assert found == origins


def test_a_huge_head_is_refused(bridge: BridgeProcess) -> None:
    """Small: a header of 200 KB was taken."""
    with client(bridge) as http:
        answer = http.get("/healthz", headers={"X-Huge": "x" * 200_000})

    assert answer.status_code == 431


@pytest.mark.long
def test_strangers_are_told_no_names_of_agents(tmp_path: Path) -> None:
    """Small: /openapi.json, /readyz and /metrics named agents to anybody."""
    name = "roadrunner"
    with Platform() as platform, Hub(tmp_path, (name,)) as hub:
        bridge = BridgeProcess(tmp_path, platform, agents={name: demo()}, page=True)
        bridge.settings = hub.settings
        with bridge, client(bridge) as stranger:
            said = {"agent": name, "text": "say hello"}
            bridge.http.post("/api/v1/sessions", json=said)
            ended = 'agent_bridge_turns_total{state="done"} 1.0'
            bridge.wait(lambda: ended in stranger.get("/metrics").text, "no turn ended")
            paths = ("/healthz", "/readyz", "/metrics", "/openapi.json", "/")
            told = {path: stranger.get(path).text for path in paths}
            known = {path: bridge.http.get(path).text for path in ("/readyz", "/metrics")}

    assert [path for path, text in told.items() if name in text] == []
    assert ended in told["/metrics"]
    assert json.loads(told["/readyz"]) == {"ready": True}
    assert "/webhooks/github/{agent}" in json.loads(told["/openapi.json"])["paths"]
    assert all(name in text for text in known.values())
