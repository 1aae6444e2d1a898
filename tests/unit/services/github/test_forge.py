"""What GitHub is for repositories, also while it has its troubles."""

from __future__ import annotations

import pytest

from app.core.keys import PlaceKey, SessionKey
from app.core.types import Session, SessionState
from app.core.workspaces import Head, Proposal, Repository
from app.errors import RepositoryError
from app.services.github.forge import GithubForge
from app.services.github.patience import PAUSES
from app.services.github.repositories import GithubRepositories
from app.sim.github.answers import Reply
from tests.support.clock import HastyClock
from tests.support.github_desk import Desk

pytestmark = pytest.mark.anyio

BRANCH = "agent/claude/1"
BROKEN = Reply(502, {"message": "Server Error"})


class Office:
    """A forge, its clock, and the surfaces that it links."""

    def __init__(self, desk: Desk) -> None:
        self.clock = HastyClock()
        self.linked: list[str] = []
        mine = GithubRepositories("claude", desk.apis["claude"], desk.directory)
        url = desk.github.url
        self.forge = GithubForge({"claude": mine}, {}, self.clock, git_url=url, link=self._link)
        self.repository = Repository("acme/widgets", f"{url}/acme/widgets.git")
        self._github = desk.github

    async def _link(self, session: int, key: SessionKey, place: PlaceKey) -> bool:
        self.linked.append(f"{session} {key} {place}")
        return True

    async def propose(self) -> str:
        self._github.git.commit("acme/widgets", BRANCH, {"b.py": "x"}, "Work")
        said = {"head": BRANCH, "base": "main", "title": "A", "body": "b"}
        return await self.forge.propose(Proposal(self.repository, "claude", 7, **said))


@pytest.mark.parametrize("reply", [BROKEN, None])
async def test_a_moment_of_trouble_does_not_cost_a_pull_request(
    desk: Desk, reply: Reply | None
) -> None:
    office = Office(desk)
    desk.github.fail("POST", "/pulls$", reply)

    link = await office.propose()

    (pull,) = desk.repository.issues.values()
    assert link == pull.url
    assert len(office.linked) == 1
    assert office.clock.slept == [PAUSES[0]]


async def test_what_github_asks_to_wait_for_is_waited_for(desk: Desk) -> None:
    office = Office(desk)
    desk.github.fail("GET", "/pulls$", Reply(429, {}, {"retry-after": "7"}))

    await office.propose()

    assert office.clock.slept == [7]


@pytest.mark.parametrize(
    ("reply", "tries"),
    [
        (BROKEN, 1 + len(PAUSES)),
        (Reply(422, {"message": "No commits"}), 1),
        (Reply(403, {"message": "rate limit"}, {"retry-after": "900"}), 1),
    ],
)
async def test_what_github_cannot_do_is_an_error_that_says_why(
    desk: Desk, reply: Reply, tries: int
) -> None:
    office = Office(desk)
    desk.github.fail("GET", "/pulls$", reply, times=9)

    with pytest.raises(RepositoryError, match=f"^{BRANCH} cannot be proposed: "):
        await office.propose()

    assert sum(call.path.endswith("/pulls") for call in desk.github.calls) == tries
    assert office.linked == []


async def test_a_turn_begins_although_github_hesitates(desk: Desk) -> None:
    office = Office(desk)
    commit = desk.github.git.commit("acme/widgets", "topic", {"a.py": "one\n"}, "Change")
    pull = desk.github.open_pull("ann", desk.repository, "A change", "topic")
    place = PlaceKey("github", f"acme/widgets:{pull.number}")
    desk.github.fail("GET", "/issues/1$", BROKEN)
    desk.github.fail("POST", "/access_tokens$", BROKEN, times=2)

    head = await office.forge.head(Session(7, desk.key(pull), place, SessionState.IDLE))
    token = await office.forge.token(office.repository, "claude")

    assert head == Head("topic", commit)
    assert token in desk.secrets
    assert len(office.clock.slept) == 3
