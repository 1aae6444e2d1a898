"""Stories of an installation on Linear: consent in a browser, renewal, revocation, and again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.support.linear import LinearWorld
from tests.support.postgres import read_store

pytestmark = pytest.mark.one_database


@contextmanager
def uninstalled(folder: Path) -> Iterator[LinearWorld]:
    """Run a bridge whose application has no client credentials and is not installed yet."""
    world = LinearWorld(folder, minted=True, page=True)
    world.app.credentials = False
    # Linear sends people back to an address that it knows.
    world.bridge.settings["BRIDGE_BASE_URL"] = f"http://127.0.0.1:{world.bridge.port}"
    with world:
        world.bridge.wait(lambda: "/install/linear/demo" in trouble(world), "no trouble")
        yield world


@contextmanager
def browser(world: LinearWorld) -> Iterator[httpx.Client]:
    """Open a browser that is signed in."""
    with httpx.Client(follow_redirects=True, trust_env=False, verify=False) as http:
        http.headers["accept"] = "text/html"
        http.base_url = world.bridge.http.base_url
        http.post(world.bridge.http.post("/api/v1/login-links").json()["url"])
        yield http


def trouble(world: LinearWorld) -> str:
    """Read what keeps the adapter from listening; nothing is known before it was to listen."""
    checks = world.bridge.http.get("/readyz").json()["checks"]
    return next((str(check["words"]) for check in checks if check["name"] == "linear:demo"), "")


@pytest.mark.long
def test_an_admin_installs_the_agent_and_it_goes_on_after_a_crash(tmp_path: Path) -> None:
    with uninstalled(tmp_path) as world, browser(world) as http:
        assert '<a href="/install/linear/demo">Install it</a>' in http.get("/").text

        first = world.assign("say one")  # it waits until it is known whom it is for
        done = http.get("/install/linear/demo")
        world.wait_end(first)
        token = next(reversed(world.app.tokens))
        world.bridge.kill()
        world.bridge.start()
        later = world.assign("say two")
        world.wait_end(later)

        assert [delivery.answers for delivery in world.linear.hooks.sent] == [[200], [200]]
        assert (done.status_code, "demo in Acme" in done.text) == (200, True)
        assert (first.response, later.response) == ("one", "two")
        kept = b"".join(read_store(world.bridge.data_dir).values())
        assert b"grant:linear:demo" in kept
        assert token.encode() not in kept


@pytest.mark.slow
def test_a_revoked_agent_says_so_and_its_answer_arrives_once_it_is_installed_again(
    tmp_path: Path,
) -> None:
    with uninstalled(tmp_path) as world, browser(world) as http:
        http.get("/install/linear/demo")
        session = world.assign("hold go", "say here I am")
        world.bridge.wait(lambda: world.bridge.rows(PROMPTED) == [(1,)], "never prompted")

        world.linear.revoke(world.app)
        world.bridge.wait(lambda: "revoked" in trouble(world), "nobody noticed")
        (world.bridge.workspace() / "go").touch()
        world.bridge.wait(lambda: world.bridge.rows(DONE) == [(1,)], "never done")
        http.get("/install/linear/demo")
        world.wait_end(session)

        assert session.response.endswith("here I am")
        assert trouble(world) == ""


def test_nobody_comes_back_twice_or_in_the_place_of_another(tmp_path: Path) -> None:
    with uninstalled(tmp_path) as world, browser(world) as ann, browser(world) as bob:
        consent = ann.get("/install/linear/demo", follow_redirects=False).headers["location"]
        back = ann.get(consent, follow_redirects=False).headers["location"]

        as_bob = bob.get(back)
        stranger = httpx.get(back, headers={"accept": "text/html"}, trust_env=False, verify=False)
        forged = ann.get("/install/linear/demo/callback?code=c&state=WyJsaW5lYXI6ZGVtbyJd.x")
        as_ann = ann.get(back)
        again = ann.get(back)

        answers = [each.status_code for each in (as_bob, stranger, forged, as_ann, again)]
        assert answers == [400, 401, 400, 200, 400]
        asked = parse_qs(urlsplit(consent).query)
        assert (asked["actor"], asked["response_type"]) == (["app"], ["code"])
        assert world.linear.fields().count("token") == 2  # one without, one with consent


def test_whoever_does_not_consent_is_told_and_may_begin_again(tmp_path: Path) -> None:
    with uninstalled(tmp_path) as world, browser(world) as http:
        consent = http.get("/install/linear/demo", follow_redirects=False).headers["location"]
        state = parse_qs(urlsplit(consent).query)["state"][0]

        no = http.get("/install/linear/demo/callback", params={"error": "denied", "state": state})
        yes = http.get("/install/linear/demo")
        nobody = http.get("/install/linear/nobody")

        assert (no.status_code, "Consent was not given" in no.text) == (400, True)
        assert (yes.status_code, nobody.status_code) == (200, 404)


PROMPTED = "select count(*) from turn where state = 'prompted'"
DONE = "select count(*) from turn where state = 'done'"
