"""Checks each agent on GitHub for `doctor`, and tries there what the bridge assumes about it.

What `doctor --live` makes is in a repository that is only for tests. Checks cannot be deleted: they
are put on a commit of a scratch branch, which is deleted. It has no history, so nothing is fetched.
"""

from __future__ import annotations

import asyncio
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

from app.children.environment import MARKER
from app.children.proc_table import new_marker
from app.children.spawn import ChildCommand, spawn
from app.children.stop import StopSteps, stop
from app.clock import Clock, SystemClock
from app.config import Configuration
from app.errors import AgentNotStarted, GitFailed, PostDelayed, PostError
from app.model.keys import adapter_name
from app.services.common.live import (
    LiveStep,
    LiveVerdict,
    Seen,
    compare,
    no_credentials,
    wrong_place,
)
from app.services.github.api import GithubApi
from app.services.github.auth import WRITING, AppAuth, Installations
from app.services.github.client import whose
from app.services.github.manifest import WORKFLOWS, lacking
from app.services.github.names import Spot
from app.services.github.settings import NAME, GithubCredentials, GithubSettings
from app.services.github.transport import Unauthorized
from app.services.service import CheckContext, Finding, LiveRequest, ok, problem, warning

GIT_SECONDS: Final = 60.0
"""Time limit of one command: a push of two files."""
CHUNK_BYTES: Final = 65536
STEPS: Final = StopSteps(close=0.5, terminate=1.0, kill=2.0)
"""Git has nothing to save when it ends."""
PASSED_ON: Final = (
    *("PATH", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
    *("GIT_SSL_CAINFO", "SSL_CERT_DIR"),
)


class Scratch:
    """One branch of a repository, made in a folder of its own; every step may raise GitFailed."""

    def __init__(
        self, folder: Path, url: str, branch: str, surroundings: Mapping[str, str], *, bridge: str
    ) -> None:
        """Work in an empty folder; `bridge` names the bridge in the markers of processes."""
        self._folder = folder
        self._url = url
        self._bridge = bridge
        self._surroundings = surroundings
        self.branch = branch

    async def commit(self, path: str, text: str) -> str:
        """Commit a file; returns the commit."""
        if not (self._folder / ".git").exists():
            await self._run("init", "--quiet", f"--initial-branch={self.branch}")
        file = self._folder / path
        await asyncio.to_thread(file.parent.mkdir, parents=True, exist_ok=True)
        await asyncio.to_thread(file.write_text, text)
        await self._run("add", "--", path)
        await self._run("commit", "--quiet", "--message", f"Try {path}")
        return (await self._run("rev-parse", "HEAD")).strip()

    async def push(self, token: str) -> None:
        """Push the branch."""
        await self._run("push", "--quiet", self._url, f"HEAD:refs/heads/{self.branch}", token=token)

    async def delete(self, token: str) -> None:
        """Delete the branch on GitHub."""
        reference = f"refs/heads/{self.branch}"
        await self._run("push", "--quiet", "--delete", self._url, reference, token=token)

    async def _run(self, *arguments: str, token: str = "") -> str:
        name = f"git {arguments[0]}"
        try:
            async with asyncio.timeout(GIT_SECONDS):
                return await self._answer(name, ChildCommand(("git", *arguments)), token)
        except AgentNotStarted as error:
            raise GitFailed(name, str(error)) from error
        except TimeoutError:
            raise GitFailed(name, f"timed out after {GIT_SECONDS:g} s") from None

    async def _answer(self, name: str, command: ChildCommand, token: str) -> str:
        child = await spawn(command, name="git", env=self._environment(token), cwd=self._folder)
        try:
            child.close_input()
            written = bytearray()
            while data := await child.stdout.read(CHUNK_BYTES):
                written += data
            if await child.wait() != 0:
                raise GitFailed(name, child.last_words())
            return written.decode(errors="replace")
        finally:
            if child.status is None:
                await stop(child, steps=STEPS)
            else:
                child.close()

    def _environment(self, token: str) -> dict[str, str]:
        given = self._surroundings
        parts, user = urlsplit(self._url), base64.b64encode(f"x-access-token:{token}".encode())
        credential = {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"http.{parts.scheme}://{parts.netloc}/.extraHeader",
            "GIT_CONFIG_VALUE_0": f"Authorization: Basic {user.decode()}",
        }
        return {
            **{each: given[each] for each in PASSED_ON if each in given},
            "LC_ALL": "C",
            "HOME": str(self._folder),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            **{f"GIT_{role}_NAME": "Agent Bridge" for role in ("AUTHOR", "COMMITTER")},
            **{f"GIT_{role}_EMAIL": "agent-bridge@localhost" for role in ("AUTHOR", "COMMITTER")},
            **(credential if token else {}),
            MARKER: new_marker(self._bridge),
        }


SHOWN = 5
"""Accounts that are named: a public App may have thousands."""
CHECK_KEY = "Check GITHUB_APP_ID and GITHUB_PRIVATE_KEY."


async def checks(context: CheckContext) -> AsyncIterator[Finding]:
    """Check every agent that has a GitHub App."""
    configuration = context.configuration
    for agent, given in configuration.credentials_of(GithubCredentials).items():
        api, what = _open(context, given, SystemClock()), adapter_name(NAME, agent)
        try:
            async for finding in _app(api, what, configuration):
                yield finding
        except Unauthorized:
            yield problem(what, "GitHub rejects the App's key", CHECK_KEY)
        except (PostError, GitHubException, httpx.HTTPError) as error:
            yield problem(what, f"{error}", "Check the network and GITHUB_API_URL.")
        finally:
            await api.close()


def _open(context: CheckContext, given: GithubCredentials, clock: Clock) -> GithubApi:
    auth = AppAuth(
        given.app_id,
        given.private_key,
        clock,
        keep_secret=context.vault.register,
        installations=Installations(given.installations, given.installation_id),
    )
    api_url = context.configuration.settings_of(GithubSettings).api_url
    return GithubApi(auth, clock, api_url=api_url, vault=context.vault)


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
    api = _open(request.context, given, request.clock)
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
                configuration.surroundings,
                bridge="live",
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
