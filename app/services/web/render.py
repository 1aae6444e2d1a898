"""Makes HTML of blocks and of what stands around them; pure.

Whatever comes from elsewhere is escaped, or has gone through `markdown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from app.services.web import cards, markdown, views
from app.services.web.blocks import Block, Call
from app.services.web.views import Cast, Page, Place, ThreadList
from app.services.web.workspace import Workspace

_TEMPLATES = Path(__file__).parent / "templates"
_NOUNS = {"read": "files", "search": "searches", "fetch": "pages"}
_SHOWN_KINDS = {"switch_mode": "mode", "other": "tool"}
_OPEN_DIFF_LINES = 40
"""Changes that are shown without a click: about a screen."""


class Renderer:
    """Renders for one bridge: it knows its agents."""

    def __init__(self, cast: Cast, place: str = "") -> None:
        """Take the agents, and the path of the thread where more of its cards can be fetched."""
        self._cast = cast
        self._place = place
        self._at = cast.names.pattern
        self._macros: Any = _environment().get_template("blocks.html").module

    def block(self, block: Block) -> str:
        """Render one block with all that is in it."""
        macro = getattr(self._macros, type(block).__name__.lower())
        return str(macro(block, self))

    def call_whole(self, call: Call) -> str:
        """Render all that a call was given and gave, without leaving anything out."""
        return str(self._macros.call_body(call, self, self.changes(call, whole=True), True))

    def markdown(self, text: str, *, breaks: bool = False) -> Markup:
        """Render what somebody said."""
        return Markup(markdown.html(text, self._at, breaks=breaks))  # noqa: S704 - cleaned there

    def agent(self, name: str) -> views.Agent:
        """Look an agent up."""
        return self._cast[name]

    def mentions(self, text: str) -> bool:
        """Tell whether a message says by itself whom it is for."""
        return self._at.search(text) is not None

    @property
    def place(self) -> str:
        """The path of the thread."""
        return self._place

    def changes(self, call: Call, *, whole: bool = False) -> list[cards.Change]:
        """Compare the files that a call changed."""
        return [cards.change(diff, whole=whole) for diff in call.data.get("diffs") or ()]


def page(shown: Page) -> str:
    """Render a whole page."""
    return _environment().get_template("page.html").render(page=shown)


def missing_page(shown: Page, words: str) -> str:
    """Render a page that says that there is nothing here."""
    return _environment().get_template("page.html").render(page=shown, lost=words)


def workspace(shown: Workspace) -> str:
    """Render the page of a workspace."""
    return _environment().get_template("workspace.html").render(shown=shown)


def place_panels(place: Place, cast: Cast) -> dict[str, str]:
    """Render what stands around a thread, by the element it belongs to."""
    return {name: _panel(name, place, cast) for name in ("state", "status", "side", "to")}


def threads_panel(threads: ThreadList, cast: Cast) -> str:
    """Render the list of threads."""
    return _panel("threads", threads, cast)


def _panel(name: str, shown: Place | ThreadList, cast: Cast) -> str:
    macros: Any = _environment().get_template("panels.html").module
    return str(getattr(macros, name)(shown, cast)).strip()


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
        clock=_clock,
        duration=views.duration,
        excerpt=cards.excerpt,
        given=cards.given,
        inline=_inline,
        short_path=cards.short_path,
        visible=cards.visible,
    )
    made.globals.update(
        money=views.money,
        kind_of=_kind_of,
        noun_of=_noun_of,
        tone_of=_tone_of,
        opened=_opened,
        source_of=_source_of,
        is_picture=_is_picture,
    )
    return made


def _inline(text: str) -> Markup:
    return Markup(markdown.inline(cards.visible(text)))  # noqa: S704 - cleaned there


def _clock(at: float) -> Markup:
    """Write a time down, for the page to show in the reader's zone."""
    moment = datetime.fromtimestamp(at, UTC).replace(microsecond=0)
    return Markup('<time datetime="{}">{}</time>').format(
        moment.isoformat(), moment.strftime("%H:%M")
    )


def _kind_of(call: Call) -> str:
    kind = str(call.data.get("kind") or call.kind)
    return _SHOWN_KINDS.get(kind, kind)


def _noun_of(call: Call) -> str:
    return _NOUNS.get(call.kind, "calls")


def _opened(changes: list[cards.Change]) -> bool:
    """Show changes at once where they are few."""
    return 0 < sum(len(change.lines) for change in changes) <= _OPEN_DIFF_LINES


def _tone_of(option: Mapping[str, str], options: tuple[Mapping[str, str], ...]) -> str:
    """Make the first way to allow stand out; among mere choices none does."""
    if not any(str(each.get("kind", "")).startswith("reject") for each in options):
        return ""
    allowing = [each for each in options if str(each.get("kind", "")).startswith("allow")]
    return "main" if allowing and option is allowing[0] else ""


def _source_of(file: Mapping[str, str]) -> str:
    """Tell where an attachment can be read; only what was uploaded to the page can be."""
    folder, _, name = file.get("url", "").partition("/")
    if not (folder.isalnum() and name) or "/" in name:
        return ""
    return f"/uploads/{folder}/{views.in_path(name)}"


def _is_picture(file: Mapping[str, str]) -> bool:
    return file.get("media_type", "") in {"image/png", "image/jpeg", "image/gif", "image/webp"}
