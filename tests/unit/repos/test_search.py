"""Finding a text in the objects of repositories: loose, packed, needed or not."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from app.errors import GitFailed
from app.repos.search import RepositorySearch
from app.vault import vault_of
from tests.support.yard import open_yard

LEAKED = "zq7-Pelican-4411-secret"
VAULT = vault_of(LEAKED)


def git(folder: Path, *words: str) -> None:
    own = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", "-C", str(folder), *own, *words], check=True, capture_output=True)


def make(folder: Path, *, packed: bool = False) -> Path:
    """Make a repository with the text in a commit that nothing needs any more."""
    git(folder.parent, "init", "-q", str(folder))
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    (folder / "key.env").write_text(f"KEY={LEAKED}")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "second")
    if packed:
        git(folder, "repack", "-qad")
    git(folder, "reset", "-q", "--hard", "HEAD~1")
    return folder / ".git"


async def test_a_text_is_found_in_own_objects_and_not_in_borrowed_ones(tmp_path: Path) -> None:
    async with open_yard(tmp_path / "yard") as yard:
        search = RepositorySearch(yard.git, yard.mirrors)
        loose, packed = make(tmp_path / "loose"), make(tmp_path / "packed", packed=True)
        git(tmp_path, "clone", "-q", "--shared", "loose", "borrower")

        assert await search.holds(loose, VAULT)
        assert await search.holds(packed, VAULT)
        assert not await search.holds(tmp_path / "borrower" / ".git", VAULT)
        assert not await search.holds(loose, vault_of("something else"))


async def test_a_repository_that_cannot_be_read_is_told_from_a_clean_one(tmp_path: Path) -> None:
    async with open_yard(tmp_path / "yard") as yard:
        search = RepositorySearch(yard.git, yard.mirrors)
        repository = make(tmp_path / "broken")
        for each in (repository / "objects").glob("[0-9a-f][0-9a-f]/*"):
            each.chmod(0o600)
            each.write_bytes(b"damaged")

        with pytest.raises(GitFailed):
            await search.holds(repository, VAULT)
