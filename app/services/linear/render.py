"""Renders a post as Linear activities, which cannot be changed once they are sent; pure.

So each call shows only what is new. Current work is ephemeral; finished work is joined into one
action, so that a turn costs tens of calls.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from app.markdown.writing import fence, span
from app.model.ask_wording import markdown
from app.model.asks import label_options
from app.model.posts import DelegatedLine, MadeFile, PostContent, ToolLine
from app.model.text import count, reveal_line, size_words
from app.model.updates import PlanStep
from app.model.wording import CUT_ANSWER, OPEN, STOPPED, asked, progress, record
from app.services.common.wording import NO_MESSAGE, ON_HOLD, lead
from app.services.linear import wording

BODY_CHARACTERS: Final = 50_000
"""Maximum text of one activity; Linear publishes no limit, and people do not read more."""
SAFE_CHARACTERS: Final = 8_000
"""Maximum text of the second try, if Linear rejects the first."""
CUT_CHARACTERS: Final = 100
"""Room for the note that a text was cut."""
GLIMPSE_CHARACTERS: Final = 300
"""How much to show of text that is still being written: its end."""
PARAMETER_CHARACTERS: Final = 200
"""How much of an action fits on a line of the session."""
OPEN_LINES: Final = 12
OPEN_CHARACTERS: Final = 1_000
"""How long an output may be that is shown without folding it: about a third of a screen."""
FOLD_CHARACTERS: Final = 200
"""Room for the fold and the fence around an output."""

FIRST: Final = "first"
"""Name of the activity that every post begins with; the post is found again by it."""
LAST: Final = "last"
"""Name of the activity that a turn ends with."""

_HOST: Final = re.compile(r"https?://(?:[^/?#@]*@)?([^/?#:]+)")
_FOLD: Final = re.compile(r"^\+\+\+", re.MULTILINE)
_FINISHED: Final = {"completed", "failed"}
_REPEATED: Final[Mapping[str, frozenset[str]]] = {
    "read": frozenset({"read", "view", "open"}),
    "edit": frozenset({"edit", "write", "update", "create", "patch"}),
    "delete": frozenset({"delete", "remove"}),
    "move": frozenset({"move", "rename"}),
    "search": frozenset({"search", "grep", "glob", "find"}),
    "execute": frozenset({"run", "execute", "bash", "shell"}),
    "fetch": frozenset({"fetch", "get"}),
}
"""Words that say no more than the kind of a call."""
_OF_FILES: Final = frozenset({"read", "edit", "delete", "move"})
_ENDS: Final = {"done": ("response", NO_MESSAGE), "failed": ("error", wording.FAILED)}
_PLAN: Final = {"pending": "pending", "in_progress": "inProgress", "completed": "completed"}


@dataclass(frozen=True, slots=True)
class NewActivity:
    """One activity to be created, under a name that is unique within its post."""

    name: str
    content: Mapping[str, str]
    ephemeral: bool = False
    options: tuple[Mapping[str, str], ...] = ()
    """The options that people can choose from."""
    link: str = ""
    """The address where people link an account; Linear shows either this or options."""

    @property
    def signal(self) -> tuple[str, Mapping[str, Any]] | None:
        """The signal that tells Linear how to show it, if it is more than text."""
        if self.link:
            host = _HOST.match(self.link)
            return "auth", {"url": self.link, "providerName": host[1] if host else self.link}
        return ("select", {"options": list(self.options)}) if self.options else None


@dataclass(frozen=True, slots=True)
class SessionChange:
    """A change of the session itself, which is not an activity."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """How much of a turn Linear shows so far."""

    calls: frozenset[str] = frozenset()
    """The tool calls whose result was shown."""
    plan: tuple[PlanStep, ...] = ()
    urls: frozenset[str] = frozenset()
    asked: frozenset[int] = frozenset()
    """The agents that were asked, of which the end was shown."""
    steered: frozenset[str] = frozenset()
    """The messages that were shown to be part of the turn."""
    note: str = ""
    glimpse: str = ""
    """The last progress that was shown."""
    glimpses: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One call, and what Linear shows after it."""

    call: NewActivity | SessionChange
    shown: ShownTurn


def steps(content: PostContent, shown: ShownTurn, *, busy: bool = False) -> Iterator[Step]:
    """Yield the calls that show a post, given what was already shown of it.

    `busy` means that a turn is running, so that a notice must not look like its answer.
    """
    match content.kind:
        case "turn":
            yield from _turn(content, shown)
        case "ask":
            yield from (Step(activity, shown) for activity in _ask(content))
        case "notice":
            kind = "thought" if busy else "response"
            yield Step(NewActivity(FIRST, _said(kind, content.note or content.text)), shown)


def activity_id(marker: str, name: str) -> str:
    """Derive an activity's id from its post, so that nothing is created twice.

    It has the form of a random UUID, the only one that Linear accepts.
    """
    digest = hashlib.sha256(f"{marker}/{name}".encode()).digest()
    return str(UUID(bytes=digest[:16], version=4))


def shorten(activity: NewActivity) -> NewActivity | None:
    """Return a shorter version of an activity; None if it is short already."""
    body = activity.content.get("body", "")
    # People approve what they see: nothing may be left out of an ask.
    if len(body) <= SAFE_CHARACTERS or activity.content["type"] == "elicitation":
        return None
    return replace(activity, content={**activity.content, "body": _cut(body, SAFE_CHARACTERS)})


def _turn(content: PostContent, shown: ShownTurn) -> Iterator[Step]:
    match content.state:
        case "starting":
            said = _said("thought", wording.ON_IT)
            yield Step(
                NewActivity(FIRST, said, ephemeral=True), replace(shown, glimpse=_line(said))
            )
        case "queued":
            said = _said("thought", wording.QUEUED)
            yield Step(NewActivity(FIRST, said, ephemeral=True), shown)
        case "stopped":
            # After a stop, nothing else may be shown.
            on_hold = content.outcome is not None and content.outcome.on_hold
            resume = ON_HOLD.format(to="") if on_hold else ""  # there are no buttons here
            words = _join(_answer(content, STOPPED), resume)
            yield Step(NewActivity(LAST, _said("response", words)), shown)
        case "done" | "failed" as state:
            for step in _progress(content, shown):
                shown = step.shown
                yield step
            kind, otherwise = _ENDS[state]
            yield Step(NewActivity(LAST, _said(kind, _answer(content, otherwise))), shown)
        case _:
            yield from _at_work(content, shown)


def _at_work(content: PostContent, shown: ShownTurn) -> Iterator[Step]:
    begins, acted = shown == ShownTurn(), False
    if content.note and content.note != shown.note:
        shown, acted = replace(shown, note=content.note), True
        yield Step(NewActivity(_name("note", content.note), _said("thought", content.note)), shown)
    for step in _progress(content, shown):
        shown, acted = step.shown, acted or isinstance(step.call, NewActivity)
        yield step
    if acted:
        return  # the finished work is progress enough
    glimpse = _glimpse(content) or (_said("thought", wording.ON_IT) if begins else {})
    if glimpse and (text := _line(glimpse)) != shown.glimpse:
        shown = replace(shown, glimpse=text, glimpses=shown.glimpses + 1)
        name = _name("now", str(shown.glimpses), text)
        yield Step(NewActivity(name, glimpse, ephemeral=True), shown)


def _progress(content: PostContent, shown: ShownTurn) -> Iterator[Step]:
    """Show which words were taken, the plan and links, and finished work joined into one action."""
    if taken := [each for each in content.steered if each not in shown.steered]:
        shown = replace(shown, steered=shown.steered | set(taken))
        words = wording.taken(len(taken))
        yield Step(NewActivity(_name("taken", *taken), _said("thought", words)), shown)
    change: dict[str, Any] = {}
    if content.plan != shown.plan:
        change["plan"] = [
            {"content": reveal_line(step.text), "status": _PLAN[step.status]}
            for step in content.plan
        ]
    links = [fact for fact in content.facts if fact.url and fact.url not in shown.urls]
    if links:
        change["addedExternalUrls"] = [{"label": fact.text, "url": fact.url} for fact in links]
    if change:
        urls = shown.urls | {fact.url for fact in links}
        shown = replace(shown, plan=content.plan, urls=urls)
        yield Step(SessionChange(change), shown)
    done = [
        tool for tool in content.tools if tool.status in _FINISHED and tool.call not in shown.calls
    ]
    if done:
        shown = replace(shown, calls=shown.calls | {tool.call for tool in done})
    if done and content.verbosity != "quiet":
        name = _name("done", *(tool.call for tool in done))
        yield Step(NewActivity(name, _actions(done, full=content.verbosity == "full")), shown)
    # What other agents did is shown once they are done, or once the turn that asked is over.
    is_over = content.state in {"done", "failed", "stopped"}
    for line in content.delegated:
        if line.id not in shown.asked and (line.is_over or is_over):
            shown = replace(shown, asked=shown.asked | {line.id})
            yield Step(NewActivity(_name("asked", str(line.id)), _asked(line, content)), shown)


def _asked(line: DelegatedLine, content: PostContent) -> dict[str, str]:
    """Show what another agent was asked as an action, with its state as the result."""
    how = progress(line, content)
    head = " · ".join(filter(None, (how.capitalize(), f"[{OPEN}]({line.link})" * bool(line.link))))
    said = _block(_cut(line.words.strip(), OPEN_CHARACTERS)) if line.is_over else ""
    return {
        "type": "action",
        "action": asked(line),
        "parameter": _cut(reveal_line(line.task), PARAMETER_CHARACTERS),
        "result": "\n\n".join(filter(None, (head, said))),
    }


def _glimpse(content: PostContent) -> dict[str, str]:
    """Show current work: an agent that was asked, a running tool, or the end of the text so far."""
    if busy := [line for line in content.delegated if not line.is_over]:
        return _asked(busy[-1], content)
    running = [tool for tool in content.tools if tool.status not in _FINISHED]
    if running and content.verbosity != "quiet":
        return _action(running[-1], _verbs(running[-1])[0])
    words = (content.text or content.thought).strip()
    if len(words) > GLIMPSE_CHARACTERS:
        words = f"…{words[-GLIMPSE_CHARACTERS:]}"
    return _said("thought", words) if words else {}


def _actions(done: Sequence[ToolLine], *, full: bool) -> dict[str, str]:
    if len(done) == 1:
        action = _action(done[0], _verbs(done[0])[1])
        is_failed, output = done[0].status == "failed", _block(done[0].output)
        if is_failed:
            output = "\n".join(filter(None, (wording.CALL_FAILED, output)))
        shows = is_failed or full or done[0].kind == "execute"
        return {**action, "result": output} if shows and output else action
    lines = [
        f"- {wording.done(_verbs(tool)[1], span(subject(tool)), failed=tool.status == 'failed')}"
        for tool in done
    ]
    titles = ", ".join(dict.fromkeys(map(subject, done)))
    return {
        "type": "action",
        "action": sum_up(done),
        "parameter": _cut(titles, PARAMETER_CHARACTERS),
        "result": _cut("\n".join(lines), BODY_CHARACTERS),
    }


def sum_up(done: Sequence[ToolLine]) -> str:
    """Say what several calls did: `Read 2 files, searched once`."""
    # Of files each counts once.
    calls = {(tool.kind, subject(tool) if tool.kind in _OF_FILES else tool.call) for tool in done}
    order = dict.fromkeys(tool.kind for tool in done)
    by_kind = Counter(kind for kind, _ in calls)
    kinds: Counter[str] = Counter()
    for kind in order:
        kinds[kind if kind in wording.COUNTED else "other"] += by_kind[kind]
    parts = [wording.COUNTED[kind](number) for kind, number in kinds.items()]
    words = ", ".join(parts)
    return f"{words[:1].upper()}{words[1:]}"


def subject(tool: ToolLine) -> str:
    """Write the title of a call without a verb that only repeats its kind."""
    title = reveal_line(tool.title)
    first, _, rest = title.partition(" ")
    bare = rest.strip() if first.casefold().rstrip(":") in _REPEATED.get(tool.kind, ()) else title
    inside = bare[1:-1]
    return inside if bare[:1] == bare[-1:] == "`" and inside and "`" not in inside else bare


def _action(tool: ToolLine, verb: str) -> dict[str, str]:
    title = _cut(subject(tool), PARAMETER_CHARACTERS)
    return {"type": "action", "action": verb, "parameter": title}


def _ask(content: PostContent) -> Iterator[NewActivity]:
    if content.mentions and content.state != "open":
        return  # the ask itself says what became of it
    match content.state:
        case "open":
            options = tuple(
                # Linear documents the value alone, and shows it. A repository's address becomes
                # its icon and name.
                {"label": label, "value": each.url or label}
                for each, label in zip(content.offered, label_options(content.offered), strict=True)
            )
            # Linear has one signal per activity: next to a link, options are text.
            names = " or ".join(span(reveal_line(each.name)) for each in content.offered)
            then = wording.THEN_REPLY.format(names=names) if content.url and names else ""
            called = " ".join(content.mentions)
            words = "\n\n".join(filter(None, (called, markdown(content.asked), then)))
            yield NewActivity(
                FIRST,
                _said("elicitation", words),
                options=() if content.url else options,
                link=content.url,
            )
        case "cancelled":
            return  # its turn ends, which is shown
        case state:
            # The note names an answer in the agent's words.
            words = span(reveal_line(content.note)) if state == "answered" else content.note
            said = _said("thought", words or markdown(content.asked))
            yield NewActivity(LAST, said, ephemeral=state == "answered")


def _answer(content: PostContent, otherwise: str) -> str:
    words = _join(lead(content), content.said.strip(), content.note, _foot(content)) or otherwise
    if not content.files:
        return words
    made = "\n".join(map(_file_line, content.files))
    # The list of files must not be cut off.
    return f"{_cut(words, BODY_CHARACTERS - len(made) - CUT_CHARACTERS)}\n\n{made}"


def _foot(content: PostContent) -> str:
    """Write what the turn did and cost in one line; Linear itself shows the plan and the links."""
    if content.state != "done" or content.outcome is None or not content.outcome.pushed:
        return ""
    cost = content.outcome.price
    parts = (*record(replace(content, plan=())), cost)
    return " · ".join(reveal_line(each) for each in parts if each)


def _join(*parts: str) -> str:
    return "\n\n".join(filter(None, parts))


def _file_line(file: MadeFile) -> str:
    """Show an image; link to any other file."""
    name = re.sub(r"[\[\]`]", "_", file.name)
    if not file.link:
        return wording.FILE_ON_MACHINE.format(name=name, size=size_words(file.size))
    if file.media_type.startswith("image/"):
        return f"![{name}]({file.link})"
    return f"[{name}]({file.link}) ({size_words(file.size)})"


def _said(kind: str, words: str) -> dict[str, str]:
    return {"type": kind, "body": _cut(words, BODY_CHARACTERS)}


def _verbs(tool: ToolLine) -> tuple[str, str]:
    return wording.VERBS.get(tool.kind, wording.VERBS["other"])


def _line(content: Mapping[str, str]) -> str:
    return " ".join(content.values())


def _name(kind: str, *parts: str) -> str:
    return f"{kind}:{hashlib.sha256(repr(parts).encode()).hexdigest()}"


def _cut(words: str, limit: int) -> str:
    if len(words) <= limit:
        return words
    if limit <= PARAMETER_CHARACTERS:
        return f"{words[: limit - 1]}…"
    return f"{words[:limit]}\n\n{CUT_ANSWER.format(left=len(words) - limit)}"


def _block(words: str) -> str:
    """Show output verbatim, in a fence that nothing in it can end; folded if it is long."""
    words = words.rstrip()
    if not words:
        return ""
    lines = words.count("\n") + 1
    if lines <= OPEN_LINES and len(words) <= OPEN_CHARACTERS:
        return fence(words)
    # Linear folds what is between two lines of plus signs; no line of the output is one.
    inside = _FOLD.sub(" +++", _cut(words, BODY_CHARACTERS - FOLD_CHARACTERS))
    head = wording.OUTPUT.format(lines=count(lines, "line"))
    return f"+++ {head}\n\n{fence(inside)}\n\n+++"
