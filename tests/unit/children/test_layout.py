"""The view of the file system as rules: the deepest wins, secrets stay hidden."""

from __future__ import annotations

from pathlib import Path

from app.children.layout import Confinement, Mount, Rule, arguments, plan, survey

HOME = Path("/home/ada")


def laid(*mounts: Mount) -> list[tuple[Rule, str]]:
    return [(mount.rule, str(mount.path)) for mount in plan(mounts)]


def test_a_prefix_is_shown_again_inside_the_hidden_home() -> None:
    view = laid(Mount(Rule.PREFIX, HOME / ".nvm/v22"), Mount(Rule.VEIL, HOME))

    assert view == [(Rule.VEIL, "/home/ada"), (Rule.PREFIX, "/home/ada/.nvm/v22")]


def test_a_prefix_that_is_visible_anyway_needs_nothing() -> None:
    assert laid(Mount(Rule.PREFIX, Path("/usr/lib"))) == []


def test_a_prefix_never_shows_the_home_itself_nor_what_lies_above() -> None:
    home = Mount(Rule.VEIL, HOME)

    assert laid(Mount(Rule.PREFIX, HOME), Mount(Rule.PREFIX, HOME.parent), home) == [
        (Rule.VEIL, "/home/ada")
    ]


def test_a_prefix_inside_a_masked_folder_stays_hidden_even_inside_the_hidden_home() -> None:
    data = HOME / "data"

    view = laid(
        Mount(Rule.VEIL, HOME), Mount(Rule.MASK, data), Mount(Rule.PREFIX, data / "codex/bin")
    )

    assert view == [(Rule.VEIL, "/home/ada")]


def test_secrets_inside_a_shown_prefix_are_hidden_inside_it() -> None:
    checkout = HOME / "checkout"

    view = laid(
        Mount(Rule.MASK, checkout / ".env", is_folder=False),
        Mount(Rule.MASK, checkout / "data"),
        Mount(Rule.PREFIX, checkout),
        Mount(Rule.VEIL, HOME),
        Mount(Rule.WRITE, checkout / "data/agents/claude"),
    )

    assert view == [
        (Rule.VEIL, "/home/ada"),
        (Rule.PREFIX, "/home/ada/checkout"),
        (Rule.MASK, "/home/ada/checkout/.env"),
        (Rule.MASK, "/home/ada/checkout/data"),
        (Rule.WRITE, "/home/ada/checkout/data/agents/claude"),
    ]


def test_a_secret_inside_the_workspace_is_hidden_there() -> None:
    view = laid(
        Mount(Rule.WRITE, Path("/srv/app")),
        Mount(Rule.MASK, Path("/srv/app/.env"), is_folder=False),
    )

    assert view == [(Rule.WRITE, "/srv/app"), (Rule.MASK, "/srv/app/.env")]


def test_what_is_asked_for_in_words_is_shown_inside_a_masked_folder() -> None:
    view = laid(Mount(Rule.MASK, Path("/data")), Mount(Rule.SHOW, Path("/data/mirrors/a.git")))

    assert view == [(Rule.MASK, "/data"), (Rule.SHOW, "/data/mirrors/a.git")]


def test_a_masked_path_is_not_shown_by_asking_for_the_same_path() -> None:
    view = laid(Mount(Rule.SHOW, Path("/data")), Mount(Rule.MASK, Path("/data")))

    assert view == [(Rule.MASK, "/data")]


def test_hidden_folders_are_empty_and_closed_and_hidden_files_read_as_empty() -> None:
    options = arguments(
        [
            Mount(Rule.SCRATCH, Path("/tmp")),
            Mount(Rule.MASK, Path("/data")),
            Mount(Rule.MASK, Path("/srv/.env"), is_folder=False),
        ]
    )

    assert options == [
        *("--tmpfs", "/tmp"),
        *("--tmpfs", "/data"),
        *("--dev-bind", "/dev/null", "/srv/.env"),
        *("--remount-ro", "/data"),
    ]


def test_what_does_not_exist_gets_no_rule_but_home_and_workspace_do(tmp_path: Path) -> None:
    gone = tmp_path / "gone"

    rules = survey(
        Confinement(home=gone, workspace=gone, person=gone, masked=(gone,), prefixes=(gone,))
    )

    assert {mount.rule for mount in rules if mount.path == gone} == {Rule.WRITE}


def test_links_are_resolved_and_those_on_the_way_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "versions/22"
    (real / "bin").mkdir(parents=True)
    (tmp_path / "current").symlink_to("versions/22")
    prefix = tmp_path / "current/bin"

    rules = survey(Confinement(home=tmp_path, workspace=tmp_path, prefixes=(prefix,)))

    assert Mount(Rule.PREFIX, real / "bin") in rules
    assert Mount(Rule.LINK, tmp_path / "current", target="versions/22") in rules


def test_a_home_of_slash_is_not_hidden(tmp_path: Path) -> None:
    rules = survey(Confinement(home=tmp_path, workspace=tmp_path, person=Path("/")))

    assert Path("/") not in {mount.path for mount in rules}
