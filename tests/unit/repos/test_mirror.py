"""Mirrors: shared by clones, rebuilt when damaged, never at the cost of a clone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.errors import DiskNearlyFull, RepositoryError, RepositoryGone
from tests.support.git_server import git
from tests.support.yard import WRITE, Yard, open_yard

TERABYTE = 2**60
BRANCH = "agent/demo/web-t1"


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    async with open_yard(tmp_path) as yard:
        yield yard


def damage(yard: Yard) -> None:
    """Break everything that can be broken in the mirror, but for one loose object."""
    mirror = yard.mirrors.path(yard.repository())
    for file in (mirror / "objects").rglob("*"):
        if file.is_file() and file.parent.name != "info":
            file.chmod(0o600)
            file.write_bytes(file.read_bytes()[:20])
    (mirror / "HEAD").write_text("ref: refs/heads/main\n")


@pytest.mark.slow
async def test_a_damaged_mirror_is_rebuilt_and_the_clone_goes_on(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, "echo 1 > one; git add .; git commit -qm One")
    damage(yard)
    assert (await yard.do(clone, "git log -p"))[0] != 0

    await yard.open(yard.clone(2, branch="agent/demo/web-t2"))

    status, said = await yard.do(clone, "git log -p > /dev/null && git push")
    assert status == 0, said
    assert yard.server.show("acme/app", BRANCH, "one") == "1"


@pytest.mark.slow
async def test_what_only_a_clone_still_needs_survives_the_rebuilding(yard: Yard) -> None:
    forgotten = yard.server.commit("acme/app", {"old.txt": "old\n"}, "Old", branch="feature")
    clone = yard.clone(way="existing", branch="feature")
    await yard.open(clone)
    yard.server.commit("acme/app", {"x": "x"}, "Else")
    bare = yard.server.path("acme/app")
    git(bare, "update-ref", "-d", "refs/heads/feature")
    git(bare, "reflog", "expire", "--expire=now", "--all")
    git(bare, "gc", "-q", "--prune=now")

    await yard.mirrors.rebuild(clone.repository, "demo")

    status, said = await yard.do(clone, "git cat-file -p HEAD:old.txt; git status --short")
    assert (status, said) == (0, "old\n")
    assert await yard.mirrors.commit(clone.repository, forgotten) == forgotten


async def test_a_fetch_throws_nothing_away_that_a_clone_borrows(yard: Yard) -> None:
    yard.server.commit("acme/app", {"old.txt": "old\n"}, "Old", branch="feature")
    clone = yard.clone(way="existing", branch="feature")
    await yard.open(clone)
    git(yard.server.path("acme/app"), "update-ref", "-d", "refs/heads/feature")

    await yard.mirrors.refresh(clone.repository, "demo")

    assert await yard.mirrors.commit(clone.repository, "refs/heads/feature") is None
    assert (await yard.do(clone, "git fsck --connectivity-only"))[0] == 0


@pytest.mark.parametrize("left", ["new", "damaged"])
async def test_a_rebuilding_that_was_cut_off_between_two_renames_is_finished(
    yard: Yard, left: str
) -> None:
    await yard.mirrors.refresh(yard.repository(), "demo")
    mirror = yard.mirrors.path(yard.repository())
    (mirror / "complete").touch()
    mirror.rename(mirror.with_suffix(f".{left}"))
    yard.mirrors._tidied.clear()
    fetched = len(yard.server.visits)

    await yard.mirrors.refresh(yard.repository(), "demo")

    assert await yard.mirrors.default_branch(yard.repository()) == "main"
    # It was put back and only brought up to date: a new one would have fetched everything.
    assert not any((mirror.with_suffix(end)).exists() for end in (".new", ".damaged"))
    assert len(yard.server.visits) - fetched <= 2


async def test_locks_of_a_bridge_that_died_do_not_stop_the_next(yard: Yard) -> None:
    await yard.mirrors.refresh(yard.repository(), "demo")
    mirror = yard.mirrors.path(yard.repository())
    for lock in ("packed-refs.lock", "refs/heads/main.lock", "HEAD.lock", "config.lock"):
        (mirror / lock).parent.mkdir(parents=True, exist_ok=True)
        (mirror / lock).touch()
    yard.mirrors._tidied.clear()
    new = yard.server.commit("acme/app", {"a": "a"}, "New")

    await yard.mirrors.refresh(yard.repository(), "demo")

    assert await yard.mirrors.commit(yard.repository(), "refs/heads/main") == new


async def test_a_new_clone_is_refused_before_the_disk_is_full(tmp_path: Path) -> None:
    async with open_yard(tmp_path, free_bytes=TERABYTE) as yard:
        with pytest.raises(DiskNearlyFull, match="The disk is nearly full"):
            await yard.open(yard.clone())

        assert not yard.clone().folder.exists()


async def test_a_repository_that_is_not_there_or_not_ours_is_said(yard: Yard) -> None:
    with pytest.raises(RepositoryGone, match="acme/other cannot be reached"):
        await yard.open(yard.clone(name="acme/other"))

    assert not yard.mirrors.path(yard.repository("acme/other")).exists()


async def test_a_repository_that_moved_is_said_and_the_token_does_not_follow(yard: Yard) -> None:
    yard.server.moved["acme/old"] = "acme/app"

    with pytest.raises(RepositoryGone, match="acme/old cannot be reached"):
        await yard.open(yard.clone(name="acme/old"))

    assert {visit.repository for visit in yard.server.visits} == {"acme/old"}


async def test_an_empty_repository_is_said(yard: Yard) -> None:
    git(yard.server.folder, "init", "-q", "--bare", str(yard.server.path("acme/empty")))
    yard.server.tokens[WRITE] = ("acme/empty", "write")

    with pytest.raises(RepositoryError, match="has no commit on its default branch yet"):
        await yard.open(yard.clone(name="acme/empty"))


async def test_a_new_default_branch_is_followed(yard: Yard) -> None:
    await yard.mirrors.refresh(yard.repository(), "demo")
    yard.server.commit("acme/app", {"a": "a"}, "Trunk", branch="trunk")
    git(yard.server.path("acme/app"), "symbolic-ref", "HEAD", "refs/heads/trunk")

    opened = await yard.open(yard.clone())

    assert opened is not None
    assert opened.base == "trunk"


async def test_an_agent_fetches_what_is_on_the_remote_now(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    new = yard.server.commit("acme/app", {"a": "a"}, "New")

    status, said = await yard.do(clone, "git fetch -q origin && git rev-parse origin/main")

    assert (status, said.strip()) == (0, new)


async def test_a_mirror_that_cannot_be_packed_is_used_as_it_is_and_not_tried_at_once_again(
    yard: Yard, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mirror = await yard.mirrors.refresh(yard.repository(), "demo")
    git(mirror, "repack", "-q")
    git(mirror, "config", "repack.writeBitmaps", "neither")
    monkeypatch.setattr("app.repos.mirror._PACKS", 0)

    await yard.open(yard.clone())
    await yard.mirrors.refresh(yard.repository(), "demo")

    assert caplog.text.count("cannot repack the mirror of acme/app") == 1


async def test_a_plain_path_works_without_any_server(yard: Yard, tmp_path: Path) -> None:
    url = yard.server.path("acme/app").as_uri()
    clone = replace(yard.clone(), repository=replace(yard.repository(), url=url))
    await yard.open(clone)

    status, said = await yard.do(clone, "echo x > x; git add .; git commit -qm x; git push")

    assert status == 0, said
    assert yard.server.show("acme/app", BRANCH, "x") == "x"
    assert yard.tokens.asked == []


@pytest.mark.slow
async def test_a_clone_says_what_would_be_lost_with_it(yard: Yard) -> None:
    clone = yard.clone()
    opened = await yard.open(clone)
    assert opened is not None
    assert await yard.checkouts.unshipped(clone, sent="", start=opened.commit) == ""
    await yard.do(clone, "echo 1 > a; git add .; git commit -qm a; echo 2 > b; echo 3 > c")

    held = await yard.checkouts.unshipped(clone, sent="", start=opened.commit)
    await yard.do(clone, "rm b c; git push")
    shipped = await yard.checkouts.unshipped(clone, sent=yard.sent[0], start=opened.commit)

    assert held == "2 uncommitted changes, 1 commit"
    assert shipped == ""
