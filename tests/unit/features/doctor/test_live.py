"""`doctor --live` on the simulated platforms: every step says what it saw, and nothing is left."""

from __future__ import annotations

import asyncio
import io
import json
from contextlib import suppress
from pathlib import Path

import pytest

from app.agents.catalog import known_agents
from app.config import Configuration, load
from app.errors import ConfigurationError, NotFound, PostDelayed
from app.features.doctor.live import Chosen, LiveCheck, agree, choose
from app.services import registered_services
from app.services.common.live import LiveStep, LiveVerdict, Undo, compare
from app.terminal.screen import PlainLines
from app.vault import Vault
from sim.linear import Linear
from sim.slack.server import SimulatedSlack
from tests.support.bridge import DEMO
from tests.support.clock import FastClock, ManualClock
from tests.support.github import Hub
from tests.support.linear import credentials

pytestmark = pytest.mark.anyio

SPEED = 600.0
"""Six minutes of a stream take as long as a look at it."""


def configure(folder: Path, **settings: str) -> Configuration:
    given = {
        "DATA_DIR": str(folder / "data"),
        "PATH": "/usr/bin:/bin",
        "AGENTS_JSON": json.dumps({"demo": {"command": DEMO, "sandbox": "none"}}),
        **settings,
    }
    return load(given, services=registered_services(), home=folder / "home", known=known_agents())


def check(
    configuration: Configuration, service: str, place: str, *only: str
) -> tuple[LiveCheck, io.StringIO]:
    shown = io.StringIO()
    vault = Vault(configuration.secret_values())
    chosen = Chosen(service, "demo", place, only)
    return LiveCheck(configuration, vault, chosen, PlainLines(shown), FastClock(SPEED)), shown


def on_slack(slack: SimulatedSlack) -> dict[str, str]:
    app = slack.app("demo")
    slack.channel("general", [slack.person("Ann"), app])
    return {
        "SLACK_API_URL": slack.url,
        "SLACK_BOT_TOKEN__DEMO": app.token,
        "SLACK_APP_TOKEN__DEMO": app.app_token,
    }


def place_on(slack: SimulatedSlack) -> str:
    (channel,) = slack.channels.values()
    (ann,) = slack.people
    return f"{channel.id}:{ann}"


def left_on(slack: SimulatedSlack) -> list[str]:
    return [each.text for each in slack.messages if not each.deleted]


def is_complete(played: LiveCheck) -> bool:
    return all(each.step.assumes and each.seen.words for each in played.played)


async def test_every_step_on_slack_says_what_it_saw_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with SimulatedSlack() as slack:
        settings = on_slack(slack)
        played, shown = check(configure(tmp_path, **settings), "slack", place_on(slack))
        await played.run(agree)

        assert [each.step.name for each in played.played] == [
            "update",
            "title",
            "details",
            "stop",
            "status",
            "stream",
        ]
        assert is_complete(played)
        assert LiveVerdict.NOT_SEEN not in {each.seen.verdict for each in played.played}
        assert (left_on(slack), played.left) == ([], [])
        (app,), (channel,) = slack.apps.values(), slack.channels
        thread = slack.messages[0].ts
        assert slack.status(app, channel, thread) == "active"
        words = shown.getvalue() + capsys.readouterr().out
        assert "about 6 minutes" in words
        assert not any(value in words for name, value in settings.items() if "TOKEN" in name)


async def test_every_step_on_github_says_what_it_saw_and_leaves_nothing(tmp_path: Path) -> None:
    with Hub(tmp_path, ("demo",)) as hub:
        before = hub.github.git.git(hub.repository.full_name, "for-each-ref")
        settings = configure(tmp_path, **hub.settings)
        played, _ = check(settings, "github", hub.repository.full_name)
        await played.run(agree)

        assert [each.step.name for each in played.played] == ["buttons", "reopen", "workflow"]
        assert is_complete(played)
        assert LiveVerdict.NOT_SEEN not in {each.seen.verdict for each in played.played}
        assert hub.github.git.git(hub.repository.full_name, "for-each-ref") == before
        assert {each.status for each in hub.repository.checks} == {"completed"}
        assert played.left == []


async def test_every_step_on_linear_says_what_it_saw_and_leaves_nothing(tmp_path: Path) -> None:
    with Linear() as linear:
        app, issue = linear.agent("demo"), linear.issue("Only for tests")
        settings = {"LINEAR_API_URL": linear.url, **credentials(app, "demo")}
        played, _ = check(configure(tmp_path, **settings), "linear", issue.identifier)
        await played.run(agree)

        menu, select = played.played
        assert (menu.seen.verdict, select.seen.verdict) == (
            LiveVerdict.AS_ASSUMED,
            LiveVerdict.LOOK,
        )
        assert is_complete(played)
        assert (issue.comments, played.left) == ([], [])
        (session,) = linear.workspace.sessions.values()
        assert session.status == "complete"


async def test_a_button_that_a_person_presses_meanwhile_is_what_was_seen(tmp_path: Path) -> None:
    with Linear() as linear:
        app, issue = linear.agent("demo"), linear.issue("Only for tests")
        settings = {"LINEAR_API_URL": linear.url, **credentials(app, "demo")}
        played, _ = check(configure(tmp_path, **settings), "linear", issue.identifier, "select")
        async with asyncio.TaskGroup() as group:
            group.create_task(played.run(agree))
            sessions = linear.workspace.sessions
            await asyncio.to_thread(
                linear.wait,
                lambda: any(each.buttons for each in sessions.values() if each.activities),
            )
            (session,) = sessions.values()
            await asyncio.to_thread(linear.pick, session, linear.person("Ann"), "the-value")

        (select,) = played.played
        assert select.seen.verdict is LiveVerdict.AS_ASSUMED
        assert "the-value" in select.seen.words


async def test_a_check_that_is_interrupted_removes_what_it_made(tmp_path: Path) -> None:
    with SimulatedSlack() as slack:
        settings = configure(tmp_path, **on_slack(slack))
        played, _ = check(settings, "slack", place_on(slack), "stream")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(played.run(agree))
            await asyncio.to_thread(slack.wait, lambda: any(each.stream for each in slack.messages))
            task.cancel()

        assert task.cancelled()
        assert left_on(slack) == []


async def test_what_is_made_while_the_check_is_interrupted_is_removed_too() -> None:
    undo, asked, answer, removed = (
        Undo(ManualClock()),
        asyncio.Event(),
        asyncio.Event(),
        list[str](),
    )

    async def make() -> str:
        asked.set()
        await answer.wait()
        return "a message"

    async def remove(made: str) -> None:
        removed.append(made)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(undo.make("it", make(), remove))
        await asked.wait()
        task.cancel()
        answer.set()
        with suppress(asyncio.CancelledError):
            await task

    assert await undo.run() == []
    assert removed == ["a message"]


async def test_what_cannot_be_removed_is_named() -> None:
    undo = Undo(FastClock(SPEED))

    async def fail() -> None:
        raise PostDelayed("not now")

    undo.add("a branch", fail)

    assert await undo.run() == ["a branch: not now"]


async def test_nothing_is_written_unless_the_operator_agrees(tmp_path: Path) -> None:
    async def refuse(words: str) -> bool:
        assert "C" in words
        return False

    with SimulatedSlack() as slack:
        settings = configure(tmp_path, **on_slack(slack))
        played, _ = check(settings, "slack", place_on(slack))

        assert not await played.run(refuse)
        assert slack.messages == []


@pytest.mark.parametrize(
    ("service", "place", "error"),
    [
        ("slack", "general", ConfigurationError),
        ("slack", "C0123", ConfigurationError),
        ("github", "widgets", ConfigurationError),
        ("linear", "12", ConfigurationError),
        ("web", "any", NotFound),
        ("nowhere", "any", NotFound),
    ],
)
async def test_a_place_that_is_none_is_an_error_that_says_its_form(
    tmp_path: Path, service: str, place: str, error: type[Exception]
) -> None:
    with SimulatedSlack() as slack:
        played, _ = check(configure(tmp_path, **on_slack(slack)), service, place)
        with pytest.raises(error):
            await played.run(agree)


def test_steps_are_chosen_by_name() -> None:
    async def see() -> object:
        return compare("it", as_assumed=True)

    steps = [LiveStep(name, "", see) for name in ("one", "two")]  # type: ignore[arg-type]  # test

    assert choose(steps, ()) == steps
    assert choose(steps, ["two"]) == steps[1:]
    with pytest.raises(NotFound, match="one, two"):
        choose(steps, ["three"])
