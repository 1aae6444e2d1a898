"""The page at the plain address of this machine: its log-in counts there alone, and ends soon."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest

from tests.support.platform import Platform
from tests.support.served import SECONDS, Forked

EVIL = "http://evil.test"


@dataclass
class Plain:
    """A browser that has a log-in at the plain address."""

    bridge: Forked
    http: httpx.Client
    cookie: str
    """As the bridge set it, with all its attributes."""

    @property
    def pair(self) -> str:
        """Return the cookie as browsers send it."""
        return self.cookie.partition(";")[0]

    @property
    def host(self) -> str:
        """Return the Host that browsers send."""
        return f"127.0.0.1:{self.bridge.port}"

    def get(self, path: str = "/", **headers: str) -> httpx.Response:
        """Open a page with the cookie."""
        return self.http.get(path, headers={"Cookie": self.pair, **headers})


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Plain]:
    folder = tmp_path_factory.mktemp("bridge")
    with (
        Platform() as platform,
        Forked(folder, platform) as bridge,
        httpx.Client(
            base_url=f"http://127.0.0.1:{bridge.port}", trust_env=False, timeout=SECONDS
        ) as http,
    ):
        answer = http.post(link(bridge))
        http.cookies.clear()
        yield Plain(bridge, http, answer.headers["set-cookie"])


def link(bridge: Forked) -> str:
    return str(bridge.http.post("/api/v1/login-links").json()["plain"])


def test_a_log_in_at_the_plain_address_works_there_and_is_kept_from_other_sites(
    plain: Plain,
) -> None:
    attributes = {each.strip().lower() for each in plain.cookie.split(";")[1:]}

    assert plain.get().status_code == 200
    assert {"httponly", "samesite=strict"} <= attributes
    assert not [each for each in attributes if each.startswith(("max-age", "expires", "domain"))]
    assert plain.pair.startswith(f"agent_bridge_plain_{plain.bridge.port}=")


def test_it_ends_after_half_a_day_at_most(plain: Plain) -> None:
    lasts = "select expires_at - used_at from login where used_at is not null order by used_at"

    assert plain.bridge.rows(lasts)[0][0] == pytest.approx(12 * 3600, abs=60)


def own_host(plain: Plain) -> dict[str, str]:
    return {"Host": httpx.URL(plain.bridge.url).netloc.decode()}


def test_neither_log_in_counts_at_the_other_address(plain: Plain) -> None:
    made = plain.http.post(
        httpx.URL(plain.bridge.new_link()).path, headers=own_host(plain)
    ).headers["set-cookie"]
    plain.http.cookies.clear()
    own = made.partition(";")[0]
    value = own.partition("=")[2]
    name = plain.pair.partition("=")[0]

    statuses = [
        plain.get(Host=own_host(plain)["Host"]).status_code,
        plain.get(Host=f"localhost:{plain.bridge.port}").status_code,
        plain.get(Cookie=own).status_code,
        plain.get(Cookie=f"{name}={value}").status_code,
        plain.get(Host=own_host(plain)["Host"], Cookie=own).status_code,
    ]

    assert statuses == [401, 401, 401, 401, 200]


@pytest.mark.parametrize("host", ["evil.test", "evil.test:{port}", "127.0.0.1.evil.test:{port}"])
def test_a_name_that_was_bound_to_this_machine_opens_nothing(plain: Plain, host: str) -> None:
    """DNS rebinding: the browser sends what is in its address bar."""
    assert plain.get(Host=host.format(port=plain.bridge.port)).status_code == 403


@pytest.mark.parametrize("origin", [EVIL, "null", "http://127.0.0.1:1", "https://127.0.0.1:{port}"])
@pytest.mark.parametrize("path", ["/", "/events", "/login/plain/guess"])
def test_no_other_site_and_no_other_port_reads_or_signs_in(
    plain: Plain, origin: str, path: str
) -> None:
    sent = {"Origin": origin.format(port=plain.bridge.port)}

    assert plain.get(path, **sent).status_code == 403
    assert plain.http.post(path, headers={"Cookie": plain.pair, **sent}).status_code == 403


def test_the_cookie_alone_changes_nothing(plain: Plain) -> None:
    sent = {"Cookie": plain.pair, "Origin": f"http://{plain.host}"}

    answer = plain.http.post("/send", data={"text": "say hello"}, headers=sent)

    assert answer.status_code == 403
    assert plain.bridge.rows("select count(*) from turn") == [(0,)]


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_only_the_plain_link_leaves_a_cookie_there(plain: Plain, method: str) -> None:
    link = plain.bridge.new_link()

    answer = plain.http.request(method, httpx.URL(link).path)

    assert (answer.status_code, answer.headers["location"]) == (303, link)
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_the_plain_link_leaves_no_cookie_under_another_name(plain: Plain, method: str) -> None:
    path = httpx.URL(link(plain.bridge)).path

    answers = [
        plain.http.request(method, path, headers={"Host": host})
        for host in (f"localhost:{plain.bridge.port}", own_host(plain)["Host"])
    ]

    assert [each.status_code for each in answers] == [303, 303]
    assert not any("set-cookie" in each.headers for each in answers)


def test_signing_out_ends_it_at_once(plain: Plain) -> None:
    cookie = plain.http.post(link(plain.bridge)).headers["set-cookie"].partition(";")[0]
    plain.http.cookies.clear()
    token = plain.get(Cookie=cookie).text.partition('name="csrf" value="')[2].partition('"')[0]
    sent = {"Cookie": cookie, "Origin": f"http://{plain.host}"}

    out = plain.http.post("/logout", data={"csrf": token}, headers=sent)

    assert out.status_code == 200
    assert plain.get(Cookie=cookie).status_code == 401
