"""Homes of sessions: what is copied in, what is taken back, and what a hostile home cannot do."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from app.children.homes import HomeFiles, SessionHomes

FILES = HomeFiles(
    login=(".agent/auth.json",),
    refreshed=("access", "refresh"),
    settings=(".agent/settings.json", ".agent/hooks/"),
    rewritten=(".agent.json",),
    caches=(".agent/cache/",),
    history=(".agent/sessions", ".agent/index.json"),
)
LOGIN: dict[str, Any] = {"key": "k1", "tokens": {"access": "a1", "refresh": "r1", "account": "ada"}}
OLD, NEWER = 1_000_000_000, 2_000_000_000
CONVERSATION = "01890a5d-ac96-774b-bcce-b302099a8057"


def put(home: Path, path: str, content: object, at: int = OLD) -> Path:
    """Lay a file into a home, as old as said."""
    file = home / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    os.utime(file, (at, at))
    return file


@pytest.fixture
def base(tmp_path: Path) -> Path:
    base = tmp_path / "homes" / "agent"
    put(base, ".agent/auth.json", LOGIN)
    put(base, ".agent/settings.json", {"ask": True})
    put(base, ".agent.json", {"theme": "dark"})
    put(base, ".agent/cache/other.txt", "of another conversation")
    put(base, ".gitconfig", "[user]\n")
    return base


@pytest.fixture
def homes(base: Path, tmp_path: Path) -> SessionHomes:
    return SessionHomes(base, tmp_path / "session-homes", FILES)


def listed(home: Path) -> list[str]:
    return sorted(str(file.relative_to(home)) for file in home.rglob("*") if file.is_file())


def test_a_home_holds_log_ins_and_settings_and_nothing_else_of_the_base_home(
    homes: SessionHomes,
) -> None:
    home = homes.open("1-agent")

    known = [".agent.json", ".agent/auth.json", ".agent/settings.json", ".gitconfig"]
    assert listed(home.path) == known
    assert home.readonly == (home.path / ".agent/settings.json", home.path / ".agent/hooks")
    assert home.path.stat().st_mode & 0o777 == 0o700


def test_settings_are_the_base_homes_at_every_start(homes: SessionHomes, base: Path) -> None:
    home = homes.open("1-agent").path
    put(home, ".agent/settings.json", {"ask": False}, NEWER)
    put(home, ".agent/hooks/start.sh", "rm -rf /", NEWER)
    put(home, ".agent.json", {"servers": ["mine"]}, NEWER)
    (base / ".agent.json").unlink()
    put(home, ".agent/sessions/one.jsonl", "history", NEWER)

    homes.close("1-agent")
    homes.open("1-agent")

    assert json.loads((home / ".agent/settings.json").read_text()) == {"ask": True}
    assert list((home / ".agent/hooks").iterdir()) == []
    assert not (home / ".agent.json").exists()
    assert (home / ".agent/sessions/one.jsonl").exists()
    assert json.loads((base / ".agent/settings.json").read_text()) == {"ask": True}


def test_where_settings_are_missing_something_empty_holds_their_place(
    homes: SessionHomes, base: Path
) -> None:
    (base / ".agent/settings.json").unlink()

    home = homes.open("1-agent").path

    assert (home / ".agent/settings.json").read_text() == "{}\n"


def refreshed(**tokens: str) -> dict[str, Any]:
    return {**LOGIN, "tokens": {**LOGIN["tokens"], **tokens}}


def test_a_refreshed_log_in_is_taken_back_when_its_session_ends(
    homes: SessionHomes, base: Path
) -> None:
    home = homes.open("1-agent").path
    put(home, ".agent/auth.json", refreshed(access="a2", refresh="r2"), NEWER)

    homes.close("1-agent")

    assert json.loads((base / ".agent/auth.json").read_text()) == refreshed(
        access="a2", refresh="r2"
    )
    assert (base / ".agent/auth.json").stat().st_mode & 0o777 == 0o600


def test_a_session_begins_with_what_another_one_has_refreshed_while_it_lives(
    homes: SessionHomes,
) -> None:
    first = homes.open("1-agent").path
    put(first, ".agent/auth.json", refreshed(access="a2"), NEWER)

    second = homes.open("2-agent").path

    assert json.loads((second / ".agent/auth.json").read_text()) == refreshed(access="a2")


def test_what_a_crash_left_in_a_home_is_taken_back_at_its_next_start(
    homes: SessionHomes, base: Path, tmp_path: Path
) -> None:
    home = homes.open("1-agent").path
    put(home, ".agent/auth.json", refreshed(access="a2"), NEWER)

    SessionHomes(base, tmp_path / "session-homes", FILES).open("1-agent")

    assert json.loads((home / ".agent/auth.json").read_text()) == refreshed(access="a2")


def test_an_older_log_in_does_not_replace_a_newer_one(homes: SessionHomes, base: Path) -> None:
    home = homes.open("1-agent").path
    put(home, ".agent/auth.json", refreshed(access="a2"), NEWER)
    put(base, ".agent/auth.json", refreshed(access="a3"), NEWER + 1)

    homes.close("1-agent")

    assert json.loads((base / ".agent/auth.json").read_text()) == refreshed(access="a3")


@pytest.mark.parametrize(
    "planted",
    [
        {**LOGIN, "key": "k-of-an-attacker"},
        refreshed(account="eve"),
        {**LOGIN, "base_url": "https://eve.example"},
        [LOGIN],
        "not JSON",
        "[" * 100_000,
        json.dumps(refreshed(access="a" * 300_000)),
    ],
)
def test_a_log_in_that_changed_by_more_than_a_refresh_is_not_taken_back(
    homes: SessionHomes, base: Path, planted: object
) -> None:
    home = homes.open("1-agent").path
    put(home, ".agent/auth.json", planted, NEWER)

    homes.close("1-agent")

    assert json.loads((base / ".agent/auth.json").read_text()) == LOGIN


def test_a_log_in_that_only_a_session_has_is_not_taken_back(
    homes: SessionHomes, base: Path
) -> None:
    (base / ".agent/auth.json").unlink()
    home = homes.open("1-agent").path
    put(home, ".agent/auth.json", LOGIN, NEWER)

    homes.close("1-agent")
    homes.open("1-agent")

    assert not (base / ".agent/auth.json").exists()
    assert not (home / ".agent/auth.json").exists()


def test_no_link_in_a_home_leads_the_bridge_out_of_it(
    homes: SessionHomes, base: Path, tmp_path: Path
) -> None:
    home = homes.open("1-agent").path
    outside = put(tmp_path / "outside", "auth.json", refreshed(access="a2"), NEWER)
    kept = put(tmp_path / "outside", "settings.json", "kept", NEWER)
    put(home, "moved/x", "")
    (home / ".agent").rename(home / "elsewhere")
    (home / ".agent").symlink_to(outside.parent)

    homes.close("1-agent")
    homes.open("1-agent")

    assert json.loads((base / ".agent/auth.json").read_text()) == LOGIN
    assert kept.read_text() == "kept"
    assert not (home / ".agent").is_symlink()
    assert json.loads((home / ".agent/settings.json").read_text()) == {"ask": True}


def test_no_link_in_the_base_home_brings_in_what_is_outside_of_it(
    homes: SessionHomes, base: Path, tmp_path: Path
) -> None:
    secret = put(tmp_path / "data", "secrets", "the bridge's")
    (base / ".agent/settings.json").unlink()
    (base / ".agent/settings.json").symlink_to(secret)

    home = homes.open("1-agent").path

    assert (home / ".agent/settings.json").read_text() == "{}\n"


@pytest.mark.parametrize(
    "path",
    [
        f".agent/sessions/slug/{CONVERSATION}.jsonl",
        f".agent/sessions/2026/rollout-2026-{CONVERSATION}.jsonl",
        f".agent/sessions/{CONVERSATION}/events.jsonl",
        f".agent/sessions/chat-{CONVERSATION[:8]}.json",
    ],
)
def test_a_conversation_that_was_begun_in_the_base_home_comes_along_alone(
    homes: SessionHomes, base: Path, path: str
) -> None:
    put(base, path, f'{{"id": "{CONVERSATION}"}}\nmine')
    put(base, ".agent/sessions/slug/other.jsonl", "another's")
    put(base, f".agent/sessions/chat-{CONVERSATION[:8]}-x.json", '{"id": "another"}')
    put(base, ".agent/index.json", "{}")

    home = homes.open("1-agent", CONVERSATION).path
    put(home, path, "mine, and more", NEWER)
    homes.open("1-agent", CONVERSATION)

    history = [each for each in listed(home) if each.startswith(".agent/")]
    mine = [".agent/auth.json", ".agent/index.json", path, ".agent/settings.json"]
    assert sorted(history) == sorted(mine)
    assert (home / path).read_text() == "mine, and more"


@pytest.mark.parametrize("claimed", ["", "1", "sessions", "../../..", "*", "slug/other-and-more.."])
def test_an_id_that_could_fit_others_brings_in_no_conversation(
    homes: SessionHomes, base: Path, claimed: str
) -> None:
    put(base, ".agent/sessions/slug/other-and-more..1.jsonl", "another's")

    home = homes.open("1-agent", claimed).path

    assert not (home / ".agent/sessions").exists()


def test_caches_are_gone_when_the_process_ends(homes: SessionHomes) -> None:
    home = homes.open("1-agent").path
    put(home, ".agent/cache/large", "x")

    homes.close("1-agent")

    assert not (home / ".agent/cache").exists()


def test_an_agent_of_which_nothing_is_known_gets_a_copy_of_its_base_home(
    base: Path, tmp_path: Path
) -> None:
    homes = SessionHomes(base, tmp_path / "session-homes", None)
    home = homes.open("1-agent").path
    put(home, ".agent/cache/other.txt", "its own by now", NEWER)
    put(home, ".agent/auth.json", refreshed(access="a2"), NEWER)
    put(base, ".agent/settings.json", {"ask": "always"}, NEWER)

    homes.close("1-agent")
    homes.open("1-agent")

    assert (home / ".agent/cache/other.txt").read_text() == "its own by now"
    assert json.loads((home / ".agent/settings.json").read_text()) == {"ask": "always"}
    assert json.loads((base / ".agent/auth.json").read_text()) == LOGIN


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_is_made_belongs_to_the_user_of_the_agent(base: Path, tmp_path: Path) -> None:
    homes = SessionHomes(base, tmp_path / "session-homes", FILES, user=4711)

    home = homes.open("1-agent").path

    assert {each.stat().st_uid for each in (home, *home.rglob("*"))} == {4711}
