"""The page: how much longer a long answer, many tool calls and many threads take than little."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from html import unescape
from itertools import count
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from app.server.page.view.steps import STEPS
from bench.bridge import BridgeServer
from bench.figures import Gap, Goal, Row, Scale, milliseconds, ratios
from bench.history import fill, lengthen, make
from bench.machine import LOOK_SECONDS
from bench.proof import Unproven, prove_equal
from tests.support.chromium import MISSING, chromium, open_browser

TOKEN = "admin-token-of-the-bench-0123456789"
ROW_CHARACTERS = 2_000
"""What an agent says in the second that makes one row."""
WHOLE_GOAL = 50.0
"""The largest of these pages weighs 120 times as much as the small one."""
SHOWN_GOAL = 3.0
"""In a browser style and scripts weigh the same for all, and what is long is fetched on demand."""
SHOWN_SECONDS = 60.0
"""How long a page may take until it is shown on a busy machine."""
PARAGRAPH = (
    "The redirect target is dropped when the session cookie is **renewed**, see `auth/login.py` "
    "and [the report](https://example.com/report). It has to be kept in the signed state instead, "
    "where the check of the path has already looked at it.\n\n"
    "- one thing to do\n- another thing, with `code`\n\n```python\nstate = sign(nonce, target)\n"
    "```\n\n"
)
# Notes when the first frame after the whole document is on the screen.
NOTE_SHOWN = """document.addEventListener("DOMContentLoaded", () => requestAnimationFrame(() =>
  setTimeout(() => { window.shownAfter = performance.now(); })));"""


@dataclass
class View:
    """One page that is measured."""

    what: str
    address: str
    bridge: BridgeServer
    mark: str
    """What the page shows so many times if it shows everything."""
    times: int
    later: int = 0
    """How many of them it offers to fetch."""
    first_byte: list[float] = field(default_factory=list)
    whole: list[float] = field(default_factory=list)
    shown: list[float] = field(default_factory=list)
    size: int = 0

    def fetch(self) -> None:
        """Read it as a program does."""
        connection = http.client.HTTPConnection("127.0.0.1", self.bridge.port)
        began = time.perf_counter()
        connection.request("GET", self.address, headers=_ADMIN)
        answer = connection.getresponse()
        self.first_byte.append(time.perf_counter() - began)
        whole = answer.read()
        self.whole.append(time.perf_counter() - began)
        connection.close()
        self.size = len(whole)
        prove_equal(answer.status, http.client.OK, f"status of {self.address}")
        self.prove_whole(whole.decode())

    def show(self, page: Page) -> None:
        """Open it as a person does."""
        page.goto(f"http://127.0.0.1:{self.bridge.port}{self.address}", wait_until="commit")
        deadline = time.monotonic() + SHOWN_SECONDS
        while (after := page.evaluate("() => window.shownAfter")) is None:
            if time.monotonic() > deadline:
                raise Unproven(f"{self.address} was not shown")
            time.sleep(LOOK_SECONDS)
        self.shown.append(after / 1000)
        self.prove_whole(page.content())

    def prove_whole(self, html: str) -> None:
        """Make sure that nothing is missing on it but what it offers to fetch.

        Raises:
            Unproven: something is.
        """
        prove_equal(
            html.count(self.mark), self.times - self.later, f"{self.mark!r} in the {self.what}"
        )


_ADMIN = {"Authorization": f"Bearer {TOKEN}"}


def measure(scale: Scale, folder: Path) -> Iterator[Row | Gap]:
    """Measure large pages against a small one."""
    few, many = prepare(folder / "few", 3), prepare(folder / "many", scale.threads)
    lengthen(few.data_dir, 2, list(_answer(scale)))
    lengthen(few.data_dir, 3, list(_calls(scale)))
    answer, calls, threads = "one thing to do", 'class="output"', '<a class="thread'
    small = View("a small page", "/t/web/thread-1", few, threads, 3)
    large = [
        View(
            f"page with an answer of {scale.characters:,} characters",
            "/t/web/thread-2",
            few,
            answer,
            _words(scale).count(answer),
        ),
        View(f"page with {scale.calls:,} tool calls", "/t/web/thread-3", few, calls, scale.calls),
        View(
            f"page with {scale.threads} threads in the list",
            f"/t/web/thread-1?threads={scale.threads}",
            many,
            threads,
            scale.threads,
        ),
    ]
    with few.server, many.server:
        few.wait_ready()
        many.wait_ready()
        for view in large:
            view.later = _count_later(view)
        prove_equal(large[1].later, scale.calls - STEPS, "earlier calls")
        for _ in range(scale.rounds):
            for view in (small, *large):
                view.fetch()
        yield from (_whole_row(view, small) for view in large)
        with open_window((few, many)) as page:
            if page is None:
                yield Gap("pages until Chromium shows them", MISSING, failed=False)
                return
            for _ in range(scale.rounds):
                for view in (small, *large):
                    view.show(page)
        yield from (shown_row(view, small) for view in large)


def _whole_row(view: View, small: View) -> Row:
    return Row(
        f"{view.what}, until it is read",
        "a small page",
        min(view.whole) / min(small.whole),
        " x",
        Goal("at most", WHOLE_GOAL),
        f"{milliseconds(min(view.whole))} against {milliseconds(min(small.whole))}, "
        f"median ratio {ratios(view.whole, small.whole):.2f}, first byte after "
        f"{milliseconds(min(view.first_byte))}, the first time {milliseconds(view.whole[0])}, "
        f"{view.size / 1024:,.0f} against {small.size / 1024:,.0f} KiB",
    )


def shown_row(view: View, small: View, goal: float = SHOWN_GOAL) -> Row:
    """Compare how long two pages take until they are shown."""
    return Row(
        f"{view.what}, until Chromium shows it",
        small.what,
        min(view.shown) / min(small.shown),
        " x",
        Goal("at most", goal),
        f"{milliseconds(min(view.shown))} against {milliseconds(min(small.shown))}, "
        f"median ratio {ratios(view.shown, small.shown):.2f}",
    )


def _count_later(view: View) -> int:
    """Fetch what a page leaves out at first."""
    address, found = view.address, 0
    for number in count():
        connection = http.client.HTTPConnection("127.0.0.1", view.bridge.port)
        connection.request("GET", address, headers=_ADMIN)
        html = connection.getresponse().read().decode()
        connection.close()
        found += html.count(view.mark) if number else 0
        link = re.search('data-steps="([^"]+)"', html)
        if link is None:
            break
        address = unescape(link[1])
    return found


@contextmanager
def open_window(bridges: Sequence[BridgeServer]) -> Iterator[Page | None]:
    """Open a browser that is signed in everywhere; None where there is none."""
    if chromium() is None:
        yield None
        return
    with open_browser() as browser:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        for bridge in bridges:
            page.goto(_link(bridge))
            page.get_by_role("button", name="Sign in").click()
        page.add_init_script(NOTE_SHOWN)
        yield page


def _link(bridge: BridgeServer) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", bridge.port)
    connection.request("POST", "/api/v1/login-links", headers=_ADMIN)
    link = str(json.load(connection.getresponse())["url"])
    connection.close()
    return link


def prepare(folder: Path, sessions: int) -> BridgeServer:
    """Make a bridge with threads that are done."""
    bridge = BridgeServer(folder, settings={"BRIDGE_ADMIN_TOKEN": TOKEN})
    make(bridge.data_dir)
    fill(bridge.data_dir, sessions)
    return bridge


def _words(scale: Scale) -> str:
    return (PARAGRAPH * (scale.characters // len(PARAGRAPH) + 1))[: scale.characters]


def _answer(scale: Scale) -> Iterator[Mapping[str, Any]]:
    """Say much, a row at a time."""
    words = _words(scale)
    for start in range(0, scale.characters, ROW_CHARACTERS):
        yield {"text": words[start : start + ROW_CHARACTERS]}


def _calls(scale: Scale) -> Iterator[Mapping[str, Any]]:
    """Read, change and run things, each with its beginning and its end."""
    lines = "\n".join(f"line {number} of the file" for number in range(12))
    diff = {"path": "auth/login.py", "old": lines, "new": lines.replace("line 6", "row 6")}
    kinds: Sequence[Mapping[str, Any]] = (
        {"kind": "read", "title": "auth/login.py", "locations": ["auth/login.py"]},
        {"kind": "edit", "title": "auth/login.py", "diffs": [diff]},
        {"kind": "execute", "title": "Run `pytest`", "input": {"command": "pytest"}},
    )
    for number in range(scale.calls):
        call = {"call": f"call-{number}", **kinds[number % len(kinds)]}
        yield {"kind": "tool", "data": {**call, "status": "pending"}}
        yield {"kind": "tool", "data": {**call, "status": "completed", "output": lines}}
