"""Checks each agent on GitHub: its key, permissions, events, installations and deliveries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import httpx
from gidgethub import GitHubException

from app.clock import SystemClock
from app.config import Configuration
from app.errors import PostError
from app.model.findings import Finding, ok, problem, warning
from app.model.keys import adapter_name
from app.services.github.accounts import Installations
from app.services.github.api import GithubApi
from app.services.github.auth import AppAuth, whose
from app.services.github.manifest import WORKFLOWS, lacking
from app.services.github.settings import NAME, GithubCredentials, GithubSettings
from app.services.github.transport import Unauthorized
from app.services.service import CheckContext

SHOWN = 5
"""Accounts that are named: a public App may have thousands."""
CHECK_KEY = "Check GITHUB_APP_ID and GITHUB_PRIVATE_KEY."


async def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Check every agent that has a GitHub App."""
    configuration = context.configuration
    api_url = configuration.settings_of(GithubSettings).api_url
    for agent, given in configuration.credentials_of(GithubCredentials).items():
        clock, what = SystemClock(), adapter_name(NAME, agent)
        auth = AppAuth(
            given.app_id,
            given.private_key,
            clock,
            keep_secret=context.vault.register,
            installations=Installations(given.installations, given.installation_id),
        )
        api = GithubApi(auth, clock, api_url=api_url)
        try:
            async for finding in _app(api, what, configuration):
                yield finding
        except Unauthorized:
            yield problem(what, "GitHub rejects the App's key", CHECK_KEY)
        except (PostError, GitHubException, httpx.HTTPError) as error:
            yield problem(what, f"{error}", "Check the network and GITHUB_API_URL.")
        finally:
            await api.close()


async def _app(api: GithubApi, what: str, configuration: Configuration) -> AsyncIterator[Finding]:
    app = await api.app()
    if app is None:
        yield problem(what, "GitHub has no App with this ID", CHECK_KEY)
        return
    permissions, events = lacking(app)
    settings = f"{configuration.settings_of(GithubSettings).web_url}/settings/apps/{app['slug']}"
    if permissions:
        remedy = f"Grant them at {settings}/permissions, then accept them where it is installed."
        yield problem(what, f"the App lacks the permissions {', '.join(permissions)}", remedy)
    if events:
        remedy = f"Subscribe to them at {settings}/permissions."
        yield problem(what, f"the App is not subscribed to {', '.join(events)}", remedy)
    if not permissions and not events:
        may = "may" if app["permissions"].items() >= WORKFLOWS.items() else "may not"
        yield ok(what, f"it is @{app['slug']}, and {may} push workflow files")
    async for finding in _installed(api, what, app, configuration):
        yield finding
    yield await _deliveries(api, what, configuration)


async def _installed(
    api: GithubApi, what: str, app: dict[str, Any], configuration: Configuration
) -> AsyncIterator[Finding]:
    """Tell who has installed the App, and who could."""
    web, slug = configuration.settings_of(GithubSettings).web_url, app["slug"]
    if await api.is_public(slug):
        remedy = f"Make it private at {web}/settings/apps/{slug}/advanced."
        yield warning(what, "the App is public: anyone can install it", remedy)
    installed, ours = await api.installed(), api.installations
    ours.add_owner(app)
    listed = {login.casefold() for login in ours.logins}
    accounts = [(each, (each.get("account") or {}).get("login", "")) for each in installed]
    ours.complete(each["account"]["id"] for each, login in accounts if login.casefold() in listed)
    foreign = [
        login or str(each["id"]) for each, login in accounts if not ours.includes(*whose(each))
    ]
    if foreign:
        yield warning(
            what,
            f"it is also installed for {', '.join(foreign[:SHOWN])}, but does not work for them",
            "Add them to GITHUB_INSTALLATIONS, or uninstall the App there.",
        )
    if len(foreign) == len(installed):
        remedy = f"Install it: {web}/apps/{slug}/installations/new"
        yield warning(what, "the App is not installed for any account that it works for", remedy)


async def _deliveries(api: GithubApi, what: str, configuration: Configuration) -> Finding:
    """Check in the App's delivery log whether its webhooks arrive."""
    async with aclosing(api.deliveries()) as log:
        latest: dict[str, Any] | None = await anext(log, None)
    if latest is None:
        return warning(
            what, "GitHub has not delivered anything yet", "Mention the agent on an issue."
        )
    if 200 <= int(latest["status_code"]) < 300:
        return ok(what, "GitHub's last delivery arrived")
    path = configuration.own_webhook_path(NAME, what.partition(":")[2])
    return problem(
        what,
        f"GitHub's last delivery failed: {latest['status']}",
        f"Set the App's webhook URL to {configuration.base_url}{path}, and check that its secret "
        "matches GITHUB_WEBHOOK_SECRET.",
    )
