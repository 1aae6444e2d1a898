"""Block Kit as Slack judges it: which blocks a message may have, and the text that people read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

TOTAL = 12_000
"""Text of all blocks of one message together, as Slack stores it: escaped."""
SECTION = 3_000
BLOCKS = 50
BUTTON = 75
VALUE = 2_000
OPTIONS = 100
OPTION_VALUE = 150
ACTION_ID = 255
CARD = 256
"""Text of each field of a task card."""
CARD_FIELDS = ("title", "details", "output")
APPENDED = ("details", "output")
CARD_STATUSES = {"pending", "in_progress", "complete", "error"}
_HEADER = re.compile(r" {0,3}#{1,6}\s")
_DIVIDER = re.compile(r" {0,3}([-*_])(?:\s*\1){2,}\s*$")

Block = dict[str, Any]


class SlackSays(Exception):
    """A refusal by Slack: its error code, and the rest of the answer."""

    def __init__(self, error: str, **more: Any) -> None:
        super().__init__(error)
        self.answer = {"ok": False, "error": error, **more}


def buttons(blocks: Iterable[Block]) -> Iterator[Block]:
    """List the buttons of a message."""
    for block in blocks:
        if block["type"] == "actions":
            yield from (each for each in block["elements"] if each["type"] == "button")


def lists(blocks: Iterable[Block]) -> Iterator[Block]:
    """List the select menus of a message."""
    for block in blocks:
        if block["type"] == "actions":
            yield from (each for each in block["elements"] if each["type"] == "static_select")


def feedback_buttons(blocks: Iterable[Block]) -> Iterator[Block]:
    """List the pairs of buttons that rate a message."""
    for block in blocks:
        if block["type"] == "context_actions":
            yield from (each for each in block["elements"] if each["type"] == "feedback_buttons")


def cards(blocks: Iterable[Block]) -> Iterator[Block]:
    """List the task cards of a message."""
    for block in blocks:
        if block["type"] == "task_card":
            yield block
        yield from block["tasks"] if block["type"] == "plan" else ()


def block_words(blocks: Iterable[Block]) -> Iterator[str]:
    """List the text that people read in blocks, except on buttons."""
    for block in blocks:
        text = block.get("text")
        if isinstance(text, str):
            yield text
        elif text is not None:
            yield text["text"]
        match block["type"]:
            case "context":
                yield from (element["text"] for element in block["elements"])
            case "rich_text":
                yield from (text for part in block["elements"] for text in rich_words(part))
            case "plan":
                yield block["title"]
                yield from block_words(block["tasks"])
            case "task_card":
                yield block["title"]
                yield from block_words(
                    [block[key] for key in ("details", "output") if key in block]
                )
            case _:
                pass


def rich_words(part: Block) -> Iterator[str]:
    """List the text that people read in a part of a rich text."""
    return (element["text"] for element in part["elements"])


def measure(text: str, *, escaped: bool = False) -> int:
    """Measure a text as Slack stores it: escaped."""
    if escaped:
        return len(text)
    return len(text) + 4 * text.count("&") + 3 * (text.count("<") + text.count(">"))


def size_of(blocks: Iterable[Block]) -> int:
    """Measure the text of all blocks together."""
    total = 0
    for block in blocks:
        if block["type"] == "context":
            elements = block["elements"]
        elif isinstance(block.get("text"), dict):
            elements = [block["text"]]
        else:
            total += sum(measure(text) for text in block_words([block]))
            continue
        total += sum(measure(e["text"], escaped=e["type"] == "mrkdwn") for e in elements)
    return total


def count_expanded(text: str) -> int:
    """Count the blocks that Slack makes of Markdown: headers, tables, dividers, and the rest."""
    count, last, fenced = 0, "", False
    for line in text.splitlines():
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        kind = "rest" if fenced else _kind(line)
        if kind and (kind in {"header", "divider"} or kind != last):
            count += 1
        last = kind or last
    return count


def _kind(line: str) -> str:
    if not line.strip():
        return ""
    if _HEADER.match(line):
        return "header"
    if _DIVIDER.match(line):
        return "divider"
    return "table" if line.lstrip().startswith("|") else "rest"


def check_blocks(blocks: list[Block]) -> None:
    """Refuse what Block Kit refuses."""
    _check_sizes(blocks)
    for block in blocks:
        if not _is_good(block):
            raise SlackSays("invalid_blocks", detail=block)
    for button in buttons(blocks):
        if not _is_good_button(button):
            raise SlackSays("invalid_blocks", detail=button)
    for menu in lists(blocks):
        if not _is_good_list(menu):
            raise SlackSays("invalid_blocks", detail=menu)
    elements = (*buttons(blocks), *lists(blocks), *feedback_buttons(blocks))
    names = [element["action_id"] for element in elements]
    numbers = [card["task_id"] for card in cards(blocks)]
    if len({*names}) + len({*numbers}) != len(names) + len(numbers):
        raise SlackSays("invalid_blocks", detail="an id twice")


def _is_good_button(button: Block) -> bool:
    """Judge a button: it has a value for its app, or an address to open, or both."""
    value, url = button.get("value", ""), button.get("url", "")
    fits = 0 < len(button["text"]["text"]) <= BUTTON and len(value) <= VALUE and len(url) <= SECTION
    return fits and bool(value or url.startswith(("https://", "http://")))


def _check_sizes(blocks: list[Block]) -> None:
    expanded = [count_expanded(b["text"]) if b["type"] == "markdown" else 1 for b in blocks]
    if sum(expanded) > BLOCKS:
        raise SlackSays("invalid_blocks", detail="too many")
    if size_of(blocks) > TOTAL:
        raise SlackSays("msg_blocks_too_long")


def update_cards(tasks: Mapping[str, Block], chunks: Iterable[Block]) -> dict[str, Block]:
    """Apply chunks to the cards of a stream: title and status replace, the rest is appended."""
    made = {name: dict(card) for name, card in tasks.items()}
    for chunk in chunks:
        match chunk["type"]:
            case "task_update":
                if not _is_good_update(chunk):
                    raise SlackSays("invalid_chunks")
                card = made.setdefault(chunk["id"], {"id": chunk["id"]})
                card |= {"title": chunk["title"], "status": chunk["status"]}
                card |= {key: card.get(key, "") + chunk[key] for key in APPENDED if key in chunk}
            case "plan_update" | "markdown_text":
                pass
            case _:
                raise SlackSays("invalid_chunks")
    return made


def _is_good_update(chunk: Block) -> bool:
    fits = all(len(chunk.get(key, "")) <= CARD for key in CARD_FIELDS)
    return fits and bool(chunk["title"]) and chunk["status"] in CARD_STATUSES


def _is_good_list(menu: Block) -> bool:
    options = menu["options"]
    values = {option["value"] for option in options}
    return (
        0 < len(options) <= OPTIONS
        and len(values) == len(options)
        and 0 < len(menu["action_id"]) <= ACTION_ID
        and 0 < len(menu["placeholder"]["text"]) <= OPTION_VALUE
        and all(0 < len(value) <= OPTION_VALUE for value in values)
        and all(0 < len(option["text"]["text"]) <= BUTTON for option in options)
    )


def _is_good(block: Block) -> bool:
    match block["type"]:
        case "section":
            return 0 < len(block["text"]["text"]) <= SECTION
        case "markdown":
            return bool(block["text"])
        case "context":
            shown = [len(element["text"]) for element in block["elements"]]
            return 0 < len(shown) <= 10 and 0 < min(shown) <= max(shown) <= SECTION
        case "actions":
            return 0 < len(block["elements"]) <= 25
        case "rich_text":
            return all(text for part in block["elements"] for text in rich_words(part))
        case "plan":
            return bool(block["title"]) and all(map(_is_good, block["tasks"]))
        case "task_card":
            texts = list(block_words([block]))
            return block["status"] in CARD_STATUSES and all(0 < len(t) <= CARD for t in texts)
        case "context_actions":
            return 0 < len(block["elements"]) <= 5 and all(map(_is_good_pair, block["elements"]))
        case kind:
            return bool(kind == "divider")


def _is_good_pair(element: Block) -> bool:
    both = (element["positive_button"], element["negative_button"])
    return all(0 < len(b["text"]["text"]) <= BUTTON and len(b["value"]) <= VALUE for b in both)
