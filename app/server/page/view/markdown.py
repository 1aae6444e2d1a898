"""Renders Markdown from people and agents as HTML that can do nothing but show.

Two walls: the parser lets no HTML through, and its output is cleaned against an allow-list. Nothing
is ever loaded from elsewhere: a picture becomes a link, a link without an address becomes text.
Characters that reorder others are made visible, and each block has its own direction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from html import escape
from itertools import pairwise
from typing import Any, Final
from unicodedata import bidirectional

import nh3
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, paragraph
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from app.markdown.writing import find_false_host
from app.server.page.view.highlight import PATCH, SPANS, render_fence

CACHED = 500
"""Pieces of text whose HTML is cached: the pages that are open, a few megabytes."""
PIECE_CHARACTERS = 6_000
"""The size from which the beginning of a text is final, so that only its end is rendered again."""

MARKS = 10_000
"""Markdown characters in one piece: parsing more takes seconds, and people write far fewer."""

SCHEMES = {"http", "https", "mailto"}
TAGS = {
    *("p", "br", "hr", "blockquote", "pre", "code", "em", "strong", "s", "a", "span"),
    *("h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li"),
    *("table", "thead", "tbody", "tr", "th", "td", "sup", "div", "button"),
}
DIRECTED = {
    "p",
    "blockquote",
    "ul",
    "ol",
    "li",
    "table",
    "th",
    "td",
    *(f"h{n}" for n in range(1, 7)),
}
ATTRIBUTES = {
    **{tag: {"dir"} for tag in DIRECTED},
    "a": {"href"},
    "button": {"data-copy", "type"},
    "div": {"tabindex"},
    "ol": {"dir", "start"},
    "span": {"title"},
}
ALIGNED = {"center", "right"}
FOOTNOTE: Final = "footnote"
"""The class of a paragraph with the words of a footnote."""
CLASSES = {
    "button": {"copy"},
    "div": {"code", "table"},
    "p": {FOOTNOTE},
    "pre": {PATCH},
    "span": {"at", "path", *SPANS},
    "td": ALIGNED,
    "th": ALIGNED,
}

_ADDRESS = re.compile(r"(?:https?://|mailto:)\S", re.IGNORECASE)
_BARE_ADDRESS = re.compile(r"https?://[^\s<>\"'`\[\]{}|\\^]+", re.IGNORECASE)
_AFTER_ADDRESS = ".,;:!?*_~"
_MARK = re.compile(r"[\[\]<>*_`~|&!\\]")
_TASK = re.compile(r"\[([ xX])\] ")
_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Embeddings, overrides and isolates; a mark such as U+200F is part of ordinary writing."""
_LABEL: Final = r"\[\^([^\]\[\s^]{1,40})\]"
_REFERENCE: Final = re.compile(_LABEL)
_FOOTNOTE: Final = re.compile(_LABEL + r":[ \t]+(?=\S)")
_RIGHT_TO_LEFT: Final = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)


@lru_cache(CACHED)
def html(text: str, at: re.Pattern[str] | None = None, *, breaks: bool = False) -> str:
    """Render a text; `at` finds the names to highlight, `breaks` keeps line ends as typed."""
    if not text.isascii():
        text = _REORDERING.sub("\N{REPLACEMENT CHARACTER}", text)
    if _is_overloaded(text):
        return f"<pre>{escape(text)}</pre>"
    return _clean(_parser(breaks).render(text, {"at": at}))


def prose(text: str) -> str:
    """Return a text without its code."""
    if _is_overloaded(text):
        return ""
    tokens = _parser(breaks=False).parse(text, {"at": None})
    return "\n".join(
        "".join(_words(child) for child in token.children or ())
        for token in tokens
        if token.type == "inline"
    )


def pieces(text: str) -> Iterator[str]:
    """Cut a long text between its outermost blocks, so that each piece renders the same alone."""
    cut = len(text) > PIECE_CHARACTERS and not _is_overloaded(text)
    starts = _block_starts(text) if cut else ()
    begin = 0
    for start in starts:
        if start - begin > PIECE_CHARACTERS:
            yield text[begin:start]
            begin = start
    yield text[begin:]


def _is_overloaded(text: str) -> bool:
    return len(text) > MARKS and len(_MARK.findall(text)) > MARKS


def _clean(made: str) -> str:
    return nh3.clean(
        made,
        tags=TAGS,
        attributes=ATTRIBUTES,
        allowed_classes=CLASSES,
        url_schemes=SCHEMES,
        link_rel="noopener noreferrer nofollow",
        set_tag_attribute_values={"a": {"target": "_blank"}, "pre": {"tabindex": "0"}},
    )


class _Parser(MarkdownIt):
    """Accepts every link, so that one without a valid address can be shown as its text."""

    def validateLink(self, url: str) -> bool:  # noqa: ARG002, N802 - the parser's own name
        return True


@cache
def _parser(breaks: bool) -> MarkdownIt:
    parser = _Parser("commonmark", {"html": False, "breaks": breaks})
    parser.enable(["table", "strikethrough"])
    add_footnotes(parser)
    parser.core.ruler.push("show_only", _show_only)
    parser.core.ruler.push("direct", direct)
    parser.add_render_rule("fence", render_fence)
    parser.add_render_rule("code_block", render_fence)
    parser.add_render_rule("table_open", _open_table)
    parser.add_render_rule("table_close", lambda *_: "</table></div>\n")
    return parser


def _open_table(self: RendererHTML, tokens: Sequence[Token], index: int, *more: Any) -> str:
    """Put a table into a box that can be scrolled, also by keyboard."""
    return f'<div class="table" tabindex="0">{self.renderToken(tokens, index, *more)}'


@cache
def _block_parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    add_footnotes(parser)
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@lru_cache(CACHED)
def _block_starts(text: str) -> tuple[int, ...]:
    """Return where each outermost block begins, except the first."""
    if "\r" in text or "\0" in text:
        return ()  # the parser would count lines differently
    lines = [token.map[0] for token in _block_parser().parse(text) if not token.level and token.map]
    offsets = [0]
    for line in text.split("\n"):
        offsets.append(offsets[-1] + len(line) + 1)
    return tuple(offsets[line] for line in lines if line)


def _words(token: Token) -> str:
    if token.type in {"softbreak", "hardbreak"}:
        return "\n"
    return " " if token.type == "code_inline" else token.content


def _show_only(state: StateCore) -> None:
    """Remove everything from the parsed text that would do more than show."""
    for before, token in pairwise([None, *state.tokens]):
        assert token is not None
        if token.type in {"th_open", "td_open"}:
            _align(token)
        elif token.type == "inline" and token.children:
            item = before is not None and before.type == "paragraph_open" and before.level
            if item and (task := _TASK.match(token.children[0].content)):
                box = "☐ " if task[1] == " " else "☑ "
                token.children[0].content = box + token.children[0].content[task.end() :]
            token.children = list(_make_harmless(token.children, state.env.get("at")))


def _align(token: Token) -> None:
    """Replace the parser's inline style, which the page forbids, by a class."""
    style = str(token.attrs.pop("style", ""))
    if (side := style.removeprefix("text-align:")) in ALIGNED:
        token.attrs["class"] = side


def _make_harmless(tokens: list[Token], at: re.Pattern[str] | None) -> Iterator[Token]:
    """Turn pictures into links, links without an address into text; mark names and addresses.

    A link whose text is another address shows its host.
    """
    inside: list[str] = []
    target, words = "", ""
    for token in tokens:
        words += token.content
        if token.type == "image":
            yield from _picture(token, linked="a" not in inside)
        elif token.type == "link_open":
            target, words = str(token.attrGet("href") or ""), ""
            opened = _link(target)
            inside.append(opened.tag)
            yield opened
        elif token.type == "link_close":
            yield Token("link_close", inside.pop(), -1)
            yield from _host_of(words, target)
        elif token.type == "text" and "a" not in inside:
            yield from _mark(token.content, at)
        else:
            yield token


def _link(address: str) -> Token:
    if _ADDRESS.match(address):
        return Token("link_open", "a", 1, attrs={"href": address})
    return Token("link_open", "span", 1, attrs={"class": "path", "title": address})


def _host_of(words: str, target: str) -> Iterator[Token]:
    """Say where a link leads whose text is another address."""
    if host := find_false_host(words, target):
        yield _text(f" ({host})")


def _picture(token: Token, *, linked: bool) -> Iterator[Token]:
    address = str(token.attrGet("src") or "")
    words = _text(token.content or address or "picture")
    if not linked:
        yield words
        return
    opened = _link(address)
    yield from (opened, words, Token("link_close", opened.tag, -1))
    yield from _host_of(words.content, address)


def _mark(words: str, at: re.Pattern[str] | None) -> Iterator[Token]:
    """Mark names and bare addresses in plain text."""
    begin = 0
    for start, end, tokens in _finds(words, at):
        if start >= begin:
            yield _text(words[begin:start])
            yield from tokens
            begin = end
    yield _text(words[begin:])


def _finds(words: str, at: re.Pattern[str] | None) -> list[tuple[int, int, list[Token]]]:
    found: list[tuple[int, int, list[Token]]] = []
    for name in at.finditer(words) if at is not None else ():
        opened = Token("span_open", "span", 1, attrs={"class": "at"})
        inner = [opened, _text(name[0]), Token("span_close", "span", -1)]
        found.append((name.start(), name.end(), inner))
    for match in _BARE_ADDRESS.finditer(words):
        address = _without_closing(match[0])
        inner = [_link(address), _text(address), Token("link_close", "a", -1)]
        found.append((match.start(), match.start() + len(address), inner))
    return sorted(found, key=lambda each: each[0])


def _text(words: str) -> Token:
    return Token("text", "", 0, content=words)


def _without_closing(address: str) -> str:
    """Remove the punctuation that ends the sentence rather than the address."""
    address = address.rstrip(_AFTER_ADDRESS)
    while address.endswith(")") and address.count(")") > address.count("("):
        address = address[:-1].rstrip(_AFTER_ADDRESS)
    return address


def add_footnotes(parser: MarkdownIt) -> None:
    """Add footnotes to a parser: `[^1]` in a text, and `[^1]: words` below it.

    It is shown where it is written. A number is a footnote by itself, since its words may be in a
    later piece of the text; a name only with its words: `[^a-z]` is mostly something else.
    """
    parser.block.ruler.before("reference", "footnote", _define, {"alt": ["paragraph", "reference"]})
    parser.inline.ruler.before("link", "footnote", _refer)


def _define(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    found = _FOOTNOTE.match(state.src, state.bMarks[start] + state.tShift[start])
    if found is None or silent:
        return found is not None
    paragraph(state, start, end, silent)
    opened, words, _ = state.tokens[-3:]
    opened.attrs["class"] = FOOTNOTE
    words.content = _FOOTNOTE.sub(r"[^\1] ", words.content, count=1)
    state.env.setdefault("footnotes", set()).add(found[1])
    return True


def _refer(state: StateInline, silent: bool) -> bool:
    found = _REFERENCE.match(state.src, state.pos)
    if found is None:
        return False
    label = found[1]
    if not label.isdecimal() and label not in state.env.get("footnotes", ()):
        return False
    if not silent:
        state.push("sup_open", "sup", 1)
        state.push("text", "", 0).content = label
        state.push("sup_close", "sup", -1)
    state.pos = found.end()
    return True


def direct(state: StateCore) -> None:
    """Mark the blocks whose direction, by their first letter, differs from that around them.

    The attribute `dir=auto` would not do: a list or a quotation does not look into children that
    have a direction themselves.
    """
    if state.src.isascii() or not _RIGHT_TO_LEFT.search(state.src):
        return
    around = ["ltr"]
    for index, token in enumerate(state.tokens):
        if token.nesting == 1:
            own = next(_letters(state.tokens, index), around[-1])
            if own != around[-1] and not token.hidden:
                token.attrs["dir"] = own
            around.append(around[-1] if token.hidden else own)
        elif token.nesting == -1:
            around.pop()


def _letters(tokens: list[Token], index: int) -> Iterator[str]:
    """Yield the direction of each letter in a block, but not in its code."""
    for token in tokens[index + 1 :]:
        if token.level <= tokens[index].level:
            return
        for child in token.children or ():
            for letter in child.content if child.type == "text" else "":
                kind = bidirectional(letter)
                if kind in {"R", "AL"}:
                    yield "rtl"
                elif kind == "L":
                    yield "ltr"
