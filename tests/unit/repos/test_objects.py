"""Objects of git: searched without a repository of theirs, deleted one by one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.repos.git import Git
from app.repos.objects import delete_objects, searching
from app.vault.octets import vault_of
from tests.support.git_server import git

pytestmark = pytest.mark.anyio

LEAKED = "zq7-Pelican-4411-secret"


@pytest.fixture
def runner() -> Git:
    return Git({"PATH": os.environ["PATH"]}, "test")


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    mirror = tmp_path / "mirror.git"
    mirror.mkdir()
    git(mirror, "init", "-q", "--bare", ".")
    return mirror


def commit(mirror: Path, text: str, ref: str = "") -> str:
    """Commit a file, and let a ref need it if one is named."""
    blob = git(mirror, "hash-object", "-w", "--stdin", given=text)
    tree = git(mirror, "mktree", given=f"100644 blob {blob}\tfile\n")
    made = git(mirror, "commit-tree", "-m", "A commit", tree)
    if ref:
        git(mirror, "update-ref", ref, made)
    return made


async def find(runner: Git, mirror: Path) -> set[str]:
    async with searching(runner) as search:
        objects = mirror / "objects"
        return await search.find(objects, await search.names(objects), vault_of(LEAKED))


async def test_what_no_ref_needs_is_deleted_and_all_else_stays(runner: Git, mirror: Path) -> None:
    commit(mirror, "ordinary", "refs/heads/main")
    git(mirror, "repack", "-adq")
    borrowed = commit(mirror, "no ref needs this, but a clone may")
    commit(mirror, f"key={LEAKED}")
    held = await find(runner, mirror)
    assert len(held) == 1

    assert await delete_objects(runner, mirror, held)

    assert await find(runner, mirror) == set()
    assert git(mirror, "show", f"{borrowed}:file") == "no ref needs this, but a clone may"
    assert git(mirror, "show", "main:file") == "ordinary"


async def test_a_branch_that_needs_it_goes_until_the_next_fetch(runner: Git, mirror: Path) -> None:
    commit(mirror, "ordinary", "refs/heads/main")
    commit(mirror, f"key={LEAKED}", "refs/heads/leaky")
    git(mirror, "update-ref", "refs/pull/1/head", "refs/heads/leaky")

    assert not await delete_objects(runner, mirror, await find(runner, mirror))

    assert await find(runner, mirror) == set()
    assert git(mirror, "for-each-ref", "--format=%(refname)") == "refs/heads/main"
    assert git(mirror, "show", "main:file") == "ordinary"
