"""Renders a post for Slack: text in parts, tasks, blocks and buttons; pure.

An agent's text goes out as Markdown, with everything that would notify people made harmless;
everything else is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from app.core.ask_view import AskView, ShownFact
from app.core.consent.offers import CHOICE
from app.core.consent.wording import gap, label, notes
from app.core.posts import PostContent, Verbosity
from app.core.updates import AskOption
from app.core.visible import reveal_line
from app.services.slack.events import is_direct

PART_CHARACTERS: Final = 10_000
"""Text of one message: a stream and the Markdown of a message end near 12,000, fences included."""
LINE_CHARACTERS: Final = 2_000
"""How far back to look for the end of a line, or else of a word, where a text is cut."""
SECTION_CHARACTERS: Final = 2_900
"""Text of one section; Slack takes 3,000."""
TASK_CHARACTERS: Final = 200
BUTTON_CHARACTERS: Final = 75
"""Text on a button, and of an option to choose."""
SUMMARY_CHARACTERS: Final = 300
"""Text of a notification."""
FINAL: Final = frozenset({"done", "failed", "stopped"})
AT_REST: Final = FINAL | {"waiting"}
"""States in which the agent does not work: a turn may wait for a person for days."""

_WORDS: Final = {
    "queued": "Queued",
    "starting": "Starting",
    "working": "Working",
    "waiting": "Waiting for an answer",
    "done": "Done",
    "failed": "Failed",
    "stopped": "Stopped",
}
_TOOL_STATES: Final = {"completed": "complete", "failed": "error", "in_progress": "in_progress"}
_STEP_STATES: Final = {"completed": "complete", "in_progress": "in_progress"}
_STEP_SIGNS: Final = {"completed": "✅", "in_progress": "▶️"}
_TOOL_SIGNS: Final = {"completed": "✓", "failed": "✗"}
_RINGING: Final = re.compile(r"<(?=(?:!(?:channel|everyone|group|here|subteam)|@[UWB][A-Z0-9]+)\b)")
_UNFINISHED: Final = re.compile(r"<(?:[!@][^>\s]{0,40})?$")
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_HALF_ESCAPED: Final = re.compile(r"&[a-z]{0,3}$")
_ENTITY: Final = re.compile("&(?=(?:amp|lt|gt);)")
_WORD_JOINER: Final = "\u2060"

Block = dict[str, Any]
Sealing = Callable[..., str]


def verbosity(content: PostContent, channel: str) -> Verbosity:
    """Tell how much to show: little in channels, where others read along."""
    return content.verbosity or ("normal" if is_direct(channel) else "quiet")


def defang(text: str) -> str:
    """Turn text that would notify a channel or a person into plain text."""
    return _RINGING.sub(f"<{_WORD_JOINER}", text)


def escape(text: str) -> str:
    """Escape text so that Slack reads no markup in it."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def safe_end(text: str) -> int:
    """Tell how much of a text can be shown while more may follow: never half a mention."""
    match = _UNFINISHED.search(text)
    return len(text) if match is None else match.start()


def part_end(text: str, start: int, shown: int, size: int = PART_CHARACTERS) -> int | None:
    """Tell where the message that begins at `start` must end; None if the rest fits.

    Text that is already shown, up to `shown`, stays in it.
    """
    if len(text) - start <= size:
        return None
    last = start + size
    first = max(shown, last - LINE_CHARACTERS, start + 1)
    gaps = (text.rfind(gap, first, last) for gap in ("\n", " "))
    return next((gap + 1 for gap in gaps if gap >= 0), last)


def opening(text: str, start: int) -> str:
    """Reopen the code block in which a message begins."""
    fence = _fence_at(text, start)
    return f"{fence}\n" if fence else ""


def closing(text: str, end: int) -> str:
    """Close the code block in which a message ends."""
    fence = _fence_at(text, end)
    if not fence:
        return ""
    marks = fence[: _width(fence)]
    return f"{marks}\n" if text[:end].endswith("\n") else f"\n{marks}\n"


def piece(text: str, start: int, end: int | None) -> str:
    """Cut one message out of a text, complete in itself."""
    cut = text[start:end]
    tail = "" if end is None else closing(text, end)
    return defang(f"{opening(text, start)}{cut}{tail}") if cut else ""


def tasks(content: PostContent, level: Verbosity, name: str) -> dict[str, Block]:
    """List the tasks by name: the turn itself, its plan, and its tools if wanted."""
    over = content.state in FINAL
    state = "in_progress" if not over else "complete" if content.state == "done" else "error"
    turn = _task(name, _WORDS.get(content.state, content.state), state)
    if level == "full" and content.thought and not over:
        turn["details"] = escape(content.thought[-TASK_CHARACTERS:])
    listed = {name: turn}
    for number, step in enumerate(content.plan):
        status = _STEP_STATES.get(step.status, "pending")
        listed[f"plan-{number}"] = _task(f"plan-{number}", step.text, status)
    for tool in content.tools if level != "quiet" else ():
        status = _TOOL_STATES.get(tool.status, "pending")
        if over and status in {"pending", "in_progress"}:
            status = state
        task = _task(f"tool-{tool.call}", tool.title, status)
        if level == "full" and tool.output:
            task["output"] = escape(tool.output[:TASK_CHARACTERS])
        listed[task["id"]] = task
    return listed


def chunks(before: Mapping[str, Block], now: Mapping[str, Block], text: str) -> list[Block]:
    """Render what a stream does not show yet."""
    new = [
        {"type": "task_update", **task} for name, task in now.items() if before.get(name) != task
    ]
    return [*new, {"type": "markdown_text", "text": text}] if text else new


def message(
    content: PostContent, text: str, level: Verbosity, *, last: bool, seal: Sealing
) -> list[Block]:
    """Render a message of a turn as blocks: its state, then the text, then the note."""
    blocks: list[Block] = []
    over = content.state in FINAL
    if last and not over:
        blocks.append(_context(f"*{_WORDS.get(content.state, content.state)}*"))
    if last:
        blocks.extend(_progress(content, level))
    if text:
        blocks.append({"type": "markdown", "text": text})
    if last and content.state == "queued":
        blocks.append(_buttons([("Now", seal("command", "queue now")), _drop(seal)]))
    blocks.extend(ending(content) if last and over else _note(content) if last else ())
    return blocks or [_context(_WORDS.get(content.state, content.state) or "…")]


def ending(content: PostContent) -> list[Block]:
    """Render what is below an answer: the bridge's note, and the facts."""
    blocks = list(_note(content))
    if not content.text and not content.note:
        blocks.append(_context(_WORDS.get(content.state, content.state)))
    if content.facts:
        blocks.append(_context(" · ".join(map(_fact, content.facts))[:SECTION_CHARACTERS]))
    return blocks


def ask(content: PostContent, seal: Sealing) -> list[Block]:
    """Render an ask with a button for each answer or a list of choices, or its outcome."""
    blocks = list(_render_ask(content.asked))
    if content.url:
        blocks.append(_context(f"<{escape(content.url)}>"))
    if content.offered and content.ask is not None:
        number, options = content.ask, content.offered
        if all(option.kind == CHOICE for option in options):
            blocks.append(_list(options, seal("choice", number)))
        else:
            blocks.append(
                _buttons([(option.name, seal("ask", number, option.id)) for option in options])
            )
        if content.free_text:
            blocks.append(_context("Or reply with your own answer."))
    if content.note:
        # The note names an answer in the agent's words.
        blocks.append(_words(_literal(reveal_line(content.note))[:SECTION_CHARACTERS]))
    return blocks


def notice(content: PostContent) -> list[Block]:
    """Render a notice from the bridge."""
    return list(_sections(content.note or content.text or "…"))


def verbatim(blocks: Sequence[Block]) -> list[Block]:
    """Replace the Markdown among blocks by plain text, which Slack always accepts."""
    return [written for block in blocks for written in _verbatim(block)]


def _verbatim(block: Block) -> Iterator[Block]:
    match block["type"]:
        case "markdown":
            yield from _plain(block["text"])
        case "rich_text":
            for part in block["elements"]:
                yield from _plain(part["elements"][0]["text"])
        case _:
            yield block


def summary(content: PostContent) -> str:
    """Write the line that a notification shows."""
    words = content.text.strip() or content.note or _WORDS.get(content.state, content.state)
    return escape(" ".join(words[:SUMMARY_CHARACTERS].split())) or "…"


def words_below(content: PostContent) -> str:
    """Write the bridge's note and the facts as one text."""
    return "\n".join(filter(None, (escape(content.note), " · ".join(map(_fact, content.facts)))))


def _task(name: str, title: str, status: str) -> Block:
    shown = reveal_line(title)[:TASK_CHARACTERS] or name
    return {"id": name, "title": escape(shown), "status": status}


def _progress(content: PostContent, level: Verbosity) -> Iterator[Block]:
    steps = [f"{_STEP_SIGNS.get(step.status, '▫️')} {_line(step.text)}" for step in content.plan]
    if steps:
        yield _words(_last(steps))
    if level != "quiet" and content.tools:
        lines = []
        for tool in content.tools:
            lines.append(f"{_TOOL_SIGNS.get(tool.status, '…')} {_line(tool.title)}")
            if level == "full" and tool.output:
                lines.append(f"    {_line(tool.output)}")
        yield _words(_last(lines))
    if level == "full" and content.thought and content.state not in FINAL:
        thought = _head(escape(" ".join(content.thought.split())), SECTION_CHARACTERS)
        yield _context(f"_{thought}_")


def _line(text: str) -> str:
    return _literal(reveal_line(text)[:TASK_CHARACTERS])


def _last(lines: Sequence[str]) -> str:
    """Join as many of the last lines as fit: current work is at the end."""
    first, size = len(lines), 0
    while first and size + len(lines[first - 1]) < SECTION_CHARACTERS:
        first -= 1
        size += len(lines[first]) + 1
    return "\n".join(lines[first:])


def _note(content: PostContent) -> Iterator[Block]:
    if content.note:
        yield _context(_head(escape(content.note), SECTION_CHARACTERS))


def _fact(fact: Any) -> str:
    words = escape(fact.text)
    return f"<{fact.url}|{words.replace('|', '/')}>" if fact.url else words


def _drop(seal: Sealing) -> tuple[str, str]:
    return ("Drop", seal("command", "queue drop"))


def _buttons(labelled: list[tuple[str, str]]) -> Block:
    return {
        "type": "actions",
        "elements": [
            {
                "type": "button",
                "action_id": f"button-{number}",
                "text": {"type": "plain_text", "text": label[:BUTTON_CHARACTERS] or "…"},
                "value": value,
            }
            for number, (label, value) in enumerate(labelled)
        ],
    }


def _list(options: Sequence[AskOption], sealed: str) -> Block:
    """Render choices as a list to pick from; the pick is checked against the ask."""
    # The values of options are too short for a seal; the name of the list is not.
    return {
        "type": "actions",
        "elements": [
            {
                "type": "static_select",
                "action_id": sealed,
                "placeholder": {"type": "plain_text", "text": "Choose"},
                "options": [
                    {
                        "text": {"type": "plain_text", "text": _label(option.name)},
                        "value": option.id,
                    }
                    for option in options
                ],
            }
        ],
    }


def _label(name: str) -> str:
    """Shorten a name in its middle: its beginning and end usually tell it apart."""
    half = BUTTON_CHARACTERS // 2
    return name if len(name) <= BUTTON_CHARACTERS else f"{name[:half]}…{name[-half:]}"


def _render_ask(view: AskView) -> Iterator[Block]:
    """Render exactly what people decide about: as markup, the stars of `rm *a *b` would vanish."""
    if view.heading or not view.facts:
        yield from _plain(view.heading or "?")
    code = [element for fact in view.facts for element in _fact_code(fact)]
    if code:
        yield {"type": "rich_text", "elements": code}
    for words in notes(view):
        yield _context(words)
    if view.link and view.partial:
        yield _context(f"<{view.link}|Show everything>")


def _fact_code(fact: ShownFact) -> Iterator[Block]:
    head = f"{label(fact)} {fact.path}" if fact.path else label(fact)
    yield _rich("rich_text_section", head, bold=True)
    if fact.text:
        yield _rich("rich_text_preformatted", fact.text)
    if words := gap(fact):
        yield _rich("rich_text_section", words)
    if fact.tail:
        yield _rich("rich_text_preformatted", fact.tail)


def _rich(kind: str, text: str, *, bold: bool = False) -> Block:
    """Render text in which Slack reads no markup, mentions or emoji."""
    element: Block = {"type": "text", "text": _literal(text)}
    return {"type": kind, "elements": [{**element, "style": {"bold": True}} if bold else element]}


def _literal(text: str) -> str:
    """Keep Slack from reading `&lt;` as `<`."""
    return _ENTITY.sub(r"\\u{26}", text)


def _sections(text: str) -> Iterator[Block]:
    shown = escape(text)
    while shown:
        cut = _head(shown, SECTION_CHARACTERS)
        yield {"type": "section", "text": {"type": "mrkdwn", "text": cut}}
        shown = shown[len(cut) :]


def _plain(text: str) -> Iterator[Block]:
    text = _literal(text)
    for begin in range(0, len(text), SECTION_CHARACTERS):
        cut = text[begin : begin + SECTION_CHARACTERS]
        yield {"type": "section", "text": {"type": "plain_text", "text": cut, "emoji": False}}


def _head(escaped: str, size: int) -> str:
    """Take the beginning of escaped text, and never half an entity."""
    cut = escaped[:size]
    return _HALF_ESCAPED.sub("", cut) if len(escaped) > size else cut


def _context(text: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text or "…"}]}


def _words(text: str) -> Block:
    """Render titles small and verbatim: as markup, stars and underscores would vanish."""
    plain = {"type": "plain_text", "text": text or "…", "emoji": False}
    return {"type": "context", "elements": [plain]}


def _width(fence: str) -> int:
    return len(fence) - len(fence.lstrip(fence[0]))


def _fence_at(text: str, end: int) -> str:
    """Return the line that opened the code block in which a text is at `end`, if any."""
    fence = ""
    for match in _FENCE.finditer(text, 0, end):
        marks, rest = match.groups()
        if not fence:
            fence = match.group().strip()
        elif fence.startswith(marks[0] * 3) and not rest.strip() and len(marks) >= _width(fence):
            fence = ""
    return fence
