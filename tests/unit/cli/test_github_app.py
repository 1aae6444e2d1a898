"""Making an agent's GitHub App with one click, and checking it afterwards."""

from __future__ import annotations

import html
import json
import re
import socket
import stat
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from app.cli.manifest import show
from app.config import AgentRecord, Configuration, load
from app.config.process import default_settings_file
from app.errors import ConfigurationError
from app.services import registered_services
from app.services.github.doctor import checks
from app.services.github.manifest import (
    EVENTS,
    PERMISSIONS,
    Desk,
    NoBrowser,
    lacking,
    manifest,
    propose_name,
    store,
)
from app.services.service import Finding, Severity
from app.store.database import locked
from app.terminal.api import BridgeUnreachable
from sim.github.world import SimulatedGithub
from tests.support.doctor import check_context

SECONDS = 30.0
LOOK_SECONDS = 0.01
AGENTS = json.dumps({name: {"command": "x", "sandbox": "none"} for name in ("claude", "codex")})


def configuration(folder: Path, url: str, **more: str) -> Configuration:
    given = {
        "PATH": "",
        "AGENTS_JSON": AGENTS,
        "GITHUB_API_URL": f"{url}/api/v3",
        "GITHUB_WEB_URL": url,
        "DATA_DIR": str(folder / "data"),
        **more,
    }
    dotenv = default_settings_file(folder / "home")
    return load(
        given,
        dotenv=dotenv if dotenv.exists() else None,
        services=registered_services(),
        home=folder / "home",
    )


@pytest.fixture
def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


class Browser:
    """A person who opens the page, presses the button, and comes back from GitHub."""

    def __init__(self, github: SimulatedGithub, capsys: pytest.CaptureFixture[str]) -> None:
        self._github = github
        self._capsys = capsys
        self._printed = ""
        self.http = httpx.Client(trust_env=False, verify=False, timeout=SECONDS)

    def url(self) -> str:
        """Wait until the address of the page is printed."""
        deadline = time.monotonic() + SECONDS
        while not (found := re.search(r"http://127\.0\.0\.1:\d+/", self._printed)):
            assert time.monotonic() < deadline, f"no address was printed: {self._printed!r}"
            time.sleep(LOOK_SECONDS)
            self._printed += self._capsys.readouterr().out
        return found[0]

    def press(self, page: str, slug: str) -> tuple[str, str]:
        """Press the button; returns where GitHub sends the browser."""
        manifest = json.loads(
            html.unescape(re.findall(r'name="manifest" value="([^"]+)"', page)[0])
        )
        state = re.findall(r"\?state=([\w-]+)", page)[0]
        code = self._github.propose(manifest, slug)
        return manifest["redirect_url"], f"code={code}&state={state}"


def test_one_click_makes_the_app_and_keeps_its_credentials(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with SimulatedGithub(tmp_path / "github") as github:
        before = configuration(tmp_path, github.url)
        browser = Browser(github, capsys)
        making = threading.Thread(
            target=show,
            args=(before, "github", "codex", "acme"),
            kwargs={"workflows": True},
            daemon=True,
        )
        making.start()
        url = browser.url()
        idle = socket.create_connection(("127.0.0.1", urlsplit(url).port or 0))
        page = browser.http.get(url).text
        idle.close()
        back, query = browser.press(page, "codex-of-acme")
        forged = browser.http.get(f"{back}?code=evil&state=guessed").status_code
        stranger = browser.http.get(url, headers={"host": "evil.example"}).status_code
        returned = browser.http.get(f"{back}?{query}").status_code
        making.join(SECONDS)
        browser.http.close()

        assert f"{github.url}/organizations/acme/settings/apps/new?state=" in page
        assert (forged, stranger, returned) == (403, 403, 200)
        after = configuration(tmp_path, github.url)
        made = next(iter(github.apps.values()))
        given = after.credentials["github", "codex"]
        assert given.app_id == str(made.id)  # type: ignore[attr-defined]
        assert given.private_key.get_secret_value().strip() == made.private_pem.strip()  # type: ignore[attr-defined]
        assert (
            stat.S_IMODE(before.home.joinpath(".config/agent-bridge/.env").stat().st_mode) == 0o600
        )
        assert made.hook_url.endswith("/webhooks/github/codex")
        assert made.permissions == {**PERMISSIONS, "workflows": "write"}
        usual = manifest("x", base_url="", path="", redirect_url="")
        assert usual["default_permissions"] == PERMISSIONS


def test_the_app_of_a_stored_agent_is_stored_with_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[str, str, dict[str, str]]] = []
    monkeypatch.setattr("app.cli.manifest.set_credentials", lambda _, *given: kept.append(given))
    stored = AgentRecord(id="first", name="helper", former=("first",), entry={"command": "x"})
    with SimulatedGithub(tmp_path / "github") as github:
        there = configuration(tmp_path, github.url).reader.read([stored])
        with pytest.raises(BridgeUnreachable, match="no bridge is running"):
            show(there, "github", "helper", None)
        browser = Browser(github, capsys)
        with locked(there.data_dir):
            making = threading.Thread(
                target=show, args=(there, "github", "helper", None), daemon=True
            )
            making.start()
            back, query = browser.press(browser.http.get(browser.url()).text, "helper-app")
            browser.http.get(f"{back}?{query}")
            making.join(SECONDS)
        browser.http.close()

        made = next(iter(github.apps.values()))
        ((name, service, given),) = kept
        assert (name, service) == ("helper", "github")
        assert given["app_id"] == str(made.id)
        assert made.hook_url.endswith("/webhooks/github/helper")
        assert not default_settings_file(there.home).exists()
        assert "restart" not in capsys.readouterr().out


def test_an_app_that_writes_checks_need_not_subscribe_to_them() -> None:
    events = [each for each in EVENTS if each not in {"check_run", "check_suite"}]

    assert lacking({"permissions": PERMISSIONS, "events": events}) == ([], [])
    reading = {"permissions": {**PERMISSIONS, "checks": "read"}, "events": events}
    assert lacking(reading) == ([], ["check_suite"])


def test_an_agent_that_has_an_app_gets_no_second_one(tmp_path: Path) -> None:
    with SimulatedGithub(tmp_path / "github") as github:
        settings = credentials(github, "claude")

        with pytest.raises(ConfigurationError):
            show(configuration(tmp_path, github.url, **settings), "github", "claude", None)


def test_an_address_that_github_does_not_reach_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        show(configuration(tmp_path, "https://github.example"), "github", "claude", None)

    assert str(refusal.value) == (
        "BRIDGE_BASE_URL: GitHub cannot reach http://127.0.0.1:8000. "
        "Set BRIDGE_BASE_URL to the public https address of this bridge; a tunnel works too."
    )


def test_a_name_is_proposed_that_no_other_app_has() -> None:
    assert propose_name("codex", "acme") == "acme-codex"
    assert propose_name("codex", "an-organisation-with-a-long-name") == (
        "an-organisation-with-a-long--codex"
    )
    assert re.fullmatch(r"codex-[0-9a-f]{6}", propose_name("codex", None))


def test_a_page_to_which_no_browser_comes_back_ends_and_says_how_to_reach_it() -> None:
    desk = Desk(lambda back, _state: back)

    with pytest.raises(NoBrowser, match=f"ssh -L {desk.port}:127.0.0.1:{desk.port}"):
        desk.code(0.01)


def test_the_page_is_on_the_port_that_was_asked_for(free_port: int) -> None:
    desk = Desk(lambda back, _state: back, free_port)

    with pytest.raises(ConfigurationError, match=f"cannot listen on {free_port}"):
        Desk(lambda back, _state: back, free_port)
    assert desk.answer("/", f"127.0.0.1:{free_port}") == (
        200,
        f"http://127.0.0.1:{free_port}/made",
    )
    with pytest.raises(NoBrowser):
        desk.code(0.0)


def test_what_stands_in_the_file_stays(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LOG_LEVEL=info")

    store(tmp_path / ".env", {"GITHUB_APP_ID": "1"})

    assert (tmp_path / ".env").read_text() == 'LOG_LEVEL=info\nGITHUB_APP_ID="1"\n'


def credentials(github: SimulatedGithub, agent: str) -> dict[str, str]:
    app = github.app(agent, "http://127.0.0.1:9/hook")
    return {
        "GITHUB_APP_ID": str(app.id),
        "GITHUB_PRIVATE_KEY": app.private_pem,
        "GITHUB_WEBHOOK_SECRET": app.secret,
    }


async def findings(github: SimulatedGithub, folder: Path, **settings: str) -> list[Finding]:
    given = configuration(folder, github.url, **settings)
    return [finding async for finding in checks(check_context(given))]


async def test_the_doctor_says_what_an_app_lacks(tmp_path: Path) -> None:
    with SimulatedGithub(tmp_path / "github") as github:
        settings = credentials(github, "claude")
        app = next(iter(github.apps.values()))
        app.permissions["issues"] = "read"
        app.events = ("issues",)

        found = await findings(github, tmp_path, **settings)

    assert [each.verdict for each in found] == [
        Severity.PROBLEM,
        Severity.PROBLEM,
        Severity.WARNING,
        Severity.WARNING,
    ]
    assert "issues: write" in found[0].reason
    assert "issue_comment" in found[1].reason
    assert "not installed" in found[2].reason


async def test_the_doctor_sees_by_the_log_that_deliveries_do_not_arrive(tmp_path: Path) -> None:
    with SimulatedGithub(tmp_path / "github") as github:
        settings = credentials(github, "claude")
        repository = github.repository("acme/widgets", {"ann": "write"})
        github.install(next(iter(github.apps.values())), repository)
        github.open_issue("ann", repository, "Bug")
        github.quiet()

        app, log = await findings(github, tmp_path, **settings)

    assert app.verdict is Severity.OK
    assert app.reason.endswith("may not push workflow files")
    assert log.verdict is Severity.PROBLEM
    assert "/webhooks/github/claude" in log.remedy


async def test_the_doctor_knows_a_wrong_key(tmp_path: Path) -> None:
    with SimulatedGithub(tmp_path / "github") as github:
        settings = credentials(github, "claude")
        other = github.app("other", "http://127.0.0.1:9/hook")

        (found,) = await findings(
            github, tmp_path, **settings | {"GITHUB_PRIVATE_KEY": other.private_pem}
        )

    assert (found.verdict, found.what) == (Severity.PROBLEM, "github:claude")
    assert "GITHUB_PRIVATE_KEY" in found.remedy
