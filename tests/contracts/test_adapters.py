"""What every adapter promises the outbox, real ones and those of the tests alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.clock import SystemClock
from app.config import load
from app.core.adapters import Adapter
from app.errors import PostDelayed
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import PostContent, PostSend, PostSent
from app.model.types import Speaker
from app.services.linear.adapter import LinearAdapter
from app.services.linear.settings import LinearCredentials
from app.services.service import BuildContext
from app.services.web.adapter import WebAdapter
from app.vault import Vault
from sim.github.world import SimulatedGithub
from sim.linear import Linear
from sim.slack.server import SimulatedSlack
from tests.support import echo
from tests.support.bridge import SECRET_KEY
from tests.support.echo import Receiver
from tests.support.github_desk import Desk
from tests.support.hook import HookAdapter
from tests.support.memory import open_stores
from tests.support.platform import Platform
from tests.support.recorder import Recorder
from tests.support.slack import slack_adapter

pytestmark = pytest.mark.anyio

TARGET = SessionKey("web", "t1", "demo")
WORKING = PostContent(kind="turn", state="working", text="hi")


@dataclass
class Stage:
    """An adapter, a conversation that it reaches, and somebody in it."""

    adapter: Adapter
    target: SessionKey = TARGET
    person: Speaker = field(default_factory=lambda: Speaker("ann", "Ann"))

    def create(self) -> PostSend:
        content = replace(WORKING, asker=self.person.id)
        return PostSend("create", self.target, "ab-1", content)

    def later(self, text: str, remote_id: str) -> PostSend:
        content = PostContent(kind="turn", state="done", text=text, asker=self.person.id)
        return PostSend("finish", self.target, "ab-1", content, remote_id=remote_id)


@contextmanager
def on_web(_folder: Path) -> Iterator[Stage]:
    yield Stage(WebAdapter("demo"))


@contextmanager
def on_hook(_folder: Path) -> Iterator[Stage]:
    with Platform() as platform:
        yield Stage(HookAdapter("demo", platform.url, platform.token))


@contextmanager
def on_recorder(_folder: Path) -> Iterator[Stage]:
    yield Stage(Recorder("demo"))


@contextmanager
def on_slack(folder: Path, **how: bool) -> Iterator[Stage]:
    with SimulatedSlack() as slack:
        app, ann = slack.app("demo", **how), slack.person("Ann")
        channel = slack.channel("general", [ann, app])
        thread = slack.say(ann, channel, "hello")
        adapter = slack_adapter(slack, app, clock=SystemClock(), folder=folder, pace=0.001)
        yield Stage(
            adapter, SessionKey("slack", f"{channel}:{thread}", "demo"), Speaker(ann, "Ann")
        )


@contextmanager
def on_linear(_folder: Path) -> Iterator[Stage]:
    with Linear() as linear:
        app, ann = linear.agent("demo"), linear.person("Ann")
        session = linear.delegate(linear.issue("Do this"), app, ann)
        credentials = LinearCredentials(
            webhook_secret=SecretStr(app.webhook_secret),
            access_token=SecretStr(next(iter(app.tokens))),
        )
        adapter = LinearAdapter(
            "demo", credentials, api_url=linear.url, clock=SystemClock(), vault=Vault()
        )
        yield Stage(adapter, SessionKey("linear", session.id, "demo"), Speaker(ann.id, "Ann"))


@contextmanager
def on_github(folder: Path) -> Iterator[Stage]:
    with SimulatedGithub(folder) as github:
        desk = Desk(github, SystemClock())
        issue = github.open_issue("ann", desk.repository, "A bug")
        yield Stage(desk.claude, desk.key(issue), Speaker("ann", "ann"))


@contextmanager
def on_echo(folder: Path) -> Iterator[Stage]:
    with Receiver() as receiver, echo.loaded() as service:
        given = {
            "AGENTS_JSON": '{"demo": {"command": "demo", "sandbox": "none"}}',
            "DATA_DIR": f"{folder}/data",
            "ECHO_WEBHOOK_SECRET": echo.SECRET,
            "ECHO_CALLBACK_URL": receiver.url,
        }
        configuration = load(given, services=[service], home=folder / "home")
        with open_stores(folder, SystemClock()) as (_, stores):
            context = BuildContext(
                configuration=configuration,
                secret_key=SecretStr(SECRET_KEY),
                vault=Vault(),
                clock=SystemClock(),
                stores=stores,
            )
            (adapter,) = service.build(context).adapters
            yield Stage(adapter, SessionKey("echo", "t1", "demo"))


STAGES: dict[str, Callable[[Path], AbstractContextManager[Stage]]] = {
    "web": on_web,
    "hook": on_hook,
    "recorder": on_recorder,
    "slack": on_slack,
    "linear": on_linear,
    "slack without streams": lambda folder: on_slack(folder, streams=False),
    "github": on_github,
    "echo": on_echo,
}


@pytest.fixture(params=STAGES)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    with STAGES[request.param](tmp_path) as made:
        yield made
        await made.adapter.close()


async def test_its_name_is_qualified_by_its_agent(stage: Stage) -> None:
    assert stage.adapter.service_name == stage.target.adapter


async def test_it_says_how_often_it_may_be_called(stage: Stage) -> None:
    assert stage.adapter.pace > 0


async def test_a_post_that_was_created_can_be_finished(stage: Stage) -> None:
    created = await stage.adapter.send(stage.create())

    finished = await eventually(stage, stage.later("hi there", created.remote_id))

    assert finished.remote_id


async def test_finishing_twice_does_no_harm(stage: Stage) -> None:
    created = await stage.adapter.send(stage.create())
    once = await eventually(stage, stage.later("bye", created.remote_id))

    again = await eventually(stage, stage.later("bye", created.remote_id))

    assert again.remote_id == once.remote_id


async def test_it_never_claims_more_text_than_it_was_given(stage: Stage) -> None:
    created = await stage.adapter.send(stage.create())

    assert 0 <= created.consumed <= len(WORKING.text)


async def test_a_post_that_was_never_sent_is_not_found(stage: Stage) -> None:
    assert await stage.adapter.find(stage.target, "ab-unknown") is None


async def test_a_person_is_judged_without_an_error(stage: Stage) -> None:
    place = PlaceKey(stage.target.service, stage.target.external)

    assert await stage.adapter.refusal(stage.person, place) is None


async def eventually(stage: Stage, post: PostSend) -> PostSent:
    """Send a post as the outbox does: again, when the adapter says not now."""
    try:
        return await stage.adapter.send(post)
    except PostDelayed as error:
        await asyncio.sleep(error.retry_after or 0)
        return await eventually(stage, post)
