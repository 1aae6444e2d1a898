"""How the simulated Linear gives tokens: for credentials, for consent, and for refresh tokens.

A code works once. A refresh token works once as well, but for half an hour it is answered again as
it was the first time, so that an answer that got lost is not the end of an installation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from sim.linear.records import App, new_id
from sim.linear.rules import LinearRefusal
from sim.linear.workspace import Workspace

MINTED_SECONDS: Final = 30 * 24 * 3600
"""How long a token lives that an app got for its own credentials."""
GRANTED_SECONDS: Final = 24 * 3600
"""How long a token lives that an app got because somebody consented."""
CODE_SECONDS: Final = 600.0
"""How long a code may be exchanged; Linear publishes no number."""
GRACE_SECONDS: Final = 30 * 60.0
"""How long a refresh token is answered again that was used."""

Given = tuple[int, dict[str, Any]]


@dataclass(slots=True)
class _Code:
    app: App
    back: str
    until: float


@dataclass(slots=True)
class _Refresh:
    app: App
    used_at: float | None = None
    answer: dict[str, Any] | None = None


class Oauth:
    """The authorization server of the workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._codes: dict[str, _Code] = {}
        self._refreshes: dict[str, _Refresh] = {}

    def consent(self, asked: Mapping[str, str]) -> str:
        """Let an admin consent; returns where the browser is sent.

        Raises:
            LinearRefusal: what is asked for is not as Linear wants it.
        """
        app = self._app(asked.get("client_id", ""))
        back = asked.get("redirect_uri", "")
        if app is None or back not in app.callbacks:
            raise LinearRefusal("Invalid redirect_uri parameter for the application")
        if (asked.get("response_type"), asked.get("actor")) != ("code", "app"):
            raise LinearRefusal("this installs no agent")
        if asked.get("scope") != app.scope:
            raise LinearRefusal("Invalid scope")
        code = new_id()
        self._codes[code] = _Code(app, back, self._workspace.now() + CODE_SECONDS)
        return f"{back}?{urlencode({'code': code, 'state': asked.get('state', '')})}"

    def give(self, form: Mapping[str, str]) -> Given:
        """Give tokens in exchange for something."""
        app = self._app(form.get("client_id", ""))
        if app is None or form.get("client_secret") != app.client_secret:
            return 401, {"error": "invalid_client"}
        match form.get("grant_type"):
            case "client_credentials":
                return self._mint(app, form.get("scope", ""))
            case "authorization_code":
                return self._exchange(app, form)
            case "refresh_token":
                return self._refresh(app, form.get("refresh_token", ""))
            case _:
                return 400, {"error": "unsupported_grant_type"}

    def revoke(self, app: App) -> None:
        """Take an app out of the workspace: no token of it works any more."""
        app.tokens.clear()
        gone = [name for name, each in self._refreshes.items() if each.app is app]
        for name in gone:
            del self._refreshes[name]

    def _mint(self, app: App, scope: str) -> Given:
        """Give an app a token for its own credentials; it has one of them at a time."""
        if not app.credentials:
            words = "Client does not support the client_credentials grant type"
            return 400, {"error": "Error", "error_description": words}
        if scope != app.scope:
            return 400, {"error": "invalid_scope"}
        app.tokens.pop(app.minted, None)
        app.minted = self._token(app, MINTED_SECONDS)
        return 200, self._answer(app, app.minted, MINTED_SECONDS)

    def _exchange(self, app: App, form: Mapping[str, str]) -> Given:
        code = self._codes.pop(form.get("code", ""), None)
        asked = (app, form.get("redirect_uri"))
        if code is None or (code.app, code.back) != asked or code.until < self._workspace.now():
            return 400, {"error": "invalid_grant"}
        return 200, self._grant(app)

    def _refresh(self, app: App, name: str) -> Given:
        known = self._refreshes.get(name)
        now = self._workspace.now()
        if known is None or known.app is not app:
            return 400, {"error": "invalid_grant"}
        if known.used_at is None or known.answer is None:
            known.used_at, known.answer = now, self._grant(app)
        if now - known.used_at > GRACE_SECONDS:
            return 400, {"error": "invalid_grant"}
        return 200, known.answer

    def _grant(self, app: App) -> dict[str, Any]:
        token, refresh = self._token(app, GRANTED_SECONDS), f"lin_refresh_{new_id()}"
        self._refreshes[refresh] = _Refresh(app)
        return {**self._answer(app, token, GRANTED_SECONDS), "refresh_token": refresh}

    def _token(self, app: App, seconds: float) -> str:
        token = f"lin_oauth_{new_id()}"
        app.tokens[token] = self._workspace.now() + seconds
        return token

    def _answer(self, app: App, token: str, seconds: int) -> dict[str, Any]:
        return {
            "access_token": token,
            "token_type": "Bearer",
            "expires_in": seconds - 1,
            "scope": app.scope,
        }

    def _app(self, client: str) -> App | None:
        apps = self._workspace.apps.values()
        return next((app for app in apps if app.client_id == client), None)
