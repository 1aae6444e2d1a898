"""Renders posts as Markdown comments, each with a hidden marker; pure.

An agent's text notifies only the person who asked and gives no other bot a command: names and
commands are put into code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape

from app.core.consent.answers import find_short
from app.markdown.writing import find_code, span
from app.model.ask_wording import markdown, sentence
from app.model.asks import label_options
from app.model.posts import DelegatedLine, Fact, MadeFile, PostContent, ToolLine, Verbosity
from app.model.text import reveal_line, size_words
from app.model.updates import PlanStep
from app.model.wording import MORE_AGENTS, OPEN, asked, progress, record
from app.services.common.wording import NO_MESSAGE, ON_HOLD, lead
from app.services.github import wording
from app.services.github.reviews import LineRemark

BODY_CHARACTERS = 65_536
"""The longest comment that GitHub accepts."""
PAGE_CHARACTERS = 57_000
"""What a comment holds of an answer; the rest is for plan, facts and marker."""
PROGRESS_CHARACTERS = 8_000
"""What a comment shows of an answer that is still being written: its end."""
PLAN_CHARACTERS = 3_000
FOOT_CHARACTERS = 7_000
"""Room for links, files, agents that were asked and marker below an answer."""
TOOLS: dict[Verbosity, int] = {"quiet": 0, "normal": 3, "full": 10}
"""Tool calls that are named while an agent works."""
AGENTS = 8
"""Agents that were asked and have a line; with their tasks they fit into the foot."""
LINE_CHARACTERS = 200

_PROGRESS = "/progress"
HAND = "✋"
UNFINISHED = {"queued", "starting", "working", "waiting"}
BOXES = {"pending": "- [ ] {}", "in_progress": "- [ ] **{}** ←", "completed": "- [x] {}"}

_NAME = re.compile(r"(?<![\w/@.`])@(?P<name>[A-Za-z0-9][A-Za-z0-9-]*(?:/[\w.-]+)?(?:\[bot\])?)")
_COMMAND = re.compile(r"^(?P<before>[ \t>]*)(?P<command>/[a-z][\w-]*)(?=\s|$)", re.MULTILINE)
"""What other bots take for a command, such as `/merge`."""
_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})(.*)$", re.MULTILINE)
_OWN_MARKER = re.compile(r"<!--\s*agent-bridge:")


def add_marker(body: str, marker: str) -> str:
    """Add the marker that a comment is found by; a comment that is too long is cut."""
    end = f"\n\n{signature(marker)}"
    room = BODY_CHARACTERS - len(end)
    return cut(body, room) + end


def signature(marker: str) -> str:
    """Write the hidden marker of a comment."""
    return f"<!-- agent-bridge:{marker} -->"


def part(marker: str, number: int) -> str:
    """Name the marker of the further comments that a long answer needs."""
    return marker if number == 1 else f"{marker}/{number}"


def progress_marker(marker: str) -> str:
    """Name the marker of the comment that shows a turn until its answer is written."""
    return f"{marker}{_PROGRESS}"


def is_progress(body: str) -> bool:
    """Tell whether a comment is one that shows a turn until its answer is written."""
    return f"{_PROGRESS} -->" in body


def pages(content: PostContent, marker: str, slug: str) -> list[str]:
    """Write a post as one comment, or as several if its answer is long."""
    if content.kind != "turn":
        words = join(content.note, content.text)
        body = _ask(content, slug) if content.kind == "ask" else quiet(words, content.asker)
        return [add_marker(body, marker)]
    if content.state in UNFINISHED:
        return [add_marker(_progress(content, slug), progress_marker(marker))]
    # First: what quiet adds must find room as well.
    said = quiet(content.said.strip("\n"), content.asker)
    texts = [text for text, _ in split(said, PAGE_CHARACTERS)]
    bodies = [_answer(content, texts[0]), *texts[1:]]
    if content.outcome is not None and content.outcome.on_hold:
        bodies[-1] = join(bodies[-1], ON_HOLD.format(to=f"@{slug} "))
    room = BODY_CHARACTERS - len(bodies[-1]) - FOOT_CHARACTERS
    bodies[-1] = join(
        bodies[-1],
        _files(content.files),
        _delegated(content, [line for line in content.delegated if not line.is_subagent]),
        _record(content, room),
        _foot(_links(content), content),
    )
    return [add_marker(body, part(marker, number)) for number, body in enumerate(bodies, 1)]


def retired(content: PostContent, marker: str) -> str:
    """Write what is left of the comment that showed a turn, which is then hidden."""
    body = join(wording.ANSWER_IN_COMMENT, _plan(content.plan))
    return add_marker(body, progress_marker(marker))


def review(
    content: PostContent,
    marker: str,
    slug: str,
    text: str,
    fitting: Sequence[LineRemark],
    others: Sequence[LineRemark],
) -> tuple[str, list[LineRemark]]:
    """Write an answer as a review: its text, with the comments that fit no line, and the others."""
    text = join(text, "\n".join(map(str, others)))
    whole = replace(content, text=content.text[: content.narrated] + text)
    return pages(whole, marker, slug)[0], [quieted(each, content.asker) for each in fitting]


def quieted(remark: LineRemark, asker: str = "") -> LineRemark:
    """Let a comment on lines notify only the person who asked."""
    return replace(remark, words=quiet(remark.words, asker))


def split(text: str, size: int) -> Iterator[tuple[str, int]]:
    """Split a text at paragraphs or lines; a fence that is cut is closed and opened again.

    Yields each piece with how much of the text is done after it.
    """
    done, opening = 0, ""
    while len(text) - done > size:
        end = _cut(text, done, done + size)
        piece = opening + text[done:end]
        opening = _open_fence(piece)
        yield piece + ("\n" + _FENCE.match(opening)[1] if opening else ""), end  # type: ignore[index]  # it is a fence
        done = end
    yield opening + text[done:], len(text)


def whisper(login: str, words: str) -> str:
    """Address one person; GitHub has no private messages, so everyone can read it."""
    return f"@{login} {quiet(cut(' '.join(words.split()), LINE_CHARACTERS * 5))}"


def quiet(text: str, asker: str = "") -> str:
    """Put into code what would notify others than the person who asked, or command a bot."""

    def named(found: re.Match[str]) -> str:
        return found[0] if found["name"].casefold() == asker.casefold() else f"`{found[0]}`"

    def plain(part: str) -> str:
        return _NAME.sub(named, _COMMAND.sub(r"\g<before>`\g<command>`", part))

    kept: list[str] = []
    begin = 0
    for start, end in find_code(text):
        kept += (plain(text[begin:start]), text[start:end])
        begin = end
    kept.append(plain(text[begin:]))
    return _OWN_MARKER.sub("<!-- ", "".join(kept))


def _progress(content: PostContent, slug: str) -> str:
    verbosity = content.verbosity or "normal"
    text = content.text
    if len(text) > PROGRESS_CHARACTERS:
        text = f"… {text[-PROGRESS_CHARACTERS:]}"
    return join(
        wording.STATES[content.state],
        content.note,
        _plan(content.plan),
        _tools(content.tools, TOOLS[verbosity], with_output=verbosity == "full"),
        _delegated(content, content.delegated),
        quiet(_close_fence(text), content.asker) if verbosity != "quiet" else "",
        _foot((*content.facts, Fact(wording.STOPS_IT.format(slug=slug))), content),
    )


def _answer(content: PostContent, text: str) -> str:
    outcome = lead(content)
    is_empty = content.state == "done" and not (text.strip() or content.note or outcome)
    head = join(_call(content), wording.STATES.get(content.state, ""))
    if outcome:
        return join(head, outcome, text, content.note)
    return join(head, content.note, text, NO_MESSAGE if is_empty else "")


def _record(content: PostContent, room: int) -> str:
    """Fold what led to the answer: what the turn did, its plan, and what was said meanwhile."""
    summary = escape(reveal_line(" · ".join(record(content)))).replace("@", "")
    said = quiet(_close_fence(content.narration), content.asker)
    own = _delegated(content, [line for line in content.delegated if line.is_subagent])
    fits = len(said) <= room - PLAN_CHARACTERS - len(own)
    inside = join(_plan(content.plan), own, said if fits else "")
    if not inside:
        return ""
    title = summary or wording.HOW_IT_GOT_THERE
    return f"<details><summary>{title}</summary>\n\n{inside}\n\n</details>"


def _call(content: PostContent) -> str:
    """Mention who asked, and whom an ask waits for: only that is sure to reach who did not comment.

    A bot is known by its number, which may be another account's login.
    """
    named = dict.fromkeys((content.asker, *content.mentions))
    return " ".join(f"@{name}" for name in named if name and not name.isdigit())


def _ask(content: PostContent, slug: str) -> str:
    asked = markdown(content.asked)
    if content.state != "open":
        summary = f"<summary>{_asked_words(content)}</summary>"
        return join(_plain(content.note), f"<details>{summary}\n\n{asked}\n\n</details>")
    opened = f"<{content.url}>" if content.url else ""
    needed = join(f"**{wording.NEEDS_ANSWER}**", asked)
    head = f"{HAND} {asked if content.asked.agent else needed}"
    return join(_call(content), head, opened, _replies(content, slug), content.note)


def _asked_words(content: PostContent) -> str:
    """Say in one line what was asked, for a fold."""
    said = sentence(content.asked)
    if said is None:
        return wording.ASKED.get(content.state, wording.NOT_ANSWERED)
    amount = f"({said.amount})" if said.amount else ""
    words = " ".join(filter(None, (said.words, said.subject, amount)))
    return escape(reveal_line(words)).replace("@", "")


def _replies(content: PostContent, slug: str) -> str:
    """List the options, and say how to choose one: by number where only they are answers."""
    names = [span(reveal_line(label)) for label in label_options(content.offered)]
    if content.free_text or not names:
        how = wording.OWN_WORDS_OR if names else wording.OWN_WORDS
        listed = "\n".join(f"- {name}" for name in names)
        return join(how.format(slug=slug) if content.free_text else "", listed)
    listed = "\n".join(f"{number}. {name}" for number, name in enumerate(names, 1))
    yes, no = (bool(find_short(each, content.options)) for each in ("yes", "no"))
    return join(listed, wording.reply(slug, can_say_yes=yes, can_say_no=no))


def _plan(steps: Sequence[PlanStep]) -> str:
    lines = [BOXES[step.status].format(_plain(step.text)) for step in steps]
    plan = "\n".join(lines)
    return plan if len(plan) <= PLAN_CHARACTERS else plan[:PLAN_CHARACTERS].rpartition("\n")[0]


def _tools(tools: Sequence[ToolLine], shown: int, *, with_output: bool) -> str:
    marks = {"completed": "✓", "failed": "✗"}
    lines: list[str] = []
    for tool in tools[-shown:] if shown else ():
        lines.append(f"- {marks.get(tool.status, '…')} {_plain(tool.title)}")
        if with_output and tool.output.strip():
            lines.append(f"  {_plain(tool.output)}")
    return "\n".join(lines)


def _delegated(content: PostContent, shown: Sequence[DelegatedLine]) -> str:
    """Write one line for each of these agents that were asked, below the one that asked it."""
    lines = [_asked(line, content) for line in shown[:AGENTS]]
    more = len(shown) - AGENTS
    return "\n".join([*lines, *([f"- {MORE_AGENTS.format(number=more)}"] if more > 0 else [])])


def _asked(line: DelegatedLine, content: PostContent) -> str:
    said = f"- {quiet(escape(asked(line)))}: {_plain(line.task)}"
    how = progress(line, content)
    why = f"{how}: {_plain(line.words)}" if line.state == "failed" and line.words else how
    link = f"[{OPEN}]({line.link})" if line.link else ""
    return "  " * (line.depth - 1) + " · ".join(filter(None, (said, why, link)))


def _files(files: Sequence[MadeFile]) -> str:
    """List the files that the agent made: an App cannot upload, so the page serves them."""
    lines = [
        f"- {f'[{name}]({file.link})' if file.link else name} ({size_words(file.size)})"
        for file in files
        if (name := _plain(file.name))
    ]
    is_linked = any(file.link for file in files)
    head = wording.FILES_ON_PAGE if is_linked else wording.FILES_ON_MACHINE
    return "\n".join((head, *lines)) if lines else ""


def _links(content: PostContent) -> list[Fact]:
    """List what is linked below an answer: what its first line links is not repeated."""
    pushed = content.outcome.pushed if content.outcome is not None else None
    shown = {pushed.link} if pushed is not None else set()
    return [fact for fact in content.facts if fact.url and fact.url not in shown]


def _foot(facts: Sequence[Fact], content: PostContent) -> str:
    words = [f"[{fact.text}]({fact.url})" if fact.url else fact.text for fact in facts]
    cost = content.outcome and content.outcome.price
    words += [cost] if cost else []
    return f"<sub>{' · '.join(words)}</sub>" if words else ""


def join(*parts: str) -> str:
    """Join paragraphs, without the empty ones."""
    return "\n\n".join(part for part in parts if part.strip())


def _plain(text: str) -> str:
    """Write a title as code: it mentions no one, and every character is visible."""
    return span(cut(reveal_line(text), LINE_CHARACTERS))


def cut(text: str, limit: int) -> str:
    """Cut a text that is too long, and show that."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _cut(text: str, begin: int, end: int) -> int:
    """Find the last good place for a cut, in the second half of a piece."""
    for border in ("\n\n", "\n", " "):
        found = text.rfind(border, begin + (end - begin) // 2, end)
        if found >= 0:
            return found + len(border)
    return end


def _open_fence(piece: str) -> str:
    """Return the line that opened a fence which the piece does not close."""
    opened = ""
    for found in _FENCE.finditer(piece):
        if not opened:
            opened = found[0].strip() + "\n"
        elif found[1].startswith(opened[:3]) and not found[2].strip():
            opened = ""
    return opened


def _close_fence(text: str) -> str:
    """Close a fence that is still being written, so that what follows is not code."""
    opened = _open_fence(text)
    return f"{text}\n{opened[:3]}" if opened else text
