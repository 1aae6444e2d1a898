"""The wire: frames in any pieces, nonsense, floods, and who is heard when."""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Awaitable
from typing import Any

import orjson
import pytest
from acp import RequestError
from hypothesis import given, settings
from hypothesis import strategies as st

from app.acp import transport as transport_module
from app.acp.transport import (
    MAX_FRAME_BYTES,
    MAX_OPEN_REQUESTS,
    MAX_REFUSALS,
    AgentTransport,
    FrameTooLong,
    Framing,
)
from tests.unit.acp.helpers import BOUND, FakePipes, chunk, update_frame

pytestmark = pytest.mark.anyio


class Ear:
    """A hearer that keeps what it hears, and may be slow about it."""

    def __init__(self, pause: int = 0) -> None:
        self.heard: list[Any] = []
        self.settled_at: list[int] = []
        self.withdrawn: list[object] = []
        self._pause = pause

    def take(self, params: Any) -> Awaitable[None] | None:
        return self._take(params)

    async def _take(self, params: Any) -> None:
        for _ in range(self._pause):
            await asyncio.sleep(0)
        self.heard.append(params)

    def answer(self, method: str, params: object) -> None:
        """Leave every request to the SDK."""

    def notify(self, method: str, params: object) -> bool:
        return False

    def withdraw(self, identifier: object) -> None:
        self.withdrawn.append(identifier)

    def settle(self) -> Awaitable[None] | None:
        self.settled_at.append(len(self.heard))
        return None


def frame(**message: Any) -> bytes:
    return orjson.dumps({"jsonrpc": "2.0", **message}) + b"\n"


def wire(*blocks: bytes, ear: Ear | None = None) -> tuple[AgentTransport, FakePipes, Counter[str]]:
    pipes, dropped = FakePipes(*blocks), Counter[str]()

    def count(reason: str) -> None:
        dropped[reason] += 1

    return AgentTransport(pipes, ear or Ear(), count), pipes, dropped


async def everything(transport: AgentTransport) -> list[dict[str, Any]]:
    async with asyncio.timeout(BOUND):
        messages = []
        while (message := await transport.receive()) is not None:
            messages.append(message)
        return messages


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[start:end] for start, end in itertools.pairwise(edges)]


frames = st.lists(
    st.one_of(
        st.builds(lambda text: chunk(text), st.text(max_size=20)),
        st.builds(lambda i: frame(id=i, method="session/request_permission"), st.integers(0, 9)),
        st.binary(max_size=20).map(lambda garbage: garbage.replace(b"\n", b" ") + b"\n"),
    ),
    max_size=12,
)


@settings(deadline=None)
@given(frames, st.lists(st.integers(0, 5000), max_size=20))
async def test_however_the_bytes_are_cut_the_same_is_heard(
    sent: list[bytes], cuts: list[int]
) -> None:
    whole_ear, cut_ear = Ear(), Ear()
    whole, _, whole_dropped = wire(b"".join(sent), ear=whole_ear)
    cut, _, cut_dropped = wire(*pieces(b"".join(sent), cuts), ear=cut_ear)

    assert await everything(whole) == await everything(cut)
    assert whole_ear.heard == cut_ear.heard
    assert whole_dropped == cut_dropped


@settings(deadline=None)
@given(st.lists(st.binary(max_size=40), max_size=20))
async def test_garbage_never_ends_the_stream(garbage: list[bytes]) -> None:
    ear = Ear()
    transport, _, _ = wire(*(piece + b"\n" for piece in garbage), chunk("still here"), ear=ear)

    await everything(transport)

    assert ear.heard[-1]["update"]["content"]["text"] == "still here"
    assert transport.cause is None


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"Debugger listening on port 9229", "not_json"),
        (b"[" * 2000 + b"]" * 2000, "not_json"),
        (b'{"id": 1, "result": {"x": 1e999}}', "unknown_id"),
        (b'{"id": 1, "result": {"x": 1e999x}}', "not_json"),
        (b"[1,2]", "not_an_object"),
        (b"null", "not_an_object"),
        (b'{"id":[1],"result":{}}', "no_id"),
        (b'{"id":null,"error":{"code":-32700,"message":"x"}}', "no_id"),
        (b'{"id":true,"result":{}}', "no_id"),
        (b'{"id":1.0,"result":{}}', "no_id"),
        (b"{}", "no_id"),
        (b'{"id":99,"result":{}}', "unknown_id"),
        (b'{"id":"bridge-7","result":{}}', "unknown_id"),
        (b'{"method":"qwen/notify","params":{}}', "notification"),
        (b'{"method":"qwen/notify","id":{"a":1}}', "notification"),
        (b'{"id":5,"method":["x"]}', "senseless_request"),
    ],
)
async def test_what_makes_no_sense_is_dropped_and_counted(line: bytes, reason: str) -> None:
    ear = Ear()
    transport, pipes, dropped = wire(line + b"\n", chunk("after"), ear=ear)

    messages = await everything(transport)

    assert messages == []
    assert dropped == {reason: 1}
    assert len(ear.heard) == 1
    assert pipes.written == []


async def test_blank_lines_are_nothing_to_speak_of() -> None:
    transport, _, dropped = wire(b"\n\r\n  \n", chunk("text"))

    await everything(transport)

    assert dropped == {}


async def test_a_last_line_without_a_line_break_counts() -> None:
    transport, _, _ = wire(frame(id=1, method="ask").rstrip(b"\n"))

    messages = await everything(transport)

    assert [message["id"] for message in messages] == [1]


async def test_updates_are_heard_in_order_and_before_the_answer_behind_them() -> None:
    ear = Ear(pause=2)
    sent = b"".join(chunk(str(number)) for number in range(500)) + frame(id=0, result={})
    transport, _, _ = wire(sent, ear=ear)
    await transport.send({"id": 0, "method": "session/prompt", "params": {}})

    answer = await transport.receive()

    assert answer is not None
    assert answer["id"] == 0
    texts = [params["update"]["content"]["text"] for params in ear.heard]
    assert texts == [str(number) for number in range(500)]


async def test_whoever_gets_a_message_acts_before_later_updates_are_heard() -> None:
    ear = Ear()
    transport, _, _ = wire(chunk("before") + frame(id=1, method="ask") + chunk("after"), ear=ear)
    seen_by_handler: list[int] = []

    await transport.receive()
    asyncio.get_running_loop().call_soon(lambda: seen_by_handler.append(len(ear.heard)))
    await transport.receive()

    assert seen_by_handler == [1]
    assert len(ear.heard) == 2


async def test_what_the_hearer_holds_back_is_settled_before_a_message() -> None:
    ear = Ear()
    transport, _, _ = wire(chunk("text") + frame(id=1, method="ask"), ear=ear)

    await transport.receive()

    assert ear.settled_at[-1] == 1


@pytest.mark.parametrize(("block", "yields"), [(chunk("x" * 100) * 100, 5), (b"{}\n" * 10_000, 50)])
async def test_a_flood_leaves_the_loop_to_others_again_and_again(block: bytes, yields: int) -> None:
    transport, _, _ = wire(*[block] * 5)
    turns_of_others = 0
    running = True

    async def others() -> None:
        nonlocal turns_of_others
        while running:
            turns_of_others += 1
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        group.create_task(others())
        await everything(transport)
        running = False

    assert turns_of_others >= yields


async def test_a_line_without_end_ends_the_stream_and_is_not_kept() -> None:
    block = b"x" * 65536
    transport, pipes, _ = wire(*[block] * 400)

    assert await everything(transport) == []

    read = 400 * len(block) - sum(map(len, pipes.blocks))
    assert read <= MAX_FRAME_BYTES + 2 * transport_module.BLOCK_BYTES
    assert transport.cause == "a message of more than 8 MiB"
    assert pipes.discarded


def test_a_long_frame_is_refused_also_when_it_is_whole() -> None:
    framing = Framing()
    framing.feed(b"x" * MAX_FRAME_BYTES)

    with pytest.raises(FrameTooLong):
        framing.feed(b"x\nnext\n")


def test_the_longest_frame_passes() -> None:
    framing = Framing()
    framing.feed(b"x" * MAX_FRAME_BYTES)

    assert [len(line) for line in framing.feed(b"\nnext\n")] == [MAX_FRAME_BYTES, 4]


async def test_requests_beyond_the_bound_are_refused_until_some_are_answered() -> None:
    asks = [frame(id=number, method="ask") for number in range(100)]
    transport, pipes, dropped = wire(b"".join(asks), frame(id="more", method="ask"))

    got = [await transport.receive() for _ in range(MAX_OPEN_REQUESTS)]
    await transport.send({"id": 0, "result": {}})
    late = await transport.receive()

    assert [message["id"] for message in got if message] == list(range(MAX_OPEN_REQUESTS))
    assert late is not None
    assert late["id"] == 64
    assert [message["id"] for message in pipes.written if "error" in message] == []
    await everything(transport)
    refused = [message for message in pipes.written if "error" in message]
    assert len(refused) == 36
    assert {message["error"]["code"] for message in refused} == {-32000}
    assert dropped == {"refused_request": 36}


async def test_two_requests_under_one_id_are_one_too_many() -> None:
    transport, _, dropped = wire(frame(id=1, method="ask") * 2)

    assert len(await everything(transport)) == 1
    assert dropped == {"senseless_request": 1}


async def test_open_requests_hold_a_bounded_part_of_memory() -> None:
    big = "x" * (MAX_FRAME_BYTES - 1000)
    asks = [frame(id=number, method="ask", params=big) for number in range(3)]
    transport, pipes, _ = wire(*asks)

    assert len(await everything(transport)) == 2
    assert [message["id"] for message in pipes.written] == [2]


async def test_a_flood_of_requests_ends_the_stream() -> None:
    asks = b"".join(
        frame(id=number, method="ask") for number in range(MAX_REFUSALS + MAX_OPEN_REQUESTS + 1)
    )
    transport, pipes, _ = wire(asks, chunk("never heard"))

    await everything(transport)

    assert transport.cause == "a flood of requests"
    assert len(pipes.written) == MAX_REFUSALS


async def test_an_agent_that_does_not_read_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "WRITE_SECONDS", 0.01)
    transport, pipes, _ = wire()
    pipes.drained.clear()

    with pytest.raises(ConnectionError):
        await transport.send({"id": 1, "method": "session/prompt"})

    assert transport.cause == "it did not read its input for 0.01 s"
    assert transport.finished.is_set()


async def test_after_the_end_a_request_fails_and_an_answer_is_dropped() -> None:
    transport, _, dropped = wire()
    await everything(transport)

    await transport.send({"id": 1, "result": {}})
    with pytest.raises(ConnectionError):
        await transport.send({"id": 1, "method": "session/prompt"})

    assert dropped == {"unheard_answer": 1}


async def test_a_request_of_our_own_gets_its_answer() -> None:
    transport, pipes, _ = wire(frame(id="bridge-1", result={"fine": True}))

    async with asyncio.TaskGroup() as group:
        answer = group.create_task(transport.request("session/set_model", {"modelId": "m"}))
        while not pipes.written:  # noqa: ASYNC110 - the request is written in its first step
            await asyncio.sleep(0)
        group.create_task(everything(transport))

    assert answer.result() == {"fine": True}
    assert pipes.written[0]["method"] == "session/set_model"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ({"code": 400, "message": "bad model"}, 400, "bad model"),
        ("just text", -32603, "just text"),
        ({"code": "x", "message": None}, -32603, "an error without a message"),
        (None, -32603, "an error without a message"),
    ],
)
async def test_errors_of_any_shape_are_errors(error: object, code: int, words: str) -> None:
    transport, pipes, _ = wire(frame(id="bridge-1", error=error), frame(id=3, error=error))
    asked = asyncio.ensure_future(transport.request("x", {}))
    await asyncio.sleep(0)
    await transport.send({"id": 3, "method": "session/new"})

    messages = await everything(transport)

    with pytest.raises(RequestError, match=words) as caught:
        await asked
    assert caught.value.code == code
    assert messages[0]["error"] == {"code": code, "message": words, "data": None}
    assert len(pipes.written) == 2


async def test_the_end_of_the_stream_ends_our_own_requests() -> None:
    transport, _, _ = wire()
    asked = asyncio.ensure_future(transport.request("x", {}))
    await asyncio.sleep(0)

    await everything(transport)

    with pytest.raises(ConnectionError):
        await asked


async def test_a_hearer_that_fails_ends_the_stream_with_its_failure() -> None:
    class Broken(Ear):
        async def _take(self, params: Any) -> None:
            raise LookupError("no such thing")

    transport, _, _ = wire(chunk("x"), chunk("y"), ear=Broken())

    assert await everything(transport) == []
    assert isinstance(transport.failure, LookupError)


async def test_an_answer_to_an_agent_does_not_send_its_own_input_back() -> None:
    transport, pipes, _ = wire()
    details = {"errors": [{"input": "x" * 1000, "ctx": {"error": ValueError("x")}}]}

    await transport.send(
        {"id": 1, "error": {"code": -32602, "message": "Invalid params", "data": details}}
    )

    assert pipes.written == [{"id": 1, "error": {"code": -32602, "message": "Invalid params"}}]


async def test_an_update_without_parameters_reaches_the_hearer_as_it_is() -> None:
    ear = Ear()
    transport, _, _ = wire(frame(method="session/update"), update_frame(None), ear=ear)

    await everything(transport)

    assert ear.heard == [None, {"sessionId": "s1", "update": None}]
