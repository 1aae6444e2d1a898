"""Stories of files on the simulated Slack: what agents make for people gets there, once."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest

from sim.slack.model import SCOPES, Message
from tests.support.slack import SlackWorld

pytestmark = pytest.mark.one_database


def shown(world: SlackWorld, thread: str) -> list[tuple[str, bytes]]:
    """List the files that an agent's app shows in a thread, by title."""
    return [
        (world.slack.files[number].title, world.slack.files[number].content)
        for message in world.answers(thread)
        for number in message.files
    ]


def wait_files(world: SlackWorld, thread: str) -> Message:
    """Wait until an agent's app shows files in a thread."""
    world.wait(lambda: any(each.files for each in world.answers(thread)))
    return next(each for each in world.answers(thread) if each.files)


def test_what_an_agent_makes_is_uploaded_into_the_thread_after_its_answer(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        lines = ("give report.md All is well.", "give numbers.csv 1,2,3", "say made them")
        thread = world.say(f"{world.at('claude')} " + "\n".join(lines))

        answer = world.wait_answer(thread, "made them")
        files = wait_files(world, thread)
        world.settle()

    assert shown(world, thread) == [
        ("numbers.csv", b"1,2,3\n"),
        ("report.md", b"All is well.\n"),
    ]
    assert [each.ts for each in world.answers(thread)] == [answer.ts, files.ts]
    assert world.too_often() == []
    workspaces = world.bridge.data_dir / "workspaces"
    assert list((workspaces / "1-claude.out").iterdir()) == []
    assert not list(workspaces.glob("1-claude/*"))


def test_what_was_forwarded_reaches_the_agent_as_data_with_its_files(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        log = world.slack.file("log.txt", b"it broke")
        alert = world.say("say it is down", who=world.bob, files=[log])
        words = f"{world.at('claude')} say I look at it"
        thread = world.slack.forward(world.ann, world.channel, alert, words)

        answer = world.wait_answer(thread, "I look at it")
        world.settle()

    assert "it is down" not in answer.words
    [(prompt,)] = world.bridge.rows("select prompt from turn")
    assert 'from="what came with the message">\nBob in #general: say it is down\n</data>' in prompt
    files = world.bridge.data_dir / "workspaces" / "1-claude.files"
    assert [path.read_bytes() for path in files.glob("*/*")] == [b"it broke"]


@pytest.mark.parametrize(
    ("step", "when"),
    [
        ("turns.finish", "before"),
        pytest.param("turns.finish", "after", marks=pytest.mark.slow),
        ("posts.sent", "before"),
        pytest.param("posts.sent", "after", marks=pytest.mark.slow),
    ],
)
def test_files_arrive_once_however_the_bridge_dies_on_the_way(
    tmp_path: Path, step: str, when: Literal["before", "after"]
) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} give report.md All is well.\nhold go")
        out = world.bridge.data_dir / "workspaces" / "1-claude.out"
        world.bridge.wait((out / "report.md").exists, "nothing was laid ready")
        world.bridge.arm(step, when)
        (world.bridge.workspace("claude") / "go").touch()
        world.bridge.wait_dead()
        world.bridge.start()

        wait_files(world, thread)
        world.settle()
        again = world.say(f"{world.at('claude')} say nothing new", thread=thread)
        world.wait(lambda: again and world.answers(thread)[-1].words.find("nothing new") >= 0)
        world.settle()

    assert shown(world, thread) == [("report.md", b"All is well.\n")]


def test_a_share_whose_answer_was_lost_is_not_repeated(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        world.slack.lose_answers["files.completeUploadExternal"] = 1
        thread = world.say(f"{world.at('claude')} give report.md All is well.")

        wait_files(world, thread)
        world.settle()

    assert shown(world, thread) == [("report.md", b"All is well.\n")]


def test_an_app_that_may_not_upload_names_the_files(tmp_path: Path) -> None:
    page = {"BRIDGE_BASE_URL": "https://bridge.example.com"}
    app = {"scopes": SCOPES - {"files:write"}}
    with SlackWorld(tmp_path, settings=page, app=app) as world:
        thread = world.say(f"{world.at('claude')} give report.md All is well.")

        named = world.wait_answer(thread, "Couldn't send these files to Slack")
        world.settle()

    assert "missing_scope" in named.words
    assert "https://bridge.example.com/uploads/" in named.words
    assert "report.md> (13 bytes)" in named.words
    assert world.bridge.rows("select reachable from surface") == [(1,)]


def test_what_is_refused_is_said(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        out = world.bridge.data_dir / "workspaces" / "1-claude.out"
        thread = world.say(f"{world.at('claude')} hold go\nsay ended")
        world.bridge.wait(out.is_dir, "there is no folder")
        (out / "link.txt").symlink_to(world.bridge.data_dir / "bridge.db")
        (world.bridge.workspace("claude") / "go").touch()

        world.wait_answer(thread, "link.txt` was not sent: it is not a regular file")
        world.settle()

    assert shown(world, thread) == []
