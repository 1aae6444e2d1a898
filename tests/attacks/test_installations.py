"""Attack 13: strangers install a public App on repositories of their own, and give orders there."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.config import load
from app.services import registered_services
from app.services.github.doctor import checks
from app.services.service import Severity
from sim.github.state import Issue, Repository
from sim.github.world import SimulatedGithub
from tests.support.doctor import check_context
from tests.support.github import GithubWorld, credentials

pytestmark = pytest.mark.anyio

ORDER = "@claude-bridge say yours to command"


class PublicWorld(GithubWorld):
    """A bridge whose App is public, and a stranger's repository with the App on it."""

    def __enter__(self) -> PublicWorld:
        self.bridge.page = True
        super().__enter__()
        app = self.apps["claude"]
        app.public = True
        self.strange: Repository = self.github.repository("mallory/own", {"mallory": "admin"})
        self.foreign = self.github.install(app, self.strange)
        return self

    def order(self, words: str = ORDER) -> Issue:
        """Give an order in the stranger's repository, as its admin."""
        return self.github.open_issue("mallory", self.strange, "Do this", words)

    def decided(self) -> list[tuple[str, str]]:
        """List what became of everything that arrived."""
        return [(row[0], row[1]) for row in self.bridge.rows("select state, reason from delivery")]


def test_a_strangers_installation_is_neither_heard_nor_looked_at(tmp_path: Path) -> None:
    """Attack 13."""
    with PublicWorld(tmp_path) as world:
        world.order("@claude-bridge run env")
        world.settled()

        assert world.turns() == 0
        ((state, reason),) = world.decided()
        assert state == "refused"
        assert "GITHUB_INSTALLATIONS" in reason
        assert [call for call in world.github.calls if "mallory" in call.path] == []
        assert f"/app/installations/{world.foreign.id}/access_tokens" not in [
            call.path for call in world.github.calls
        ]


def test_no_token_is_made_for_a_strangers_repository_that_is_named_elsewhere(
    tmp_path: Path,
) -> None:
    """Attack 13: the place is the page, the repository a stranger's."""
    with PublicWorld(tmp_path, settings={"GITHUB_REPO": "mallory/own"}) as world:
        said = {"agent": "claude", "text": "say hello"}
        assert world.bridge.http.post("/api/v1/sessions", json=said).status_code == 201
        world.settled()

        assert "/repos/mallory/own/installation" in [call.path for call in world.github.calls]
        assert f"/app/installations/{world.foreign.id}/access_tokens" not in [
            call.path for call in world.github.calls
        ]


@pytest.mark.slow
def test_an_account_that_the_operator_lists_is_heard(tmp_path: Path) -> None:
    with PublicWorld(tmp_path, settings={"GITHUB_INSTALLATIONS__CLAUDE": "Mallory"}) as world:
        world.wait_for(world.order(), "yours to command")
        world.wait_for(world.issue("@claude-bridge say hello"), "hello")


@pytest.mark.slow
def test_a_listed_login_that_changes_hands_does_not_hand_on_the_right(tmp_path: Path) -> None:
    """Attack 13: the account was renamed, and somebody else took its login."""
    with PublicWorld(tmp_path, settings={"GITHUB_INSTALLATIONS__CLAUDE": "mallory"}) as world:
        world.wait_for(world.order(), "yours to command")
        world.bridge.stop()
        heir = world.github.rename_account("mallory", "mallory-before")
        taken = world.github.repository("mallory/another", {"mallory": "admin"})
        world.github.install(world.apps["claude"], taken)
        world.bridge.start()
        world.github.open_issue("mallory", taken, "Do this", ORDER)
        world.settled()

        assert heir.login == "mallory-before"
        assert world.turns() == 1
        assert world.decided()[-1][0] == "refused"


@pytest.mark.slow
def test_a_person_whose_login_changed_hands_keeps_the_right(tmp_path: Path) -> None:
    """The login in ALLOWED_USERS is taken over by somebody else."""
    with GithubWorld(tmp_path, settings={"ALLOWED_USERS": "github:Guest"}) as world:
        world.github.account("guest")
        world.bridge.stop()
        world.bridge.start()
        first = world.issue("@claude-bridge say hello", by="guest")
        world.wait_for(first, "hello")
        world.bridge.stop()
        world.github.rename_account("guest", "guest-before")
        world.github.account("guest")
        world.bridge.start()

        second = world.issue("@claude-bridge say taken over", by="guest")
        third = world.issue("@claude-bridge say still me", by="guest-before")
        world.wait_for(third, "still me")
        world.wait_for(second, "write access")
        world.settled()

        assert world.turns() == 2


@pytest.mark.slow
def test_a_person_may_be_named_by_number(tmp_path: Path) -> None:
    world = GithubWorld(tmp_path)
    number = world.github.account("guest").id
    world.settings["ALLOWED_USERS"] = f"github:{number}"
    with world:
        world.wait_for(world.issue("@claude-bridge say hello", by="guest"), "hello")


async def test_doctor_warns_of_a_public_app_and_of_strangers_who_have_it(tmp_path: Path) -> None:
    """Attack 13."""
    with SimulatedGithub(tmp_path / "github") as github:
        app = github.app("claude-bridge", "http://127.0.0.1:9/hook")
        github.install(app, github.repository("acme/widgets"))
        settings = {
            "PATH": "",
            "AGENTS_JSON": '{"claude": {"command": "x", "sandbox": "none"}}',
            "DATA_DIR": str(tmp_path / "data"),
            **credentials(github, {"claude": app}),
        }

        async def warned() -> list[str]:
            configuration = load(settings, services=registered_services(), home=tmp_path / "home")
            found = [each async for each in checks(check_context(configuration))]
            return [each.reason for each in found if each.verdict is Severity.WARNING]

        private = await warned()
        app.public = True
        for name in ("mallory/own", "friend/own"):
            github.install(app, github.repository(name))
        settings["GITHUB_INSTALLATIONS__CLAUDE"] = "Friend"
        public = await warned()

    assert not any("public" in each or "work for" in each for each in private)
    assert "the App is public: anyone can install it" in public
    assert "it is also installed for mallory, but does not work for them" in public
