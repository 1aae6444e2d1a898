"""An agent spawns others: to reach through them what it cannot reach itself, and without end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from app.children.sandbox import Unavailable, find_bubblewrap
from tests.support.git_server import GitServer
from tests.support.observe import Observed, demo
from tests.support.platform import Platform

FOUND = find_bubblewrap(os.environ["PATH"])
confined = pytest.mark.skipif(
    isinstance(FOUND, Unavailable), reason=f"{FOUND}: an agent cannot be confined"
)
SECRET = "only-for-the-owner"
OPEN = "select count(*) from turn where state in ('queued', 'starting', 'prompted')"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a person's folder, with links that lead out of it to a private one."""
    root = tmp_path_factory.mktemp("owner")
    (root / "private").mkdir()
    (root / "private" / "secret.txt").write_text(SECRET)
    project = root / "project"
    (project / "inner").mkdir(parents=True)
    (project / "inner" / "out").symlink_to("../../private")
    (project / "away").symlink_to(root / "private")
    (project / "circle").symlink_to("circle")
    (project / "file.txt").write_text("no folder")
    return project


@pytest.fixture(scope="module")
def bridge(tmp_path_factory: pytest.TempPathFactory, project: Path) -> Iterator[Observed]:
    """Run a bridge whose isolated agents work in that folder."""
    agents = {name: demo(mode="free", sandbox="bubblewrap") for name in ("demo", "codex")}
    settings = {"GITHUB_REPO": f"folder:{project}", "DELEGATIONS_PER_TURN": "20"}
    with Platform() as platform:
        folder = tmp_path_factory.mktemp("spawning")
        with Observed(folder, platform, agents=agents, settings=settings) as bridge:
            yield bridge


@pytest.fixture(scope="module")
def cloning(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Observed]:
    """Run a bridge with one agent, which works in clones of a repository."""
    folder = tmp_path_factory.mktemp("cloning")
    with GitServer(tmp_path_factory.mktemp("server")) as server, Platform() as platform:
        server.create("acme/app", {"a.txt": "one"})
        server.commit("acme/app", {"b.txt": "two"}, "Second")
        settings = {
            "GITHUB_GIT_URL": server.url,
            "GITHUB_REPO": "acme/app",
            "DELEGATION_DEPTH": "2",
            "DELEGATIONS_PER_TURN": "2",
            "DELEGATIONS_PER_TREE": "5",
        }
        agents = {"demo": demo(mode="free", ship="none")}
        with Observed(folder, platform, agents=agents, settings=settings) as bridge:
            yield bridge


def spawn(task: str, agent: str = "codex", **more: Any) -> str:
    """Write the line with which the demo agent spawns another one."""
    return f"tool agents_spawn {json.dumps({'agent': agent, 'task': task, **more})}"


def settle(bridge: Observed) -> None:
    """Wait until no turn is open."""
    bridge.wait(lambda: bridge.rows(OPEN) == [(0,)], "a turn goes on", 60)


@confined
@pytest.mark.parametrize(
    "folder",
    [
        "..",
        "../private",
        "inner/../../private",
        "inner/out",
        "away",
        "inner/out/..",
        "{root}/private",
        "{root}/project/inner",
        "/etc",
        "/",
        "~",
        "file.txt",
        "missing",
        "inner\u0000",
        "inner\n",
        "circle",
        "n" * 300,
        "x/" * 300,
    ],
)
def test_no_other_folder_than_one_below_its_own_is_given_to_another_agent(
    bridge: Observed, project: Path, folder: str
) -> None:
    begun = bridge.rows("select count(*) from delegation")
    line = spawn("run cat secret.txt", folder=folder.format(root=project.parent))

    said = bridge.ask("escapes", line)["text"]

    assert "There is no folder" in said or "are wrong, at folder" in said
    assert bridge.rows("select count(*) from delegation") == begun


@confined
def test_a_folder_that_becomes_a_link_after_the_call_is_not_opened(
    bridge: Observed, project: Path
) -> None:
    (project / "swapped").mkdir()
    swap = "run rmdir swapped && ln -s ../private swapped"

    bridge.ask("swaps", f"{spawn('run cat secret.txt', folder='swapped')}\n{swap}")

    settle(bridge)
    query = "select turn.state, turn.error from delegation join turn on turn.id = delegation.turn"
    [(state, error)] = bridge.rows(f"{query} where folder = 'swapped'")
    assert state == "failed"
    assert "There is no folder" in error
    assert bridge.rows("select count(*) from transcript where text like ?", f"%{SECRET}%") == [(0,)]


@confined
def test_an_agent_works_in_the_folder_that_it_was_given_and_sees_no_more_than_the_first(
    bridge: Observed, project: Path
) -> None:
    task = "run pwd > where; cat ../away/secret.txt; cat ../../private/secret.txt"
    both = (spawn(task, folder="inner"), spawn(task, agent="demo", folder="inner/"))

    bridge.ask("within", "\n".join(both))

    settle(bridge)
    assert (project / "inner" / "where").read_text() == f"{project}/inner\n"
    query = "select count(*) from delegation join turn on turn.id = delegation.turn"
    assert bridge.rows(f"{query} where folder like 'inner%' and state = 'done'") == [(2,)]
    assert bridge.rows("select count(*) from transcript where text like ?", f"%{SECRET}%") == [(0,)]


@pytest.mark.parametrize(
    "branch",
    [
        "missing",
        "HEAD",
        "@",
        "refs/heads/main",
        "refs/pull/1/head",
        "../main",
        "main:evil",
        "main^",
        "--upload-pack=touch evil",
        "-main",
        "main\nevil",
    ],
)
def test_no_name_but_that_of_a_branch_of_the_repository_is_taken(
    cloning: Observed, branch: str
) -> None:
    begun = cloning.rows("select count(*) from delegation")

    said = cloning.ask("branches", spawn("say hi", "demo", branch=branch))["text"]

    assert "There is no branch" in said
    assert cloning.rows("select count(*) from delegation") == begun


@pytest.mark.long
def test_an_agent_that_spawns_itself_without_end_is_stopped_by_the_limits(
    cloning: Observed,
) -> None:
    task = "say spent"
    for _ in range(3):
        task = "\n".join((spawn(task, "demo"), spawn(task, "demo", name="again")))

    said = cloning.ask("bomb", task)["text"]

    settle(cloning)
    assert said.count('"state": "queued"') == 2
    began = "select count(*), max(depth) from delegation where root_session = ?"
    assert cloning.rows(began, cloning.session("bomb")) == [(5, 2)]
    told = [each for each in cloning.notices("bomb") if "reached a limit" in each]
    assert len(told) == len(set(told)) > 0
