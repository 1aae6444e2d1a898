"""Bombs against a whole bridge on a small machine: all its processes stay below 512 MB together.

The kernel lets none of them have more than that, and what all of them have is added up meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from sim.github.state import Issue
from tests.support.bridge import SECONDS
from tests.support.git_server import git
from tests.support.github import PROGRESS, Hub
from tests.support.ordinary import USERS, Running, Server, agents, laid_out
from tests.support.resident import watched_memory
from tests.support.tree_bomb import SCRIPT, nest

NAME = "acme/widgets"
MACHINE_BYTES = 512 * 1024**2
REFUSED = "has more than 1,000,000 files and folders"


@dataclass
class Site:
    """A GitHub with one repository, and a bridge laid out as on a server."""

    hub: Hub
    bridge: Running

    def issue(self, title: str) -> Issue:
        return self.hub.github.open_issue("ann", self.hub.repository, title, "")

    def tell(self, issue: Issue, words: str) -> None:
        self.hub.github.comment("ann", issue, f"@claude-bridge\n{words}")

    def wait_for(self, issue: Issue, words: str) -> None:
        """Wait until the agent says something, not only as progress."""

        def found() -> bool:
            said = [each.body for each in issue.comments if each.user.login != "ann"]
            return any(words in each and PROGRESS not in each for each in said)

        try:
            self.hub.github.wait(found, SECONDS)
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.bridge.log.read_text()[-4000:]}") from error

    @contextmanager
    def small_machine(self) -> Iterator[None]:
        """Have all processes of the bridge stay below the limit together."""
        with watched_memory(self.bridge.pid) as peak:
            yield
        assert 0 < peak.size < MACHINE_BYTES, peak


@pytest.fixture(scope="module", params=USERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with laid_out(request.param) as server:
        yield server


@pytest.fixture(scope="module")
def site(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Hub(tmp_path_factory.mktemp("hub"), ("claude",)) as hub:
        entry = agents(claude=server.demo(mode="free"))
        limit = ("prlimit", f"--data={MACHINE_BYTES}")
        with server.serving(wrapper=limit, AGENTS_JSON=entry, **hub.settings) as bridge:
            hub.apps["claude"].hook_url = f"{bridge.http.base_url}/webhooks/github/claude"
            yield Site(hub, bridge)


@pytest.mark.long
def test_a_push_of_ten_billion_files_fits_into_a_small_machine(site: Site) -> None:
    bomb, other = site.issue("Bomb"), site.issue("Other")
    push = "git push origin $BOMB:refs/heads/$(git branch --show-current) 2>&1"
    script = "; ".join([*SCRIPT.splitlines(), push]).replace("do;", "do")

    with site.small_machine():
        site.tell(bomb, f"run {script}")
        site.tell(other, "say Hello")
        site.wait_for(other, "Hello")
        site.wait_for(bomb, REFUSED)

    assert list(site.hub.github.git.branches(NAME)) == ["main"]


@pytest.mark.long
def test_a_fork_of_ten_billion_files_fits_into_a_small_machine(site: Site) -> None:
    github = site.hub.github
    fork = github.fork(site.hub.repository, "mallory")
    bare = github.git.path(fork.full_name)
    bomb = git(bare, "commit-tree", nest(bare, [10] * 10), "-p", "main", "-m", "Bomb")
    git(bare, "update-ref", "refs/heads/theirs", bomb)
    pull = github.open_pull("mallory", site.hub.repository, "Mine", "mallory:theirs")
    other = site.issue("Other")

    with site.small_machine():
        site.tell(pull, "say I looked")
        site.tell(other, "say Hello")
        site.wait_for(other, "Hello")
        site.wait_for(pull, REFUSED)
