"""Partial repositories: the content of a file is fetched when somebody needs it, by the bridge."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.children.limits import DiskSpace
from app.children.sandbox import Plain
from app.errors import RepositoryError
from app.repos import fetching
from app.repos.agent_remote import read_names
from tests.support.git_server import git
from tests.support.variants import quick
from tests.support.yard import WRITE, Yard, create_private, link, open_yard

APP = "acme/app"
BRANCH = "agent/demo/web-t1"
PUSH = "git add . && git commit -qm Work && git push 2>&1"
OLD = "what stood here once\n"


@pytest.fixture
async def yard(tmp_path: Path) -> AsyncIterator[Yard]:
    """Have a repository with a file in its history that is not in its head."""
    async with open_yard(tmp_path) as yard:
        yard.server.commit(APP, {"old.txt": OLD, "a.txt": "1\n", "deep/b.txt": "b\n"}, "Old")
        yard.server.take_away(APP, "old.txt", "Without")
        yard.server.commit(APP, {"a.txt": "2\n"}, "Later")
        yard.partial.add(yard.repository())
        yield yard


def name_of(yard: Yard, what: str) -> str:
    return git(yard.server.path(APP), "rev-parse", what)


def propose(yard: Yard) -> None:
    """Have a commit that is on no branch, as that of a pull request from a fork."""
    bare = yard.server.path(APP)
    head = yard.server.commit(APP, {"theirs.txt": "theirs\n"}, "Theirs", branch="fork")
    git(bare, "update-ref", "refs/pull/7/head", head)
    git(bare, "update-ref", "-d", "refs/heads/fork")


async def lacks(yard: Yard, *what: str) -> bool:
    """Tell whether the mirror has none of some objects."""
    mirror = yard.mirrors.path(yard.repository())
    names = [name_of(yard, each) for each in what]
    return await fetching.missing(yard.git, mirror, names) == names


def fetches(yard: Yard) -> int:
    return len([visit for visit in yard.server.visits if visit.what == "fetch"])


async def test_what_is_not_checked_out_is_not_fetched(yard: Yard) -> None:
    opened = await yard.open(yard.clone())

    assert opened is not None
    assert opened.commit == yard.server.head(APP, "main")
    assert (yard.clone().folder / "deep" / "b.txt").read_text() == "b\n"
    assert await lacks(yard, "main~2:old.txt", "main~2:a.txt")
    assert (await yard.do(yard.clone(), "git rev-list --count HEAD"))[1] == "4\n"


async def test_all_that_a_checkout_needs_comes_in_one_request(yard: Yard) -> None:
    await yard.mirrors.refresh(yard.repository(), "demo")
    yard.server.commit(APP, {f"many/{number}": f"{number}\n" for number in range(50)}, "Many")
    await yard.mirrors.refresh(yard.repository(), "demo")
    before = fetches(yard)

    await yard.mirrors.complete(yard.repository(), "demo", yard.server.head(APP, "main"))

    assert fetches(yard) - before == 1
    await yard.open(yard.clone())
    assert len(list((yard.clone().folder / "many").iterdir())) == 50


@pytest.mark.parametrize(
    ("script", "words"),
    quick(
        2,
        [
            ("git log -p", f"-{OLD}"),
            ("git blame HEAD~2 -- old.txt", OLD),
            ("git checkout -q HEAD~2 && cat old.txt", OLD),
            ("git -c protocol.version=0 show HEAD~2:old.txt", OLD),
        ],
    ),
)
async def test_the_agents_git_gets_what_it_misses(yard: Yard, script: str, words: str) -> None:
    await yard.open(yard.clone())

    status, said = await yard.do(yard.clone(), script)

    assert status == 0, said
    assert words in said


@pytest.mark.slow
async def test_without_isolation_it_is_the_same(yard: Yard) -> None:
    object.__setattr__(yard.isolation, "sandbox", Plain())
    clone = yard.clone()
    await yard.open(clone)

    status, said = await yard.do(clone, f"git show HEAD~2:old.txt > back.txt; {PUSH}")

    assert status == 0, said
    assert yard.server.show(APP, BRANCH, "back.txt") == OLD.strip()


async def test_only_the_bridge_goes_to_the_remote_and_once_for_each_object(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    before = len(yard.server.visits)

    await yard.do(clone, "git show HEAD~2:old.txt")
    second = yard.clone(2, branch="agent/demo/web-t2")
    await yard.do(clone, "git show HEAD~2:old.txt")
    came = yard.server.visits[before:]
    await yard.open(second)
    again = fetches(yard)
    status, said = await yard.do(second, "git show HEAD~2:old.txt")

    assert [(visit.token, visit.what) for visit in came] == [(WRITE, "fetch")]
    assert (status, said, fetches(yard)) == (0, OLD, again)


@pytest.mark.slow
async def test_many_may_ask_at_once(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    each = "git show HEAD~2:old.txt > .git/out-$one || touch .git/failed"

    await yard.do(clone, f"for one in 0 1 2 3 4 5 6 7 8 9; do ({each}) & done; wait")

    assert await yard.do(clone, "ls .git | grep failed; cat .git/out-*") == (0, OLD * 10)


@pytest.mark.slow
async def test_work_is_pushed_fetched_merged_and_pushed_again(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)

    first = await yard.do(clone, f"echo 1 > one; {PUSH}")
    yard.server.commit(APP, {"theirs": "theirs\n"}, "Theirs")
    merge = "git fetch -q origin && git merge -q -m Merge origin/main && cat theirs"
    second = await yard.do(clone, f"{merge} && git revert --no-edit HEAD~3; echo 2 > two; {PUSH}")

    assert (first[0], second[0]) == (0, 0), first[1] + second[1]
    assert yard.server.show(APP, BRANCH, "two") == "2"
    assert yard.server.show(APP, BRANCH, "theirs") == "theirs"
    git(yard.server.path(APP), "fsck", "--connectivity-only")


@pytest.mark.slow
async def test_a_push_brings_only_what_is_new_when_the_base_has_moved_on(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    yard.server.commit(APP, {"a.txt": "3\n"}, "On")
    await yard.mirrors.refresh(yard.repository(), "demo")
    yard.server.commit(APP, {"a.txt": "4\n"}, "And on")
    before = fetches(yard)

    status, said = await yard.do(clone, f"echo 1 > one; {PUSH}")

    assert status == 0, said
    assert yard.server.show(APP, BRANCH, "one") == "1"
    assert await lacks(yard, "main~4:old.txt", "main:a.txt")
    # To find out what the remote has.
    assert fetches(yard) - before == 1


@pytest.mark.slow
async def test_a_push_goes_on_when_the_base_was_rewritten(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    bare = yard.server.path(APP)
    old = name_of(yard, "main~2")
    git(bare, "update-ref", "refs/heads/main", "main~3")
    await yard.mirrors.refresh(yard.repository(), "demo")

    status, said = await yard.do(clone, f"echo 1 > one; {PUSH}")

    assert status == 0, said
    assert yard.server.show(APP, BRANCH, "one") == "1"
    assert await lacks(yard, f"{old}:old.txt")


@pytest.mark.slow
async def test_a_push_on_history_that_the_remote_threw_away_is_refused_with_a_way_out(
    yard: Yard,
) -> None:
    clone = yard.clone()
    opened = await yard.open(clone)
    bare = yard.server.path(APP)
    git(bare, "update-ref", "refs/heads/main", "main~3")
    git(bare, "gc", "--quiet", "--prune=now")
    await yard.mirrors.refresh(yard.repository(), "demo")

    refused = await yard.do(clone, f"echo 1 > one; {PUSH}")
    assert opened is not None
    way_out = f"git rebase --onto origin/main {opened.commit[:7]}"
    taken = await yard.do(clone, f"git fetch -q origin && {way_out} 2>&1 && git push 2>&1")

    assert refused[0] != 0
    assert "is based on commits that the remote no longer has" in refused[1]
    assert way_out in refused[1]
    assert taken[0] == 0, taken[1]
    assert yard.server.show(APP, BRANCH, "one") == "1"


@pytest.mark.slow
async def test_commits_made_without_a_checkout_are_pushed(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, f"echo 1 > one; {PUSH}")
    yard.server.commit(APP, {"theirs.txt": "theirs\n", "deep/c.txt": "c\n"}, "Theirs")
    tree = "tree=$(git merge-tree --write-tree HEAD origin/main)"
    made = "made=$(git commit-tree $tree -p HEAD -p origin/main -m Merge)"

    status, said = await yard.do(
        clone, f"git fetch -q && {tree} && {made} && git push origin $made:refs/heads/{BRANCH} 2>&1"
    )

    assert status == 0, said
    assert yard.server.show(APP, BRANCH, "theirs.txt") == "theirs"
    assert await lacks(yard, "main~3:old.txt")


@pytest.mark.long
async def test_secrets_and_force_pushes_are_seen(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, f"echo 1 > one; {PUSH}")

    forced = await yard.do(
        clone, f"git reset -q --hard HEAD~1; echo 2 > 2; {PUSH.replace('push', 'push -f')}"
    )
    await yard.do(clone, "git reset -q --hard @{push}")
    secret = await yard.do(clone, f"echo a-secret-that-the-bridge-holds > s; {PUSH}")

    assert "This push would overwrite commits on" in forced[1]
    assert "holds a secret" in secret[1]


@pytest.mark.slow
async def test_conflicts_with_the_base_are_seen_although_its_files_are_not_there(
    yard: Yard,
) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, "echo mine > a.txt; git commit -qam Mine; git push")
    yard.server.commit(APP, {"a.txt": "theirs\n", "deep/b.txt": "other\n"}, "Theirs")

    assert await yard.checkouts.conflicts(clone, "main", yard.sent[-1]) == ("a.txt",)
    found = await yard.checkouts.collisions(clone.repository, "demo", "main", BRANCH)
    assert found == (yard.sent[-1], ("a.txt",))


@pytest.mark.slow
async def test_conflicts_are_not_told_when_the_remote_is_away(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, "echo mine > a.txt; git commit -qam Mine; git push")
    yard.server.commit(APP, {"a.txt": "theirs\n"}, "Theirs")
    await yard.mirrors.refresh(yard.repository(), "demo")
    yard.server.path(APP).rename(yard.server.path("acme/gone"))

    assert await yard.checkouts.conflicts(clone, "main", yard.sent[-1]) == ()


async def test_an_existing_branch_and_a_reviewers_commit_are_opened(yard: Yard) -> None:
    head = yard.server.commit(APP, {"c.txt": "c\n"}, "Feature", branch="feature")
    existing = yard.clone(way="existing", branch="feature")
    reader = yard.clone(2, way="detached", start=name_of(yard, "main~2"))

    await yard.open(existing)
    await yard.open(reader)

    assert (existing.folder / "c.txt").read_text() == "c\n"
    assert (reader.folder / "old.txt").read_text() == OLD
    assert head == (await yard.do(existing, "git rev-parse HEAD"))[1].strip()


@pytest.mark.slow
async def test_a_damaged_mirror_is_rebuilt_and_the_clone_goes_on(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, "echo 1 > one; git add .; git commit -qm One; git show HEAD~3:old.txt")
    mirror = yard.mirrors.path(yard.repository())
    for file in (mirror / "objects").rglob("*.pack"):
        file.chmod(0o600)
        file.write_bytes(file.read_bytes()[:20])

    await yard.open(yard.clone(2, branch="agent/demo/web-t2"))

    assert yard.mirrors.is_partial(yard.repository())
    status, said = await yard.do(clone, "git log -p > /dev/null && git status --short && git push")
    assert status == 0, said
    assert yard.server.show(APP, BRANCH, "one") == "1"


@pytest.mark.slow
async def test_many_small_packs_become_one_and_nothing_is_lost(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    await yard.do(clone, "git show HEAD~2:old.txt")
    for number in range(55):
        yard.server.commit(APP, {"a.txt": f"more {number}\n"}, "More")
        head = yard.server.head(APP, "main")
        await yard.mirrors.bring(yard.repository(), "demo", [name_of(yard, f"{head}:a.txt")])
    packs = yard.mirrors.path(yard.repository()) / "objects" / "pack"
    assert len(list(packs.glob("*.pack"))) > 50

    await yard.mirrors.refresh(yard.repository(), "demo")

    assert len(list(packs.glob("*.pack"))) < 5
    assert not await lacks(yard, "main~57:old.txt")
    look = "git fetch -q && git log -p origin/main > /dev/null"
    status, said = await yard.do(clone, f"{look} && echo 1 > one; {PUSH}")
    assert status == 0, said


@pytest.mark.parametrize("setting", ["allowFilter", "allowAnySHA1InWant"])
async def test_a_server_that_cannot_is_fetched_from_whole_and_that_is_said(
    yard: Yard, setting: str, caplog: pytest.LogCaptureFixture
) -> None:
    git(yard.server.path(APP), "config", f"uploadpack.{setting}", "false")
    yard.server.is_old = True
    clone = yard.clone()
    await yard.open(clone)

    said = await yard.checkouts.prepare(clone)

    assert said is not None
    assert "are fetched although its `clone` is `partial`" in said
    assert f"the server of {APP} " in caplog.text
    assert not await lacks(yard, "main~2:old.txt")
    assert (await yard.do(clone, f"git log -p >/dev/null && echo 1 > one; {PUSH}"))[0] == 0


@pytest.mark.slow
async def test_what_is_on_no_branch_is_opened_from_a_server_that_gives_out_no_single_files(
    yard: Yard,
) -> None:
    propose(yard)
    git(yard.server.path(APP), "config", "uploadpack.allowAnySHA1InWant", "false")
    yard.server.is_old = True
    clone = yard.clone(way="detached", start="refs/pull/7/head")

    await yard.open(clone)

    assert (clone.folder / "theirs.txt").read_text() == "theirs\n"
    fetched = fetches(yard)
    await yard.mirrors.refresh(yard.repository(), "demo")
    # It is not tried again.
    assert fetches(yard) - fetched <= 1


@pytest.mark.slow
async def test_what_a_server_does_not_have_at_the_moment_is_said_and_not_all_is_fetched(
    yard: Yard,
) -> None:
    await yard.open(yard.clone())
    yard.server.commit(APP, {"new.txt": "new\n"}, "New")
    git(yard.server.path(APP), "config", "uploadpack.allowAnySHA1InWant", "false")
    yard.server.is_old = True

    with pytest.raises(RepositoryError, match="unadvertised object"):
        await yard.open(yard.clone(2, branch="agent/demo/web-t2"))

    assert await lacks(yard, "main~3:old.txt")
    yard.server.is_old = False
    await yard.open(yard.clone(2, branch="agent/demo/web-t2"))


@pytest.mark.slow
async def test_an_old_server_will_do_if_it_leaves_out_and_gives_out(yard: Yard) -> None:
    yard.server.is_old = True
    clone = yard.clone()
    await yard.open(clone)
    assert await lacks(yard, "main~2:old.txt")

    status, said = await yard.do(clone, f"git show HEAD~2:old.txt > back.txt; {PUSH}")

    assert status == 0, said
    assert yard.server.show(APP, BRANCH, "back.txt") == OLD.strip()


@pytest.mark.slow
async def test_everything_is_fetched_once_that_is_wanted(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    propose(yard)
    await yard.mirrors.refresh(yard.repository(), "demo", "refs/pull/7/head")
    yard.partial.clear()

    second = yard.clone(2, branch="agent/demo/web-t2")
    await yard.open(second)

    assert not await lacks(yard, "main~2:old.txt")
    before = fetches(yard)
    assert (await yard.do(second, "git show HEAD~2:old.txt")) == (0, OLD)
    assert (await yard.do(clone, "git show HEAD~2:old.txt")) == (0, OLD)
    assert fetches(yard) == before
    status, said = await yard.do(clone, f"git fetch -q; echo 1 > one; {PUSH}")
    assert status == 0, said
    await yard.mirrors.rebuild(yard.repository(), "demo")
    reader = yard.clone(3, way="detached", start="refs/pull/7/head")
    await yard.open(reader)
    assert (reader.folder / "theirs.txt").read_text() == "theirs\n"


@pytest.mark.slow
async def test_what_is_whole_stays_whole(yard: Yard) -> None:
    yard.partial.clear()
    clone = yard.clone()
    await yard.open(clone)
    yard.partial.add(yard.repository())
    yard.server.commit(APP, {"new.txt": "new\n"}, "New")

    await yard.mirrors.rebuild(yard.repository(), "demo")
    status, said = await yard.do(clone, "git fetch -q && git show origin/main:new.txt")

    assert (status, said) == (0, "new\n")
    assert not yard.mirrors.is_partial(yard.repository())


async def test_what_the_remote_does_not_have_is_told_to_the_agent(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    yard.server.path(APP).rename(yard.server.path("acme/gone"))

    status, said = await yard.do(clone, "git show HEAD~2:old.txt 2>&1")

    assert status != 0
    assert "Could not fetch missing objects: The repository acme/app cannot be" in said


@pytest.mark.slow
async def test_without_room_nothing_more_is_fetched(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    yard.mirrors._disk = DiskSpace(Path("/"), watermark=2**60)

    status, said = await yard.do(clone, "git show HEAD~2:old.txt 2>&1")

    assert status != 0
    assert "The disk is nearly full" in said


@pytest.mark.slow
async def test_a_submodule_is_whole_although_it_was_fetched_in_part_before(yard: Yard) -> None:
    create_private(yard, "acme/lib")
    yard.server.commit("acme/lib", {"lib.txt": "later\n"}, "Later")
    link(yard, APP, "acme/lib", "../lib.git")
    yard.partial.add(yard.repository("acme/lib"))
    await yard.mirrors.refresh(yard.repository("acme/lib"), "demo")
    assert yard.mirrors.is_partial(yard.repository("acme/lib"))
    clone = yard.clone()
    await yard.open(clone)

    said = await yard.checkouts.prepare(clone)

    assert said is None
    assert (clone.folder / "lib" / "lib.txt").read_text() == "later\n"
    assert (await yard.do(clone, "git -C lib show HEAD~1:lib.txt")) == (0, "lib\n")
    assert yard.mirrors.is_partial(yard.repository())


@pytest.mark.slow
async def test_the_setup_of_the_default_branch_is_run_wherever_a_clone_begins(yard: Yard) -> None:
    yard.server.commit(APP, {"c.txt": "c\n"}, "Feature", branch="feature")
    await yard.open(yard.clone())
    setup = {".agent-bridge/setup": "#!/bin/sh\necho ready\n"}
    yard.server.commit(APP, setup, "Setup")
    clone = yard.clone(2, way="existing", branch="feature")
    await yard.open(clone)

    said = await yard.checkouts.prepare(clone)

    assert said == "`.agent-bridge/setup` ended with status 0.\nready"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
async def test_large_files_are_there_and_new_ones_are_sent(yard: Yard) -> None:
    kept = yard.server.keep_large(APP, b"large\n")
    yard.server.commit(APP, {".gitattributes": "*.bin filter=lfs\n", "a.bin": kept}, "Large")
    clone = yard.clone()
    await yard.open(clone)
    assert await yard.checkouts.prepare(clone) is None

    status, said = await yard.do(clone, f"cat a.bin; echo new > b.bin; {PUSH}")

    assert status == 0, said
    assert said.startswith("large\n")
    assert b"new\n" in yard.server.large[APP].values()
    assert await lacks(yard, "main~3:old.txt")


HOSTILE = [
    b"",
    b"no name at all\n\xff\xfe",
    b"--upload-pack=touch /tmp/x\n../../etc/passwd\nHEAD\n",
    b"0" * 40,
    b"f" * 40 + b"\n" + b"f" * 64,
    b"\n".join(b"%040x" % number for number in range(1, 2000)),
]


async def test_whatever_comes_through_the_door_is_only_names(yard: Yard) -> None:
    clone = yard.clone()
    await yard.open(clone)
    mirror = yard.mirrors.path(yard.repository())
    before = sorted(path.name for path in mirror.rglob("*"))

    for asked in HOSTILE:
        await knock(yard, asked)

    assert sorted(path.name for path in mirror.rglob("*")) == before
    assert await yard.do(clone, "git show HEAD~2:old.txt") == (0, OLD)


async def test_more_names_than_anybody_needs_are_refused() -> None:
    few, many = asyncio.StreamReader(), asyncio.StreamReader()
    few.feed_data(b"a" * 40 + b"\n" + b"b" * 40)
    few.feed_eof()
    many.feed_data(b"x" * (9 * 1024**2))

    assert await read_names(few) == ["a" * 40, "b" * 40]
    with pytest.raises(RepositoryError, match="too many objects"):
        await read_names(many)


async def knock(yard: Yard, asked: bytes) -> None:
    """Ask the bridge for objects as an agent could, past its own git."""
    door = os.open(yard.folder / "gates" / yard.clone().folder.name / "door", os.O_RDONLY)
    # The path of a socket has room for 100 bytes.
    reader, writer = await asyncio.open_unix_connection(f"/proc/self/fd/{door}/objects")
    os.close(door)
    writer.write(asked)
    writer.write_eof()
    await asyncio.wait_for(reader.read(), 30)
    writer.close()
