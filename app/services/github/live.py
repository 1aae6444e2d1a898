"""Tries on the real GitHub what the bridge assumes about it, in a repository only for tests.

Checks cannot be deleted: they are put on a commit of a scratch branch, which is deleted.
"""

from __future__ import annotations

import re
import secrets
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import httpx
from gidgethub import GitHubException

from app.errors import GitFailed, PostDelayed
from app.services.common.live import LiveStep, Seen, Verdict, compare, no_credentials, wrong_place
from app.services.github.accounts import Installations
from app.services.github.api import GithubApi
from app.services.github.auth import WRITING, AppAuth
from app.services.github.names import Spot
from app.services.github.scratch import Scratch
from app.services.github.settings import GithubCredentials, GithubSettings
from app.services.service import LiveRequest

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
    installations = Installations(given.installations, given.installation_id)
    auth = AppAuth(
        given.app_id,
        given.private_key,
        request.clock,
        keep_secret=request.context.vault.register,
        installations=installations,
    )
    api_url = configuration.settings_of(GithubSettings).api_url
    api = GithubApi(auth, request.clock, api_url=api_url, vault=request.context.vault)
    try:
        await _learn_installations(api)
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


async def _learn_installations(api: GithubApi) -> None:
    """Look up for which accounts the App works.

    Raises:
        PostError: GitHub does not accept the App, or not now.
    """
    try:
        app, installed = await api.app(), await api.installed()
    except (GitHubException, httpx.HTTPError) as error:
        raise PostDelayed(f"GitHub does not answer the App: {error}") from error
    ours = api.installations
    ours.add_owner(app or {})
    listed = {login.casefold() for login in ours.logins}
    accounts = [each.get("account") or {} for each in installed]
    ours.complete(each["id"] for each in accounts if each.get("login", "").casefold() in listed)


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
        return Seen(words, Verdict.LOOK)

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

        what = f"a check in progress on {head[:7]}"
        return await self.request.undo.make(what, make(), self._complete), head

    async def _complete(self, run: int) -> None:
        await self._change(run, {"status": "completed", "conclusion": "neutral"})

    async def _change(self, run: int, asked: dict[str, object]) -> None:
        await self.api.change_check(self._spot, run, asked, progress=False)

    @property
    def _spot(self) -> Spot:
        return Spot(self.repository, 0)

    async def _token(self) -> str:
        return await self.api.token(self.repository, WRITING)
