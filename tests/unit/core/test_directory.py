"""Which repository a place has, and who may choose what."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.core.repositories.directory import Directory, SetFor
from app.errors import Conflict
from app.model.keys import PlaceKey
from app.model.workspaces import Repository
from app.services import find_area, find_repository

WEB = PlaceKey("web", "t1")


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    for name in ("home/project", "data"):
        (tmp_path / name).mkdir(parents=True)
    return Directory(
        git_url="https://git.example.com",
        home=tmp_path / "home",
        data_dir=tmp_path / "data",
        default="acme/default",
        areas={
            PlaceKey("slack", "C1"): "acme/channel",
            PlaceKey("slack", "C2"): "folder:~/project",
            PlaceKey("linear", "ENG"): "acme/team",
        },
        area_settings={"slack": "SLACK_CHANNEL_REPOS", "linear": "LINEAR_TEAM_REPOS"},
        find_area=find_area,
        own_repository=find_repository,
    )


@pytest.mark.parametrize(
    ("place", "chosen", "name"),
    [
        (WEB, None, "acme/default"),
        (WEB, "acme/chosen", "acme/chosen"),
        (PlaceKey("slack", "C1:1700.1"), None, "acme/channel"),
        (PlaceKey("slack", "C1:1700.1"), "acme/chosen", "acme/chosen"),
        (PlaceKey("slack", "C9:1700.1"), None, "acme/default"),
        (PlaceKey("linear", "ENG-12"), None, "acme/team"),
        (PlaceKey("linear", "OPS-12"), None, "acme/default"),
        (PlaceKey("github", "octo/cat:7"), None, "octo/cat"),
        (PlaceKey("github", "octo/cat:7"), "acme/chosen", "octo/cat"),
    ],
)
def test_a_place_has_the_repository_nearest_to_it(
    directory: Directory, place: PlaceKey, chosen: str | None, name: str
) -> None:
    assert directory.target(place, chosen) == Repository(
        name, f"https://git.example.com/{name}.git"
    )


def test_none_beats_the_default_and_a_folder_is_a_folder(directory: Directory) -> None:
    assert directory.target(WEB, "none") is None
    assert directory.target(PlaceKey("slack", "C2:1"), None) == directory.home / "project"


@pytest.mark.parametrize("service", ["slack", "linear"])
def test_no_folder_of_this_machine_is_chosen_from_a_platform(
    directory: Directory, service: str
) -> None:
    place = PlaceKey(service, "C1:1")

    with pytest.raises(Conflict, match="only on its page or in its settings"):
        directory.chosen(place, f"folder:{directory.home / 'project'}")


def test_on_github_agents_stay_in_the_repository_they_are_called_in(directory: Directory) -> None:
    with pytest.raises(Conflict, match="in the repository they are called in"):
        directory.chosen(PlaceKey("github", "octo/cat:7"), "acme/private")


@pytest.mark.parametrize(
    "text",
    ["acme", "acme/app/more", "../etc", "acme/..", "acme/.", "-x/y", "https://example.com/x.git",
     "ext::sh", "file:///etc", "acme/a b", "acme/app\n", "folder:relative", "folder:/nowhere"],
)  # fmt: skip
def test_what_is_no_repository_cannot_be_chosen(directory: Directory, text: str) -> None:
    with pytest.raises(Conflict):
        directory.chosen(WEB, text)


@pytest.mark.parametrize("folder", ["data", "data/inside", ".", "home", "/"])
def test_a_folder_that_holds_the_bridge_or_a_home_is_refused(
    directory: Directory, folder: str
) -> None:
    path = directory.data_dir.parent / folder
    path.mkdir(exist_ok=True)

    with pytest.raises(Conflict):
        directory.chosen(WEB, f"folder:{path}")


@pytest.mark.parametrize(
    "folder",
    ["/etc", "/etc/ssl", "/usr", "/usr/share", "/var", "/var/log", "/home", "/root", "/tmp"],
)
def test_a_folder_of_the_system_is_refused(directory: Directory, folder: str) -> None:
    with pytest.raises(Conflict, match=r"choose (one|another)"):
        directory.check_folder(Path(folder))


@pytest.mark.parametrize("folder", ["home/project", "home/project/app", "home/project/app/core"])
def test_a_folder_with_files_of_the_bridge_is_refused(directory: Directory, folder: str) -> None:
    project = directory.home / "project"
    (project / "app/core").mkdir(parents=True)
    given = replace(directory, own=(project / "app", project / ".env"))

    with pytest.raises(Conflict, match="The bridge keeps its own files there"):
        given.check_folder(directory.home.parent / folder)


def test_a_folder_is_chosen_on_the_page(directory: Directory) -> None:
    text = f"folder:{directory.home / 'project'}"

    assert directory.chosen(WEB, text) == text
    assert directory.words(WEB, text).endswith("project, one agent at a time")


@pytest.mark.parametrize(
    ("place", "why"),
    [
        (WEB, "leave out `always`"),
        (PlaceKey("slack", "C1:1"), "SLACK_CHANNEL_REPOS"),
        (PlaceKey("linear", "ENG-1"), "LINEAR_TEAM_REPOS"),
        (PlaceKey("github", "octo/cat:7"), "in the repository they are called in"),
    ],
)
def test_what_the_operator_set_for_an_area_is_not_changed_from_within(
    directory: Directory, place: PlaceKey, why: str
) -> None:
    with pytest.raises(Conflict, match=why):
        directory.chosen(place, "acme/app", always=True)


def test_an_area_without_a_setting_can_be_given_one(directory: Directory) -> None:
    assert directory.chosen(PlaceKey("slack", "C9:1"), "acme/app", always=True) == "acme/app"


def test_a_default_leaves_an_area_open_and_a_setting_for_it_does_not(directory: Directory) -> None:
    assert directory.fixes(PlaceKey("slack", "C1:1"))
    assert not directory.fixes(PlaceKey("slack", "C9:1"))
    assert not directory.fixes(WEB)


def test_what_is_set_for_a_repository_counts_under_its_new_name(directory: Directory) -> None:
    folder = directory.read("folder:~/project")
    old, new, other = map(directory.repository, ("acme/old", "acme/new", "acme/other"))
    called = {"acme/old": "acme/new"}
    found = SetFor(
        {old: "by the old name", folder: "of the folder", other: "of another"},
        directory,
        lambda _host, name: called.get(name, name),
    )

    assert (found[new], found[folder], found[other]) == (
        "by the old name",
        "of the folder",
        "of another",
    )
    assert new in found
    assert old not in found
    assert list(found) == [new, folder, other]
    assert len(found) == 3


def test_what_is_set_for_the_new_name_counts_more(directory: Directory) -> None:
    old, new = map(directory.repository, ("acme/old", "acme/new"))
    found = SetFor({old: "old", new: "new"}, directory, lambda _host, _name: "acme/new")

    assert found[new] == "new"
    assert list(found) == [new]
