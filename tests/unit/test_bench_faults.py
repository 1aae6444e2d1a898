"""Breaks what the bench measures: the row fails and says why, instead of reporting a figure."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import orjson
import pytest
from aiohttp import WSMessage, WSMsgType

from app.store.database import FILE_NAME
from bench import __main__ as bench
from bench import bridge, clone, cold, memory, proof, report, restart, socket_mode, stream
from bench.accept import KEPT, Receiver
from bench.agents.emitter import __file__ as emitter_file
from bench.bridge import DEMO, BridgeServer
from bench.figures import TINY, Gap, Goal, Row, Scale
from bench.frames import exchange, frames
from bench.history import make, stored
from bench.load import Plan, run
from bench.machine import Server, free_port
from bench.page import View
from bench.proof import Unproven, wait_for

LOSE_ONE = """
create trigger lose before insert on delivery when new.delivery_id like '%-0'
begin select raise(ignore); end
"""
UPDATES = 600
ROW = Row("something", "another", 1.0, " x", Goal("at least", 1.0), "1 against 1")


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up soon on what does not come."""
    monkeypatch.setattr(proof, "PROOF_SECONDS", 0.5)
    monkeypatch.setattr(stream, "LATE_SECONDS", 0.2)


@contextmanager
def answering(status: Callable[[int], int], page: str = "") -> Iterator[int]:
    """Serve a page on a port, each request with the status for its number."""
    numbers = iter(range(1_000_000))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def do_GET(self) -> None:
            self.send_response(status(next(numbers)))
            self.send_header("Content-Length", str(len(page)))
            self.end_headers()
            self.wfile.write(page.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Line:
    """A web socket whose other side acknowledges what the test says."""

    def __init__(self, acknowledge: Callable[[str], list[str]]) -> None:
        self._acknowledge = acknowledge
        self._waiting: deque[str] = deque()

    async def send_str(self, data: str) -> None:
        self._waiting += self._acknowledge(orjson.loads(data)["envelope_id"])

    async def receive(self, timeout: float | None = None) -> WSMessage:  # noqa: ASYNC109
        if not self._waiting:
            raise TimeoutError
        data = orjson.dumps({"envelope_id": self._waiting.popleft()}).decode()
        return WSMessage(WSMsgType.TEXT, data, None)


def lossy(data_dir: Path) -> None:
    """Make a store that loses the first delivery of each load, after it was acknowledged."""
    make(data_dir)
    with closing(sqlite3.connect(data_dir / FILE_NAME)) as database:
        database.execute(LOSE_ONE)
        database.commit()


def broken(original: str, folder: Path, old: str, new: str) -> Path:
    """Write a program that differs from another in one place."""
    source = Path(original).read_text()
    assert old in source
    copy = folder / Path(original).name
    copy.write_text(source.replace(old, new))
    return copy


def test_a_webhook_that_is_refused_fails_the_load() -> None:
    with (
        answering(lambda number: 500 if number == 5 else 200) as port,
        pytest.raises(Unproven, match="webhooks accepted: 11, not 12"),
    ):
        run(Plan(port, 2, 8, 4, "seed"))


@pytest.mark.slow
def test_an_accepted_delivery_that_is_lost_fails_the_row(tmp_path: Path) -> None:
    alone = BridgeServer(tmp_path, works=False)
    lossy(alone.data_dir)
    receiver = Receiver(alone.server, lambda: stored(alone.data_dir, KEPT))

    with alone.server, pytest.raises(Unproven, match="deliveries dealt with: 70, not 72"):
        receiver.load(TINY)


def test_a_peer_that_checks_no_signature_fails_the_row() -> None:
    with answering(lambda _: 200) as port:
        receiver = Receiver(Server("nothing", port=port), lambda: 0)

        with pytest.raises(Unproven, match="a forged webhook was accepted"):
            receiver.prove_checking()


@pytest.mark.parametrize(
    ("acknowledged", "why"),
    [
        (lambda envelope, last: [] if envelope == last else [envelope], "1 frames were not"),
        (lambda envelope, last: [envelope, envelope], "but is not waiting"),
        (lambda envelope, last: ["another"], "another was acknowledged"),
    ],
)
async def test_a_dropped_or_doubled_frame_fails_the_row(
    acknowledged: Callable[[str, str], list[str]], why: str
) -> None:
    ready = dict(frames(5))
    last = list(ready)[-1]

    with pytest.raises(Unproven, match=why):
        await exchange(Line(lambda envelope: acknowledged(envelope, last)), ready)


async def test_frames_that_are_all_acknowledged_once_are_proof_enough() -> None:
    await exchange(Line(lambda envelope: [envelope]), dict(frames(200)))


def test_a_frame_that_is_not_in_the_store_fails_the_row(tmp_path: Path) -> None:
    make(tmp_path / "data")

    with pytest.raises(Unproven, match="frames in the store: 0, not 3"):
        socket_mode.Receiver(socket_mode.BRIDGE).prove(tmp_path / "data", 3)


async def through_blocking_loop(count: int, folder: Path, program: Path) -> stream.Stream:
    return await asyncio.to_thread(stream.through_blocking_loop, count, folder, program)


WAYS = {
    "bridge": stream.through_bridge,
    "sdk": stream.through_sdk,
    "blocking": through_blocking_loop,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "_write(frame * (count % FRAMES_AT_ONCE))",
            "_write(frame * (count % FRAMES_AT_ONCE - 1))",
        ),
        ('"text": TEXT', '"text": TEXT[1:]'),
        ('{"stopReason": "end_turn"}', '{"stopReason": "refusal"}'),
    ],
    ids=["dropped frame", "lost characters", "refused"],
)
async def test_a_stream_of_a_broken_agent_fails_the_row(
    way: str, old: str, new: str, tmp_path: Path
) -> None:
    program = broken(emitter_file, tmp_path, old, new)

    with pytest.raises(Unproven):
        await WAYS[way](UPDATES, tmp_path, program)


async def test_a_turn_that_fails_at_once_fails_the_row(tmp_path: Path) -> None:
    program = broken(emitter_file, tmp_path, 'case "initialize":', 'case "nothing":')

    with pytest.raises(Unproven, match="the turn is failed"):
        await stream.through_bridge(UPDATES, tmp_path, program)


@pytest.mark.slow
def test_a_cold_event_without_an_answer_fails_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent = broken(str(DEMO), tmp_path, '"agent_message_chunk"', '"agent_thought_chunk"')
    monkeypatch.setattr(cold, "DEMO", silent)
    monkeypatch.setattr(bridge, "DEMO", silent)
    server = BridgeServer(tmp_path / "bridge")

    with pytest.raises(Unproven, match="answer of the agent: , not hello"):
        cold.by_hand(tmp_path / "home")
    with server.server, pytest.raises(Unproven, match="turns of cold1 that are done: 0, not 1"):
        cold.through_bridge(server, 1)


def test_an_agent_in_the_wrong_network_fails_the_row(tmp_path: Path) -> None:
    stamp = tmp_path / "stamp"
    stamp.write_text("2 net:[1]")

    with pytest.raises(Unproven, match="not in the network"):
        cold.wait_for_stamp(lambda: stamp, 1, apart=False)


def test_a_clone_that_lacks_a_file_or_is_of_another_commit_fails_the_row(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True
        ).stdout.decode()

    git("init", "-q")
    (tmp_path / "file").write_text("text")
    git("add", "file")
    git("commit", "-qm", "one")
    tree = git("rev-parse", "HEAD^{tree}").strip()
    clone.prove_whole(tmp_path, tree)

    with pytest.raises(Unproven, match="tree of the clone"):
        clone.prove_whole(tmp_path, "another")
    (tmp_path / "file").unlink()
    with pytest.raises(Unproven, match="1 files of the clone are missing"):
        clone.prove_whole(tmp_path, tree)


@pytest.mark.slow
def test_a_delivery_that_a_kill_loses_fails_the_restart_row(tmp_path: Path) -> None:
    server = BridgeServer(tmp_path)
    lossy(server.data_dir)

    with pytest.raises(Unproven, match="outlived a kill -9: 0, not 1"):
        restart.Store(server).start()
    with pytest.raises(Unproven, match="sessions in the store: 0, not 9"):
        restart.Store(server).prove_full(9)


def test_a_first_answer_that_is_a_failure_fails_the_start_row(tmp_path: Path) -> None:
    port = free_port()
    program = (
        "import http.server as h\n"
        f"h.HTTPServer(('127.0.0.1', {port}), h.BaseHTTPRequestHandler).serve_forever()"
    )

    with pytest.raises(Unproven, match=r"(?s)first answer of .*: 501, not 200"):
        restart.first_answer(("-c", program), {}, port, tmp_path)


def test_an_agent_that_does_not_live_on_fails_the_memory_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path / "data")

    with pytest.raises(Unproven, match="turns done: 0, not 3"):
        memory.prove_alive(tmp_path / "data", 3, TINY)
    monkeypatch.setattr(memory, "DONE", "select 3")
    with pytest.raises(Unproven, match="agents that live: 0, not 3"):
        memory.prove_alive(tmp_path / "data", 3, TINY)


def test_a_page_on_which_something_is_missing_fails_the_row(tmp_path: Path) -> None:
    with answering(lambda _: 200, "<i>one</i>") as port:
        server = BridgeServer(tmp_path)
        server.port = port
        view = View("page", "/", server, "<i>", 2)

        with pytest.raises(Unproven, match="1, not 2"):
            view.fetch()


def test_a_page_that_cannot_be_had_fails_the_row(tmp_path: Path) -> None:
    with answering(lambda _: 500) as port:
        server = BridgeServer(tmp_path)
        server.port = port

        with pytest.raises(Unproven, match="status of /: 500, not 200"):
            View("page", "/", server, "<i>", 2).fetch()


def failing(_scale: Scale, _folder: Path) -> Iterator[Row | Gap]:
    wait_for(lambda: 1, 2, "deliveries dealt with")
    yield ROW


def working(_scale: Scale, _folder: Path) -> Iterator[Row | Gap]:
    yield ROW


def lacking(_scale: Scale, _folder: Path) -> Iterator[Row | Gap]:
    yield Gap("isolation", "bubblewrap does not work here", failed=False)


@pytest.mark.parametrize(
    ("measurements", "options", "code", "words"),
    [
        ({"good": working}, ("--write",), 0, "Written"),
        ({"good": working, "bad": failing}, (), 1, "deliveries dealt with: 1, not 2"),
        ({"good": working, "bad": failing}, ("--write",), 1, "Nothing is written"),
        ({"good": working, "less": lacking}, (), 0, "bubblewrap does not work here"),
        ({"good": working, "less": lacking}, ("--write",), 1, "Nothing is written"),
    ],
)
def test_a_row_that_failed_fails_the_bench_and_is_never_written(
    measurements: dict[str, Callable[[Scale, Path], Iterator[Row | Gap]]],
    options: tuple[str, ...],
    code: int,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"{report.BEGIN}{report.END}")
    monkeypatch.setattr(bench, "MEASUREMENTS", measurements)
    monkeypatch.setattr(bench, "PAGE", page)
    monkeypatch.setattr(bench, "PLOT", tmp_path / "performance.svg")

    assert bench.main([*options, "--plot", str(tmp_path / "plot.svg")]) == code

    assert words in capsys.readouterr().out
    assert ("something" in page.read_text()) is ("Written" in words)
