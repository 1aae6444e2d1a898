"""Signing in: a link opens once, a cookie counts while it may, and no other page can use it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import Depends, FastAPI, Form
from fastapi.responses import PlainTextResponse
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from itsdangerous import URLSafeSerializer
from pydantic import SecretStr

from app.core.roster import Availabilities
from app.metrics import Metrics
from app.model.inbound import Delivery
from app.server import api, login_pages, problems
from app.server.front import Front
from app.server.login import Visitor, visitor
from app.server.login_links import LINK_SECONDS, LOGIN_SECONDS, LoginLinks
from app.server.rights import Rights
from app.server.site import Site
from app.server.tokens import Tokens
from app.store.database import FILE_NAME
from app.store.stores import Stores
from app.vault import Vault
from tests.support.clock import ManualClock
from tests.support.memory import open_stores
from tests.support.runtimes import make_registry, make_runtime

pytestmark = pytest.mark.anyio

BASE_URL = "http://bridge.test"
ADMIN_TOKEN = "admin-token-of-the-tests"
BEARER = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
ORIGIN = {"Origin": BASE_URL}
CHANGING = ("POST", "PUT", "DELETE")
BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SECRET_KEY = "secret-key-of-the-tests-0123456789abcdef"


class Scene:
    """Signing in and the API, with a page of the test at / that can be talked to and changed."""

    def __init__(
        self, door: LoginLinks, vault: Vault, clock: ManualClock, stores: Stores, folder: Path
    ) -> None:
        self.door = door
        self.vault = vault
        self.clock = clock
        self.application = FastAPI()
        self.application.state.site = _site(door, Tokens(stores.tokens, clock, vault))
        self.application.state.runtime = make_runtime(
            agents=make_registry(folder, demo={"command": "demo"}),
            admission=SimpleNamespace(describe=str),
            adapters={},
            stores=stores,
            clock=clock,
            metrics=Metrics(),
            availability=Availabilities(clock),
        )
        problems.install(self.application)
        login_pages.install(self.application)
        self.application.include_router(api.router)
        self.application.add_api_route("/", _page, methods=["GET"])
        self.application.add_api_route("/say", _say, methods=["POST"])
        self.application.add_api_route("/change", _change, methods=list(CHANGING))
        self.http = self.browser()

    def browser(self) -> httpx.AsyncClient:
        """Open a browser that knows nothing yet."""
        address = self.door.base_url
        front = Front(
            self.application,
            _take,
            self.clock,
            Metrics(),
            hosts={address.partition("://")[2]},
            base_url=address,
        )
        return httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url=address)

    async def sign_in(self) -> str:
        """Open a new link; returns what the pages of this log-in send along."""
        answer = await self.http.post(await self.door.make_link())
        assert answer.status_code == 303
        return (await self.http.get("/")).text.partition(" ")[2]

    async def status_with(self, cookie: str) -> int:
        """Open the page in a new browser that has only this cookie."""
        headers = [(b"cookie", f"{self.door.cookie_name}={cookie}".encode())]
        return (await self.browser().get("/", headers=headers)).status_code

    @property
    def cookie(self) -> str:
        value = self.http.cookies[self.door.cookie_name]
        assert value
        return value


async def _take(_delivery: Delivery) -> None:
    raise AssertionError("nobody sends webhooks here")


async def _page(who: Annotated[Visitor, Depends(visitor)]) -> PlainTextResponse:
    return PlainTextResponse(f"{who.name} {who.csrf}")


async def _say(
    who: Annotated[Visitor, Depends(visitor)], text: Annotated[str, Form()]
) -> PlainTextResponse:
    return PlainTextResponse(f"{who.name}: {text}")


async def _change(who: Annotated[Visitor, Depends(visitor)]) -> PlainTextResponse:
    return PlainTextResponse(who.name)


async def _measure() -> tuple[()]:
    return ()


def _site(door: LoginLinks, tokens: Tokens) -> Site:
    site: dict[str, Any] = dict.fromkeys(field.name for field in fields(Site))
    own = {"POST /say": "viewer", **{f"{method} /change": "viewer" for method in CHANGING}}
    known = {"links": door, "admin_token": ADMIN_TOKEN, "rights": Rights(own), "tokens": tokens}
    return Site(**site | known | {"vitals": _measure})


@asynccontextmanager
async def opened(
    folder: Path,
    clock: ManualClock,
    *,
    base_url: str = BASE_URL,
    key: str = SECRET_KEY,
) -> AsyncIterator[Scene]:
    """Start a bridge on a folder."""
    with open_stores(folder, clock) as (_, stores):
        vault = Vault()
        door = LoginLinks(stores.logins, clock, vault, base_url=base_url, secret_key=SecretStr(key))
        yield Scene(door, vault, clock, stores, folder)


@pytest.fixture
async def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def scene(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Scene]:
    async with opened(tmp_path, clock) as scene:
        yield scene


# The link.


async def test_a_link_signs_in_and_leads_to_the_page(scene: Scene) -> None:
    answer = await scene.http.post(await scene.door.make_link())
    page = await scene.http.get(answer.headers["location"])

    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    assert page.status_code == 200
    assert page.text.startswith("operator ")


async def test_a_link_works_once_and_then_says_so(scene: Scene) -> None:
    link = await scene.door.make_link()
    await scene.http.post(link)

    again = await scene.browser().post(link)

    assert again.status_code == 410
    assert "set-cookie" not in again.headers
    assert "no longer works" in again.text
    assert "agent-bridge login" in again.text


async def test_of_twenty_who_open_a_link_at_once_one_gets_in(scene: Scene) -> None:
    link = await scene.door.make_link()

    answers = await asyncio.gather(*(scene.browser().post(link) for _ in range(20)))

    assert sorted(answer.status_code for answer in answers) == [303] + [410] * 19
    assert sum("set-cookie" in answer.headers for answer in answers) == 1


async def test_a_link_runs_out(scene: Scene) -> None:
    link = await scene.door.make_link()

    await scene.clock.advance(LINK_SECONDS)

    assert (await scene.http.post(link)).status_code == 410


async def test_looking_at_a_link_shows_a_button_and_does_not_use_it_up(scene: Scene) -> None:
    link = await scene.door.make_link()

    looked = [await scene.browser().get(link) for _ in range(3)]

    assert (await scene.http.head(link)).status_code == 405
    assert [answer.status_code for answer in looked] == [200] * 3
    assert not any("set-cookie" in answer.headers for answer in looked)
    assert '<label for="name">Your name' in looked[0].text
    assert "<button>Sign in</button></p></form>" in looked[0].text
    assert "<script" not in looked[0].text
    assert (await scene.http.post(link)).status_code == 303


@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(token=st.text(st.characters(codec="utf-8"), min_size=1, max_size=60))
async def test_no_guessed_link_signs_in(scene: Scene, token: str) -> None:
    path = f"/login/{quote(token, safe='')}"
    answers = [await scene.browser().request(method, path) for method in ("GET", "POST")]

    # 307: a slash at the end is taken away
    assert {answer.status_code for answer in answers} <= {307, 404, 410, 429}
    assert not any("set-cookie" in answer.headers for answer in answers)


async def test_a_link_is_in_no_log_and_not_in_the_store(
    scene: Scene, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    link = await scene.door.make_link()
    token = link.rpartition("/")[2]
    await scene.http.post(link)
    await scene.browser().post(link)

    kept = [(tmp_path / f"{FILE_NAME}{end}").read_bytes() for end in ("", "-wal")]
    ours = [line.getMessage() for line in caplog.records if line.name.startswith("app.")]
    assert "signed in with a log-in link" in ours
    assert not any(token in line for line in ours)
    assert not any(token.encode() in content for content in kept)
    assert token not in scene.vault.redact(f"GET {link}")


# The cookie.


async def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(scene: Scene) -> None:
    answer = await scene.http.post(await scene.door.make_link())

    name, *attributes = answer.headers["set-cookie"].split("; ")
    assert name.startswith("agent_bridge=")
    assert {each.lower() for each in attributes} == {
        "httponly",
        f"max-age={LOGIN_SECONDS}",
        "path=/",
        "samesite=lax",
    }
    assert answer.headers["cache-control"] == "no-store"


async def test_over_tls_the_cookie_is_bound_to_tls_and_to_this_host(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with opened(tmp_path, clock, base_url="https://bridge.test") as scene:
        answer = await scene.http.post(await scene.door.make_link())
        page = await scene.http.get("/")

    assert answer.headers["set-cookie"].startswith("__Host-agent_bridge=")
    assert "Secure" in answer.headers["set-cookie"]
    assert page.status_code == 200


async def test_two_bridges_on_two_ports_of_a_host_keep_apart(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with opened(tmp_path, clock, base_url="http://127.0.0.1:8000") as scene:
        assert scene.door.cookie_name == "agent_bridge_8000"


async def test_a_log_in_survives_a_restart(tmp_path: Path, clock: ManualClock) -> None:
    async with opened(tmp_path, clock) as before:
        await before.sign_in()

    async with opened(tmp_path, clock) as after:
        assert await after.status_with(before.cookie) == 200


async def test_a_log_in_runs_out(scene: Scene) -> None:
    await scene.sign_in()

    await scene.clock.advance(LOGIN_SECONDS)

    assert (await scene.http.get("/")).status_code == 401


async def test_another_secret_key_ends_every_log_in(tmp_path: Path, clock: ManualClock) -> None:
    async with opened(tmp_path, clock) as before:
        await before.sign_in()

    async with opened(tmp_path, clock, key=SECRET_KEY[::-1]) as after:
        assert await after.status_with(before.cookie) == 401


async def test_a_cookie_of_another_database_opens_nothing(
    tmp_path: Path, clock: ManualClock
) -> None:
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    async with opened(tmp_path / "old", clock) as before:
        await before.sign_in()

    async with opened(tmp_path / "new", clock) as after:
        await after.sign_in()
        assert await after.status_with(before.cookie) == 401


@settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cookie=st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=120))
async def test_no_forged_cookie_counts(scene: Scene, cookie: str) -> None:
    assert await scene.status_with(cookie) == 401


@pytest.mark.long
@settings(
    max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(payload=st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5))
async def test_not_even_a_signature_makes_up_for_a_log_in_that_is_none(
    scene: Scene, payload: object
) -> None:
    signed = scene.door._serializer.dumps(payload)

    assert await scene.status_with(str(signed)) == 401


async def test_a_changed_cookie_counts_for_nothing(scene: Scene) -> None:
    await scene.sign_in()
    whole = scene.cookie
    changed = [
        f"{whole[:at]}{'A' if letter != 'A' else 'B'}{whole[at + 1 :]}"
        # The last letter of base64 carries spare bits: some changes of it change nothing.
        for at, letter in enumerate(whole[:-1])
    ]

    assert {await scene.status_with(cookie) for cookie in changed} == {401}
    assert await scene.status_with(whole) == 200


async def test_a_cookie_signed_for_another_purpose_counts_for_nothing(scene: Scene) -> None:
    await scene.sign_in()
    login = scene.door.login_of(scene.cookie)
    assert login is not None
    other = URLSafeSerializer(SECRET_KEY, salt="another purpose").dumps(login.id)

    assert await scene.status_with(str(other)) == 401


# Who it is.


async def test_a_link_asks_for_a_name_and_what_is_done_carries_it(scene: Scene) -> None:
    answer = await scene.http.post(await scene.door.make_link(), data={"name": " Kim \u202eX "})

    assert answer.status_code == 303
    assert (await scene.http.get("/")).text.startswith("Kim X ")


async def test_without_a_name_a_link_signs_in_the_operator(scene: Scene) -> None:
    answer = await scene.http.post(await scene.door.make_link(), data={"name": "Operator"})

    assert answer.status_code == 303
    assert (await scene.http.get("/")).text.startswith("operator ")


async def test_a_link_that_was_made_for_someone_asks_for_no_name_and_signs_in_them(
    scene: Scene,
) -> None:
    made = await scene.browser().post(
        "/api/v1/login-links", headers=BEARER, json={"name": "Lee", "role": "viewer"}
    )
    link = made.json()["url"]

    shown = await scene.http.get(link)
    answer = await scene.http.post(link, data={"name": "Someone else"})

    assert "You sign in as <b>Lee</b>" in shown.text
    assert answer.status_code == 303
    assert (await scene.http.get("/")).text.startswith("Lee ")


async def test_forms_that_another_person_knows_count_for_nothing(scene: Scene) -> None:
    await scene.http.post(await scene.door.make_link(), data={"name": "Mallory"})
    known = (await scene.http.get("/")).text.partition(" ")[2]

    # In the same browser, where Mallory left her cookie.
    await scene.http.post(await scene.door.make_link(), data={"name": "Victor"})
    answer = await scene.http.post("/change", headers=ORIGIN | {"X-CSRF-Token": known})

    assert answer.status_code == 403
    assert (await scene.http.get("/")).text.startswith("Victor ")


async def test_forms_of_the_same_person_stay_good_when_they_sign_in_again(scene: Scene) -> None:
    await scene.http.post(await scene.door.make_link(), data={"name": "Kim"})
    csrf = (await scene.http.get("/")).text.partition(" ")[2]

    await scene.http.post(await scene.door.make_link(), data={"name": "kim"})
    answer = await scene.http.post("/change", headers=ORIGIN | {"X-CSRF-Token": csrf})

    assert answer.status_code == 200


# The end.


async def test_signing_out_ends_the_log_in_and_takes_the_cookie_away(scene: Scene) -> None:
    csrf = await scene.sign_in()
    cookie = scene.cookie

    answer = await scene.http.post("/logout", data={"csrf": csrf}, headers=ORIGIN)

    assert answer.status_code == 200
    assert "signed out" in answer.text
    assert scene.door.cookie_name not in scene.http.cookies
    assert await scene.status_with(cookie) == 401


async def test_another_page_cannot_sign_anybody_out(scene: Scene) -> None:
    await scene.sign_in()

    answer = await scene.http.post("/logout", headers=ORIGIN)

    assert answer.status_code == 403
    assert (await scene.http.get("/")).status_code == 200


async def test_the_admin_token_ends_every_log_in_and_every_link(scene: Scene) -> None:
    await scene.sign_in()
    link = await scene.door.make_link()

    answer = await scene.browser().delete("/api/v1/logins", headers=BEARER)

    assert answer.status_code == 204
    assert (await scene.http.get("/")).status_code == 401
    assert (await scene.http.post(link)).status_code == 410


async def test_the_admin_token_makes_links_on_a_running_bridge(scene: Scene) -> None:
    answer = await scene.browser().post("/api/v1/login-links", headers=BEARER)

    assert answer.status_code == 201
    assert answer.json()["url"].startswith(f"{BASE_URL}/login/")
    assert (await scene.http.post(answer.json()["url"])).status_code == 303


@pytest.mark.parametrize(
    ("method", "path"), [("POST", "/api/v1/login-links"), ("DELETE", "/api/v1/logins")]
)
async def test_a_log_in_makes_no_links_and_ends_no_other(
    scene: Scene, method: str, path: str
) -> None:
    csrf = await scene.sign_in()

    answer = await scene.http.request(method, path, headers=ORIGIN | {"X-CSRF-Token": csrf})

    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


# Pages without a log-in.


async def test_a_page_says_in_plain_words_how_to_sign_in(scene: Scene) -> None:
    answer = await scene.http.get("/", headers=BROWSER)

    assert answer.status_code == 401
    assert answer.headers["content-type"].startswith("text/html")
    assert "You are not signed in" in answer.text
    assert "Open a log-in link" in answer.text
    assert "agent-bridge login" in answer.text


async def test_pages_without_a_log_in_run_no_script_and_stay_nowhere(scene: Scene) -> None:
    answer = await scene.http.get("/", headers=BROWSER)

    assert "<script" not in answer.text
    assert answer.headers["cache-control"] == "no-store"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    assert "unsafe-inline" not in policy


@pytest.mark.parametrize(("method", "path"), [("GET", "/"), ("POST", "/change")])
async def test_whatever_is_no_page_is_refused_with_a_problem(
    scene: Scene, method: str, path: str
) -> None:
    answer = await scene.http.request(method, path, headers=ORIGIN | {"Accept": "*/*"})

    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_form_of_a_person_who_was_signed_out_is_answered_with_a_page(scene: Scene) -> None:
    answer = await scene.http.post("/change", headers=ORIGIN | BROWSER)

    assert answer.status_code == 401
    assert "You are not signed in" in answer.text


async def test_the_api_refuses_with_a_problem_also_in_a_browser(scene: Scene) -> None:
    answer = await scene.http.get("/api/v1/agents", headers=BROWSER)

    assert answer.status_code == 401
    assert answer.headers["content-type"] == "application/problem+json"


# What changes something.


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
async def test_a_script_of_our_own_page_may_change_things(scene: Scene, method: str) -> None:
    csrf = await scene.sign_in()

    answer = await scene.http.request(method, "/change", headers=ORIGIN | {"X-CSRF-Token": csrf})

    assert answer.status_code == 200


@pytest.mark.parametrize("files", [None, {"file": ("a.txt", b"words")}])
async def test_a_form_of_our_own_page_may_change_things(scene: Scene, files: Any) -> None:
    csrf = await scene.sign_in()
    form = {"csrf": csrf, "text": "hello"}

    said = await scene.http.post("/say", data=form, files=files, headers=ORIGIN)
    changed = await scene.http.post("/change", data=form, files=files, headers=ORIGIN)

    assert said.text == "operator: hello"
    assert changed.status_code == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("csrf", [{}, {"X-CSRF-Token": ""}, {"X-CSRF-Token": "0" * 64}])
async def test_without_the_token_of_the_page_nothing_is_changed(
    scene: Scene, method: str, csrf: dict[str, str]
) -> None:
    await scene.sign_in()

    answer = await scene.http.request(method, "/change", headers=ORIGIN | csrf)

    assert answer.status_code == 403
    assert answer.headers["content-type"] == "application/problem+json"
    assert "reload the page" in answer.json()["detail"]


@pytest.mark.parametrize("csrf", ["", "0" * 64, "ü"])
async def test_a_form_with_a_wrong_token_changes_nothing(scene: Scene, csrf: str) -> None:
    await scene.sign_in()

    answer = await scene.http.post("/say", data={"csrf": csrf, "text": "hello"}, headers=ORIGIN)

    assert answer.status_code == 403


async def test_a_file_is_no_token(scene: Scene) -> None:
    csrf = await scene.sign_in()

    answer = await scene.http.post(
        "/change", files={"csrf": ("csrf", csrf.encode())}, headers=ORIGIN
    )

    assert answer.status_code == 403


async def test_the_token_of_another_log_in_changes_nothing(scene: Scene) -> None:
    others = await scene.sign_in()
    scene.http = scene.browser()
    own = await scene.sign_in()

    answer = await scene.http.post("/change", headers=ORIGIN | {"X-CSRF-Token": others})

    assert own != others
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Sec-Fetch-Site": "none"}, 403),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "http://evil.test", "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, 403),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Origin": BASE_URL}, 200),
    ],
)
async def test_a_cookie_changes_things_only_from_our_own_origin(
    scene: Scene, headers: dict[str, str], status: int
) -> None:
    csrf = await scene.sign_in()

    answer = await scene.http.post("/change", headers=headers | {"X-CSRF-Token": csrf})

    assert answer.status_code == status


# The API.


async def test_the_api_can_be_read_with_a_log_in(scene: Scene) -> None:
    await scene.sign_in()

    answer = await scene.http.get("/api/v1/agents")

    assert [agent["name"] for agent in answer.json()["items"]] == ["demo"]


async def test_the_api_takes_changes_with_a_log_in_and_its_token_only(scene: Scene) -> None:
    csrf = await scene.sign_in()
    said = {"text": "A"}

    bare = await scene.http.post("/api/v1/sessions/1/messages", json=said, headers=ORIGIN)
    full = await scene.http.post(
        "/api/v1/sessions/1/messages", json=said, headers=ORIGIN | {"X-CSRF-Token": csrf}
    )

    assert bare.status_code == 403
    assert full.json()["detail"] == "there is no session 1"


async def test_nothing_that_a_stranger_sends_to_the_api_is_read(scene: Scene) -> None:
    read: list[bytes] = []

    async def endless() -> AsyncIterator[bytes]:
        read.append(b"{")
        yield read[-1]

    answer = await scene.http.post(
        "/api/v1/sessions", content=endless(), headers={"Content-Type": "application/json"}
    )

    assert answer.status_code == 401
    assert read == []


async def test_the_bearer_of_the_admin_token_needs_neither_origin_nor_page(scene: Scene) -> None:
    answered = await scene.http.post(
        "/api/v1/sessions/1/messages", json={"text": "A"}, headers=BEARER
    )
    changed = await scene.http.post("/change", headers=BEARER)

    assert answered.status_code == 404
    assert changed.status_code == 200


@pytest.mark.parametrize("token", ["wrong", "", "ü"])
async def test_a_wrong_token_is_not_made_good_by_a_cookie(scene: Scene, token: str) -> None:
    await scene.sign_in()
    headers = [(b"authorization", f"Bearer {token}x".encode("latin-1"))]

    assert (await scene.http.get("/api/v1/agents", headers=headers)).status_code == 401
