"""Reads an ask as a person does on each surface: what stands in its code blocks, to the letter."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html.parser import HTMLParser
from typing import Any

from markdown_it import MarkdownIt

_ENTITIES = {"&lt;": "<", "&gt;": ">", "&amp;": "&"}


def in_markdown(body: str) -> list[str]:
    """Read the code blocks of a comment."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(body)
    assert not [token for token in tokens if token.type == "code_block"]
    return [token.content.removesuffix("\n") for token in tokens if token.type == "fence"]


def outside_code(body: str) -> str:
    """Read everything in a comment that is no code: what GitHub looks for mentions in."""
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(body)
    inline = [child for token in tokens for child in token.children or ()]
    return " ".join(child.content for child in inline if child.type != "code_inline")


def in_slack(blocks: Iterable[dict[str, Any]]) -> list[str]:
    """Read the code blocks of a message, whether or not Slack reads entities in them."""
    found = [
        element["text"]
        for block in blocks
        if block["type"] == "rich_text"
        for part in block["elements"]
        if part["type"] == "rich_text_preformatted"
        for element in part["elements"]
    ]
    read = [re.sub("&(?:lt|gt|amp);", lambda entity: _ENTITIES[entity[0]], text) for text in found]
    assert read == found
    return found


def on_page(html: str) -> list[str]:
    """Read the code blocks of the asks on a page, as a browser parses it."""
    reader = _Exact()
    reader.feed(html)
    return reader.found


def on_terminal(printed: str) -> list[str]:
    """Read the blocks below each label of a question; a heading may end as a label does."""
    found: list[list[str]] = []
    for line in printed.split("\n"):
        if line.startswith("  | "):
            found[-1].append(line.removeprefix("  | "))
        elif line.startswith("  ") and line.endswith(":"):
            found.append([])
    return ["\n".join(lines) for lines in found if lines]


class _Exact(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "pre":
            self._inside = "exact" in (dict(attrs).get("class") or "").split()
            self.found += [""] if self._inside else []

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "pre"

    def handle_data(self, data: str) -> None:
        if self._inside:
            # A browser drops a line end that begins a block.
            self.found[-1] += data.removeprefix("\n") if not self.found[-1] else data
