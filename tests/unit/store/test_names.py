"""What follows a repository that gets another name, and what does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.model.inbound import Decision, Heard, Naming, Renamed
from app.model.keys import PlaceKey, SessionKey
from app.model.posts import NewPost, PostContent
from app.model.types import BridgeSessionRequest, Speaker
from app.model.workspaces import Checkout, Repository
from app.store.names import NameStore
from app.store.stores import Stores
from tests.support.memory import open_stores

HOST = "git.example"
ANN = Speaker("ann", "Ann")


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[Stores]:
    with open_stores(tmp_path, SystemClock()) as (_, opened):
        yield opened


def called(number: int, name: str, before: str = "") -> Naming:
    return Naming("github", HOST, number, name, before)


def moved(old: str, new: str) -> Renamed:
    return Renamed("github", HOST, old, new)


async def speak(stores: Stores, external: str, message: str = "m1") -> int:
    """Begin a session on an issue, with a post that is still to be sent."""
    place = PlaceKey("github", external)
    heard = Heard(place, external, message, ANN, "hello", mentions=("claude",))
    request = BridgeSessionRequest(external, "github", "claude", "hello", ANN, message, place)
    post = NewPost(f"p:{external}", request.key, PostContent(kind="notice", note="hi"))
    made = await stores.decisions.accept(Decision(0, heard, "done", "", (request,), (post,)))
    return made.turns[0].session


def session(stores: Stores, external: str) -> int | None:
    found = stores.sessions.find(SessionKey("github", external, "claude"))
    return None if found is None else found.id


async def test_sessions_places_posts_and_clones_go_along(stores: Stores) -> None:
    await stores.names.follow(called(1, "o/old"))
    mine = await speak(stores, "o/old:7")
    other = await speak(stores, "o/older:7")
    repository = Repository("o/old", "https://git.example/o/old.git")
    await stores.checkouts.begin(Checkout(mine, 1, repository, "branch", "b"))
    await stores.checkouts.told(mine, 1, "c1", "https://git.example/o/old/pull/8")

    assert stores.names.plan(called(1, "p/new")) == [moved("o/old", "p/new")]
    await stores.names.follow(called(1, "p/new"))

    assert (session(stores, "p/new:7"), session(stores, "o/older:7")) == (mine, other)
    assert session(stores, "o/old:7") is None
    found = stores.sessions.session(mine)
    assert found is not None
    assert found.place == PlaceKey("github", "p/new:7")
    clone = stores.checkouts.latest(mine)
    assert clone is not None
    assert clone.repository == Repository("p/new", "https://git.example/p/new.git")
    assert clone.link == "https://git.example/p/new/pull/8"
    targets = {post.target.external for post in await stores.posts.unsent()}
    assert targets == {"p/new:7", "o/older:7"}
    assert stores.names.now(HOST, "o/old") == "p/new"
    assert stores.names.now("elsewhere.example", "o/old") == "o/old"


async def test_a_name_that_only_its_rename_tells_of_is_known_as_a_former_one(
    stores: Stores,
) -> None:
    await stores.names.follow(called(1, "o/new", before="o/old"))
    assert stores.names.now(HOST, "o/old") == "o/new"

    await stores.names.follow(called(2, "o/old"))

    assert stores.names.now(HOST, "o/old") == "o/old"
    assert stores.names.of(HOST, 1) == "o/new"


async def test_an_event_from_before_changes_nothing_but_a_rename_back_does(stores: Stores) -> None:
    await stores.names.follow(called(1, "o/a"))
    await stores.names.follow(called(1, "o/b"))

    assert stores.names.plan(called(1, "o/a")) == []
    await stores.names.follow(called(1, "o/a"))
    assert stores.names.of(HOST, 1) == "o/b"

    await stores.names.follow(called(1, "o/a", before="o/b"))
    assert stores.names.of(HOST, 1) == "o/a"
    assert stores.names.now(HOST, "o/b") == "o/a"


async def test_whoever_takes_a_name_finds_nothing_and_its_owner_is_found_again(
    stores: Stores,
) -> None:
    await stores.names.follow(called(1, "o/a"))
    mine = await speak(stores, "o/a:7")

    await stores.names.follow(called(2, "o/a"))
    assert session(stores, "o/a:7") is None
    theirs = await speak(stores, "o/a:7", "m2")
    await stores.names.follow(called(1, "o/b"))

    assert (session(stores, "o/a:7"), session(stores, "o/b:7")) == (theirs, mine)
    assert (stores.names.of(HOST, 1), stores.names.of(HOST, 2)) == ("o/b", "o/a")


async def test_what_was_never_heard_of_goes_along_if_the_event_names_it(stores: Stores) -> None:
    mine = await speak(stores, "o/a:7")

    await stores.names.follow(called(1, "o/b", before="o/a"))

    assert session(stores, "o/b:7") == mine


async def test_a_name_that_another_bridge_followed_is_known_at_once(tmp_path: Path) -> None:
    with open_stores(tmp_path, SystemClock()) as (database, stores):
        other = NameStore(database, stores.now)
        await stores.names.follow(called(1, "o/first"))
        await stores.names.follow(called(1, "o/second", "o/first"))
        assert other.now(HOST, "o/first") == "o/second"

        await stores.names.follow(called(1, "o/third", "o/second"))

        assert other.now(HOST, "o/first") == "o/third"
        assert other.now(HOST, "o/second") == "o/third"
