"""Keeps Markdown of agents from fetching pictures for its readers and from false links; pure.

A picture's address can carry anything out: a platform or a browser fetches it for every reader.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache, partial
from typing import Final

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.markdown.code import span

_TAGS: Final = r"<(?=/?(?:img|image|picture|source|svg|video|audio|iframe|embed|object|link)\b)"
_TAG: Final = re.compile(_TAGS, re.IGNORECASE)
_PIECE: Final = re.compile(
    r"(?P<code>^[ \t>]*(?P<bar>`{3,}|~{3,})[^\n]*\n.*?(?:^[ \t>]*(?P=bar)[`~]*[ \t]*$|\Z)"
    r"|(?<![`\\])(?P<ticks>`+)(?!`)[^\n]*?(?<!`)(?P=ticks)(?!`))"
    r"|(?P<picture>!\[[^\]\n]{0,500}\]\(\s{0,9}<?(?P<source>[^)\s>]{0,4000})>?[^)\n]{0,500}\))"
    r"|(?P<link>(?<!!)\[(?P<words>[^\]\n]{1,500})\]\(\s{0,9}<?(?P<target>[^)\s>]{1,4000})>?"
    r"[^)\n]{0,500}\))"
    r"|(?P<angle><(?P<to>https?://[^|>\s]{1,4000})\|(?P<named>[^>\n]{1,500})>)"
    rf"|(?P<tag>{_TAGS})",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
_MARKUP: Final = re.compile(r"[*_`~<>\s\\]")
_ADDRESS: Final = re.compile(
    r"(?:[a-z]+://|www\.)(?P<host>[^/?#:]+)|(?P<path>[\w-]+(?:\.[\w-]+)+)/"
    r"|(?P<name>[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|io|dev|app))(?:$|[:?#])",
    re.IGNORECASE,
)
"""What people take for an address: with a scheme, a path, or an end that names of files lack."""
_HOST: Final = re.compile(
    r"(?:[a-z][a-z0-9+.-]*:[/\\]*|[/\\]{2,})(?:[^/?#\\]*@)?(?P<host>[^/?#:@\\]+)", re.IGNORECASE
)
"""The host as a browser reads it, which takes a backslash for a slash."""
_RELATIVE: Final = re.compile(r"/?[\w.#][^:\\]*")


def disarm(text: str, own: Collection[str] = ()) -> str:
    """Put pictures into code and show the host of a link whose text is another address.

    `own` are the hosts of the platform itself, `*.` and a domain for all below it.
    """
    shown = _PIECE.sub(partial(_disarm_piece, own=own), text)
    if not _has_picture(shown, own):
        return shown
    # It was written so that only a real parser finds it: then nothing of the form stays.
    return _TAG.sub("&lt;", shown.replace("![", "!\\["))


def _disarm_piece(found: re.Match[str], own: Collection[str]) -> str:
    whole = found[0]
    if found["picture"]:
        return whole if _is_own(found["source"], own) else span(whole)
    if found["tag"]:
        return "&lt;"
    words, target = found["words"] or found["named"], found["target"] or found["to"]
    if not target:
        return whole
    host = _host(target)
    claimed = _ADDRESS.match(_MARKUP.sub("", words))
    if claimed is None or not host:
        return whole
    name = (claimed["host"] or claimed["path"] or claimed["name"]).casefold().rpartition("@")[2]
    bare = name.removeprefix("www.")
    return whole if host.removeprefix("www.") == bare else f"{whole} ({span(host)})"


def _is_own(address: str, own: Collection[str]) -> bool:
    host = _host(address)
    if not host:
        return bool(own) and _RELATIVE.fullmatch(address) is not None
    return any(host == each or (each[0] == "*" and host.endswith(each[1:])) for each in own)


def _host(address: str) -> str:
    found = _HOST.match(address)
    return "" if found is None else found["host"].casefold()


def _has_picture(text: str, own: Collection[str]) -> bool:
    """Tell whether a reader's program would fetch something, as a real parser sees it."""
    if "![" not in text and not _TAG.search(text):
        return False
    return any(
        (each.type == "image" and not _is_own(str(each.attrGet("src") or ""), own))
        or (each.type in {"html_block", "html_inline"} and _TAG.search(each.content))
        for each in _tokens(_parser().parse(text))
    )


def _tokens(tokens: list[Token]) -> Iterator[Token]:
    for each in tokens:
        yield each
        yield from _tokens(each.children or [])


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark")
