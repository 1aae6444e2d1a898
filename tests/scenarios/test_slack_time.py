"""Hours on the simulated Slack, played by the clock: silences, limits, long answers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest

from app.core.keys import SessionKey
from app.core.outbox import Outbox
from app.core.posts import NewPost, PostContent
from app.server.metrics import Metrics
from app.services.slack.adapter import SlackAdapter
from app.sim.slack import App, Message
from app.sim.slack_server import SimulatedSlack
from app.store.database import Database
from app.store.posts import finish_post, insert_post
from app.store.stores import Stores
from app.vault import Vault
from tests.support.clock import ManualClock
from tests.support.memory import open_stores
from tests.support.slack import slack_adapter, too_often

pytestmark = pytest.mark.anyio

LOOK_SECONDS = 0.005


@dataclass
class Scene:
    """An outbox, an adapter and a Slack that share a clock."""

    clock: ManualClock
    slack: SimulatedSlack
    app: App
    ann: str
    channel: str
    thread: str
    database: Database
    stores: Stores
    adapter: SlackAdapter
    outbox: Outbox
    posts: list[int] = field(default_factory=list)

    @property
    def target(self) -> SessionKey:
        return SessionKey("slack", f"{self.channel}:{self.thread}", "claude")

    def content(self, state: str, text: str = "", note: str = "") -> PostContent:
        return PostContent(kind="turn", state=state, text=text, note=note, asker=self.ann)

    async def begin(self) -> int:
        new = NewPost("turn:1", self.target, self.content("starting"))
        post = await self.database.writer.run(lambda c: insert_post(c, new, 0.0))
        self.outbox.send(post)
        return post

    def show(self, post: int, text: str) -> None:
        content = self.content("working", text)
        self.outbox.progress(post, self.target, lambda: content)

    async def finish(self, text: str) -> None:
        content = self.content("done", text)
        post = await self.database.writer.run(lambda c: finish_post(c, "turn:1", content))
        assert post is not None
        self.outbox.send(post)

    def shown(self) -> list[Message]:
        with self.slack.changed:
            return [each for each in self.slack.messages if each.app is self.app]

    async def until(self, done: Callable[[], object]) -> None:
        """Wait until something is true of Slack, while the clock stands still."""
        await asyncio.to_thread(self.slack.wait, done, 30.0)

    async def play(self, done: Callable[[], object], step: float = 1.0) -> None:
        """Let time pass, step by step, until something is true of Slack."""
        async with asyncio.timeout(60):
            while not done():
                await asyncio.sleep(LOOK_SECONDS)  # Slack answers in a thread of its own
                await self.clock.advance(step if self.clock.sleepers else 0)

    def statuses(self) -> list[float]:
        """List when the agent was said to be working."""
        return [c.at for c in self.slack.calls if c.arguments.get("status") == "processing"]

    def is_sent(self) -> bool:
        post = self.stores.posts.post(1)
        return post is not None and post.state == "done"


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    clock = ManualClock()
    with SimulatedSlack(clock.now) as slack, open_stores(tmp_path, clock) as (database, stores):
        app = slack.app("claude")
        ann = slack.person("Ann")
        channel = slack.channel("general", [ann, app])
        thread = slack.say(ann, channel, "please work")
        adapter = slack_adapter(slack, app, clock=clock, folder=tmp_path)
        outbox = Outbox(stores.posts, {"slack:claude": adapter}, clock, Vault([]), Metrics())
        yield Scene(clock, slack, app, ann, channel, thread, database, stores, adapter, outbox)
        await outbox.close(grace=0)
        await adapter.close()


async def test_twenty_minutes_with_long_silences_end_in_one_whole_message(scene: Scene) -> None:
    status = (scene.app, scene.channel, scene.thread)
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.show(post, "Looking.")
    await scene.play(lambda: "Looking." in scene.shown()[0].words)

    quiet_until = scene.clock.now() + 600
    await scene.play(lambda: scene.clock.now() > quiet_until, step=5)
    assert max(later - earlier for earlier, later in pairwise(scene.statuses())) < 120
    assert scene.slack.status(*status) == "processing"
    assert not scene.slack.streaming(scene.shown()[0])
    scene.show(post, "Looking. Found it.")
    await scene.play(lambda: "Found it." in scene.shown()[0].words)
    await scene.clock.advance(600)
    await scene.finish("Looking. Found it. Mended.")
    await scene.play(scene.is_sent)

    [answer] = scene.shown()
    assert answer.words.count("Looking. Found it. Mended.") == 1
    await scene.until(lambda: scene.slack.status(*status) == "active")
    assert too_often(scene.slack) == []


async def test_what_waits_for_a_person_does_not_look_as_if_it_were_worked_on(scene: Scene) -> None:
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    waiting = scene.content("waiting", "May I?", "Parked until the question above is answered.")
    scene.outbox.progress(post, scene.target, lambda: waiting)

    status = (scene.app, scene.channel, scene.thread)
    await scene.play(lambda: scene.slack.status(*status) == "active")

    assert "Waiting for an answer" in str(scene.shown()[0].stream)
    said = len(scene.statuses())
    await scene.clock.advance(600)
    assert len(scene.statuses()) == said


async def test_an_answer_does_not_wait_until_a_stream_may_be_begun(scene: Scene) -> None:
    scene.slack.fail("chat.startStream", status=429, retry_after=60)
    began = scene.clock.now()
    await scene.begin()
    await scene.finish("Here at once.")

    await scene.play(scene.is_sent)

    [answer] = scene.shown()
    assert "Here at once." in answer.words
    assert scene.clock.now() - began < 10


async def test_a_slow_status_does_not_outlast_the_work(scene: Scene) -> None:
    status = (scene.app, scene.channel, scene.thread)
    method = "agents.sessions.setStatus"
    scene.slack.stall(method)
    await scene.begin()
    await scene.until(lambda: scene.slack.stalls[method].waiting)
    await scene.finish("Done at once.")
    await scene.play(scene.is_sent)
    scene.slack.go_on(method)

    await scene.until(lambda: len([c for c in scene.slack.calls if c.method == method]) == 2)

    assert scene.slack.status(*status) == "active"


async def test_a_status_that_slack_does_not_take_now_ends_later(scene: Scene) -> None:
    status = (scene.app, scene.channel, scene.thread)
    await scene.begin()
    await scene.until(lambda: scene.slack.status(*status) == "processing")
    scene.slack.fail("agents.sessions.setStatus", status=429, retry_after=30, times=1)
    await scene.finish("Done.")

    await scene.play(lambda: scene.slack.status(*status) == "active", step=5)

    assert len(scene.statuses()) == 1


async def test_half_an_hour_of_limits_delays_the_answer_and_loses_nothing(scene: Scene) -> None:
    scene.slack.fail("*", status=429, retry_after=60, seconds=1800)
    await scene.begin()
    await scene.finish("It took a while.")

    await scene.play(scene.is_sent, step=20)

    [answer] = scene.shown()
    assert "It took a while." in answer.words
    refused = [call for call in scene.slack.calls if call.answer.get("error") == "ratelimited"]
    assert 20 <= len(refused) <= 70


@pytest.mark.parametrize("characters", [40_000, 100_000])
async def test_a_long_answer_loses_no_character(scene: Scene, characters: int) -> None:
    lines = "".join(f"line {number:06d}\n" for number in range(characters // 12))
    text = f"```python\n{lines}```\nThe end."
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.show(post, text[:15_000])
    await scene.play(lambda: len(scene.shown()) == 2)
    await scene.finish(text)

    await scene.play(scene.is_sent)

    with scene.slack.changed:
        files = [file for each in scene.shown() for file in each.files]
        tail = "".join(scene.slack.files[file].content.decode() for file in files)
        shown = "".join(f"{each.words}\n" for each in scene.shown() if not each.files)
    found = [line for line in f"{shown}{tail}".splitlines() if line.startswith("line ")]
    assert found == lines.splitlines()
    assert len(files) == (characters > 60_000)
    assert all(each.words.count("```") % 2 == 0 for each in scene.shown() if not each.files)
    assert too_often(scene.slack) == []


@pytest.mark.parametrize("method", ["chat.startStream", "chat.appendStream", "chat.stopStream"])
async def test_a_call_without_an_answer_is_not_repeated(scene: Scene, method: str) -> None:
    scene.slack.lose_answers[method] = 1
    post = await scene.begin()
    await scene.play(lambda: scene.stores.posts.post(1).remote_id)  # type: ignore[union-attr]  # it is there
    scene.show(post, "One. ")
    await scene.play(lambda: "One." in scene.shown()[0].words)
    scene.show(post, "One. Two. ")
    await scene.finish("One. Two. Three.")

    await scene.play(scene.is_sent)

    [answer] = scene.shown()
    assert answer.words.count("One. Two. Three.") == 1
    assert answer.words.count("One.") == 1


@pytest.mark.parametrize(
    ("method", "error"),
    [
        ("chat.appendStream", "streaming_mode_mismatch"),
        ("chat.stopStream", "invalid_chunks"),
        ("chat.update", "invalid_blocks"),
    ],
)
async def test_an_answer_that_is_not_taken_as_it_is_arrives_all_the_same(
    scene: Scene, method: str, error: str
) -> None:
    scene.app.streams = method != "chat.update"
    post = await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.slack.fail(method, error=error, times=1)
    scene.show(post, "One. ")
    await scene.play(lambda: "One." in scene.shown()[0].words)
    await scene.finish("One. | Two | *Three* |")

    await scene.play(scene.is_sent)

    [answer] = scene.shown()
    assert answer.words.count("One. | Two | *Three* |") == 1


async def test_a_long_answer_takes_more_messages_where_files_are_not_allowed(scene: Scene) -> None:
    scene.app.scopes -= {"files:write"}
    await scene.begin()
    await scene.until(lambda: scene.shown())
    await scene.finish("words " * 12_000)

    await scene.play(scene.is_sent)

    with scene.slack.changed:
        assert " ".join(each.words for each in scene.shown()).count("words") == 12_000


async def test_a_message_that_somebody_deleted_is_written_anew(scene: Scene) -> None:
    await scene.begin()
    await scene.until(lambda: scene.shown())
    scene.slack.delete(scene.shown()[0].ts)
    await scene.finish("Here it is again.")

    await scene.play(scene.is_sent)

    assert "Here it is again." in scene.shown()[-1].words
