"""Shows a turn on the terminal: the answer on stdout, everything else on stderr.

Only the agent's answer ever goes to stdout, so that it can be piped.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, TextIO

from typing_extensions import override

from app.model import ask_wording as wording
from app.model.text import money
from app.model.updates import AskView
from app.server.shapes import EntryOut
from app.terminal.framing import one_line, printable

if TYPE_CHECKING:
    from rich.live import Live
    from rich.spinner import Spinner

FRAMES_PER_SECOND: Final = 8
"""Looks smooth and costs nothing."""
STATUS_CHARACTERS: Final = 120
"""How much of a thought or an unfinished answer the status line shows."""
SHOWN_LINES: Final = 20
"""Lines of a change that a question shows: enough to judge it, few enough for one screen."""
MARKS: Final = {"pending": "·", "in_progress": "»", "completed": "✓", "failed": "✗"}


async def wait_readable(stream: TextIO | int) -> None:
    """Wait until something was typed, without holding up the loop; Ctrl-C ends it at once."""
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(stream, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(stream)


class Margin:
    """Shows everything but the answer; this one shows nothing, for those who want the answer."""

    def line(self, text: str, style: str = "") -> None:
        """Write a line that stays."""

    def prompt(self, text: str) -> None:
        """Write a prompt that a person answers on the same line."""

    def status(self, words: str) -> None:
        """Show what is going on now, where that can be erased."""

    def still(self) -> None:
        """Erase the status."""


class PlainLines(Margin):
    """Writes lines to a file or a pipe, without a status."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @override
    def line(self, text: str, style: str = "") -> None:
        with suppress(OSError):
            self._stream.write(f"{text}\n")
            self._stream.flush()

    @override
    def prompt(self, text: str) -> None:
        self.line(text)


class Terminal(Margin):
    """Lines that stay, and a status line below them.

    The terminal may be closed at any moment; an agent must still be stopped then.
    """

    def __init__(self, stream: TextIO) -> None:
        # 0.1 s that only a person pays for.
        from rich.console import Console  # noqa: PLC0415
        from rich.spinner import Spinner  # noqa: PLC0415

        self._console = Console(file=stream, highlight=False, markup=False, emoji=False)
        self._spinner = Spinner("dots", style="cyan")
        self._since = time.monotonic()
        self._words = ""
        self._live: Live | None = None

    @override
    def line(self, text: str, style: str = "") -> None:
        self.still()
        with suppress(OSError):
            self._console.print(text, style=style, soft_wrap=True)

    @override
    def prompt(self, text: str) -> None:
        self.still()
        with suppress(OSError):
            self._console.print(text, style="bold", end="")

    @override
    def status(self, words: str) -> None:
        from rich.live import Live  # noqa: PLC0415 - imported above

        self._words = words
        if self._live is None:
            self._live = Live(
                get_renderable=self._moving,
                console=self._console,
                refresh_per_second=FRAMES_PER_SECOND,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            with suppress(OSError):
                self._live.start()

    @override
    def still(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            with suppress(OSError):
                live.stop()

    def _moving(self) -> Spinner:
        from rich.text import Text  # noqa: PLC0415 - imported above

        seconds = int(time.monotonic() - self._since)
        words = f"{self._words} · {seconds} s" if seconds else self._words
        self._spinner.update(text=Text(words, style="dim", no_wrap=True, overflow="ellipsis"))
        return self._spinner


def margin(stream: TextIO, *, quiet: bool) -> Margin:
    """Choose how everything but the answer is shown."""
    if quiet:
        return Margin()
    return Terminal(stream) if stream.isatty() else PlainLines(stream)


class Screen:
    """One turn on a screen."""

    def __init__(
        self,
        out: TextIO,
        aside: Margin,
        *,
        one_terminal: bool = False,
        uploads: Path = Path("uploads"),
    ) -> None:
        """Show a turn; files that an agent made for people are in `uploads`."""
        self._out = out
        self._margin = aside
        self._one_terminal = one_terminal
        """Whether answer and margin share a terminal and must not write into each other."""
        self._uploads = uploads
        self._open_line = False
        """Whether the answer so far does not end with a newline."""
        self._column = False
        """Whether the cursor is behind a piece of the answer."""
        self._prompting = False
        self._notice = ""
        self._plan: dict[str, str] = {}
        self._begun_tools: set[str] = set()
        self._usage: Mapping[str, Any] = {}

    def status(self, words: str) -> None:
        """Show what is going on now, unless that would overwrite something."""
        if not (self._column or self._prompting):
            self._margin.status(one_line(words, STATUS_CHARACTERS))

    def line(self, text: str, style: str = "") -> None:
        """Write a line that is not part of the answer."""
        self._aside()
        self._margin.line(text, style)

    @contextmanager
    def prompt(self, text: str) -> Iterator[None]:
        """Ask the person something; no status is shown until the block ends."""
        self._aside()
        self._margin.prompt(text)
        self._prompting = True
        try:
            yield
        finally:
            self._prompting = False

    def show(self, entry: EntryOut) -> None:
        """Show one row of the transcript."""
        self._tell_notice()
        match entry.kind:
            case "text":
                self._answer(entry.text)
            case "tool":
                self._tool(entry)
            case "plan":
                self._steps(entry.data["steps"])
            case "notice" if files := entry.data.get("files"):
                self._lines((one_line(entry.text), *file_lines(files, self._uploads)))
            case "notice":
                self._notice = entry.text
            case "usage":
                self._usage = entry.data
            case _:
                pass

    def end(self, *, notice: bool = True) -> None:
        """End the answer's last line; show the last notice, unless `notice` is false."""
        self._margin.still()
        if self._open_line and (self._column or not self._one_terminal):
            self._write("\n")
        self._column = self._open_line = False
        if notice:
            self._tell_notice()
        self._notice = ""

    def usage(self) -> str:
        """Return what the turn has used, as far as it is known."""
        return usage_line(self._usage)

    def _answer(self, text: str) -> None:
        self._margin.still()
        self._write(printable(text) if self._out.isatty() else text)
        self._open_line = not text.endswith("\n")
        self._column = self._one_terminal and self._open_line

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

    def _aside(self) -> None:
        """Leave the line on which the answer or a question stopped."""
        if self._column or self._prompting:
            self._margin.line("")
            self._column = False

    def _tell_notice(self) -> None:
        if self._notice:
            self.line(f"! {one_line(self._notice)}", "yellow")
            self._notice = ""

    def _tool(self, entry: EntryOut) -> None:
        call, status = str(entry.data.get("call")), entry.data.get("status")
        ended = status in {"completed", "failed"}
        if ended or call not in self._begun_tools:
            style = {"completed": "green", "failed": "red"}.get(status or "", "dim")
            self.line(tool_line(entry), style)
        self._begun_tools.add(call)
        self.status(entry.text)

    def _steps(self, steps: Sequence[Mapping[str, str]]) -> None:
        """Show all of a new plan, and of a known one what is done by now."""
        known, self._plan = self._plan, {step["text"]: step["status"] for step in steps}
        if known.keys() != self._plan.keys():
            self.line("Plan:", "bold")
            self._lines(plan_lines(steps))
            return
        done = [step for step in steps if step["status"] == "completed"]
        self._lines(
            plan_lines(step for step in done if known[step["text"]] != "completed"), "green"
        )
        current = next((step["text"] for step in steps if step["status"] == "in_progress"), "")
        if current:
            self.status(current)

    def _lines(self, texts: Iterable[str], style: str = "") -> None:
        for text in texts:
            self.line(text, style)


def plan_lines(steps: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Show the steps of a plan."""
    for step in steps:
        yield f"  {MARKS.get(step['status'], '·')} {one_line(step['text'])}"


def tool_line(entry: EntryOut) -> str:
    """Show one state of a tool call, and why it failed."""
    status = entry.data.get("status") or "pending"
    title = one_line(entry.text or entry.data.get("kind") or "tool")
    why = one_line(entry.data.get("output") or "", limit=200) if status == "failed" else ""
    words = why if why.startswith(title) else ": ".join(filter(None, (title, why)))
    decided = one_line(wording.decision(entry.data.get("decided")))
    return f"{MARKS.get(status, '·')} {words}{f' ({decided})' if decided else ''}"


def ask_sentence(view: AskView) -> str:
    """Say what an agent wants in one line; empty if its title and facts say it."""
    said = wording.sentence(view)
    if said is None:
        return ""
    amount = f"({said.amount})" if said.amount else ""
    return " ".join(filter(None, (said.words, said.subject, amount)))


def ask_lines(view: AskView) -> Iterator[str]:
    """Show all of what an ask is about; of a change its first lines."""
    is_said = wording.sentence(view) is not None
    for fact in view.facts:
        if not is_said:
            yield f"{wording.label(fact)} {fact.path}".rstrip() + ":"
        changed = fact.kind == "change"
        shown = fact.text.split("\n") if fact.text else []
        # Behind a bar, so that no line of an agent looks like one of the bridge.
        yield from (f"| {line}" for line in (shown[:SHOWN_LINES] if changed else shown))
        left = fact.left + max(0, len(shown) - SHOWN_LINES) if changed else fact.left
        if words := wording.gap(replace(fact, left=left)):
            yield words
        yield from (f"| {line}" for line in fact.tail.split("\n") if fact.tail)
    yield from wording.notes(view, on_page=True)


def usage_line(data: Mapping[str, Any]) -> str:
    """Show how much of its context an agent has used, and what it cost."""
    used, size, cost = data.get("used"), data.get("size"), data.get("cost")
    parts = []
    if used is not None:
        parts.append(f"{used} of {size} tokens" if size else f"{used} tokens")
    if price := money(cost, data.get("currency"), estimated=bool(data.get("estimated"))):
        parts.append(price)
    return ", ".join(parts)


def transcript_lines(entries: Sequence[EntryOut], agent: str) -> Iterator[str]:
    """Show a whole conversation; a tool call once, as it ended."""
    last = {entry.data.get("call"): entry.id for entry in entries if entry.kind == "tool"}
    speaker: str | None = None
    for entry in entries:
        match entry.kind:
            case "message" | "text":
                name = entry.speaker or agent
                if name != speaker:
                    yield ""
                    yield f"{one_line(name)}:"
                speaker = name
                yield from (f"  {line}" for line in printable(entry.text).strip("\n").split("\n"))
            case "tool" if last[entry.data.get("call")] == entry.id:
                yield f"  {tool_line(entry)}"
            case "ask" if entry.data.get("state") == "open":
                yield f"  ? {one_line(entry.text)}"
            case "ask":
                yield f"    {one_line(entry.text)}"
            case "notice" if entry.text:
                yield f"  ! {one_line(entry.text)}"
            case _:
                pass


def file_lines(files: Iterable[Mapping[str, str]], uploads: PurePath) -> Iterator[str]:
    """List the paths of files that an agent made."""
    return (f"  {printable(str(uploads / file['url']))}" for file in files)
