"""The way to a running bridge: found by its lock, never given a token before, read by bytes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
import respx

from app.cli.conversation import Remote
from app.config import Configuration, load
from app.errors import NotFound
from app.server.local_socket import SOCKET_HOST
from app.server.shapes import EntryOut, NewSession
from app.services import registered_services
from app.store.database import LOCK_NAME, locked
from app.terminal import api
from app.terminal.api import (
    Api,
    BridgeRefused,
    BridgeUnreachable,
    connect,
    find_bridge,
    is_running,
    local_address,
    server_events,
)

ADDRESS = f"http://{SOCKET_HOST}"
TOKEN = "a-token-of-the-tests"
NEW = NewSession(agent="demo", text="hi")
Configure = Callable[..., Configuration]


@pytest.fixture
def configure(tmp_path: Path) -> Configure:
    def make(**settings: str) -> Configuration:
        given = {
            "DATA_DIR": str(tmp_path / "data"),
            "PORT": "8123",
            "BRIDGE_ADMIN_TOKEN": TOKEN,
            **settings,
        }
        return load(given, services=registered_services(), home=tmp_path / "home")

    return make


@pytest.fixture
def held(configure: Configure) -> Iterator[Configuration]:
    configuration = configure()
    with locked(configuration.data_dir):
        yield configuration


@pytest.fixture
def bridge() -> Iterator[respx.MockRouter]:
    with respx.mock(base_url=ADDRESS, assert_all_called=False) as router:
        router.get("/healthz").respond(200, json={"status": "ok"})
        yield router


async def chunks(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def entry(number: int) -> dict[str, object]:
    """Make a row of a transcript."""
    return EntryOut(
        id=number, turn=1, kind="text", speaker="", text="x", data={}, at=0.0
    ).model_dump()


def test_the_lock_has_the_name_that_the_store_gives_it() -> None:
    assert api.LOCK_NAME == LOCK_NAME


def test_a_bridge_runs_as_long_as_it_holds_the_lock(tmp_path: Path) -> None:
    assert not is_running(tmp_path / "nowhere")
    with locked(tmp_path):
        assert is_running(tmp_path)
    assert not is_running(tmp_path)


def test_looking_for_a_bridge_keeps_none_from_starting(tmp_path: Path) -> None:
    with locked(tmp_path):
        pass

    assert not is_running(tmp_path)
    with locked(tmp_path):
        pass


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:8123"),
        ("0.0.0.0", "http://127.0.0.1:8123"),
        ("::", "http://[::1]:8123"),
        ("::1", "http://[::1]:8123"),
    ],
)
def test_the_bridge_is_reached_where_it_listens(
    configure: Configure, host: str, address: str
) -> None:
    agents = '{"demo": {"command": "x", "sandbox": "none"}}'

    assert local_address(configure(HOST=host, AGENTS_JSON=agents)) == address


async def test_without_the_lock_nobody_on_the_port_is_asked(
    configure: Configure, bridge: respx.MockRouter
) -> None:
    async with connect(configure()) as client:
        assert client is None

    assert not bridge.calls


async def test_the_token_goes_to_the_bridge_only_after_it_has_answered(
    held: Configuration, bridge: respx.MockRouter
) -> None:
    listed = bridge.get("/api/v1/agents").respond(200, json={"items": [], "next": None})

    async with connect(held) as client:
        assert client is not None
        await client.request("GET", "/agents")

    assert "Authorization" not in bridge.calls[0].request.headers
    assert listed.calls[0].request.headers["Authorization"] == f"Bearer {TOKEN}"


async def test_a_holder_of_the_lock_that_never_answers_is_told_with_the_remedy(
    held: Configuration, bridge: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "START_SECONDS", 0.05)
    bridge.get("/healthz").mock(side_effect=httpx.ConnectError("refused"))

    with pytest.raises(BridgeUnreachable, match="no bridge answers there"):
        async with connect(held):
            pass


async def test_a_lock_that_is_let_go_meanwhile_means_no_bridge(
    configure: Configure, bridge: respx.MockRouter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "LOOK_SECONDS", 0)
    configuration = configure()
    with ExitStack() as holder:
        holder.enter_context(locked(configuration.data_dir))

        def refuse(request: httpx.Request) -> httpx.Response:
            holder.close()
            raise httpx.ConnectError("refused")

        bridge.get("/healthz").mock(side_effect=refuse)
        async with connect(configuration) as reached:
            assert reached is None


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (409, '{"title": "Conflict", "detail": "not open any more"}', "^not open any more$"),
        (401, '{"detail": "send the token"}', "rejected this admin token"),
        (403, '{"title": "this Host is not served"}', "^this Host is not served$"),
        (502, "<html>", "status 502"),
    ],
)
async def test_a_refusal_is_told_in_the_words_of_the_bridge(
    held: Configuration, bridge: respx.MockRouter, status: int, body: str, words: str
) -> None:
    bridge.post("/api/v1/asks/3/answer").respond(status, text=body)

    async with connect(held) as client:
        assert client is not None
        with pytest.raises(BridgeRefused, match=words):
            await Remote(client).answer(3, "yes")


async def test_an_agent_that_the_bridge_does_not_know_is_not_found(
    held: Configuration, bridge: respx.MockRouter
) -> None:
    bridge.post("/api/v1/sessions").respond(404, json={"detail": "there is no agent 'demo'"})

    async with connect(held) as client:
        assert client is not None
        with pytest.raises(NotFound):
            await Remote(client).begin(NEW)


async def test_an_answer_in_another_shape_is_told_as_another_version(
    held: Configuration, bridge: respx.MockRouter
) -> None:
    bridge.get("/api/v1/agents").respond(200, json={"agents": []})

    async with connect(held) as client:
        assert client is not None
        with pytest.raises(BridgeUnreachable, match="another version"):
            await Remote(client).agents()


async def test_a_transcript_is_read_page_by_page(
    held: Configuration, bridge: respx.MockRouter
) -> None:
    bridge.get("/api/v1/sessions/1/transcript", params={"after": 0}).respond(
        json={"items": [entry(1)], "next": 1}
    )
    bridge.get("/api/v1/sessions/1/transcript", params={"after": 1}).respond(
        json={"items": [entry(2)], "next": None}
    )

    async with connect(held) as client:
        assert client is not None
        found = await Remote(client).transcript(1)

    assert [each.id for each in found] == [1, 2]


def test_a_command_lists_all_pages_and_leaves_out_what_is_not_asked_for(
    held: Configuration, bridge: respx.MockRouter
) -> None:
    pages = [{"items": [entry(1)], "next": 1}, {"items": [entry(2)], "next": None}]
    route = bridge.get("/api/v1/rows").mock(
        side_effect=[httpx.Response(200, json=page) for page in pages]
    )

    found = Api(held).all_items(EntryOut, "/rows", agent=None, limit=1)

    assert [each.id for each in found] == [1, 2]
    assert [str(call.request.url.query, "ascii") for call in route.calls] == [
        "limit=1",
        "limit=1&after=1",
    ]


def test_a_command_that_needs_a_bridge_says_how_to_start_one(configure: Configure) -> None:
    assert find_bridge(configure()) is None
    with pytest.raises(BridgeUnreachable, match="Start one with `agent-bridge serve`"):
        Api(configure()).request("GET", "/agents")


async def test_events_are_taken_apart_wherever_the_network_cut_them() -> None:
    stream = b": quiet\n\nid: 1\nevent: entry\ndata: {}\n\nevent: unfinished\ndata: []\n\n"
    whole = [("entry", b"{}"), ("unfinished", b"[]")]

    for cut in range(len(stream)):
        pieces = chunks(stream[:cut], stream[cut:])
        assert [event async for event in server_events(pieces)] == whole


async def test_characters_that_end_a_line_in_unicode_do_not_end_an_event() -> None:
    data = '{"text": "a\u2028b\u0085c"}'.encode()

    events = [
        event async for event in server_events(chunks(b"event: entry\ndata: " + data + b"\n\n"))
    ]

    assert events == [("entry", data)]
