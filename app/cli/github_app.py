"""`manifest github`: makes an agent's GitHub App with one click, and keeps its credentials.

A page on loopback sends the manifest to GitHub, GitHub sends the browser back with a code, and the
code is exchanged for the App's key and secret, which go into `.env` and nowhere else.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from html import escape
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx
import typer

from app.config import AgentEntry, Configuration
from app.config.fields import is_loopback
from app.errors import ConfigurationError, NotFound, ServiceRefused
from app.services.github.manifest import manifest

CALL_SECONDS: Final = 30.0
"""How long GitHub may take to hand out the credentials of a new App."""
IDLE_SECONDS: Final = 1.0
"""How long a connection may say nothing: browsers open some that they never use."""
OWNER_ONLY: Final = 0o600
PAGE: Final = """<!doctype html><meta charset="utf-8"><title>{title}</title>
<body style="font: 16px sans-serif; margin: 4em auto; max-width: 40em">
<h1>{title}</h1>{body}"""
FORM: Final = """<p>GitHub will show the App that {agent} gets: what it may do and where it is told
what happens. You choose its name there.</p>
<form method="post" action="{action}"><input type="hidden" name="manifest" value="{manifest}">
<button style="font: inherit; padding: .5em 1em">Make the App on GitHub</button></form>"""


class Desk:
    """The page on loopback, until GitHub has sent the browser back with a code."""

    def __init__(self, form: Callable[[str, str], str]) -> None:
        """Show a form, which is made of the address to come back to and a word nobody guesses."""
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

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._form = form(f"{self.url}/made", self._state)

    def code(self) -> str:
        """Serve until the browser comes back."""
        try:
            while self._code is None:
                self._server.handle_request()
        finally:
            self._server.server_close()
        return self._code

    def answer(self, target: str, host: str) -> tuple[int, str]:
        """Answer one request of a browser on this machine."""
        parts = urlsplit(target)
        if f"http://{host}" != self.url:
            return 403, "This page is for this machine only."
        if parts.path == "/":
            return 200, self._form
        given = {name: values[0] for name, values in parse_qs(parts.query).items()}
        if parts.path != "/made" or "code" not in given:
            return 404, "There is nothing here."
        if not secrets.compare_digest(given.get("state", "").encode(), self._state.encode()):
            return 403, "This did not begin here. Start again from the first page."
        self._code = given["code"]
        return 200, _page("The App is there", "<p>Go on in the terminal.</p>")


def make_app(configuration: Configuration, name: str, organization: str | None) -> None:
    """Make the App of an agent and keep its credentials in `.env`.

    Raises:
        NotFound: there is no such agent.
        ConfigurationError: it has an App, or GitHub could not reach it.
        ServiceRefused: GitHub did not hand out the credentials.
    """
    entry = configuration.agents.get(name)
    if entry is None:
        raise NotFound("agent", name)
    _check(configuration, entry)
    desk = Desk(lambda back, state: _form(configuration, entry, organization, back, state))
    typer.echo(f"Open this page in a browser on this machine:\n\n  {desk.url}/\n")
    made = _exchange(configuration, desk.code())
    dotenv = configuration.dotenv or Path.cwd() / ".env"
    store(dotenv, _settings(entry, made))
    typer.echo(
        f"{name} is @{made['slug']} on GitHub. Its credentials are in {dotenv}.\n"
        f"Install it on your repositories: {configuration.github_web_url}/apps/{made['slug']}"
        "/installations/new\nThen start the bridge again; `agent-bridge doctor` checks all of it."
    )


def store(dotenv: Path, settings: Mapping[str, str]) -> None:
    """Add settings to a file that only its owner reads."""
    dotenv.touch(mode=OWNER_ONLY)
    dotenv.chmod(OWNER_ONLY)
    lines = "".join(f"{name}={json.dumps(value)}\n" for name, value in settings.items())
    text = dotenv.read_text()
    gap = "" if not text or text.endswith("\n") else "\n"
    with dotenv.open("a") as file:
        file.write(gap + lines)


def _check(configuration: Configuration, entry: AgentEntry) -> None:
    if ("github", entry.name) in configuration.credentials:
        raise ConfigurationError(
            _suffixed("GITHUB_APP_ID", entry),
            "is set: this agent has an App",
            "Remove the agent's GITHUB_ settings first to give it a new one.",
        )
    reached = urlsplit(configuration.base_url).hostname or ""
    elsewhere = not is_loopback(urlsplit(configuration.github_web_url).hostname or "")
    if elsewhere and is_loopback(reached):
        raise ConfigurationError(
            "BRIDGE_BASE_URL",
            "is not an address under which GitHub reaches the bridge",
            "Set it to a public https address that leads here; a tunnel will do.",
        )


def _form(
    configuration: Configuration,
    entry: AgentEntry,
    organization: str | None,
    back: str,
    state: str,
) -> str:
    owner = f"organizations/{organization}/" if organization else ""
    action = f"{configuration.github_web_url}/{owner}settings/apps/new?state={state}"
    described = manifest(
        entry.display_name or entry.name,
        entry.name,
        base_url=configuration.base_url,
        redirect_url=back,
    )
    form = FORM.format(
        agent=escape(entry.name),
        action=escape(action, quote=True),
        manifest=escape(json.dumps(described), quote=True),
    )
    return _page(f"A GitHub App for {entry.name}", form)


def _exchange(configuration: Configuration, code: str) -> dict[str, Any]:
    path = f"/app-manifests/{code}/conversions"
    try:
        answer = httpx.post(configuration.github_api_url + path, timeout=CALL_SECONDS)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise ServiceRefused(
            "github",
            f"it did not hand out the App's credentials ({type(error).__name__})",
            "Delete the App on GitHub and start again; the code works for an hour and once.",
        ) from error
    found: dict[str, Any] = answer.json()
    return found


def _settings(entry: AgentEntry, made: Mapping[str, Any]) -> dict[str, str]:
    return {
        _suffixed("GITHUB_APP_ID", entry): str(made["id"]),
        _suffixed("GITHUB_BOT_LOGIN", entry): f"{made['slug']}[bot]",
        _suffixed("GITHUB_WEBHOOK_SECRET", entry): made["webhook_secret"],
        _suffixed("GITHUB_PRIVATE_KEY", entry): made["pem"],
    }


def _suffixed(name: str, entry: AgentEntry) -> str:
    return name if entry.default else f"{name}__{entry.suffix}"


def _page(title: str, body: str) -> str:
    return PAGE.format(title=escape(title), body=body)
