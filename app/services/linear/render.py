"""What a post becomes on Linear: activities that cannot be changed once they are sent; pure.

So each call shows only what was not shown yet. What matters only now is ephemeral; what was done is
joined into one action, so that a turn costs tens of calls.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from app.core.files.names import size_words
from app.core.posts import Fact, MadeFile, PostContent, ToolLine
from app.core.updates import PlanStep

BODY_CHARACTERS: Final = 50_000
"""What one activity holds; Linear publishes no limit, and nobody reads more in a thread."""
SAFE_CHARACTERS: Final = 8_000
"""What is tried where Linear does not take that much."""
CUT_CHARACTERS: Final = 100
"""What is said of a text that was cut."""
GLIMPSE_CHARACTERS: Final = 300
"""What is shown of words that are still being written: their end."""
PARAMETER_CHARACTERS: Final = 200
"""What a line of the session shows of an action."""

ON_IT: Final = "On it."

FIRST: Final = "first"
"""Names the activity that every post begins with, by which it is found again."""
LAST: Final = "last"
"""Names the activity that a turn ends with."""

_HOST: Final = re.compile(r"https?://(?:[^/?#@]*@)?([^/?#:]+)")
_FINISHED: Final = {"completed", "failed"}
_VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "read": ("Reading", "Read"),
    "edit": ("Editing", "Edited"),
    "delete": ("Deleting", "Deleted"),
    "move": ("Moving", "Moved"),
    "search": ("Searching", "Searched"),
    "execute": ("Running", "Ran"),
    "think": ("Thinking about", "Thought about"),
    "fetch": ("Fetching", "Fetched"),
}
_PLAN: Final = {"pending": "pending", "in_progress": "inProgress", "completed": "completed"}


@dataclass(frozen=True, slots=True)
class Activity:
    """One activity to be created, under a name that is unique within its post."""

    name: str
    content: Mapping[str, str]
    ephemeral: bool = False
    options: tuple[Mapping[str, str], ...] = ()
    """What people may choose from."""
    link: str = ""
    """Where people link an account; Linear shows either this or options."""

    @property
    def signal(self) -> tuple[str, Mapping[str, Any]] | None:
        """What tells Linear how to show it, if it is more than words."""
        if self.link:
            host = _HOST.match(self.link)
            return "auth", {"url": self.link, "providerName": host[1] if host else self.link}
        return ("select", {"options": list(self.options)}) if self.options else None


@dataclass(frozen=True, slots=True)
class Change:
    """A change of the session itself, which is no activity."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Shown:
    """What Linear has of a turn so far."""

    calls: frozenset[str] = frozenset()
    """The tool calls whose end was shown."""
    plan: tuple[PlanStep, ...] = ()
    urls: frozenset[str] = frozenset()
    note: str = ""
    glimpse: str = ""
    """What was shown last of the moment."""
    glimpses: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One call, and what Linear has afterwards."""

    call: Activity | Change
    shown: Shown


def steps(content: PostContent, shown: Shown, *, busy: bool = False) -> Iterator[Step]:
    """Say which calls show a post, given what was shown of it.

    `busy` says that a turn is being worked on, so that a notice must not look like its answer.
    """
    match content.kind:
        case "turn":
            yield from _turn(content, shown)
        case "ask":
            yield from (Step(activity, shown) for activity in _ask(content))
        case "notice":
            kind = "thought" if busy else "response"
            yield Step(Activity(FIRST, _said(kind, content.note or content.text)), shown)


def activity_id(marker: str, name: str) -> str:
    """Name an activity for good: the same post leads to the same id, so nothing is created twice.

    It has the form of a random UUID, which is the one that Linear accepts.
    """
    digest = hashlib.sha256(f"{marker}/{name}".encode()).digest()
    return str(UUID(bytes=digest[:16], version=4))


def shortened(activity: Activity) -> Activity | None:
    """Say the same in less; None if it is short already."""
    body = activity.content.get("body", "")
    if len(body) <= SAFE_CHARACTERS:
        return None
    return replace(activity, content={**activity.content, "body": _cut(body, SAFE_CHARACTERS)})


def _turn(content: PostContent, shown: Shown) -> Iterator[Step]:
    match content.state:
        case "starting":
            said = _said("thought", ON_IT)
            yield Step(Activity(FIRST, said, ephemeral=True), replace(shown, glimpse=_line(said)))
        case "queued":
            words = "This waits until what is being worked on is done."
            yield Step(Activity(FIRST, _said("thought", words), ephemeral=True), shown)
        case "stopped":
            # After a stop nothing happens but this.
            yield Step(Activity(LAST, _said("response", _answer(content, "Stopped."))), shown)
        case "done":
            for step in _progress(content, shown):
                shown = step.shown
                yield step
            yield Step(Activity(LAST, _said("response", _answer(content, "Done."))), shown)
        case "failed":
            for step in _progress(content, shown):
                shown = step.shown
                yield step
            yield Step(Activity(LAST, _said("error", _answer(content, "This failed."))), shown)
        case _:
            yield from _at_work(content, shown)


def _at_work(content: PostContent, shown: Shown) -> Iterator[Step]:
    begins, acted = shown == Shown(), False
    if content.note and content.note != shown.note:
        shown, acted = replace(shown, note=content.note), True
        yield Step(Activity(_named("note", content.note), _said("thought", content.note)), shown)
    for step in _progress(content, shown):
        shown, acted = step.shown, acted or isinstance(step.call, Activity)
        yield step
    if acted:
        return  # what was done says enough about now
    glimpse = _glimpse(content) or (_said("thought", ON_IT) if begins else {})
    if glimpse and (text := _line(glimpse)) != shown.glimpse:
        shown = replace(shown, glimpse=text, glimpses=shown.glimpses + 1)
        name = _named("now", str(shown.glimpses), text)
        yield Step(Activity(name, glimpse, ephemeral=True), shown)


def _progress(content: PostContent, shown: Shown) -> Iterator[Step]:
    """Show plan and links, and what was done since, joined into one action."""
    change: dict[str, Any] = {}
    if content.plan != shown.plan:
        change["plan"] = [
            {"content": step.text, "status": _PLAN[step.status]} for step in content.plan
        ]
    links = [fact for fact in content.facts if fact.url and fact.url not in shown.urls]
    if links:
        change["addedExternalUrls"] = [_link(fact) for fact in links]
    if change:
        urls = shown.urls | {fact.url for fact in links}
        shown = replace(shown, plan=content.plan, urls=urls)
        yield Step(Change(change), shown)
    done = [
        tool for tool in content.tools if tool.status in _FINISHED and tool.call not in shown.calls
    ]
    if not done:
        return
    shown = replace(shown, calls=shown.calls | {tool.call for tool in done})
    if content.verbosity != "quiet":
        name = _named("done", *(tool.call for tool in done))
        yield Step(Activity(name, _actions(done, full=content.verbosity == "full")), shown)


def _link(fact: Fact) -> dict[str, str]:
    """Write a link as Linear shows it beside a session."""
    return {"label": fact.text, "url": fact.url}


def _glimpse(content: PostContent) -> dict[str, str]:
    """Show what happens right now: a tool at work, else the end of what is being said."""
    running = [tool for tool in content.tools if tool.status not in _FINISHED]
    if running and content.verbosity != "quiet":
        return _action(running[-1], _verbs(running[-1])[0])
    words = content.text or content.thought
    return _said("thought", _end_of(words)) if words.strip() else {}


def _actions(done: Sequence[ToolLine], *, full: bool) -> dict[str, str]:
    if len(done) == 1:
        action = _action(done[0], _verbs(done[0])[1])
        output = _result(done[0], full=full)
        return {**action, "result": output} if output else action
    lines = [
        f"- {_verbs(tool)[1]} {_code(tool.title)}{' (failed)' if tool.status == 'failed' else ''}"
        for tool in done
    ]
    titles = ", ".join(tool.title for tool in done)
    return {
        "type": "action",
        "action": f"Took {len(done)} steps",
        "parameter": _cut(titles, PARAMETER_CHARACTERS),
        "result": _cut("\n".join(lines), BODY_CHARACTERS),
    }


def _action(tool: ToolLine, verb: str) -> dict[str, str]:
    title = " ".join(tool.title.split())
    return {"type": "action", "action": verb, "parameter": _cut(title, PARAMETER_CHARACTERS)}


def _result(tool: ToolLine, *, full: bool) -> str:
    """Show what a tool gave back: how it failed, or, where people want all, what it found."""
    if tool.status == "failed":
        return "\n".join(filter(None, ("Failed.", _block(tool.output))))
    return _block(tool.output) if full or tool.kind == "execute" else ""


def _ask(content: PostContent) -> Iterator[Activity]:
    match content.state:
        case "open":
            options = tuple({"label": each.name, "value": each.id} for each in content.options)
            # Linear has one signal for an activity: where a link is shown, options are words.
            names = " or ".join(f"`{each.name}`" for each in content.options)
            then = f"Reply {names} here afterwards." if content.url and names else ""
            words = "\n\n".join(filter(None, (content.text, then)))
            yield Activity(
                FIRST,
                _said("elicitation", words),
                options=() if content.url else options,
                link=content.url,
            )
        case "cancelled":
            return  # its turn ends, and says so
        case state:
            said = _said("thought", content.note or content.text)
            yield Activity(LAST, said, ephemeral=state == "answered")


def _answer(content: PostContent, otherwise: str) -> str:
    words = "\n\n".join(filter(None, (content.text.strip(), content.note))) or otherwise
    if not content.files:
        return words
    made = "\n".join(map(_made, content.files))
    # What names them must not be what is cut off.
    return f"{_cut(words, BODY_CHARACTERS - len(made) - CUT_CHARACTERS)}\n\n{made}"


def _made(file: MadeFile) -> str:
    """Show a picture, and name everything else with a link to it."""
    name = re.sub(r"[\[\]`]", "_", file.name)
    if not file.link:
        return f"`{name}` ({size_words(file.size)}) lies where the bridge runs."
    if file.media_type.startswith("image/"):
        return f"![{name}]({file.link})"
    return f"[{name}]({file.link}) ({size_words(file.size)})"


def _said(kind: str, words: str) -> dict[str, str]:
    return {"type": kind, "body": _cut(words, BODY_CHARACTERS)}


def _verbs(tool: ToolLine) -> tuple[str, str]:
    return _VERBS.get(tool.kind, ("Using", "Used"))


def _line(content: Mapping[str, str]) -> str:
    return " ".join(content.values())


def _named(kind: str, *parts: str) -> str:
    return f"{kind}:{hashlib.sha256(repr(parts).encode()).hexdigest()}"


def _end_of(words: str) -> str:
    words = words.strip()
    return words if len(words) <= GLIMPSE_CHARACTERS else f"…{words[-GLIMPSE_CHARACTERS:]}"


def _cut(words: str, limit: int) -> str:
    if len(words) <= limit:
        return words
    if limit <= PARAMETER_CHARACTERS:
        return f"{words[: limit - 1]}…"
    return f"{words[:limit]}\n\n[… {len(words) - limit} more characters in the transcript]"


def _code(words: str) -> str:
    ticks = "`" * (1 + max(map(len, re.findall("`+", words)), default=0))
    return f"{ticks}{' '.join(words.split())}{ticks}"


def _block(words: str) -> str:
    """Show output as it is: inside a fence that nothing in it can end."""
    if not words.strip():
        return ""
    ticks = "`" * max(3, 1 + max(map(len, re.findall("`+", words)), default=0))
    return f"{ticks}\n{words.rstrip()}\n{ticks}"
