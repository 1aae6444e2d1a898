"""What is thrown away in time, and what never is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from app.model.keys import SessionKey
from app.model.posts import MadeFile, NewPost, PostContent, PostSent
from app.model.types import File
from app.store.posts import insert_post
from app.store.upkeep import AT_ONCE, DAY_SECONDS, forget, named_files, unread_deliveries
from tests.support.clock import ManualClock
from tests.support.memory import decision, delivery, heard, open_stores

pytestmark = pytest.mark.anyio


async def test_old_deliveries_go_and_those_nobody_dealt_with_stay(tmp_path: Path) -> None:
    clock = ManualClock()
    with open_stores(tmp_path, clock) as (database, stores):
        for number in range(AT_ONCE + 5):
            await stores.deliveries.add(delivery(delivery_id=f"d{number}", signature=f"s{number}"))
            await stores.deliveries.settle(number + 1, "done", "")
        await stores.deliveries.add(delivery(body=b"waits"))

        gone = await forget(database, now=1.0 + 31 * DAY_SECONDS, days=30)

        pending = await stores.deliveries.pending("web:demo", 0)
        assert gone == AT_ONCE + 5
        assert [each.body for each in pending] == [b"waits"]


async def test_a_signature_is_known_for_a_week_whatever_the_setting(tmp_path: Path) -> None:
    with open_stores(tmp_path, ManualClock()) as (database, stores):
        await stores.deliveries.add(delivery())
        await stores.deliveries.settle(1, "done", "")

        assert await forget(database, now=1.0 + 6 * DAY_SECONDS, days=1) == 0


async def test_a_message_whose_decision_was_forgotten_is_still_known(tmp_path: Path) -> None:
    clock = ManualClock()
    said = heard("hello")
    with open_stores(tmp_path, clock) as (database, stores):
        await stores.decisions.accept(decision(said, "demo"))
        await forget(database, now=clock.now() + 100 * DAY_SECONDS, days=30)

        again = await stores.decisions.accept(decision(said, "demo"))

        assert again.repeated


async def test_files_that_still_have_to_go_out_are_known(tmp_path: Path) -> None:
    made = MadeFile("a.md", "text/markdown", "0a1b/a.md", 5)
    with open_stores(tmp_path, ManualClock()) as (database, stores):
        await stores.decisions.accept(decision(heard("make it"), "demo"))
        content = PostContent(kind="files", files=(made,))
        post = NewPost("files:1", SessionKey("web", "t1", "demo"), content)
        await database.writer.run(lambda connection: insert_post(connection, post, 1.0))

        assert await named_files(database) == {"0a1b/a.md"}
        (unsent,) = [each for each in await stores.posts.unsent() if each.content.files]
        assert unsent.content.files == (made,)
        await stores.posts.sent(unsent.id, PostSent("F1", unfinished=True), final=False)
        assert await named_files(database) == {"0a1b/a.md"}
        await stores.posts.sent(unsent.id, PostSent("F1"), final=True)
        assert await named_files(database) == set()


async def test_files_of_messages_and_deliveries_on_their_way_in_are_known(tmp_path: Path) -> None:
    said = replace(heard("look"), files=(File("a.txt", "text/plain", "0a1b/a.txt"),))
    with open_stores(tmp_path, ManualClock()) as (database, stores):
        await stores.decisions.accept(decision(said, "demo"))
        await stores.decisions.accept(decision(heard("without a file"), "demo"))
        await stores.deliveries.add(delivery(body=b"dealt with"))
        await stores.deliveries.settle(1, "done", "")
        await stores.deliveries.add(delivery(delivery_id="d2", signature="s2", body=b"waits"))

        assert await named_files(database) == {"0a1b/a.txt"}
        assert await unread_deliveries(database) == [b"waits"]
