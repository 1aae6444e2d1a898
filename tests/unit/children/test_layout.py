"""The view of the file system as rules: the deepest wins, secrets stay hidden."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.children import layout
from app.children.layout import Confinement, Mount, PathRule, arguments, hiding_folder, plan, survey

HOME = Path("/home/ada")


def laid(*mounts: Mount) -> list[tuple[PathRule, str]]:
    return [(mount.rule, str(mount.path)) for mount in plan(mounts)]


def test_a_prefix_is_shown_again_inside_the_hidden_home() -> None:
    view = laid(Mount(PathRule.PREFIX, HOME / ".nvm/v22"), Mount(PathRule.VEIL, HOME))

    assert view == [(PathRule.VEIL, "/home/ada"), (PathRule.PREFIX, "/home/ada/.nvm/v22")]


def test_a_prefix_that_is_visible_anyway_needs_nothing() -> None:
    assert laid(Mount(PathRule.PREFIX, Path("/usr/lib"))) == []


def test_a_prefix_never_shows_the_home_itself_nor_what_lies_above() -> None:
    home = Mount(PathRule.VEIL, HOME)

    assert laid(Mount(PathRule.PREFIX, HOME), Mount(PathRule.PREFIX, HOME.parent), home) == [
        (PathRule.VEIL, "/home/ada")
    ]


def test_a_prefix_inside_a_masked_folder_stays_hidden_even_inside_the_hidden_home() -> None:
    data = HOME / "data"

    view = laid(
        Mount(PathRule.VEIL, HOME),
        Mount(PathRule.MASK, data),
        Mount(PathRule.PREFIX, data / "codex/bin"),
    )

    assert view == [(PathRule.VEIL, "/home/ada")]


def test_a_secret_inside_a_shown_prefix_hides_its_folder_but_not_what_else_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "_SCRATCH", ())
    checkout = tmp_path / "checkout"
    (checkout / "app").mkdir(parents=True)
    (checkout / "data").mkdir()
    for name in (".env", ".env.bak", ".netrc", "copy of .env", "run.py"):
        (checkout / name).touch()
    top = Path("/", tmp_path.parts[1])

    rules = survey(
        Confinement(
            home=tmp_path,
            workspace=checkout / "data/1",
            masked=(checkout / "data",),
            secrets=(checkout / ".env",),
            prefixes=(checkout, checkout / ".env"),
        )
    )

    view = {mount.path: mount.rule for mount in plan(rules)}
    assert view[top] is PathRule.VEIL
    assert view[checkout] is PathRule.VEIL
    assert {path.name for path, rule in view.items() if rule is PathRule.PREFIX} == {
        "app",
        "run.py",
    }
    assert checkout / "data" not in view  # hidden with all around it


def test_the_topmost_folder_that_can_be_hidden_is() -> None:
    assert hiding_folder(Path("/srv/bridge/current/.env")) == Path("/srv")
    assert hiding_folder(Path("/etc/bridge/keys/github.pem")) == Path("/etc/bridge")
    assert hiding_folder(Path("/var/lib/bridge/key")) == Path("/var/lib/bridge")


@pytest.mark.parametrize("file", ["/key.pem", "/etc/key.pem", "/usr/lib/key", "/proc/1/environ"])
def test_a_folder_that_programs_need_is_not_hidden(file: str) -> None:
    assert hiding_folder(Path(file)) is None


def test_a_secret_behind_a_link_hides_the_folder_of_the_link_too(tmp_path: Path) -> None:
    real = Path("/etc/bridge-of-this-test/env")
    (tmp_path / ".env").symlink_to(real)

    rules = survey(Confinement(home=tmp_path, workspace=tmp_path, secrets=(tmp_path / ".env",)))

    hidden = Path("/", tmp_path.parts[1])
    assert hidden in {
        mount.path for mount in rules if mount.rule in (PathRule.VEIL, PathRule.SCRATCH)
    }


def test_what_is_read_only_in_a_workspace_is_a_mount_and_so_is_each_folder_above_it(
    tmp_path: Path,
) -> None:
    deep = tmp_path / "workspace/lib/part"
    deep.mkdir(parents=True)

    rules = survey(
        Confinement(home=tmp_path / "home", workspace=tmp_path / "workspace", readonly=(deep,))
    )

    inside = [mount for mount in plan(rules) if mount.path.is_relative_to(tmp_path / "workspace")]
    assert [(mount.rule, mount.path) for mount in inside] == [
        (PathRule.WRITE, tmp_path / "workspace"),
        (PathRule.PIN, tmp_path / "workspace/lib"),
        (PathRule.SHOW, deep),
    ]
    assert arguments(inside)[-6:] == [
        *("--bind", str(deep.parent), str(deep.parent)),
        *("--ro-bind", str(deep), str(deep)),
    ]


def test_what_is_asked_for_in_words_is_shown_inside_a_masked_folder() -> None:
    view = laid(
        Mount(PathRule.MASK, Path("/data")), Mount(PathRule.SHOW, Path("/data/mirrors/a.git"))
    )

    assert view == [(PathRule.MASK, "/data"), (PathRule.SHOW, "/data/mirrors/a.git")]


def test_a_masked_path_is_not_shown_by_asking_for_the_same_path() -> None:
    view = laid(Mount(PathRule.SHOW, Path("/data")), Mount(PathRule.MASK, Path("/data")))

    assert view == [(PathRule.MASK, "/data")]


def test_hidden_folders_are_empty_and_closed() -> None:
    options = arguments(
        [
            Mount(PathRule.SCRATCH, Path("/tmp")),
            Mount(PathRule.MASK, Path("/data")),
        ]
    )

    assert options == [
        *("--tmpfs", "/tmp"),
        *("--tmpfs", "/data"),
        *("--remount-ro", "/data"),
    ]


def test_what_does_not_exist_gets_no_rule_but_home_and_workspace_do(tmp_path: Path) -> None:
    gone = tmp_path / "gone"

    rules = survey(
        Confinement(home=gone, workspace=gone, person=gone, masked=(gone,), prefixes=(gone,))
    )

    assert {mount.rule for mount in rules if mount.path == gone} == {PathRule.WRITE}


def test_links_are_resolved_and_those_on_the_way_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "versions/22"
    (real / "bin").mkdir(parents=True)
    (tmp_path / "current").symlink_to("versions/22")
    prefix = tmp_path / "current/bin"

    rules = survey(Confinement(home=tmp_path, workspace=tmp_path, prefixes=(prefix,)))

    assert Mount(PathRule.PREFIX, real / "bin") in rules
    assert Mount(PathRule.LINK, tmp_path / "current", target="versions/22") in rules


def test_a_home_of_slash_is_not_hidden(tmp_path: Path) -> None:
    rules = survey(Confinement(home=tmp_path, workspace=tmp_path, person=Path("/")))

    assert Path("/") not in {mount.path for mount in rules}
