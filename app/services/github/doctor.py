"""Checks each agent on GitHub for `doctor`, and tries there what the bridge assumes about it.

What `doctor --live` makes is in a repository that is only for tests. Checks cannot be deleted: they
are put on a commit of a scratch branch, which is deleted. It has no history, so nothing is fetched.
"""

from __future__ import annotations

import base64
import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
from gidgethub import GitHubException

from app.clock import SystemClock
from app.config import Configuration
from app.errors import GitFailed, PostDelayed, PostError
from app.model.keys import adapter_name
from app.repos.git import NOWHERE, Git, RemoteAccess
from app.services.common.live import (
    LiveStep,
    LiveVerdict,
    Seen,
    compare,
    no_credentials,
    wrong_place,
)
from app.services.github.api import GithubApi
from app.services.github.auth import WRITING
from app.services.github.client import whose
from app.services.github.manifest import WORKFLOWS, lacking
from app.services.github.names import Spot
from app.services.github.settings import NAME, GithubCredentials, GithubSettings
from app.services.github.transport import Unauthorized
from app.services.service import CheckContext, Finding, LiveRequest, ok, problem, warning

GIT_SECONDS: Final = 60.0
"""Time limit of one command: a push of two files."""
WHO: Final = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "Agent Bridge"), ("EMAIL", "agent-bridge@localhost"))
}


class Scratch:
    """One branch of a repository, made in a folder of its own; every step may raise GitFailed."""

    def __init__(self, folder: Path, url: str, branch: str, git: Git) -> None:
        """Work in an empty folder."""
        self._folder = folder
        self._url = url
        self._git = git
        self._head = ""
        self.branch = branch

    async def commit(self, path: str, text: str) -> str:
        """Commit a file; returns the commit."""
        if not self._head:
            await self._run("init", "--quiet", "--bare")
        file = await self._run("hash-object", "-w", "--stdin", given=text)
        await self._run("update-index", "--add", "--cacheinfo", f"100644,{file},{path}")
        parents = ("-p", self._head) if self._head else ()
        tree = await self._run("write-tree")
        self._head = await self._run("commit-tree", tree, *parents, "-m", f"Try {path}")
        return self._head

    async def push(self, token: str) -> None:
        """Push the branch."""
        reference = f"{self._head}:refs/heads/{self.branch}"
        await self._run("push", "--quiet", self._url, reference, token=token)

    async def delete(self, token: str) -> None:
        """Delete the branch on GitHub."""
        reference = f"refs/heads/{self.branch}"
        await self._run("push", "--quiet", "--delete", self._url, reference, token=token)

    async def _run(self, *arguments: str, given: str = "", token: str = "") -> str:
        access, parts = NOWHERE, urlsplit(self._url)
        if token:
            user = base64.b64encode(f"x-access-token:{token}".encode()).decode()
            header = f"http.{parts.scheme}://{parts.netloc}/.extraHeader"
            access = RemoteAccess(parts.scheme, {header: f"Authorization: Basic {user}"})
        written = await self._git.run(
            self._folder,
            *arguments,
            access=access,
            given=given.encode(),
            more=WHO,
            seconds=GIT_SECONDS,
        )
        return written.decode(errors="replace").strip()


SHOWN = 5
"""Accounts that are named: a public App may have thousands."""
CHECK_KEY = "Check GITHUB_APP_ID and GITHUB_PRIVATE_KEY."


async def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Check every agent that has a GitHub App."""
    configuration = context.configuration
    for agent, given in configuration.credentials_of(GithubCredentials).items():
        what, url = adapter_name(NAME, agent), configuration.settings_of(GithubSettings).api_url
        api = GithubApi.of(given, SystemClock(), context.vault, api_url=url)
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
    installed = await api.installed()
    _learn_accounts(api, app, installed)
    foreign = [
        (each.get("account") or {}).get("login", "") or str(each["id"])
        for each in installed
        if not api.installations.includes(*whose(each))
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


def _learn_accounts(
    api: GithubApi, app: Mapping[str, Any], installed: Sequence[Mapping[str, Any]]
) -> None:
    """Tell the API for which accounts the App works: its owner, and those of the settings."""
    ours = api.installations
    ours.add_owner(app)
    listed = {login.casefold() for login in ours.logins}
    accounts = [each.get("account") or {} for each in installed]
    ours.complete(each["id"] for each in accounts if each.get("login", "").casefold() in listed)


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


CHECK: Final = "agent-bridge live check"
WORKFLOW: Final = ".github/workflows/agent-bridge-live-check.yml"
HARMLESS: Final = """\
on: workflow_dispatch
jobs:
  nothing:
    if: false
    runs-on: ubuntu-latest
    steps:
      - run: "true"
"""
"""A workflow that never runs."""
MINUTES: Final = 1.0
"""How long a check stays in progress, so that a person can look at it."""
LOOK_SECONDS: Final = 5.0
"""Pause between two lines of progress."""
PLACE: Final = re.compile(r"([\w.-]+/[\w.-]+)(?:#\d+)?")
REFUSAL: Final = "without `workflows` permission"
BUTTON: Final = {"label": "Stop", "description": "Stop the agent", "identifier": "live"}


@asynccontextmanager
async def live(request: LiveRequest) -> AsyncIterator[Sequence[LiveStep]]:
    """Open GitHub as an agent's App, and list the steps.

    Raises:
        ConfigurationError: this is no repository, or the agent is not on GitHub.
        BridgeError: GitHub does not accept the App.
    """
    configuration = request.context.configuration
    given = configuration.credentials_of(GithubCredentials).get(request.agent)
    if given is None:
        raise no_credentials(request.agent)
    place = PLACE.fullmatch(request.place)
    if place is None:
        raise wrong_place("OWNER/NAME")
    url = configuration.settings_of(GithubSettings).api_url
    api = GithubApi.of(given, request.clock, request.context.vault, api_url=url)
    try:
        try:
            _learn_accounts(api, await api.app() or {}, await api.installed())
        except (GitHubException, httpx.HTTPError) as error:
            raise PostDelayed(f"GitHub does not answer the App: {error}") from error
        with tempfile.TemporaryDirectory(prefix="agent-bridge-live-") as folder:
            scratch = Scratch(
                Path(folder),
                f"{configuration.settings.git_url}/{place[1]}.git",
                f"agent-bridge-live-{secrets.token_hex(4)}",
                Git(configuration.surroundings, "live"),
            )
            yield _Trial(request, api, place[1], scratch).steps()
    finally:
        await api.close()


@dataclass(slots=True)
class _Trial:
    """One scratch branch in one repository."""

    request: LiveRequest
    api: GithubApi
    repository: str
    scratch: Scratch
    head: str = ""

    def steps(self) -> Sequence[LiveStep]:
        """List what is tried."""
        return (
            LiveStep(
                "buttons",
                "the buttons of a check are shown only once it is completed",
                self._buttons,
                minutes=MINUTES,
            ),
            LiveStep("reopen", "a completed check stays completed", self._reopen),
            LiveStep(
                "workflow",
                "a push of a workflow file is refused unless the App may write workflows",
                self._workflow,
            ),
        )

    async def _buttons(self) -> Seen:
        run, head = await self._begin({"status": "in_progress", "actions": [BUTTON]})
        web = self.request.context.configuration.settings_of(GithubSettings).web_url
        address, clock = f"{web}/{self.repository}/runs/{run}", self.request.clock
        until = clock.monotonic() + MINUTES * 60
        while (left := until - clock.monotonic()) > 0:
            self.request.progress(f"does {address} show a button? {left:.0f} s left to look")
            await clock.sleep(min(LOOK_SECONDS, left))
        await self._complete(run)
        words = (
            f"GitHub took a check in progress with a button ({address}, on {head[:7]}), and does "
            "not say whether it shows it"
        )
        return Seen(words, LiveVerdict.LOOK)

    async def _reopen(self) -> Seen:
        run, _ = await self._begin({"status": "in_progress"})
        await self._complete(run)
        await self._change(run, {"status": "in_progress"})
        found = await self.api.check_runs(self.repository, self.head)
        status = next((each.status for each in found if each.id == run), "gone")
        await self._complete(run)
        words = f"completed, then set to in progress, it is {status!r}"
        return compare(words, as_assumed=status == "completed")

    async def _workflow(self) -> Seen:
        await self._branch()
        await self.scratch.commit(WORKFLOW, HARMLESS)
        try:
            await self.scratch.push(await self._token())
        except GitFailed as error:
            refused = REFUSAL in str(error)
            words = "GitHub refused it" if refused else "git failed"
            return compare(f"{words}: {error}", as_assumed=refused)
        return compare("GitHub took it with a token for contents alone", as_assumed=False)

    async def _branch(self) -> str:
        """Return the head of the scratch branch; the first step makes it."""
        if not self.head:
            self.head = await self.scratch.commit("README.md", "Agent Bridge deletes this.\n")
            token = await self._token()
            # Before the push: one that is interrupted may have made the branch.
            self.request.undo.add(f"the branch {self.scratch.branch}", self._delete)
            await self.scratch.push(token)
        return self.head

    async def _delete(self) -> None:
        try:
            await self.scratch.delete(await self._token())
        except GitFailed as error:
            if "remote ref does not exist" not in str(error):
                raise

    async def _begin(self, asked: dict[str, object]) -> tuple[int, str]:
        head = await self._branch()
        wanted = {"name": CHECK, "head_sha": head, **asked}

        async def make() -> int:
            return await self.api.begin_check(self.repository, wanted)

        undo, what = self.request.undo, f"a check in progress on {head[:7]}"
        return await undo.make(what, make(), self._complete), head

    async def _complete(self, run: int) -> None:
        await self._change(run, {"status": "completed", "conclusion": "neutral"})

    async def _change(self, run: int, asked: dict[str, object]) -> None:
        await self.api.change_check(Spot(self.repository, 0), run, asked, progress=False)

    async def _token(self) -> str:
        return await self.api.token(self.repository, WRITING)
