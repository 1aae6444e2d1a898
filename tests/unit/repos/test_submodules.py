"""Submodules: fetched by the bridge, from where it goes anyway and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.core.workspaces import Repository
from app.repos.submodules import Submodule, parse, source
from tests.support.git_server import git
from tests.support.yard import WRITE, Yard, open_yard

APP = Repository("acme/app", "https://git.example.com/acme/app.git")


def add_submodule(yard: Yard, url: str) -> None:
    """Let acme/app have acme/lib as a submodule in the folder lib."""
    yard.server.create("acme/lib", {"lib.txt": "lib\n"})
    bare = yard.server.path("acme/app")
    modules = f'[submodule "lib"]\n\tpath = lib\n\turl = {url}\n'
    blob = git(bare, "hash-object", "-w", "--stdin", given=modules)
    head = yard.server.head("acme/lib", "main")
    listed = f"100644 blob {blob}\t.gitmodules\n160000 commit {head}\tlib\n"
    tree = git(bare, "mktree", "--missing", given=listed)
    commit = git(bare, "commit-tree", tree, "-p", "main", "-m", "Library")
    git(bare, "update-ref", "refs/heads/main", commit)


async def test_a_private_submodule_beside_the_repository_is_there(tmp_path: Path) -> None:
    async with open_yard(tmp_path) as yard:
        add_submodule(yard, "../lib.git")
        yard.server.tokens["token-of-the-library"] = ("acme/lib", "read")
        yard.tokens.by_name["acme/lib"] = "token-of-the-library"
        clone = yard.clone()
        await yard.open(clone)

        said = await yard.checkouts.prepare(clone)

        assert said is None
        assert (clone.folder / "lib" / "lib.txt").read_text() == "lib\n"
        assert {(visit.token, visit.repository) for visit in yard.server.visits} == {
            (WRITE, "acme/app"),
            ("token-of-the-library", "acme/lib"),
        }
        assert (await yard.checkouts.gather(clone, "Nothing")).commit == yard.server.head(
            "acme/app", "main"
        )


@pytest.mark.parametrize(
    "url",
    ["ext::sh -c touch% x", "file:///etc", "/etc", "ssh://git@example.com/x", "http://e.com/x"],
)
async def test_a_submodule_from_elsewhere_is_left_out_and_that_is_said(
    tmp_path: Path, url: str
) -> None:
    async with open_yard(tmp_path) as yard:
        add_submodule(yard, url)
        clone = yard.clone()
        await yard.open(clone)

        said = await yard.checkouts.prepare(clone)

        assert said == "The submodule lib is of a kind that is not fetched."
        assert list((clone.folder / "lib").iterdir()) == []


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("../lib.git", "https://git.example.com/acme/lib.git"),
        ("../../else/lib.git", "https://git.example.com/else/lib.git"),
        ("../../../../../lib", "https://git.example.com/lib"),
        ("https://other.example.com/lib.git", "https://other.example.com/lib.git"),
        ("https://user:password@other.example.com/lib.git", None),
        ("https://", None),
        ("-oProxyCommand=x", None),
    ],
)
def test_a_submodule_is_beside_the_repository_or_behind_https(url: str, found: str | None) -> None:
    child = source(APP, Submodule("lib", "lib", url))

    assert (child.url if child else None) == found


def test_odd_names_and_paths_are_no_submodules() -> None:
    odd = ["../x", "/x", "-x", "a/../b", ".git/hooks", "a\\b", ""]
    listed = "\0".join(f"submodule.s{n}.path\n{path}" for n, path in enumerate(odd))
    urls = "\0".join(f"submodule.s{n}.url\nhttps://e.com/x" for n in range(len(odd)))

    assert parse(f"{listed}\0{urls}".encode()) == []
    assert parse(b"submodule.a.path\nlib\0submodule.a.url\n../lib\0") == [
        Submodule("a", "lib", "../lib")
    ]
