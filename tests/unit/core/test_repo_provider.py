"""What becomes of clones when nobody uses them, or when they cannot be used any more."""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from app.children.limits import DiskSpace
from app.clock import SystemClock
from app.core.repo_provider import RepoProvider
from app.core.repositories.clones import Clones
from app.core.repositories.directory import Directory
from app.core.repositories.folders import Folders
from app.core.repositories.shipping import Proposing
from app.errors import RepositoryError
from app.model.inbound import Decision, Heard
from app.model.keys import PlaceKey
from app.model.posts import Pushed
from app.model.proposals import Work
from app.model.types import BridgeSessionRequest, Message, Session, Speaker
from app.model.updates import AskRequest, BridgeUpdate
from app.model.workspaces import Clone, Ship, Shipped, Target
from app.repos import wording as wording
from app.repos.checkouts import GitCheckouts
from app.repos.mirror import Mirrors
from app.store.stores import Stores
from tests.support.agent_values import make_agent
from tests.support.base import make_base
from tests.support.git_server import git
from tests.support.memory import open_stores
from tests.support.yard import BOT, Yard, open_yard

ANN = Speaker("ann", "Ann")
LATER = 4e9
"""A time that every session was last used before."""


ONE_LINE = Pushed("acme/app", "agent/demo/web-t1", files=1, added=1)


@dataclass
class Firm:
    """A provider on a real store and real git, and one session."""

    provider: RepoProvider
    stores: Stores
    yard: Yard

    @property
    def session(self) -> Session:
        found = self.stores.sessions.session(1)
        assert found is not None
        return found

    async def notices(self) -> list[str]:
        rows = await self.stores.transcript.read(1, after=0, limit=100)
        return [row.text for row in rows if row.kind == "notice"]

    async def ship(self) -> Shipped:
        said = Message(ANN, "do it", "m1", 0.0)
        return await self.provider.ship(self.session, self.target, Work("Do it", [said]))

    async def propose(self, title: str = "", body: str = "") -> Proposing:
        work = Work("Do it", [Message(ANN, "do it", "m1", 0.0)])
        return await self.provider.propose(self.session, work, title=title, body=body)

    @property
    def target(self) -> Target:
        return self.provider.target(self.session, None)

    async def open(self) -> Path:
        return (await self.provider.open(self.session, self.target)).folder


@asynccontextmanager
async def firm(folder: Path, ship: Ship = "push") -> AsyncIterator[Firm]:
    async with open_yard(folder / "yard") as yard:
        clock = SystemClock()
        with open_stores(folder, clock) as (_, stores):
            place = PlaceKey("web", "t1")
            heard = Heard(place, "t1", "m1", ANN, "do it")
            request = BridgeSessionRequest("t1", "web", "demo", "do it", ANN, "m1", place)
            await stores.decisions.accept(Decision(1, heard, "done", "", (request,)))
            yield Firm(provide(yard, stores, ship), stores, yard)


@asynccontextmanager
async def elsewhere(yard: Yard) -> AsyncIterator[Yard]:
    """Be another machine: it finds the workspaces, and has its gates and mirrors elsewhere."""
    other, surroundings = yard.folder / "other", {"PATH": os.environ["PATH"]}
    disk = DiskSpace(yard.folder, watermark=0)
    checkouts = GitCheckouts(
        other / "gates",
        {"demo": yard.isolation}.get,
        yard.git,
        Mirrors(other / "mirrors", yard.git, yard.tokens, surroundings, disk=disk),
        tokens=yard.tokens,
        vault=yard.vault,
        person=surroundings,
    )
    try:
        yield replace(yard, checkouts=checkouts)
    finally:
        await checkouts.close_all()


def provide(yard: Yard, stores: Stores, ship: Ship, machine: str = "") -> RepoProvider:
    """Provide workspaces on the disk of a machine."""
    own = yard.folder / machine
    folders = Folders(own / "workspaces", own / "uploads", own / "session-homes")
    agents = {"demo": make_agent("demo", ship=ship, display_name=BOT.name)}
    base = replace(make_base(stores, SystemClock(), vault=yard.vault), agents=agents)
    return RepoProvider(
        base,
        folders,
        Clones(base, folders.root, yard.checkouts, machine=machine),
        yard.checkouts,
        Directory(yard.server.url, yard.folder.parent, yard.folder, default="acme/app"),
    )


async def test_a_clone_with_unshipped_work_is_never_reaped_and_that_is_said_once(
    tmp_path: Path,
) -> None:
    async with firm(tmp_path) as here:
        folder = await here.open()
        (folder / "precious.txt").write_text("work")
        await here.provider.close(1)

        kept = await here.provider.unused.reap(before=LATER)
        again = await here.provider.unused.reap(before=LATER)

        words = "The clone of web:t1:demo is kept because it holds 1 uncommitted change."
        assert (kept, again) == ([words], [])
        assert await here.notices() == [words]
        assert (folder / "precious.txt").read_text() == "work"


@pytest.mark.long
async def test_a_shipped_clone_is_reaped_and_the_next_one_goes_on_with_its_branch(
    tmp_path: Path,
) -> None:
    async with firm(tmp_path) as here:
        folder = await here.open()
        (folder / "one.txt").write_text("1")
        assert (await here.ship()).pushed == Pushed(
            "acme/app", "agent/demo/web-t1", files=1, added=1
        )
        await here.provider.close(1)

        assert await here.provider.unused.reap(before=LATER) == []
        assert not folder.exists()
        again = await here.open()

        assert (again / "one.txt").read_text() == "1"
        (again / "two.txt").write_text("2")
        assert (await here.ship()).pushed == Pushed(
            "acme/app", "agent/demo/web-t1", files=1, added=1
        )
        assert here.yard.server.show("acme/app", "agent/demo/web-t1", "two.txt") == "2"


async def test_no_gate_stays_open_of_a_clone_that_cannot_be_made(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        git(here.yard.server.path("acme/app"), "update-ref", "-d", "refs/heads/main")

        with pytest.raises(RepositoryError, match="has no commit on its default branch yet"):
            await here.open()

        assert (here.yard.folder / "gates" / "1-demo-1").exists()
        assert here.yard.checkouts.visible(here.yard.folder / "workspaces" / "1-demo-1") == ()


async def test_no_gate_stays_open_of_a_clone_that_cannot_be_used_any_more(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        folder = await here.open()
        await here.provider.close(1)
        shutil.rmtree(folder / ".git")

        another = await here.open()

        assert another != folder
        assert here.yard.checkouts.visible(another) != ()
        assert here.yard.checkouts.visible(folder) == ()


async def test_machines_that_share_a_folder_go_on_in_one_clone(tmp_path: Path) -> None:
    async with firm(tmp_path) as here, elsewhere(here.yard) as there:
        folder = await here.open()
        (folder / "one.txt").write_text("uncommitted")
        await here.provider.close(1)
        shutil.rmtree(here.yard.mirrors.root)

        other = provide(there, here.stores, "push")
        workspace = await other.open(here.session, here.target)
        assert (workspace.folder, (folder / "one.txt").read_text()) == (folder, "uncommitted")
        clone = replace(there.clone(), folder=folder)
        status, words = await there.do(clone, "git add . && git commit -qm Mine && git push")
        assert status == 0, words
        assert here.yard.server.show("acme/app", "agent/demo/web-t1", "one.txt") == "uncommitted"
        assert await here.notices() == []


async def test_a_clone_that_another_machine_has_is_made_again_and_that_is_said(
    tmp_path: Path,
) -> None:
    async with firm(tmp_path, ship="none") as here:
        one, two = (provide(here.yard, here.stores, "none", name) for name in ("one", "two"))
        first = await one.open(here.session, here.target)
        (first.folder / "precious.txt").write_text("work")
        await one.close(1)

        second = await two.open(here.session, here.target)

        assert not (second.folder / "precious.txt").exists()
        assert await here.notices() == [wording.CLONE_LOST]
        # It is kept where it is, and told by the machine that has it.
        assert await two.unused.reap(before=LATER) == []
        (kept,) = await one.unused.reap(before=LATER)
        assert "1 uncommitted change" in kept


async def test_a_folder_that_is_missing_is_made_again_and_that_is_said(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        first = await here.provider.open(here.session, None)
        shutil.rmtree(first.folder)
        assert await here.notices() == []
        used = replace(here.session, acp_session_id="s1")

        await here.provider.open(used, None)

        assert await here.notices() == [wording.FOLDER_LOST]


async def test_a_clone_whose_mirror_is_gone_fetches_it_again(tmp_path: Path) -> None:
    async with firm(tmp_path, ship="none") as here:
        folder = await here.open()
        (folder / "precious.txt").write_text("work")
        await here.provider.close(1)
        shutil.rmtree(here.yard.mirrors.root)

        assert await here.open() == folder

        assert (folder / "precious.txt").read_text() == "work"
        assert (await here.yard.do(replace(here.yard.clone(), folder=folder), "git log"))[0] == 0
        assert await here.notices() == []


async def test_a_branch_that_was_deleted_on_the_remote_begins_anew(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        folder = await here.open()
        (folder / "one.txt").write_text("1")
        await here.ship()
        await here.provider.close(1)
        assert await here.provider.unused.reap(before=LATER) == []
        branch = "refs/heads/agent/demo/web-t1"
        git(here.yard.server.path("acme/app"), "update-ref", "-d", branch)

        again = await here.open()

        assert not (again / "one.txt").exists()


async def test_a_clone_of_an_agent_that_is_gone_keeps_no_other_from_being_reaped(
    tmp_path: Path,
) -> None:
    async with firm(tmp_path) as here:
        place = PlaceKey("web", "t2")
        heard = Heard(place, "t2", "m2", ANN, "do it")
        request = BridgeSessionRequest("t2", "web", "gone", "do it", ANN, "m2", place)
        await here.stores.decisions.accept(Decision(2, heard, "done", "", (request,)))
        await here.open()
        await here.provider.close(1)
        mine = here.stores.checkouts.latest(1)
        assert mine is not None
        await here.stores.checkouts.begin(replace(mine, session=2, branch="agent/gone/web-t2"))

        assert await here.provider.unused.reap(before=LATER) == []

        left = await here.stores.checkouts.all()
        assert [each.session for each in left] == [2]


@pytest.mark.slow
async def test_a_clone_that_somebody_comes_back_to_while_it_is_looked_at_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with firm(tmp_path) as here:
        folder = await here.open()
        (folder / "one.txt").write_text("1")
        await here.ship()
        await here.provider.close(1)
        unshipped = here.yard.checkouts.unshipped

        async def wanted_meanwhile(clone: Clone, *, sent: str, start: str) -> str:
            held = await unshipped(clone, sent=sent, start=start)
            await here.open()
            return held

        monkeypatch.setattr(here.yard.checkouts, "unshipped", wanted_meanwhile)
        await here.provider.unused.reap(before=LATER)

        assert (folder / "one.txt").read_text() == "1"


async def test_a_clone_in_use_or_used_lately_is_left_alone(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        folder = await here.open()

        await here.provider.unused.reap(before=LATER)
        in_use = folder.exists()
        await here.provider.close(1)
        await here.provider.unused.reap(before=0.0)

        assert in_use
        assert folder.exists()


@pytest.mark.slow
async def test_a_clone_that_cannot_be_used_is_kept_and_another_is_made(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        folder = await here.open()
        (folder / "mine.txt").write_text("mine")
        shutil.rmtree(folder / ".git")
        await here.provider.close(1)

        another = await here.open()

        assert another != folder
        assert (folder / "mine.txt").read_text() == "mine"
        assert (another / "README.md").exists()
        assert (await here.notices())[0].startswith("The old clone can no longer be used")


async def test_a_branch_leads_back_to_the_session_that_made_it(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        await here.open()
        url = here.yard.repository().url

        assert here.stores.checkouts.of_branch(url, "agent/demo/web-t1") == 1
        assert here.stores.checkouts.of_branch(url, "main") is None


async def test_what_a_workspace_is_can_be_told_before_and_after(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        before = here.provider.describe(here.session)
        folder = await here.open()
        (folder / "README.md").write_text("changed\n")

        after = here.provider.describe(here.session)

        assert (before.kind, before.name, before.branch) == ("clone", "acme/app", "")
        assert (after.branch, after.base) == ("agent/demo/web-t1", "main")
        (diff,) = await here.provider.changes(here.session)
        assert diff.scope == "uncommitted"
        assert "+changed" in diff.text
        assert here.provider.folder(here.session) == folder


@pytest.mark.slow
async def test_a_question_outside_of_a_turn_is_answered_with_no(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        folder = await here.open()
        workflow = folder / ".github" / "workflows" / "ci.yml"
        workflow.parent.mkdir(parents=True)
        workflow.write_text("on")

        said = await here.ship()
        async with here.provider.attended(here.session, here.target, Yes(), meanwhile=nullcontext):
            then = await here.ship()

        refusal = "Not pushed: Changes to workflow files need a person's approval"
        assert said.note.startswith(refusal)
        assert then.pushed is not None


class Yes:
    """A turn in which everything is allowed."""

    async def on_update(self, update: BridgeUpdate) -> None:
        """Nothing is heard."""

    async def on_ask(self, request: AskRequest) -> str | None:
        return request.options[0].id


@pytest.mark.slow
async def test_a_clone_of_another_repository_is_another_folder(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        first = await here.open()
        here.yard.server.create("acme/other", {"other.txt": "other"})
        here.yard.server.tokens.clear()
        elsewhere = replace(here.provider._directory, default="acme/other")
        here.provider._directory = elsewhere

        second = await here.open()

        assert (second / "other.txt").exists()
        assert (first / "README.md").exists()
        record = here.stores.checkouts.latest(1)
        assert record is not None
        assert (record.number, record.branch) == (2, "agent/demo/web-t1")


async def test_the_home_of_a_session_goes_when_nobody_used_it_and_nothing_is_unshipped(
    tmp_path: Path,
) -> None:
    async with firm(tmp_path) as here:
        session = here.session
        opened = await here.provider.open(session, here.target)
        home, workspace = opened.home, opened.folder
        assert home is not None
        home.mkdir(parents=True)
        (workspace / "precious.txt").write_text("unshipped\n")

        await here.provider.unused.reap(before=session.updated_at + 1)
        assert home.exists()
        await here.provider.close(session.id)
        await here.provider.unused.reap(before=session.updated_at + 1)
        assert home.exists()
        (workspace / "precious.txt").unlink()
        await here.provider.unused.reap(before=session.updated_at + 1)

        assert not workspace.exists()
        assert not home.exists()


async def test_changes_that_cannot_be_read_any_more_say_why(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        folder = await here.open()
        stranger = replace(here.session, key=replace(here.session.key, agent="gone"))

        (of_nobody,) = await here.provider.changes(stranger)
        shutil.rmtree(folder)
        (of_nothing,) = await here.provider.changes(here.session)

    assert of_nobody.problem == "gone is no longer set up."
    assert of_nothing.problem == "the folder was cleaned up; the next message opens it again"


@pytest.mark.long
async def test_an_agent_ships_during_its_turn_and_the_end_finds_it_done(tmp_path: Path) -> None:
    async with firm(tmp_path) as here:
        folder = await here.open()
        (folder / "one.txt").write_text("1")

        made = await here.propose("Add one", "It was missing.")
        same = await here.propose()
        ended = await here.ship()
        (folder / "two.txt").write_text("2")
        later = await here.ship()

        assert (made.branch, made.shipped.pushed) == ("agent/demo/web-t1", ONE_LINE)
        assert (same.commit, same.shipped) == (made.commit, Shipped())
        assert ended == Shipped()
        assert later.pushed is not None
        log = here.yard.server.log("acme/app", made.branch, "%s")
        assert log == "Add one", "later commits keep the agent's own words"


async def test_an_agent_whose_work_stays_in_its_workspace_cannot_ship_it(tmp_path: Path) -> None:
    async with firm(tmp_path, "none") as here:
        with pytest.raises(RepositoryError, match="not work in a clone"):
            await here.propose("Add one")
        folder = await here.open()
        (folder / "one.txt").write_text("1")

        with pytest.raises(RepositoryError, match="ship: none"):
            await here.propose("Add one")
        assert here.yard.server.branches("acme/app") == ["main"]
