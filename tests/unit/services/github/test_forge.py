"""What GitHub is for repositories, also while it has its troubles."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from app.errors import RepositoryError
from app.model.keys import PlaceKey, SessionKey
from app.model.workspaces import PullHead, Repository
from app.services.github import forge
from app.services.github.auth import GitHubApps
from app.services.github.forge import KEPT_SECONDS, GithubForge
from app.services.github.names import GitHubIdentity
from app.services.github.transport import PAUSES
from sim.github.answers import Reply
from tests.support.clock import ManualClock
from tests.support.github_desk import BRANCH, Desk, Office

pytestmark = pytest.mark.anyio


async def no_link(_session: int, _key: SessionKey, _place: PlaceKey) -> bool:
    return False


BROKEN = Reply(502, {"message": "Server Error"})


async def test_a_pull_request_is_opened_once_and_then_changed(desk: Desk) -> None:
    office = Office(desk)

    first = await office.propose("A")
    again = await office.propose("B")

    (made,) = desk.repository.issues.values()
    assert first == again == made.url
    assert (made.title, made.body, made.user.login) == ("B", "b", "claude-bridge[bot]")
    head = await office.head(made)
    assert head is not None
    assert head.branch == BRANCH


async def test_the_author_of_commits_is_known_before_a_clone_is_opened_and_stays_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = GitHubApps(["claude"])
    clock = ManualClock()
    apis: dict[str, Any] = {"claude": None}
    made = GithubForge(apis, directory, clock, git_url="https://github.test", link=no_link)
    monkeypatch.setattr(forge, "IDENTITY_SECONDS", 0.01)
    with pytest.raises(RepositoryError, match="has not said yet who claude is"):
        await made.author("claude")
    monkeypatch.undo()

    waiting = asyncio.ensure_future(made.author("claude"))
    await asyncio.sleep(0)
    directory.introduce(GitHubIdentity("claude", "claude-bridge[bot]"))
    first = await waiting
    directory.introduce(GitHubIdentity("claude", "claude-bridge[bot]", 7))

    assert first is not None
    assert await made.author("claude") == first
    assert await made.author("codex") is None


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
    desk.github.fail("GET", "/issues/1$", BROKEN)
    desk.github.fail("POST", "/access_tokens$", BROKEN, times=2)

    head = await office.head(pull)
    token = await office.forge.token(office.repository, "claude")

    assert head == PullHead("topic", commit, "main", "topic")
    assert token in desk.secrets
    assert len(office.clock.slept) == 3


async def test_workflow_files_take_a_permission_which_only_a_token_for_them_has(desk: Desk) -> None:
    office = Office(desk)
    refused = await office.forge.workflow_refusal(office.repository, "claude")
    with pytest.raises(RepositoryError, match=r"lacks one of the permissions .*workflows: write"):
        await office.forge.token(office.repository, "claude", workflows=True)
    desk.apps["claude"].permissions["workflows"] = "write"

    granted = await office.forge.workflow_refusal(office.repository, "claude")
    wide = await office.forge.token(office.repository, "claude", workflows=True)
    narrow = await office.forge.token(office.repository, "claude")

    assert "`Workflows: Read and write`" in refused
    assert granted == ""
    has = [desk.github.tokens[each or ""].permissions.get("workflows") for each in (wide, narrow)]
    assert has == ["write", None]


async def test_a_repository_that_an_app_no_longer_reaches_is_named_with_the_remedy(
    desk: Desk,
) -> None:
    office = Office(desk)
    await office.forge.token(office.repository, "claude")
    desk.claude_api._tokens.clear()
    desk.github.installations[0].repositories.clear()

    with pytest.raises(RepositoryError, match="the App is not installed on acme/widgets"):
        await office.forge.token(office.repository, "claude")


async def test_branches_that_others_rely_on_are_guarded_with_the_reason(desk: Desk) -> None:
    office = Office(desk)
    for branch in ("base", "a/b", "pinned", "free"):
        desk.github.git.commit("acme/widgets", branch, {branch: "x"}, "Work")
    desk.repository.protected.add("pinned")
    for head in ("a/b", "pinned"):
        desk.github.open_pull("ann", desk.repository, head, head, base="base")
    desk.github.open_pull("ann", desk.repository, "free", "free", base="a/b")

    async def guard(branch: str) -> str:
        return await office.forge.guard(office.repository, "claude", branch)

    assert await guard("main") == "it is the default branch"
    assert await guard("pinned") == "it is protected"
    assert await guard("base") == "2 open pull requests are based on it"
    assert await guard("a/b") == "the open pull request #3 is based on it"
    assert await guard("free") == ""
    assert await guard("agent/claude/new") == ""


@pytest.mark.parametrize("path", ["/widgets$", "/branches/", "/pulls$"])
async def test_a_branch_of_which_github_says_nothing_is_guarded(desk: Desk, path: str) -> None:
    office = Office(desk)
    desk.github.fail("GET", path, BROKEN, times=9)

    reason = await office.forge.guard(office.repository, "claude", BRANCH)

    assert reason.startswith("GitHub could not be asked whether it is protected (")


async def test_only_branches_on_github_are_looked_up_there(desk: Desk) -> None:
    office = Office(desk)
    elsewhere = Repository("acme/widgets", "https://git.example.com/acme/widgets.git")

    assert await office.forge.guard(elsewhere, "claude", "main") == ""
    assert await office.forge.guard(office.repository, "codex", "main") == ""


async def test_all_installations_are_listed_and_what_changed_last_comes_first(desk: Desk) -> None:
    elsewhere = desk.github.repository("other/thing")
    archived = desk.github.repository("other/old")
    archived.archived = True
    desk.github.install(desk.apps["claude"], elsewhere, archived)
    suspended = desk.github.install(desk.apps["claude"], desk.github.repository("third/one"))
    suspended.suspended = True
    desk.repository.pushed = elsewhere.pushed + 1

    assert await Office(desk).forge.repositories("claude") == ("acme/widgets", "other/thing")
    assert all(value.startswith("ghs_") for value in desk.secrets)
    assert desk.secrets != []


@pytest.mark.long
async def test_a_long_list_is_read_to_its_end(desk: Desk) -> None:
    more = [desk.github.repository(f"acme/r{number}") for number in range(104)]
    installation = desk.github.installations[0]
    installation.repositories |= {each.id for each in more}

    assert len(await Office(desk).forge.repositories("claude")) == 105


async def test_one_installation_can_be_all_there_is(desk: Desk) -> None:
    made = desk.github.install(desk.apps["claude"], desk.github.repository("other/thing"))

    desk.installations["claude"].only = str(made.id)
    assert await Office(desk).forge.repositories("claude") == ("other/thing",)
    desk.installations["claude"].only = "1"
    assert await Office(desk).forge.repositories("claude") == ()


async def test_an_answer_is_kept_for_a_while(desk: Desk) -> None:
    clock = ManualClock()
    forge = Office(desk, clock).forge
    await forge.repositories("claude")
    desk.github.install(desk.apps["claude"], desk.github.repository("other/thing"))

    assert await forge.repositories("claude") == ("acme/widgets",)
    await clock.advance(KEPT_SECONDS)
    assert set(await forge.repositories("claude")) == {"acme/widgets", "other/thing"}


@pytest.mark.parametrize("reply", [Reply(500, {"message": "oops"}), None])
async def test_what_github_does_not_say_is_told_with_a_remedy(
    desk: Desk, reply: Reply | None
) -> None:
    forge = Office(desk).forge
    desk.github.fail("GET", "/installation/repositories", reply)

    with pytest.raises(RepositoryError, match="`repo OWNER/NAME` or `repo none`"):
        await forge.repositories("claude")
    assert await forge.repositories("claude") == ("acme/widgets",)
    assert await forge.repositories("somebody-else") == ()
