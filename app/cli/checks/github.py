"""Checks of each agent on GitHub: its key, what its App may do and hears of, who reaches it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
from gidgethub import GitHubException

from app.cli.checks import Finding, ok, problem, warning
from app.config import Configuration, GithubCredentials
from app.core.clock import SystemClock
from app.core.keys import adapter_name
from app.errors import PostError
from app.services.github.api import GithubApi, Unauthorized
from app.services.github.auth import AppAuth
from app.services.github.manifest import lacking
from app.services.github.names import SERVICE
from app.vault import Vault

CHECK_KEY = "Check GITHUB_APP_ID and GITHUB_PRIVATE_KEY."


async def check_github(configuration: Configuration, vault: Vault) -> AsyncIterator[Finding]:
    """Check every agent that has a GitHub App."""
    for (_, agent), given in configuration.credentials.items():
        if not isinstance(given, GithubCredentials):
            continue
        clock, what = SystemClock(), adapter_name(SERVICE, agent)
        auth = AppAuth(given.app_id, given.private_key, clock, keep_secret=vault.register)
        api = GithubApi(auth, clock, api_url=configuration.github_api_url)
        try:
            async for finding in _app(api, what, configuration):
                yield finding
        except Unauthorized:
            yield problem(what, "GitHub does not take the App's key", CHECK_KEY)
        except (PostError, GitHubException, httpx.HTTPError) as error:
            yield problem(what, f"{error}", "Check the network and GITHUB_API_URL.")
        finally:
            await api.close()


async def _app(api: GithubApi, what: str, configuration: Configuration) -> AsyncIterator[Finding]:
    app = await api.app()
    if app is None:
        yield problem(what, "GitHub knows no App with this number", CHECK_KEY)
        return
    permissions, events = lacking(app)
    settings = f"{configuration.github_web_url}/settings/apps/{app['slug']}"
    if permissions:
        remedy = f"Allow them at {settings}/permissions, then accept them where it is installed."
        yield problem(what, f"the App lacks the permissions {', '.join(permissions)}", remedy)
    if events:
        remedy = f"Subscribe to them at {settings}/permissions."
        yield problem(what, f"the App does not hear of {', '.join(events)}", remedy)
    if not permissions and not events:
        yield ok(what, f"it is @{app['slug']}")
    if not await api.as_app("/app/installations"):
        remedy = f"Install it: {configuration.github_web_url}/apps/{app['slug']}/installations/new"
        yield warning(what, "the App is not installed anywhere", remedy)
    yield await _deliveries(api, what, configuration)


async def _deliveries(api: GithubApi, what: str, configuration: Configuration) -> Finding:
    """Judge by the App's own log whether its webhooks arrive."""
    async with aclosing(api.deliveries()) as log:
        latest: dict[str, Any] | None = await anext(log, None)
    if latest is None:
        return warning(
            what, "GitHub has not delivered anything yet", "Mention the agent on an issue."
        )
    if 200 <= int(latest["status_code"]) < 300:
        return ok(what, "GitHub's last delivery arrived")
    agent = what.partition(":")[2]
    return problem(
        what,
        f"GitHub's last delivery did not arrive: {latest['status']}",
        f"Let the App's webhook lead to {configuration.base_url}/webhooks/github/{agent}, and "
        "compare its secret with GITHUB_WEBHOOK_SECRET.",
    )
