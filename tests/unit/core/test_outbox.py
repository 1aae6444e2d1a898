"""The outbox: in order, paced, retried, each post once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from typing_extensions import override

from app.core.outbox import Outbox
from app.errors import PostDelayed, PostRejected
from app.model.keys import SessionKey
from app.model.posts import NewPost, PostContent, PostSend, PostSent
from app.store.database import Database
from app.store.posts import finish_post, insert_post
from app.store.stores import Stores
from app.vault import Vault
from tests.support.base import make_base
from tests.support.clock import ManualClock
from tests.support.memory import open_stores
from tests.support.recorder import Recorder

pytestmark = pytest.mark.anyio

TARGET = SessionKey("web", "t1", "demo")
SECRET = "hunter2-hunter2-hunter2"


@dataclass
class Scene:
    """An outbox with everything around it."""

    database: Database
    stores: Stores
    clock: ManualClock
    recorder: Recorder
    outbox: Outbox

    async def create(self, key: str, kind: str = "turn", text: str = "") -> int:
        content = PostContent(kind=kind, state="working", text=text)  # type: ignore[arg-type]  # test data
        new = NewPost(key, TARGET, content)
        post = await self.database.writer.run(lambda c: insert_post(c, new, 0.0))
        self.outbox.send(post)
        return post

    async def finish(self, key: str, text: str) -> None:
        content = PostContent(kind="turn", state="done", text=text)
        post = await self.database.writer.run(lambda c: finish_post(c, key, content))
        assert post is not None
        self.outbox.send(post)

    def show(self, post: int, text: str, note: str = "") -> None:
        content = PostContent(kind="turn", state="working", text=text, note=note)
        self.outbox.progress(post, TARGET, lambda: content)

    def again(self) -> Outbox:
        """Build the outbox of the next run."""
        return Outbox(
            make_base(self.stores, self.clock, {"web:demo": self.recorder}, Vault([SECRET]))
        )


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    clock = ManualClock()
    recorder = Recorder()
    with open_stores(tmp_path, clock) as (database, stores):
        outbox = Outbox(make_base(stores, clock, {"web:demo": recorder}, Vault([SECRET])))
        yield Scene(database, stores, clock, recorder, outbox)
        await outbox.close(grace=0)


def ops(scene: Scene) -> list[tuple[str, str]]:
    return [(call.op, call.content.text) for call in scene.recorder.calls]


async def test_posts_of_one_conversation_go_out_in_order(scene: Scene) -> None:
    for number in range(5):
        await scene.create(f"p{number}", text=str(number))
    await scene.recorder.sent(5)

    assert ops(scene) == [("create", str(number)) for number in range(5)]


class Stepwise(Recorder):
    """A platform on which files take three calls, and which dies in the middle of one."""

    @override
    async def send(self, post: PostSend) -> PostSent:
        self.calls.append(post)
        if self.failures:
            raise self.failures.pop(0)
        steps = (post.remote_id or "").count("+")
        return PostSent(f"{post.remote_id or ''}+", unfinished=steps < 2)


async def test_what_takes_several_calls_goes_on_from_what_was_kept(scene: Scene) -> None:
    platform = Stepwise()
    platform.failures = [PostDelayed("not now")]
    first, second = (
        Outbox(make_base(scene.stores, scene.clock, {"web:demo": platform}, Vault()))
        for _ in range(2)
    )
    new = NewPost("files:1", TARGET, PostContent(kind="files"))
    post = await scene.database.writer.run(lambda c: insert_post(c, new, 0.0))
    first.send(post)
    await scene.clock.asleep()
    await first.close(grace=0)
    await scene.stores.posts.sent(post, PostSent("+", unfinished=True), final=False)
    kept = scene.stores.posts.post(post)
    assert kept is not None
    assert (kept.state, kept.remote_id) == ("closing", "+")

    await second.start()
    await second.close(grace=5)

    assert [call.remote_id for call in platform.calls] == [None, "+", "++"]
    done = scene.stores.posts.post(post)
    assert done is not None
    assert (done.state, done.remote_id) == ("done", "+++")


async def test_only_the_latest_progress_is_sent_and_no_faster_than_the_pace(scene: Scene) -> None:
    post = await scene.create("p")
    await scene.recorder.sent(1)
    for text in ("a", "ab", "abc"):
        scene.show(post, text)
    await scene.clock.asleep()
    assert len(scene.recorder.calls) == 1

    await scene.clock.advance(1.0)
    await scene.recorder.sent(2)

    assert ops(scene)[1:] == [("append", "abc")]


async def test_text_that_only_grew_is_appended_and_anything_else_replaces(scene: Scene) -> None:
    post = await scene.create("p")
    await scene.recorder.sent(1)
    scene.show(post, "a", note="a note")
    await scene.clock.asleep()
    await scene.clock.advance(1.0)
    await scene.recorder.sent(2)

    assert ops(scene)[1:] == [("replace", "a")]


async def test_a_result_does_not_wait_for_the_pace(scene: Scene) -> None:
    post = await scene.create("p")
    await scene.recorder.sent(1)
    scene.show(post, "half")
    await scene.clock.asleep()

    await scene.finish("p", "whole")
    await scene.recorder.sent(2)

    assert ops(scene)[1:] == [("finish", "whole")]


async def test_progress_after_the_result_is_never_sent(scene: Scene) -> None:
    post = await scene.create("p")
    await scene.recorder.sent(1)
    await scene.finish("p", "whole")
    await scene.recorder.sent(2)
    scene.show(post, "late")
    await scene.clock.advance(10)

    assert len(scene.recorder.calls) == 2


async def test_a_busy_platform_is_asked_again_when_it_says(scene: Scene) -> None:
    scene.recorder.failures = [PostDelayed("busy", retry_after=30.0)]
    await scene.create("p", text="hello")
    await scene.clock.asleep()
    await scene.clock.advance(29.9)
    assert len(scene.recorder.calls) == 1

    await scene.clock.advance(0.2)
    await scene.recorder.sent(2)

    assert ops(scene) == [("create", "hello")] * 2


async def test_progress_that_a_busy_platform_put_off_is_shown_later(scene: Scene) -> None:
    post = await scene.create("p")
    await scene.recorder.sent(1)
    scene.recorder.failures = [PostDelayed("busy", retry_after=30.0)]
    scene.show(post, "half")
    await scene.clock.asleep()
    await scene.clock.advance(1.1)
    await scene.recorder.sent(2)
    await scene.clock.asleep()

    await scene.clock.advance(31.1)
    await scene.recorder.sent(3)

    assert ops(scene) == [("create", ""), ("append", "half"), ("append", "half")]


async def test_a_create_whose_answer_was_lost_is_found_again_not_repeated(scene: Scene) -> None:
    scene.recorder.lost_answers = 1
    post = await scene.create("p", text="hello")
    await scene.clock.asleep()
    await scene.clock.advance(1.0)
    scene.show(post, "hello world")
    await scene.clock.asleep()
    await scene.clock.advance(1.0)
    await scene.recorder.sent(2)

    assert ops(scene) == [("create", "hello"), ("append", "hello world")]


async def test_what_was_not_sent_goes_out_at_the_next_start_once(scene: Scene) -> None:
    scene.recorder.lost_answers = 1
    await scene.create("p", text="hello")
    await scene.recorder.sent(1)
    await scene.outbox.close(grace=0)
    await scene.database.writer.run(
        lambda c: finish_post(c, "p", PostContent(kind="turn", state="done", text="whole"))
    )

    again = scene.again()
    await again.start()
    await scene.recorder.sent(2)
    await again.close(grace=5)

    assert ops(scene) == [("create", "hello"), ("finish", "whole")]
    assert await scene.stores.posts.unsent() == []


async def test_a_post_that_can_never_be_sent_is_marked_and_blocks_nothing(scene: Scene) -> None:
    scene.recorder.failures = [PostRejected("the issue was deleted")]
    lost = await scene.create("p", text="one")
    await scene.create("q", text="two")
    await scene.recorder.sent(2)

    post = scene.stores.posts.post(lost)
    assert post is not None
    assert post.state == "failed"
    assert ops(scene)[1] == ("create", "two")


async def test_a_result_is_sent_however_long_the_platform_is_down(scene: Scene) -> None:
    scene.recorder.failures = [ConnectionError("down") for _ in range(20)]
    await scene.create("p", text="hello")
    await scene.clock.asleep()
    await scene.clock.advance(3600.0)
    await scene.recorder.sent(21)

    assert ops(scene)[-1] == ("create", "hello")


async def test_no_secret_leaves(scene: Scene) -> None:
    await scene.create("p", text=f"the key is {SECRET}.")
    await scene.recorder.sent(1)

    assert SECRET not in scene.recorder.calls[0].content.text


class Reticent(Recorder):
    """A platform that shows nothing of a post at first, and asks for it again."""

    @override
    async def send(self, post: PostSend) -> PostSent:
        sent = await super().send(post)
        return replace(sent, again_after=15.0) if post.op == "create" else sent


async def test_a_post_that_is_not_shown_at_first_is_sent_again_with_its_latest_content(
    scene: Scene,
) -> None:
    scene.recorder = Reticent()
    scene.outbox = scene.again()
    post = await scene.create("p", text="a")
    await scene.recorder.sent(1)
    await scene.clock.asleep()
    scene.show(post, "ab")
    await scene.clock.advance(14)
    await scene.recorder.sent(2)

    await scene.clock.advance(1)
    await scene.recorder.sent(3)
    await scene.clock.advance(3600)

    assert ops(scene) == [("create", "a"), ("append", "ab"), ("append", "ab")]
    await scene.outbox.close(grace=0)


async def test_a_post_that_ended_is_not_sent_again(scene: Scene) -> None:
    scene.recorder = Reticent()
    scene.outbox = scene.again()
    await scene.create("p", text="a")
    await scene.recorder.sent(1)
    await scene.finish("p", "b")
    await scene.recorder.sent(2)

    await scene.clock.advance(3600)

    assert ops(scene) == [("create", "a"), ("finish", "b")]
    await scene.outbox.close(grace=0)


async def test_a_notice_is_sent_once_and_needs_no_end(scene: Scene) -> None:
    post = await scene.create("n", kind="notice")
    await scene.recorder.sent(1)
    await scene.outbox.close(grace=5)

    kept = scene.stores.posts.post(post)
    assert kept is not None
    assert kept.state == "done"


async def test_how_much_text_a_platform_has_settled_is_remembered(scene: Scene) -> None:
    scene.recorder.consumes = True
    post = await scene.create("p", text="12345")
    await scene.recorder.sent(1)
    scene.show(post, "1234567")
    await scene.clock.asleep()
    await scene.clock.advance(1.0)
    await scene.recorder.sent(2)

    assert scene.recorder.calls[1].consumed == 5


async def test_progress_that_is_put_off_is_shown_when_it_may_be(scene: Scene) -> None:
    post = await scene.create("p")
    await scene.recorder.sent(1)
    scene.recorder.failures = [PostDelayed("less often", retry_after=30.0)]
    scene.show(post, "the last before a long silence")
    await scene.clock.asleep()
    await scene.clock.advance(1.0)
    await scene.recorder.sent(2)
    await scene.clock.asleep()
    await scene.clock.advance(31.0)
    await scene.recorder.sent(3)

    assert ops(scene)[1:] == [("append", "the last before a long silence")] * 2


@pytest.fixture
async def announcing(tmp_path: Path) -> AsyncIterator[Scene]:
    clock = ManualClock()
    recorder = Recorder(first_word_seconds=10.0)
    with open_stores(tmp_path, clock) as (database, stores):
        outbox = Outbox(make_base(stores, clock, {"web:demo": recorder}, Vault()))
        yield Scene(database, stores, clock, recorder, outbox)
        await outbox.close(grace=0)


async def test_a_turn_waits_for_its_first_word_as_long_as_the_platform_is_worth_it(
    announcing: Scene,
) -> None:
    announcing.recorder.failures = [PostDelayed("not now", retry_after=60.0)]
    post = await announcing.create("p1")
    waiting = asyncio.ensure_future(announcing.outbox.announced(post, TARGET))
    await announcing.clock.asleep(2)

    await announcing.clock.advance(9.0)
    assert not waiting.done()
    await announcing.clock.advance(1.0)

    await asyncio.wait_for(waiting, 5)


async def test_nobody_waits_for_a_first_word_that_arrived_or_never_will(announcing: Scene) -> None:
    announcing.recorder.failures = [PostRejected("no such session")]
    refused = await announcing.create("p1")
    await asyncio.wait_for(announcing.outbox.announced(refused, TARGET), 5)
    arrived = await announcing.create("p2")
    await asyncio.wait_for(announcing.outbox.announced(arrived, TARGET), 5)
    await asyncio.wait_for(announcing.outbox.announced(arrived, TARGET), 5)

    assert announcing.clock.now() == ManualClock().now()
