"""What an agent serves on this machine never gets the cookie of the person who opens it."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from itsdangerous import URLSafeSerializer
from playwright.sync_api import Browser, expect

from tests.support.bridge import SECRET_KEY
from tests.support.chromium import MISSING, chromium, open_browser
from tests.support.platform import Platform
from tests.support.served import Forked
from tests.support.window import Visit

NAMES = ("127.0.0.1", "localhost", "bridge.localhost", "agent-bridge.localhost")
"""Names of this machine, as an agent can guess them."""
OLD_SALT, NEW_SALT = "agent-bridge log-in", "agent-bridge log-in at "
SIGNER = {"key_derivation": "hmac", "digest_method": hashlib.sha256}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if chromium() is None:
        pytest.skip(MISSING)
    with open_browser() as opened:
        yield opened


@pytest.fixture
def bridge(tmp_path: Path) -> Iterator[Forked]:
    with Platform() as platform, Forked(tmp_path, platform) as started:
        yield started


@contextmanager
def development_server() -> Iterator[tuple[int, dict[str, list[str]]]]:
    """Serve pages on a port as an agent would; gives the port, and the cookies of each request.

    A page leads the browser to the server's next name and then to itself: the second request comes
    from the site that it goes to, so that no SameSite keeps a cookie back.
    """
    heard: dict[str, list[str]] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name, _, port = self.headers["Host"].partition(":")
            step = f"{name}{self.path}"
            heard.setdefault(step, []).append(self.headers.get("Cookie", ""))
            steps = [f"{each}{path}" for each in NAMES for path in ("/", "/again")] + ["-/"]
            following = steps[steps.index(step) + 1] if step in steps else "-/"
            host, _, path = following.partition("/")
            script = f"<script>location = 'http://{host}:{port}/{path}'</script>"
            body = b"<h1>Done</h1>" if host == "-" else script.encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            """Stay quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server.server_port, heard
        server.shutdown()


@pytest.mark.slow
def test_no_server_of_an_agent_gets_the_cookie_of_a_person_who_opens_it(
    browser: Browser, bridge: Forked
) -> None:
    """Attack 6: cookies know no ports."""
    with (
        development_server() as (port, heard),
        closing(Visit(browser, bridge.url, forgiven=("404",))) as person,
    ):
        window = person.sign_in(bridge.new_link())
        hostile = person.open(f"http://127.0.0.1:{port}/")
        expect(hostile.page.get_by_role("heading", name="Done")).to_be_visible()
        window.page.reload()
        expect(window.button("Sign out")).to_be_visible()

    assert set(heard) >= {f"{name}{path}" for name in NAMES for path in ("/", "/again")}
    assert {cookie for cookies in heard.values() for cookie in cookies} == {""}


def test_no_stranger_learns_the_name_under_which_the_page_has_its_cookie(bridge: Forked) -> None:
    """Attack 6: an agent that knew it would lead the browser to it, on a port of its own."""
    secret = httpx.URL(bridge.url).host
    said = ""
    with httpx.Client(base_url=f"http://127.0.0.1:{bridge.port}", trust_env=False) as stranger:
        for name in NAMES:
            for path in ("/", "/login/guess", "/t/web/1", "/readyz", "/openapi.json", "/metrics"):
                for accept in ("text/html", "*/*"):
                    headers = {"Accept": accept, "Host": f"{name}:{bridge.port}"}
                    answer = stranger.get(path, headers=headers)
                    said += f"{answer.headers}{answer.text}"
    output = bridge.log.read_text()

    assert secret.endswith(".localhost")
    assert secret.partition(".")[0] not in said + output


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_link_opened_under_another_name_leads_to_the_page_and_leaves_no_cookie(
    bridge: Forked, method: str
) -> None:
    """Attack 6: a cookie of `127.0.0.1` would go to each server there."""
    link = bridge.new_link()

    answer = bridge.http.request(method, httpx.URL(link).path)

    assert (answer.status_code, answer.headers["location"]) == (303, link)
    assert "set-cookie" not in answer.headers


def test_a_cookie_that_was_given_for_the_address_of_this_machine_opens_nothing(
    bridge: Forked,
) -> None:
    """Attack 6: browsers keep what an earlier bridge set for `127.0.0.1`."""
    link, own = httpx.URL(bridge.new_link()), {"Host": httpx.URL(bridge.url).netloc.decode()}
    del bridge.http.headers["Authorization"]
    given = bridge.http.post(link.path, headers=own).headers["set-cookie"].partition(";")[0]
    name, _, value = given.partition("=")
    login = URLSafeSerializer(SECRET_KEY, salt=NEW_SALT + bridge.url, signer_kwargs=SIGNER).loads(
        value
    )
    old = URLSafeSerializer(SECRET_KEY, salt=OLD_SALT, signer_kwargs=SIGNER).dumps(login)
    bridge.http.cookies.clear()

    statuses = [
        bridge.http.get("/", headers={**own, "Cookie": f"{name}={cookie}"}).status_code
        for cookie in (value, old)
    ]

    assert statuses == [200, 401]


def sign_in(bridge: Forked) -> dict[str, str]:
    """Sign in; returns the headers with which a script on the page sends changes."""
    link, own = httpx.URL(bridge.new_link()), {"Host": httpx.URL(bridge.url).netloc.decode()}
    with httpx.Client(base_url=f"http://127.0.0.1:{bridge.port}", headers=own) as browser:
        cookie = browser.post(link.path).headers["set-cookie"].partition(";")[0]
        page = browser.get("/", headers={"Cookie": cookie}).text
    token = re.findall(r'name="csrf" value="([0-9a-f]+)"', page)[0]
    return {**own, "Cookie": cookie, "Origin": bridge.url, "X-CSRF-Token": token}


def open_another_link(bridge: Forked, browser: dict[str, str]) -> None:
    """Sign in again in the same browser."""
    path = httpx.URL(bridge.new_link()).path
    answer = httpx.post(f"http://127.0.0.1:{bridge.port}{path}", headers=browser)
    browser["Cookie"] = answer.headers["set-cookie"].partition(";")[0]


def grow_old(bridge: Forked) -> None:
    """Let eleven minutes pass for every log-in."""
    bridge.write("update login set proved_at = proved_at - 660 where used_at is not null")


NEW = {"command": "/bin/sh -c id", "sandbox": "none"}
GUARDED: tuple[dict[str, Any], ...] = (
    NEW,
    {"env": {"A": "b"}},
    {"home": "user"},
    {"sandbox": None},
    {"limits": {}},
)


def test_a_cookie_that_is_not_new_decides_about_no_program(bridge: Forked) -> None:
    """A cookie of some weeks ran any command as the bridge, and so read the admin token."""
    bearer = bridge.http.headers["Authorization"]
    browser, api = sign_in(bridge), f"http://127.0.0.1:{bridge.port}/api/v1/agents"
    added = httpx.post(api, json={"name": "first", **NEW}, headers=browser)
    grow_old(bridge)

    refused = [
        httpx.post(api, json={"name": "second", **NEW}, headers=browser),
        *(httpx.patch(f"{api}/first", json=each, headers=browser) for each in GUARDED),
    ]
    described = httpx.patch(f"{api}/first", json={"description": "Mine"}, headers=browser)
    by_token = httpx.post(api, json={"name": "third", **NEW}, headers={"Authorization": bearer})

    assert (added.status_code, described.status_code, by_token.status_code) == (201, 200, 201)
    assert {answer.status_code for answer in refused} == {403}
    assert {answer.headers["content-type"] for answer in refused} == {"application/problem+json"}
    assert all("agent-bridge login" in answer.json()["detail"] for answer in refused)


def test_a_form_tells_an_old_log_in_what_it_needs_and_goes_on_after_a_new_link(
    bridge: Forked,
) -> None:
    browser, page = sign_in(bridge), f"http://127.0.0.1:{bridge.port}"
    form = {"name": "typed", "driver": "demo", "description": "words that were typed"}
    token = {"csrf": browser.pop("X-CSRF-Token")}
    grow_old(bridge)
    begun = httpx.get(f"{page}/new-agent?driver=demo", headers=browser)

    refused = httpx.post(f"{page}/agents", data={**form, **token}, headers=browser)
    open_another_link(bridge, browser)
    added = httpx.post(f"{page}/agents", data={**form, **token}, headers=browser)
    grow_old(bridge)
    changed = httpx.post(
        f"{page}/agents/typed/set/command", data={"command": "id", **token}, headers=browser
    )
    variables = httpx.post(
        f"{page}/agents/typed/env", data={"env": "A=b", **token}, headers=browser
    )

    assert (begun.status_code, "agent-bridge login" in begun.text) == (200, True)
    assert (refused.status_code, "words that were typed" in refused.text) == (422, True)
    assert "agent-bridge login" in refused.text
    assert (added.status_code, added.headers["location"]) == (303, "/agents/typed?done=agent-added")
    assert {changed.status_code, variables.status_code} == {422}
    assert bridge.http.get("/api/v1/agents/typed").json()["entry"].get("env", []) == []
