"""Writes Markdown that shows every character, fetches nothing and tells no false address; pure.

A picture's address can carry anything out: a platform or a browser fetches it for every reader.
Hostile text takes no longer than other text of its size.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

_TICKS = re.compile("`+")
_FENCED = re.compile(
    # Backticks after those of a fence make it a span, behind which words follow.
    r"^[ \t>]*(?P<bar>`{3,}(?=[^\n`]*$)|~{3,})[^\n]*\n"
    r".*?(?:^[ \t>]*(?P=bar)[`~]*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)


def fence(text: str, language: str = "") -> str:
    """Write lines as a code block."""
    ticks = "`" * max(3, _longest(text) + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def span(text: str) -> str:
    """Write one line as code among other words."""
    ticks = "`" * (_longest(text) + 1)
    # One space at either end is not shown, so a backtick or a space there needs another.
    pad = " " if text[:1] in {"`", " "} or text[-1:] in {"`", " "} else ""
    return f"{ticks}{pad}{text}{pad}{ticks}"


def find_code(text: str) -> Iterator[tuple[int, int]]:
    """Yield where code begins and ends, fenced or in a line, in a time that grows with the text."""
    at = 0
    for block in _FENCED.finditer(text):
        yield from _find_spans(text, at, block.start())
        yield block.span()
        at = block.end()
    yield from _find_spans(text, at, len(text))


def _find_spans(text: str, begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the code within lines: between two runs of backticks of one length."""
    while begin < end:
        after = text.find("\n", begin, end) + 1 or end
        runs = [found.span() for found in _TICKS.finditer(text, begin, after)]
        closing: dict[int, list[int]] = defaultdict(list)
        for start, stop in reversed(runs):
            closing[stop - start].append(stop)
        done = begin
        for start, stop in runs:
            same = closing[stop - start]
            same.pop()
            if start >= done and same:
                done = same[-1]
                yield start, done
        begin = after


def _longest(text: str) -> int:
    return max(map(len, _TICKS.findall(text)), default=0)


Allows = Callable[[str, int], bool]
"""Tells whether pictures may be fetched from a host and port."""

MOST_MARKS: Final = 5_000
"""Signs that a parser reads in 0.1 s: people write far fewer in one text with pictures or links."""
MOST_STEPS: Final = 4_000_000
"""Steps that looking for links may take, which is 0.2 s; prose takes a hundredth of that."""
WORDS: Final = 500
"""Characters of a link's text that are looked at."""
ADDRESS: Final = 4_000
"""Characters of a link's address that are looked at."""

_TAGS: Final = r"<(?=/?(?:img|image|picture|source|svg|video|audio|iframe|embed|object|link)\b)"
_TAG: Final = re.compile(_TAGS, re.IGNORECASE)
_ANCHOR: Final = re.compile(r"<(?=a\s)", re.IGNORECASE)
_OPENING: Final = re.compile(rf"{_TAGS}|<(?=a\s|https?:)", re.IGNORECASE)
_REFERENCE: Final = re.compile(r"^([ \t>]*)\[(?=[^\]\n]{1,999}\]:)", re.MULTILINE)
_CANDIDATE: Final = re.compile(rf"!\[|\]\(|\]:|<https?:|<a\s|{_TAGS}", re.IGNORECASE)
_MARK: Final = re.compile(r"[\[\]<*_`&]")
_RUN: Final = re.compile("`+")
_PIECE: Final = re.compile(
    r"(?P<code>^[ \t>]*(?P<bar>`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t>]*(?P=bar)[`~]*[ \t]*$|\Z)"
    r"|(?<![`\\])(?P<ticks>`+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`))"
    rf"|(?P<picture>!\[[^\]\n]{{0,{WORDS}}}+\]\(\s{{0,9}}<?(?P<source>[^)\s>]{{0,{ADDRESS}}}+)>?"
    rf"[^)\n]{{0,{WORDS}}}+\))"
    rf"|(?P<link>(?<!!)\[(?P<words>[^\]\n]{{1,{WORDS}}}+)\]\(\s{{0,9}}<?"
    rf"(?P<target>[^)\s>]{{1,{ADDRESS}}}+)>?[^)\n]{{0,{WORDS}}}+\))"
    rf"|(?P<angle><(?P<to>https?://[^|>\s]{{1,{ADDRESS}}}+)\|(?P<named>[^>\n]{{1,{WORDS}}}+)>)"
    rf"|(?P<tag>{_TAGS})",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_MARKUP: Final = re.compile(r"[*_`~<>\s\\]")
_CLAIM: Final = re.compile(
    r"(?:[a-z]+://|www\.)(?P<host>[^/?#:]+)|(?P<path>[\w-]+(?:\.[\w-]+)+)/"
    r"|(?P<name>[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|app))(?:$|[:?#])",
    re.IGNORECASE,
)
"""What people take for an address: with a scheme, a path, or an end that names of files lack."""
_HOST: Final = re.compile(
    r"(?:(?P<scheme>[a-z][a-z0-9+.-]*):[/\\]*|[/\\]{2,})(?:[^/?#\\]*@)?(?P<host>[^/?#:@\\]+)"
    r"(?::(?P<port>\d{1,5}))?",
    re.IGNORECASE,
)
"""The host as a browser reads it, which takes a backslash for a slash."""
_HREF: Final = re.compile(r"""\bhref\s*=\s*["']?([^"'\s>]+)""", re.IGNORECASE)
_RELATIVE: Final = re.compile(r"/?[\w.#][^:\\]*")


def allow_none(_host: str, _port: int) -> bool:
    """Allow pictures from nowhere but the place itself."""
    return False


def disarm(text: str, allows: Allows = allow_none) -> str:
    """Put pictures into code and show the host of a link whose text is another address."""
    if not _CANDIDATE.search(text):
        return text
    if _is_overloaded(text):
        return _flatten(text)
    shown = _PIECE.sub(partial(_disarm_piece, allows=allows), text)
    # It may be written so that only a real parser finds it: then nothing of the form stays.
    return shown if _is_harmless(shown, allows) else _flatten(shown)


def find_false_host(words: str, target: str) -> str:
    """Return the host of a link whose text is another address; empty if nothing is false."""
    host = _host(target)
    claimed = _CLAIM.match(_MARKUP.sub("", words))
    if claimed is None or not host:
        return ""
    name = (claimed["host"] or claimed["path"] or claimed["name"]).casefold().rpartition("@")[2]
    return "" if host.removeprefix("www.") == name.removeprefix("www.") else host


def _disarm_piece(found: re.Match[str], allows: Allows) -> str:
    whole = found[0]
    if found["picture"]:
        return whole if _is_allowed(found["source"], allows) else span(whole)
    if found["tag"]:
        return "&lt;"
    words, target = found["words"] or found["named"], found["target"] or found["to"]
    host = find_false_host(words, target) if target else ""
    told = f" ({span(host)})"
    return whole + told if host and not found.string.startswith(told, found.end()) else whole


def _flatten(text: str) -> str:
    """Let nothing stay a picture or a link whose text is not its address."""
    text = _OPENING.sub("&lt;", text.replace("![", "!\\[").replace("](", "]\\("))
    return _REFERENCE.sub(r"\1\\[", text)


def _is_overloaded(text: str) -> bool:
    """Tell whether links could be found only in a time that grows faster than the text."""
    if len(_MARK.findall(text)) > MOST_MARKS and "![" in text:
        return True
    steps = 0
    for line in text.split("\n"):
        size = len(line)
        steps += line.count("[") * min(size, WORDS) + len(_RUN.findall(line)) * size
        steps += (line.count("](") + line.count("<http")) * min(size, ADDRESS + WORDS)
    return steps > MOST_STEPS


def _is_allowed(address: str, allows: Allows) -> bool:
    found = _HOST.match(address)
    if found is None:
        return _RELATIVE.fullmatch(address) is not None
    plain = 80 if (found["scheme"] or "").casefold() == "http" else 443
    return allows(found["host"].casefold(), int(found["port"] or plain))


def _host(address: str) -> str:
    found = _HOST.match(address)
    return "" if found is None else found["host"].casefold()


def _is_harmless(text: str, allows: Allows) -> bool:
    """Tell whether a reader's program fetches nothing and no link is false, as a parser sees it."""
    if len(_MARK.findall(text)) > MOST_MARKS:
        return not (_TAG.search(text) or _ANCHOR.search(text) or _REFERENCE.search(text))
    return all(
        _is_harmless_block(each.children or [each], allows) for each in _parser().parse(text)
    )


def _is_harmless_block(tokens: list[Token], allows: Allows) -> bool:
    target, words, owed = "", "", ""
    for each in _tokens(tokens):
        if owed and (each.type, each.content) not in {("text", " ("), ("code_inline", owed)}:
            return False
        owed = "" if each.type == "code_inline" else owed
        match each.type:
            case "image" if not _is_allowed(str(each.attrGet("src") or ""), allows):
                return False
            case "html_block" if _TAG.search(each.content) or _ANCHOR.search(each.content):
                return False
            case "html_inline" if _TAG.search(each.content):
                return False
            case "link_open" if each.markup != "autolink":
                target, words = str(each.attrGet("href") or ""), ""
            case "html_inline" if href := _HREF.search(each.content):
                target, words = href[1], ""
            case "html_inline" if not each.content.casefold().startswith("</a"):
                continue
            case "link_close" | "html_inline":
                owed, target = find_false_host(words, target) if target else "", ""
            case _:
                words += each.content
    return not owed


def _tokens(tokens: list[Token]) -> Iterator[Token]:
    for each in tokens:
        yield each
        yield from _tokens(each.children or [])


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark")
