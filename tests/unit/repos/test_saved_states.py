"""The state of a clone is saved outside of it, and a clone is rebuilt from it as it was."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.errors import RepositoryError
from app.model.workspaces import Clone, Rebuilt
from app.repos.sandboxed_git import Inside
from app.repos.saved_states import look_at
from tests.support.git_server import git
from tests.support.variants import quick
from tests.support.yard import Yard, open_yard

WORK = r"""
set -e
echo two > two.txt; git add two.txt; git commit -qm two
echo stashed >> README.md; git stash -q -m 'for later'
git branch other HEAD~1
echo staged > staged.txt; git add staged.txt; echo more >> staged.txt
printf 'raw\r\n' > dos.txt; echo '*.txt text eol=lf' > .gitattributes
rm two.txt
echo 'new line' > "$(printf 'odd\nname \303\251')"
ln -s /etc/passwd link
mkdir -p deep/er; echo x > deep/er/run.sh; chmod +x deep/er/run.sh
mkdir -p .git/info; echo '*.log' > .git/info/exclude; echo no > ignored.log
"""
LOOK = """
git symbolic-ref HEAD; git rev-parse HEAD; git branch --format='%(refname) %(objectname)'
git status --porcelain -z | tr '\\0' '\\n'; git stash list; git diff --cached; git ls-files -s
find . -path ./.git -prune -o -not -name ignored.log -not -type d -print0 | sort -z |
    xargs -0 -n1 sh -c 'ls -l "$0" | cut -c1-10; cat "$0" 2>&1 | md5sum'
"""


async def make(yard: Yard, clone: Clone) -> str:
    """Open a clone; returns the commit that it began with."""
    opened = await yard.open(clone)
    assert opened is not None
    return opened.commit


async def save(yard: Yard, clone: Clone, start: str, known: str = "") -> str:
    return await yard.checkouts.save(clone, known=known, bases=(start, ""))


async def rebuild(yard: Yard, clone: Clone, state: str, start: str) -> Rebuilt | None:
    return await yard.checkouts.rebuild(
        clone, state, start=start, on_sent=yard.note_sent, ask=yard.answer
    )


async def wipe(yard: Yard, clone: Clone) -> None:
    """Lose everything that a machine has for itself."""
    await yard.checkouts.close(clone.folder)
    for folder in ("workspaces", "gates", "mirrors"):
        shutil.rmtree(yard.folder / folder)


def files_of(yard: Yard, clone: Clone) -> list[Path]:
    return sorted((yard.folder / "kept" / clone.folder.name).iterdir())


async def test_a_rebuilt_clone_has_everything_but_what_is_ignored(tmp_path: Path) -> None:
    async with open_yard(tmp_path) as yard:
        clone = yard.clone()
        start = await make(yard, clone)
        status, said = await yard.do(clone, WORK)
        assert status == 0, said
        _, before = await yard.do(clone, LOOK)

        state = await save(yard, clone, start)

        (file,) = files_of(yard, clone)
        assert await save(yard, clone, start, known=state) == state
        assert files_of(yard, clone) == [file]
        mirror = yard.mirrors.path(clone.repository)
        assert git(mirror, "for-each-ref", "refs/agent-bridge") == ""
        assert await yard.mirrors.commit(clone.repository, state) is None
        await wipe(yard, clone)

        assert await rebuild(yard, clone, state, start) == Rebuilt()

        _, after = await yard.do(clone, LOOK)
        assert after == before
        assert "odd" in after
        assert not (clone.folder / "ignored.log").exists()
        assert not (clone.folder / ".git" / "agent-bridge").exists()
        assert await save(yard, clone, start) == state
        status, said = await yard.do(clone, "git push 2>&1")
        assert (status, len(yard.sent)) == (0, 1), said
        await yard.checkouts.forget_states(clone)
        assert list((yard.folder / "kept").iterdir()) == []


@pytest.mark.long
async def test_a_detached_clone_with_an_unfinished_merge_keeps_its_files(tmp_path: Path) -> None:
    async with open_yard(tmp_path) as yard:
        clone = yard.clone()
        start = await make(yard, clone)
        await yard.do(
            clone,
            "git checkout -q -b side; echo side > f; git add f; git commit -qm side;"
            "git checkout -q --detach HEAD~1; echo main > f; git add f; git commit -qm main;"
            "git merge side",
        )
        state = await save(yard, clone, start)
        await wipe(yard, clone)

        assert await rebuild(yard, clone, state, start) == Rebuilt(unfinished=True)

        _, said = await yard.do(clone, "git symbolic-ref -q HEAD; git log -1 --format=%s; cat f")
        assert said.splitlines()[:2] == ["main", "<<<<<<< HEAD"]


HOSTILE = r"""
set -e
spy() { printf '#!/bin/sh
echo ran >> "%s/ran"
cat
' "$PWD" > .git/spy; chmod +x .git/spy; }
spy
for hook in pre-commit post-checkout post-index-change reference-transaction; do
    cp .git/spy .git/hooks/$hook
done
git config filter.spy.clean "$PWD/.git/spy"; git config filter.spy.smudge "$PWD/.git/spy"
git config filter.spy.required true; git config core.fsmonitor "$PWD/.git/spy"
git config alias.add "!$PWD/.git/spy"; git config core.worktree /; git config core.bare true
echo '* filter=spy ident text=auto working-tree-encoding=UTF-16' > .gitattributes
echo '$Id$' > plain.txt
ln -s / everything; mkfifo pipe
git init -q nested; echo hidden > nested/file
truncate -s 200M huge.bin
echo secret > unreadable; chmod 000 unreadable
"""


@pytest.mark.long
async def test_a_hostile_clone_runs_nothing_and_what_is_too_large_is_named(tmp_path: Path) -> None:
    async with open_yard(tmp_path) as yard:
        clone = yard.clone()
        start = await make(yard, clone)
        status, said = await yard.do(clone, HOSTILE)
        assert status == 0, said

        state = await save(yard, clone, start)

        assert not (clone.folder / "ran").exists()
        (file,) = files_of(yard, clone)
        assert file.stat().st_size < 10_000
        await wipe(yard, clone)
        assert await rebuild(yard, clone, state, start) == Rebuilt(("huge.bin",))
        assert (clone.folder / "plain.txt").read_text() == "$Id$\n"
        assert (clone.folder / "everything").is_symlink()
        assert not (clone.folder / "ran").exists()


BROKEN = {
    "no git folder": "mv .git gone",
    "a git folder elsewhere": "mv .git gone; ln -s gone .git; rm gone/HEAD",
    "an index that is none": "echo broken > .git/index",
    "a branch that is none": "echo broken > .git/refs/heads/broken; rm -rf .git/objects",
    "an endless index": "rm .git/index; mkfifo .git/index; rm .git/HEAD",
}


@pytest.mark.parametrize("script", quick(2, {name: (each,) for name, each in BROKEN.items()}))
async def test_a_broken_clone_is_not_saved_and_what_was_saved_stays(
    tmp_path: Path, script: str
) -> None:
    async with open_yard(tmp_path) as yard:
        clone = yard.clone()
        start = await make(yard, clone)
        await save(yard, clone, start)
        before = files_of(yard, clone)
        await yard.do(clone, script)

        with pytest.raises(RepositoryError):
            await save(yard, clone, start)

        assert files_of(yard, clone) == before


async def test_a_saved_state_that_is_gone_or_broken_rebuilds_nothing(tmp_path: Path) -> None:
    async with open_yard(tmp_path) as yard:
        clone = yard.clone()
        start = await make(yard, clone)
        state = await save(yard, clone, start)
        (file,) = files_of(yard, clone)
        file.write_bytes(file.read_bytes()[:-20])

        assert await rebuild(yard, clone, state, start) is None

        file.unlink()
        assert await rebuild(yard, clone, state, start) is None


async def test_a_clone_in_which_nothing_has_changed_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_yard(tmp_path) as yard:
        clone = yard.clone()
        start = await make(yard, clone)
        (clone.folder / "draft.txt").write_text("one")
        first = await save(yard, clone, start)
        with monkeypatch.context() as patched:
            patched.delattr(Inside, "pour")  # nothing can run inside
            assert await save(yard, clone, start, known=first) == first

        (clone.folder / "draft.txt").write_text("two")

        second = await save(yard, clone, start, known=first)
        assert second != first
        (clone.folder / "draft.txt").unlink()
        assert await save(yard, clone, start, known=second) not in {first, second}


def test_what_is_done_to_a_file_or_folder_is_seen(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to("/dev/zero")
    steps: list[Callable[[], object]] = [
        lambda: (tmp_path / "file").write_text("TEXT"),
        lambda: (tmp_path / "file").chmod(0o700),
        lambda: (tmp_path / "file").rename(tmp_path / "folder" / "file"),
        lambda: (tmp_path / "folder" / "empty").mkdir(),
        lambda: (tmp_path / "folder" / "file").unlink(),
    ]
    seen = [look_at(tmp_path)]
    for step in steps:
        step()
        seen.append(look_at(tmp_path))
        assert look_at(tmp_path) == seen[-1]
    assert None not in seen
    assert len(set(seen)) == len(seen)
