"""Describes an agent's GitHub App, and registers it with one click.

A page on loopback sends the manifest to GitHub, GitHub sends the browser back with a code, and the
code is exchanged for the App's key and secret, which go into `.env` and nowhere else.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from html import escape
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx

from app.config import AgentConfig, Configuration
from app.config.process import default_settings_file
from app.errors import BridgeError, ConfigurationError, ServiceRefused
from app.services.github.events import BUTTONS, ROUTES
from app.services.github.settings import NAME, GithubCredentials, GithubSettings
from app.services.service import ManifestRequest, Setup, require_public

PERMISSIONS: Mapping[str, str] = {
    "metadata": "read",
    "contents": "write",
    "issues": "write",
    "pull_requests": "write",
    "checks": "write",
    "statuses": "read",
    "actions": "read",
}
"""Reading and answering, branches, pull requests, how their checks ended and what workflows wrote,
and checks with buttons; nothing about the organisation."""
WORKFLOWS = {"workflows": "write"}
"""What it takes beyond that to push workflow files: optional."""
ENOUGH = {"checks": "read", "actions": ""}
"""Lower permissions that are enough: then turns show no checks, and logs are not quoted."""
EVENTS = tuple(ROUTES)
"""What people say; what becomes of pull requests: their checks, and the branch they are for; what
repositories are called; and which buttons people press."""
CHECKS = {BUTTONS, "check_suite"}
NAME_CHARACTERS = 34
"""The longest name of an App that GitHub accepts."""

_LEVELS = ("", "read", "write", "admin")


def manifest(
    name: str, *, base_url: str, path: str, redirect_url: str, workflows: bool = False
) -> dict[str, Any]:
    """Describe an agent's App as GitHub's manifest flow takes it."""
    return {
        "name": name[:NAME_CHARACTERS],
        "url": base_url,
        "hook_attributes": {"url": f"{base_url}{path}", "active": True},
        "redirect_url": redirect_url,
        "public": False,
        "default_permissions": {**PERMISSIONS, **(WORKFLOWS if workflows else {})},
        "default_events": list(EVENTS),
    }


def lacking(app: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """List the permissions and the events that an App lacks."""
    held = app.get("permissions", {})
    permissions = [
        f"{name}: {level}"
        for name, level in {**PERMISSIONS, **ENOUGH}.items()
        if _LEVELS.index(held.get(name, "")) < _LEVELS.index(level)
    ]
    # An App that writes checks hears of them without a subscription; another has no buttons.
    unasked = CHECKS if held.get("checks") == "write" else {BUTTONS}
    wanted = [event for event in EVENTS if event not in unasked]
    return permissions, [event for event in wanted if event not in app.get("events", ())]


CALL_SECONDS: Final = 30.0
"""How long GitHub may take to return the credentials of a new App."""
WAIT_SECONDS: Final = 900.0
"""How long a person may take to create the App: a form, a password and a second factor."""
IDLE_SECONDS: Final = 1.0
"""How long a connection may say nothing: browsers open some that they never use."""
OWNER_ONLY: Final = 0o600
PAGE: Final = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<body style="font: 16px sans-serif; margin: 4em auto; max-width: 40em">
<h1>{title}</h1>{body}"""
FORM: Final = """<p>GitHub will show you the App for {agent}: its permissions and its webhook.
Its name has to be free on all of GitHub; you can
change it there.</p>
<form method="post" action="{action}"><input type="hidden" name="manifest" value="{manifest}">
<button style="font: inherit; padding: .5em 1em">Create the App on GitHub</button></form>"""


class NoBrowser(BridgeError):
    """No browser came back from GitHub in time."""

    def __init__(self, seconds: float, port: int) -> None:
        super().__init__(
            f"no browser came back from GitHub within {seconds / 60:.0f} minutes. Run the command "
            "again. If your browser is on another machine, choose a port with --port and forward "
            f"it there first: ssh -L {port}:127.0.0.1:{port} <this machine>"
        )


class Desk:
    """The page on loopback, until GitHub has sent the browser back with a code."""

    def __init__(self, form: Callable[[str, str], str], port: int = 0) -> None:
        """Show a form, built from the address to return to and a random state.

        Raises:
            ConfigurationError: the port is in use.
        """
        self._state = secrets.token_urlsafe(24)
        self._code: str | None = None
        desk = self

        class Handler(BaseHTTPRequestHandler):
            timeout = IDLE_SECONDS

            def do_GET(self) -> None:
                status, page = desk.answer(self.path, self.headers.get("host", ""))
                body = page.encode()
                self.send_response(status)
                self.send_header("content-type", "text/html; charset=utf-8")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
                pass

        try:
            self._server = HTTPServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise ConfigurationError(
                "--port", f"cannot listen on {port}: {error.strerror}", "Choose another one."
            ) from error
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._form = form(f"{self.url}/made", self._state)

    def code(self, seconds: float) -> str:
        """Serve until the browser comes back.

        Raises:
            NoBrowser: it did not come back in time.
        """
        deadline = time.monotonic() + seconds
        try:
            while self._code is None:
                self._server.timeout = deadline - time.monotonic()
                if self._server.timeout <= 0:
                    raise NoBrowser(seconds, self.port)
                self._server.handle_request()
        finally:
            self._server.server_close()
        return self._code

    def answer(self, target: str, host: str) -> tuple[int, str]:
        """Answer one request of a browser on this machine."""
        parts = urlsplit(target)
        if f"http://{host}" != self.url:
            return 403, "This page can be opened only on this machine."
        if parts.path == "/":
            return 200, self._form
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != "/made" or "code" not in given:
            return 404, "Page not found."
        if not secrets.compare_digest(given.get("state", "").encode(), self._state.encode()):
            return 403, "This request did not start here. Start again from the first page."
        self._code = given["code"]
        return 200, _page("App created", "<p>Continue in the terminal.</p>")


def register(request: ManifestRequest) -> None:
    """Create the App of an agent and keep its credentials in `.env`.

    Raises:
        ConfigurationError: it has an App, or GitHub cannot reach the bridge.
        NoBrowser: the App was not created in time.
        ServiceRefused: GitHub did not return the credentials.
    """
    configuration, entry = request.configuration, request.agent
    settings = configuration.settings_of(GithubSettings)
    if (NAME, entry.id) in configuration.credentials:
        raise ConfigurationError(
            entry.setting("GITHUB_APP_ID"),
            "is set: this agent already has an App",
            "To create a new one, remove the agent's GITHUB_ settings first.",
        )
    _require_reachable(configuration, settings)
    keep = request.keeping() if request.keeping is not None else None
    desk = Desk(lambda back, state: _form(request, settings, back, state), request.port or 0)
    request.write(f"Open this page in a browser on this machine:\n\n  {desk.url}/\n")
    if request.port is None:
        request.explain("A browser on another machine needs a port to forward: see --port.")
    else:
        forward = f"ssh -L {desk.port}:127.0.0.1:{desk.port} <this machine>"
        request.explain(f"For a browser on another machine, run there first: {forward}")
    made = _exchange(settings, desk.code(WAIT_SECONDS))
    given = {
        "app_id": str(made["id"]),
        "bot_login": f"{made['slug']}[bot]",
        "webhook_secret": made["webhook_secret"],
        "private_key": made["pem"],
    }
    if keep is not None:
        keep(given)
        where, then = "stored with it", ""
    else:
        dotenv = configuration.dotenv or default_settings_file(configuration.home)
        names = GithubCredentials.names()
        store(dotenv, {entry.setting(names[field]): text for field, text in given.items()})
        where, then = f"in {dotenv}", "Then restart the bridge. "
    request.write(
        f"{entry.name} is @{made['slug']} on GitHub. Its credentials are {where}.\n"
        f"Install it on your repositories: {settings.web_url}/apps/{made['slug']}"
        f"/installations/new\n{then}`agent-bridge doctor` checks the setup."
    )


def set_up(configuration: Configuration, agent: AgentConfig, _title: str) -> Setup:
    """Say how to create an agent's App in the browser; GitHub's form takes its fields by name.

    Raises:
        ConfigurationError: GitHub cannot reach the bridge.
    """
    settings = configuration.settings_of(GithubSettings)
    _require_reachable(configuration, settings)
    fields = {
        "name": propose_name(agent.name, None),
        "url": configuration.base_url,
        "public": "false",
        "webhook_active": "true",
        "webhook_url": configuration.base_url + configuration.own_webhook_path(NAME, agent.id),
        **PERMISSIONS,
        "events[]": EVENTS,
    }
    return Setup(
        f"{settings.web_url}/settings/apps/new?{urlencode(fields, doseq=True)}",
        (
            "In GitHub's form, choose a webhook secret of at least 16 random characters and keep "
            "it, then create the App.",
            "Its page shows the App ID. Generate a private key there: the downloaded file is the "
            "private key.",
            "Under Install App, install it on your repositories.",
        ),
    )


def store(dotenv: Path, settings: Mapping[str, str]) -> None:
    """Add settings to a file that only its owner reads."""
    dotenv.parent.mkdir(parents=True, exist_ok=True)
    dotenv.touch(mode=OWNER_ONLY)
    dotenv.chmod(OWNER_ONLY)
    lines = "".join(f"{name}={json.dumps(value)}\n" for name, value in settings.items())
    text = dotenv.read_text()
    gap = "" if not text or text.endswith("\n") else "\n"
    with dotenv.open("a") as file:
        file.write(gap + lines)


def _require_reachable(configuration: Configuration, settings: GithubSettings) -> None:
    if urlsplit(settings.web_url).scheme == "https":
        require_public(configuration.base_url, "GitHub")


def _form(request: ManifestRequest, settings: GithubSettings, back: str, state: str) -> str:
    configuration, entry = request.configuration, request.agent
    owner = f"organizations/{request.organization}/" if request.organization else ""
    action = f"{settings.web_url}/{owner}settings/apps/new?state={state}"
    described = manifest(
        propose_name(entry.name, request.organization),
        base_url=configuration.base_url,
        path=configuration.own_webhook_path(NAME, entry.id),
        redirect_url=back,
        workflows=request.workflows,
    )
    form = FORM.format(
        agent=escape(entry.name),
        action=escape(action, quote=True),
        manifest=escape(json.dumps(described), quote=True),
    )
    return _page(f"A GitHub App for {entry.name}", form)


def propose_name(agent: str, organization: str | None) -> str:
    """Propose a name for an App that is not taken: GitHub's names are unique world-wide."""
    if organization is None:
        return f"{agent[: NAME_CHARACTERS - 7]}-{secrets.token_hex(3)}"
    return f"{organization[: NAME_CHARACTERS - len(agent) - 1]}-{agent}"[:NAME_CHARACTERS]


def _exchange(settings: GithubSettings, code: str) -> dict[str, Any]:
    path = f"/app-manifests/{code}/conversions"
    try:
        answer = httpx.post(settings.api_url + path, timeout=CALL_SECONDS)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise ServiceRefused(
            NAME,
            f"it did not return the App's credentials ({type(error).__name__})",
            "Delete the App on GitHub and start again. The code works once, within an hour.",
        ) from error
    found: dict[str, Any] = answer.json()
    return found


def _page(title: str, body: str) -> str:
    return PAGE.format(title=escape(title), body=body)
