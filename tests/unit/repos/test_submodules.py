"""Submodules: fetched by the bridge, from where it goes anyway and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.model.workspaces import Repository
from app.repos.trees import SUBMODULE_DEPTH, Submodule, find_source, parse_submodules
from tests.support.git_server import git
from tests.support.variants import quick
from tests.support.yard import WRITE, Yard, create_private, link, open_yard

APP = Repository("acme/app", "https://git.example.com/acme/app.git")


def add_submodule(yard: Yard, url: str) -> None:
    """Let acme/app have acme/lib as a submodule in the folder lib."""
    create_private(yard, "acme/lib")
    link(yard, "acme/app", "acme/lib", url)


@pytest.mark.parametrize(
    "url",
    quick(
        2,
        [
            "../lib.git",
            "{server}/acme/lib.git",
            "git@127.0.0.1:acme/lib.git",
            "ssh://git@127.0.0.1/acme/lib.git",
        ],
    ),
)
async def test_a_private_submodule_on_the_host_of_the_repository_is_there(
    tmp_path: Path, url: str
) -> None:
    async with open_yard(tmp_path) as yard:
        add_submodule(yard, url.format(server=yard.server.url))
        clone = yard.clone()
        await yard.open(clone)

        said = await yard.checkouts.prepare(clone)

        assert said is None
        assert (clone.folder / "lib" / "lib.txt").read_text() == "lib\n"
        assert {(visit.token, visit.repository) for visit in yard.server.visits} == {
            (WRITE, "acme/app"),
            ("token-of-lib", "acme/lib"),
        }
        assert (await yard.checkouts.gather(clone, "Nothing")).commit == yard.server.head(
            "acme/app", "main"
        )
        _, seen = await yard.do(
            clone, "git config --list; git -C lib config --list; cat .git/config"
        )
        assert "token-of" not in seen


@pytest.mark.slow
async def test_a_private_submodule_of_a_submodule_is_there(tmp_path: Path) -> None:
    async with open_yard(tmp_path) as yard:
        create_private(yard, "acme/core")
        create_private(yard, "acme/lib")
        link(yard, "acme/lib", "acme/core", "../core.git")
        link(yard, "acme/app", "acme/lib", "../lib.git")
        clone = yard.clone()
        await yard.open(clone)

        said = await yard.checkouts.prepare(clone)

        assert said is None
        assert (clone.folder / "lib" / "core" / "core.txt").read_text() == "core\n"
        assert ("token-of-core", "acme/core") in {
            (visit.token, visit.repository) for visit in yard.server.visits
        }
        assert await yard.do(clone, "git status --short") == (0, "")


async def test_a_branch_cannot_have_a_private_repository_fetched(tmp_path: Path) -> None:
    async with open_yard(tmp_path) as yard:
        create_private(yard, "acme/vault")
        link(yard, "acme/app", "acme/vault", "../vault.git", branch="feature")
        clone = yard.clone(way="existing", branch="feature")
        await yard.open(clone)

        said = await yard.checkouts.prepare(clone)

        assert said is not None
        assert "The submodule vault is missing" in said
        assert ("acme/vault", "demo") not in yard.tokens.asked
        assert list((clone.folder / "vault").iterdir()) == []


@pytest.mark.slow
async def test_submodules_that_hold_themselves_come_to_an_end(tmp_path: Path) -> None:
    async with open_yard(tmp_path) as yard:
        for _ in range(SUBMODULE_DEPTH + 2):
            link(yard, "acme/app", "acme/app", "../app.git")
        clone = yard.clone()
        await yard.open(clone)

        said = await yard.checkouts.prepare(clone)

        deepest = "/".join(["app"] * (SUBMODULE_DEPTH + 1))
        assert said == f"The submodule {deepest} is left out: there are too many."


@pytest.mark.slow
async def test_a_commit_that_is_on_no_branch_of_a_submodule_is_fetched_by_its_name(
    tmp_path: Path,
) -> None:
    async with open_yard(tmp_path) as yard:
        add_submodule(yard, "../lib.git")
        bare = yard.server.path("acme/lib")
        git(bare, "update-ref", "refs/pull/1/head", "main")
        lone = git(bare, "commit-tree", "main^{tree}", "-m", "Else")
        git(bare, "update-ref", "refs/heads/main", lone)
        clone = yard.clone()
        await yard.open(clone)

        said = await yard.checkouts.prepare(clone)

        assert said is None
        assert (clone.folder / "lib" / "lib.txt").read_text() == "lib\n"


@pytest.mark.parametrize(
    "url",
    quick(
        3,
        [
            *("ext::sh -c touch% x", "file:///etc", "/etc", "ssh://git@example.com/x"),
            *("http://e.com/x", "git@example.com:x/y", "fd::17"),
        ],
    ),
)
async def test_a_submodule_from_elsewhere_is_left_out_and_that_is_said(
    tmp_path: Path, url: str
) -> None:
    async with open_yard(tmp_path) as yard:
        add_submodule(yard, url)
        clone = yard.clone()
        await yard.open(clone)

        said = await yard.checkouts.prepare(clone)

        assert said == (
            "The submodule lib is missing: the bridge does not fetch from addresses of this kind."
        )
        assert list((clone.folder / "lib").iterdir()) == []


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("../lib.git", "https://git.example.com/acme/lib.git"),
        ("./lib.git", "https://git.example.com/acme/app.git/lib.git"),
        ("../deeper/lib.git", "https://git.example.com/acme/deeper/lib.git"),
        ("../../else/lib.git", None),
        ("../../../../../lib", None),
        ("../x%2f..%2f..%2felse/lib.git", None),
        ("https://git.example.com/else/lib.git", "https://git.example.com/else/lib.git"),
        ("https://other.example.com/lib.git", "https://other.example.com/lib.git"),
        ("git@git.example.com:acme/lib.git", "https://git.example.com/acme/lib.git"),
        ("ssh://git@git.example.com:22/acme/lib", "https://git.example.com/acme/lib"),
        ("git@other.example.com:acme/lib.git", None),
        ("https://user:password@git.example.com/lib.git", None),
        ("https://user:password@other.example.com/lib.git", None),
        ("https://[broken/lib.git", None),
        ("https://", None),
        ("-oProxyCommand=x", None),
    ],
)
def test_a_submodule_is_beside_the_repository_or_behind_https(url: str, found: str | None) -> None:
    child = find_source(APP, Submodule("lib", "lib", url))

    assert (child.url if child else None) == found


def test_odd_names_and_paths_are_no_submodules() -> None:
    odd = ["../x", "/x", "-x", "a/../b", ".git/hooks", "a\\b", ""]
    listed = "\0".join(f"submodule.s{n}.path\n{path}" for n, path in enumerate(odd))
    urls = "\0".join(f"submodule.s{n}.url\nhttps://e.com/x" for n in range(len(odd)))

    assert parse_submodules(f"{listed}\0{urls}".encode()) == []
    assert parse_submodules(b"submodule.a.path\nlib\0submodule.a.url\n../lib\0") == [
        Submodule("a", "lib", "../lib")
    ]
