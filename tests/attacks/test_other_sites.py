"""Other sites and rough requests: what they send to a bridge where a person is signed in."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.support.platform import Platform
from tests.support.served import SECONDS, Forked

EVIL = "http://evil.test"


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forked]:
    folder = tmp_path_factory.mktemp("bridge")
    with Platform() as platform, Forked(folder, platform) as started:
        yield started


@pytest.fixture(scope="module")
def signed_in(bridge: Forked) -> Iterator[httpx.Client]:
    """Be a browser with a log-in; it names its host as browsers do."""
    link = httpx.URL(bridge.new_link())
    own = {"Host": link.netloc.decode()}
    with httpx.Client(
        base_url=f"http://127.0.0.1:{bridge.port}", headers=own, trust_env=False, timeout=SECONDS
    ) as http:
        cookie = http.post(link.path).headers["set-cookie"].partition(";")[0]
        http.cookies.clear()
        http.headers["Cookie"] = cookie
        yield http


def exchange(bridge: Forked, request: str) -> bytes:
    """Send raw bytes and read until the bridge closes the connection."""
    with socket.create_connection(("127.0.0.1", bridge.port), SECONDS) as connection:
        connection.sendall(request.encode())
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_the_log_in_of_these_tests_works(signed_in: httpx.Client) -> None:
    assert signed_in.get("/").status_code == 200


@pytest.mark.parametrize("path", ["/events", "/api/v1/sessions/1/events"])
@pytest.mark.parametrize("headers", [{"Origin": EVIL}, {"Origin": "null"}, {"Host": "evil.test"}])
def test_no_other_site_follows_what_happens(
    signed_in: httpx.Client, path: str, headers: dict[str, str]
) -> None:
    assert signed_in.get(path, headers=headers).status_code == 403


@pytest.mark.parametrize("path", ["/", "/send", "/events", "/api/v1/sessions"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_no_preflight_of_another_site_is_granted(
    signed_in: httpx.Client, path: str, method: str
) -> None:
    asked = {"Origin": EVIL, "Access-Control-Request-Method": method}

    answer = signed_in.options(path, headers=asked)

    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control-")]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
@pytest.mark.parametrize("path", ["/send", "/logout", "/api/v1/sessions"])
def test_a_form_without_the_token_of_the_page_sends_nothing(
    bridge: Forked, signed_in: httpx.Client, path: str, kind: str
) -> None:
    headers = {"Origin": bridge.url, "Content-Type": kind}
    body = b'{"agent": "demo", "text": "say hello"}'

    answer = signed_in.post(path, content=body, headers=headers)

    assert answer.status_code == 403
    assert bridge.rows("select count(*) from turn") == [(0,)]


@pytest.mark.parametrize("name", ["X-Forwarded-Host", "X-Forwarded-Server", "Forwarded"])
def test_what_a_proxy_is_said_to_have_seen_counts_for_nothing(
    bridge: Forked, signed_in: httpx.Client, name: str
) -> None:
    own = httpx.URL(bridge.url).netloc.decode()

    foreign = signed_in.get("/", headers={"Host": "evil.test", name: own})
    forwarded = bridge.http.post("/api/v1/login-links", headers={name: "evil.test"})

    assert foreign.status_code == 403
    assert forwarded.json()["url"].startswith(f"{bridge.url}/login/")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../../../data/secrets",
        "/static/..%2f..%2f..%2fdata%2fsecrets",
        "/uploads/../secrets",
        "/uploads/..%2fsecrets",
        "/uploads/%2e%2e/%2e%2e/bridge.lock",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out_of_what_is_served(bridge: Forked, path: str) -> None:
    (bridge.data_dir / "secrets").write_text("canary")

    said = exchange(
        bridge,
        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{bridge.port}\r\nConnection: close\r\n"
        f"Authorization: {bridge.http.headers['Authorization']}\r\n\r\n",
    )

    assert said.split(b" ", 2)[1] in (b"400", b"404", b"405")
    assert b"canary" not in said
    assert b"root:" not in said


@pytest.mark.parametrize(
    "lengths",
    [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Content-Length: 4\r\nContent-Length: 60",
    ],
)
def test_a_request_of_two_lengths_hides_no_second_one(bridge: Forked, lengths: str) -> None:
    host = f"Host: 127.0.0.1:{bridge.port}"
    hidden = f"GET /healthz HTTP/1.1\r\n{host}\r\n\r\n"

    said = exchange(
        bridge, f"POST /api/v1/sessions HTTP/1.1\r\n{host}\r\n{lengths}\r\n\r\n0\r\n\r\n{hidden}"
    )

    assert b'"status":"ok"' not in said
    assert said.startswith(b"HTTP/1.1 400")
