"""What every adapter promises the outbox, real ones and those of the tests alike."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

import pytest

from app.core.keys import PlaceKey, SessionKey
from app.core.ports import Adapter
from app.core.posts import PostContent, PostSend
from app.core.types import Speaker
from app.services.web.adapter import WebAdapter
from tests.support.hook import HookAdapter
from tests.support.platform import Platform
from tests.support.recorder import Recorder

pytestmark = pytest.mark.anyio

TARGET = SessionKey("web", "t1", "demo")
CREATE = PostSend("create", TARGET, "ab-1", PostContent(kind="turn", state="working", text="hi"))

MAKERS: dict[str, Callable[[Platform], Adapter]] = {
    "web": lambda _platform: WebAdapter("demo"),
    "hook": lambda platform: HookAdapter("demo", platform.url, platform.token),
    "recorder": lambda _platform: Recorder("demo"),
}


@pytest.fixture(params=MAKERS)
async def adapter(request: pytest.FixtureRequest) -> AsyncIterator[Adapter]:
    with Platform() as platform:
        made = MAKERS[request.param](platform)
        yield made
        await made.close()


def later(text: str, remote_id: str) -> PostSend:
    content = PostContent(kind="turn", state="done", text=text)
    return PostSend("finish", TARGET, "ab-1", content, remote_id=remote_id)


async def test_its_name_is_qualified_by_its_agent(adapter: Adapter) -> None:
    assert adapter.service_name == f"web:{adapter.agent}"


async def test_it_says_how_often_it_may_be_called(adapter: Adapter) -> None:
    assert adapter.pace > 0


async def test_a_post_that_was_created_can_be_changed_and_keeps_its_id(adapter: Adapter) -> None:
    created = await adapter.send(CREATE)

    finished = await adapter.send(later("hi there", created.remote_id))

    assert created.remote_id == finished.remote_id


async def test_finishing_twice_does_no_harm(adapter: Adapter) -> None:
    created = await adapter.send(CREATE)
    await adapter.send(later("bye", created.remote_id))

    again = await adapter.send(later("bye", created.remote_id))

    assert again.remote_id == created.remote_id


async def test_it_never_claims_more_text_than_it_was_given(adapter: Adapter) -> None:
    created = await adapter.send(CREATE)

    assert 0 <= created.consumed <= len(CREATE.content.text)


async def test_a_post_that_was_never_sent_is_not_found(adapter: Adapter) -> None:
    assert await adapter.find(TARGET, "ab-unknown") is None


async def test_a_person_is_judged_without_an_error(adapter: Adapter) -> None:
    assert await adapter.refusal(Speaker("ann", "Ann"), PlaceKey("web", "t1")) is None
