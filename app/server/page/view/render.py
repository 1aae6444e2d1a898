"""Renders blocks, panels and pages as HTML; pure.

All outside text is escaped, or has gone through `markdown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cache, partial
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from app.model import ask_wording as wording
from app.model.asks import Grant
from app.model.conversations import in_path
from app.model.delegation import SERVICE
from app.model.text import duration, money, reveal_line, size_words
from app.model.wording import DELEGATED
from app.server.page.view import cards, diffs, highlight, markdown, notices
from app.server.page.view.agents import AgentList
from app.server.page.view.blocks import (
    Block,
    CallBlock,
    SaidBlock,
    WordsBlock,
)
from app.server.page.view.listing import ThreadList, short_name
from app.server.page.view.place import PageView, Place
from app.server.page.view.roster import AgentView, PageRoster
from app.server.page.view.steps import MORE_STEPS, STEPS, Split, split
from app.server.page.view.workspace import (
    ChangeHunk,
    Folder,
    WorkspaceChanges,
    WorkspacePage,
    address_of,
)

_TEMPLATES = Path(__file__).parent / "templates"
_NOUNS = {"read": "files", "search": "searches", "fetch": "pages"}
_SHOWN_KINDS = {"execute": "run", "switch_mode": "mode", "other": "tool"}
_COMMAND = re.compile(r"(Run )?`([^`]+)`")
"""A title that agents write around a command; backticks in a command itself stay."""
_APART = ("changes", "managed", "agents", "forms")
"""The style and script that only the pages of a workspace, or of agents, load."""
_OPEN_DIFF_LINES = 40
"""Changed lines that are shown without a click: about a screen."""


class Renderer:
    """Renders the blocks of a thread, with the agents of one bridge."""

    def __init__(
        self, roster: PageRoster, place: str = "", *, begin: int = 0, steps: int = STEPS
    ) -> None:
        """Take the agents, the path of the thread, from which the rest of it is fetched.

        `begin` is the row that it begins after, `steps` how many steps of a turn are shown.
        """
        self._roster = roster
        self.place = place
        """The path of the thread."""
        self.begin = begin
        """The row that the thread on the page begins after."""
        self._steps = steps
        self._at = roster.names.pattern
        self._macros = _macros("blocks.html")
        self._talk = _macros("talk.html")

    def block(self, block: Block) -> str:
        """Render one block with its content."""
        name = type(block).__name__.removesuffix("Block").lower()
        if isinstance(block, SaidBlock) and block.repeats is not None:
            name = "said_again"
        macro = getattr(self._macros, name, None) or getattr(self._talk, name)
        return str(macro(block, self))

    def log_tail(self, text: str) -> str:
        """Render the log of a failed turn."""
        return str(self._talk.log_tail(text))

    def call_whole(self, call: CallBlock) -> str:
        """Render the full input and output of a call."""
        return str(self._macros.call_body(call, self, self.changes(call, whole=True), True))

    def split(self, blocks: Sequence[Block]) -> Split:
        """Choose the blocks of a turn that are shown at first."""
        return split(blocks, self._steps)

    def earlier(self, home: str, parted: Split) -> str:
        """Render the link to the blocks that are not shown; empty if all are."""
        return str(self._macros.earlier(home, parted, self)).strip()

    def listed(self, blocks: Sequence[Block], home: str) -> str:
        """Render the blocks of a turn that are shown at first, and the link to the others."""
        return str(self._macros.listed(blocks, home, self))

    @property
    def longer(self) -> str:
        """The address of a page with more steps."""
        return f"{self.place}?steps={self._steps + MORE_STEPS}"

    def markdown(self, text: str, *, breaks: bool = False) -> Markup:
        """Render a message."""
        return Markup(markdown.html(text, self._at, breaks=breaks))  # noqa: S704 - cleaned there

    def parts(self, words: WordsBlock) -> Iterator[Markup | Mapping[str, Any]]:
        """Render a text, with the files that are named in it between its parts."""
        left, lines = list(words.files), []
        for line in words.text.split("\n") if left else ():
            found = next((each for each in left if each[0] == line), None)
            if found is None:
                lines.append(line)
                continue
            left.remove(found)
            yield self.markdown("\n".join(lines))
            yield found[1]
            lines = []
        yield self.markdown("\n".join(lines) if words.files else words.text)

    def agent(self, name: str) -> AgentView:
        """Look up an agent."""
        return self._roster[name]

    def mentions(self, text: str) -> bool:
        """Return whether a message mentions an agent."""
        return self._at.search(text) is not None

    def others(self, name: str) -> list[AgentView]:
        """List the other agents that are offered."""
        return [agent for agent in self._roster.offered if agent.id != name]

    def among(self, names: tuple[str, ...]) -> list[AgentView]:
        """List the offered agents with these names, or all that are offered if none has one."""
        here = [agent for name in names if (agent := self._roster.agents.get(name))]
        return [agent for agent in here if agent.visible] or list(self._roster.offered)

    @property
    def is_own(self) -> bool:
        """Whether messages can be sent from this page."""
        return self.place.startswith("/t/web/")

    @property
    def can_fork(self) -> bool:
        """Whether the thread can be continued apart: not where agents work for others."""
        return not self.place.startswith(f"/t/{SERVICE}/")

    def changes(self, call: CallBlock, *, whole: bool = False) -> list[cards.Change]:
        """Compare the files that a call changed."""
        return [cards.change(diff, whole=whole) for diff in call.data.get("diffs") or ()]


def template(name: str, **shown: object) -> str:
    """Render a template."""
    return _environment().get_template(name).render(**shown)


def page(shown: PageView, *, lost: str = "") -> str:
    """Render a whole page; `lost` says what was not found."""
    return template("page.html", page=shown, lost=lost)


def changes(shown: WorkspacePage, made: WorkspaceChanges) -> str:
    """Render the page with the changes of a workspace."""
    return template("changes.html", shown=shown, changes=made, on="changes")


def change_lines(shown: WorkspacePage, digest: str, number: int, piece: ChangeHunk) -> str:
    """Render some lines of one changed file."""
    return str(_macros("diff.html").piece(shown, digest, number, piece))


def change_gone(shown: WorkspacePage) -> str:
    """Render that the changes of a page are no longer those of its workspace."""
    return str(_macros("diff.html").gone(shown))


def files(shown: WorkspacePage, folder: Folder) -> str:
    """Render the page with the files of a workspace."""
    return template("files.html", shown=shown, folder=folder, on="files")


def agent_list(shown: AgentList) -> str:
    """Render the page with all agents."""
    return template("agents.html", listed=shown, on="/agents")


def with_agents(template: Path, listed: AgentList, **shown: object) -> str:
    """Render a page of a feature, which has its template, with the agents at its side."""
    return feature_page(template, listed=listed, **shown)


def feature_page(template: Path, **shown: object) -> str:
    """Render a page of a feature, which has its template."""
    return _compile(template).render(**shown)


@cache
def _compile(template: Path) -> Template:
    return _environment().from_string(template.read_text())


def place_panels(place: Place, roster: PageRoster) -> dict[str, str]:
    """Render the panels around a thread, by the id of their element."""
    return {name: _panel(name, place, roster) for name in ("state", "status", "side", "when", "to")}


def start_panels(roster: PageRoster, picked: str) -> dict[str, str]:
    """Render the agents of a page without a thread, by the id of their element."""
    return {
        "cards": _panel("cards", roster),
        "to": _panel("options", roster, picked),
        "crew": _panel("agents", roster, picked),
    }


def paused_panel(sentences: Sequence[str], roster: PageRoster) -> str:
    """Render which agents lost their isolation, and what the operator paused."""
    return _panel("paused", sentences, roster)


def threads_panel(threads: ThreadList, roster: PageRoster) -> str:
    """Render the list of threads."""
    return _panel("threads", threads, roster)


def _panel(name: str, *shown: object) -> str:
    return str(getattr(_macros("panels.html"), name)(*shown)).strip()


def _macros(name: str) -> Any:
    return _environment().get_template(name).module


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        ago=partial(_time, form="%d %b", mark="ago"),
        clock=partial(_time, form="%H:%M"),
        coded=_coded,
        date=partial(_time, form="%Y-%m-%d"),
        granted=_granted,
        duration=duration,
        delegated_words=DELEGATED.__getitem__,
        size=_size,
        excerpt=cards.excerpt,
        excerpt_rows=diffs.excerpt_rows,
        given=cards.given,
        file_address=_file_address,
        fact_gap=wording.gap,
        fact_label=wording.label,
        reveal=reveal_line,
        scripts=_scripts,
        short_path=cards.short_path,
        state_words=notices.state_words,
        removed_words=notices.removed_words,
        styles=_styles,
        titled=_titled,
        visible=highlight.visible,
        where=short_name,
    )
    made.globals.update(
        money=money,
        more_steps=MORE_STEPS,
        kind_of=_kind_of,
        noun_of=_noun_of,
        tone_of=_tone_of,
        opened=_opened,
        result_of=cards.result_of,
        source_of=source_of,
        is_picture=_is_picture,
        notes=wording.notes,
        notice=notices.notice,
        failure_title=notices.failure_title,
        failure_cause=notices.failure_cause,
        failure_details=notices.failure_details,
        in_order=notices.in_order,
        option_name=notices.option_name,
        rejects=notices.rejects,
        title_adds=notices.title_adds,
        wish=notices.wish,
    )
    return made


def _styles(assets: Mapping[str, str]) -> list[str]:
    """Return the style sheets in the order in which they apply: the general one first."""
    return [assets[name] for name in _in_order(assets, ".css", first="page.css")]


def _scripts(assets: Mapping[str, str]) -> list[str]:
    """Return the scripts in the order in which they run: the one that others use first.

    The theme is not among them: it has to be known before anything is shown.
    """
    names = _in_order(assets, ".js", first="live.js")
    return [assets[name] for name in names if name != "theme.js"]


def _in_order(assets: Mapping[str, str], suffix: str, *, first: str) -> list[str]:
    apart = {f"{name}{suffix}" for name in _APART}
    names = sorted(name for name in assets if name.endswith(suffix) and name not in apart)
    return sorted(names, key=lambda name: name != first)


def _file_address(path: str) -> str:
    return address_of(PurePosixPath(path))


def _time(at: float, form: str, mark: str = "") -> Markup:
    """Render a time, for the page to show in the reader's time zone, or as how long ago it was."""
    moment = datetime.fromtimestamp(at, UTC).replace(microsecond=0)
    return Markup('<time{} datetime="{}">{}</time>').format(
        Markup(' class="{}"').format(mark) if mark else "",
        moment.isoformat(),
        moment.strftime(form),
    )


def _coded(text: str) -> Markup:
    """Render a line of words with commands in backticks."""
    parts = highlight.visible(text).split("`")
    marked = (Markup("<code>{}</code>") if number % 2 else Markup("{}") for number in count())
    return Markup("").join(mark.format(part) for mark, part in zip(marked, parts, strict=False))


def _granted(grant: Grant) -> Markup:
    """Say all that a grant covers; what is exact is code."""
    words, exact = wording.granted_parts(grant.kind, grant.extent, grant.subject)
    code = Markup(", ").join(Markup("<code>{}</code>").format(each) for each in exact)
    return Markup("{} {}").format(words, code) if words else code


def _titled(text: str) -> Markup:
    """Render a title; a command that fills it is code, all else is as it was written."""
    shown = reveal_line(text)
    found = _COMMAND.fullmatch(shown)
    return Markup("{}<code>{}</code>").format(*found.groups("")) if found else escape(shown)


def _kind_of(call: CallBlock) -> str:
    kind = str(call.data.get("kind") or call.kind)
    return _SHOWN_KINDS.get(kind, kind)


def _noun_of(call: CallBlock) -> str:
    return _NOUNS.get(call.kind, "calls")


def _opened(call: CallBlock, changes: list[cards.Change]) -> bool:
    """Return whether changes are few enough to show at once; an open ask shows them itself."""
    return not call.asked and 0 < sum(len(change.lines) for change in changes) <= _OPEN_DIFF_LINES


def _tone_of(option: Mapping[str, str], options: tuple[Mapping[str, str], ...]) -> str:
    """Highlight the first option that allows; among plain choices none."""
    if not any(str(each.get("kind", "")).startswith("reject") for each in options):
        return ""
    allowing = [each for each in options if str(each.get("kind", "")).startswith("allow")]
    return "main" if allowing and option is allowing[0] else ""


def source_of(file: Mapping[str, str]) -> str:
    """Return the address of an attachment; only files uploaded to the page have one."""
    folder, _, name = file.get("url", "").partition("/")
    if not (folder.isalnum() and name) or "/" in name:
        return ""
    return f"/uploads/{folder}/{in_path(name)}"


def _size(file: Mapping[str, Any]) -> str:
    """Return how large a file is, if that is known."""
    return size_words(int(file["size"])) if file.get("size") else ""


def _is_picture(file: Mapping[str, str]) -> bool:
    return file.get("media_type", "") in {"image/png", "image/jpeg", "image/gif", "image/webp"}
