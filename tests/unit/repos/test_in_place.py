"""What in a person's folder an agent must not change, since git would run programs for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.errors import RepositoryError
from app.repos.git import Git
from app.repos.in_place import find_programs
from tests.support.git_server import QUIET, git


async def found(folder: Path) -> list[str]:
    """Name what is found in a folder, below it."""
    surroundings = {"PATH": QUIET["PATH"], "HOME": str(folder.parent)}
    paths = await find_programs(Git(surroundings, "tests"), folder)
    return [str(path.relative_to(folder)) for path in paths]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    git(folder, "commit", "-q", "--allow-empty", "-m", "First")
    return folder


async def test_all_of_git_is_found_in_a_plain_repository(project: Path) -> None:
    assert await found(project) == [".git"]


async def test_a_folder_without_a_repository_gets_an_empty_one(tmp_path: Path) -> None:
    assert await found(tmp_path) == [".git"]
    assert list((tmp_path / ".git").iterdir()) == []
    assert await found(tmp_path) == [".git"]


async def test_a_folder_inside_a_repository_keeps_what_that_obeys(project: Path) -> None:
    part = project / "part"
    (part / "hooks").mkdir(parents=True)
    git(project, "config", "core.hooksPath", "part/hooks")

    assert await found(part) == [".git", "hooks"]
    assert git(part, "rev-parse", "--show-toplevel") == str(project)


async def test_a_worktree_keeps_its_pointer_and_a_repository_in_the_tree(tmp_path: Path) -> None:
    project = tmp_path / "project"
    git(tmp_path, "init", "-q", "--bare", "-b", "main", str(project / ".bare"))
    (project / ".git").write_text("gitdir: ./.bare\n")

    assert set(await found(project)) == {".git", ".bare"}


async def test_programs_of_the_configuration_are_found_and_names_are_not(project: Path) -> None:
    for name in ("bin/monitor", "bin/clean", "docs", "origin"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).touch()
    git(project, "config", "core.fsmonitor", "bin/monitor")
    git(project, "config", "filter.x.clean", "sh bin/clean %f")
    git(project, "config", "branch.docs.remote", "origin")
    git(project, "config", "user.name", "docs")

    assert set(await found(project)) == {".git", "bin/monitor", "bin/clean"}


async def test_hooks_and_includes_that_are_missing_are_made_so_that_no_agent_makes_them(
    project: Path,
) -> None:
    git(project, "config", "core.hooksPath", "my/hooks")
    git(project, "config", "include.path", "../shared.cfg")
    git(project, "config", "includeIf.onbranch:x.y.path", "../more/x.cfg")

    paths = await found(project)

    assert {"my/hooks", "shared.cfg", "more/x.cfg"} <= set(paths)
    assert (project / "my/hooks").is_dir()
    assert (project / "shared.cfg").read_text() == ""


async def test_a_path_below_home_is_found_there(project: Path) -> None:
    git(project, "config", "core.hooksPath", "~/project/hooks")

    assert await found(project) == [".git", "hooks"]
    assert not (project / "~").exists()


@pytest.mark.parametrize("target", ["inside", "../outside"])
async def test_hooks_behind_a_link_are_refused_since_the_link_could_be_replaced(
    project: Path, target: str
) -> None:
    (project / target).mkdir()
    (project / ".husky").symlink_to(target)
    git(project, "config", "core.hooksPath", ".husky/hooks")

    with pytest.raises(RepositoryError, match=r"\.husky is a symbolic link"):
        await found(project)


async def test_a_long_command_is_no_path(project: Path) -> None:
    git(project, "config", "alias.x", "!f() { " + "echo " * 200 + "'; }; f")

    assert await found(project) == [".git"]


async def test_nothing_outside_the_folder_is_made_or_named(project: Path) -> None:
    git(project, "config", "core.hooksPath", "../hooks")
    git(project, "config", "include.path", "../../outside.cfg")

    assert await found(project) == [".git"]
    assert sorted(path.name for path in project.parent.iterdir()) == ["project"]


async def test_a_repository_that_git_cannot_read_is_refused_with_what_to_do(project: Path) -> None:
    (project / ".git/config").write_text("[broken")

    with pytest.raises(RepositoryError, match=r"Repair it, or choose another folder\."):
        await found(project)
