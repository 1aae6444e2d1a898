"""Renders progress as Slack's task cards: in a stream, and as blocks of an edited message; pure.

When a stream ends, Slack turns every card that is in progress into a red error; so none is left
in that state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from app.model.posts import DelegatedLine, PostContent, Verbosity
from app.model.text import reveal_line
from app.model.wording import asked, progress
from app.services.slack import wording
from app.services.slack.text import line as one_line
from app.services.slack.text import weigh

CARD_CHARACTERS: Final = 200
"""Text of each field of a card; Slack takes 256, and an escaped sign may count as several."""
CARDS: Final = 30
"""Cards of one message: each may count as one of its 50 blocks."""
CARDS_CHARACTERS: Final = 2_500
"""Text of all cards of one message; it counts in the message's total."""
FINAL: Final = frozenset({"done", "failed", "stopped"})
_STATES: Final = {"completed": "complete", "failed": "error", "in_progress": "in_progress"}
_RUNNING: Final = frozenset({"pending", "in_progress"})
_ASKED: Final = {"working": "in_progress", "waiting": "in_progress", "done": "complete"}

Card = dict[str, Any]


def word(content: PostContent) -> str:
    """Return the word for what a turn is doing."""
    return wording.STATES.get(content.state, content.state) or "…"


def tasks(content: PostContent, level: Verbosity, name: str) -> dict[str, Card]:
    """List the cards of a stream by name: the turn itself, its plan, and its tools if wanted."""
    title = word(content)
    if level == "full" and content.thought and content.state not in FINAL:
        # Details are appended to what is there; only a title can say something else.
        title = f"{title}: {' '.join(content.thought.split())[-CARD_CHARACTERS // 2 :]}"
    turn = _card(name, title, _end(content) or "in_progress")
    return {name: turn, **_fit(_listed(content, level), "more")}


def blocks(content: PostContent, level: Verbosity) -> list[Card]:
    """Render the plan and the tools as a block; empty if there is neither."""
    listed = _listed(content, level)
    latest = _fit(dict(reversed(listed.items())), "earlier")
    cards = [_block(card) for card in reversed(latest.values())]
    return [{"type": "plan", "title": word(content), "tasks": cards}] if cards else []


def chunks(before: Mapping[str, Card], now: Mapping[str, Card], text: str) -> list[Card]:
    """Render what a stream does not show yet; an output that is there already is left out."""
    changed: list[Card] = []
    for name, card in now.items():
        if (known := before.get(name, {})) != card:
            new = {key: value for key, value in card.items() if key != "output" or key not in known}
            changed.append({"type": "task_update", **new})
    return [*changed, {"type": "markdown_text", "text": text}] if text else changed


def pause(cards: Mapping[str, Card], name: str, title: str) -> dict[str, Card]:
    """Leave no card in progress, in a message that ends before the work does."""
    paused = {
        each: {**card, "status": "pending"} if card["status"] == "in_progress" else card
        for each, card in cards.items()
    }
    status = "complete" if title == wording.CONTINUED else "pending"
    return {**paused, name: _card(name, title, status)}


def close(cards: Mapping[str, Card], content: PostContent) -> dict[str, Card]:
    """Leave no card in progress at the end of a turn, also none that it no longer lists."""
    end = _end(content)
    return {
        name: {**card, "status": end} if card["status"] == "in_progress" else card
        for name, card in cards.items()
    }


def only_output(cards: Mapping[str, Card]) -> dict[str, Card]:
    """List the outputs that a stream may show already, and nothing else of its cards."""
    return {name: {"output": card["output"]} for name, card in cards.items() if "output" in card}


def unfinished(cards: Mapping[str, Card], shown: Iterable[str]) -> dict[str, Card]:
    """Leave out what an earlier message shows as finished."""
    kept = set(shown)
    return {
        name: card for name, card in cards.items() if name in kept or card["status"] in _RUNNING
    }


def weigh_cards(cards: Mapping[str, Card]) -> int:
    """Measure the text of cards."""
    return sum(weigh(card["title"]) + weigh(card.get("output", "")) for card in cards.values())


def _end(content: PostContent) -> str:
    """Return the state in which what runs ends with its turn; empty while that goes on."""
    if content.state not in FINAL:
        return ""
    return "complete" if content.state == "done" else "error"


def _listed(content: PostContent, level: Verbosity) -> dict[str, Card]:
    """List plan, tools and agents that were asked; at the end nothing stays in progress."""
    end = _end(content)
    listed: dict[str, Card] = {}
    for number, step in enumerate(content.plan):
        status = _STATES.get(step.status, "pending")
        status = end if end and status == "in_progress" else status
        listed[f"plan-{number}"] = _card(f"plan-{number}", step.text, status)
    for tool in content.tools if level != "quiet" else ():
        status = _STATES.get(tool.status, "pending")
        status = end if end and status in _RUNNING else status
        card = _card(f"tool-{tool.call}", tool.title, status)
        # An output is sent once, when it is complete: it is appended to what is there.
        if level == "full" and tool.output and status not in _RUNNING:
            card["output"] = one_line(tool.output, CARD_CHARACTERS)
        listed[card["id"]] = card
    for line in content.delegated:
        listed[f"agent-{line.id}"] = _asked(line, content, level)
    return listed


def _asked(line: DelegatedLine, content: PostContent, level: Verbosity) -> Card:
    """Render what another agent was asked; it may go on when the turn that asked ends."""
    status = _ASKED.get(line.state, "error" if line.is_over else "pending")
    if status == "in_progress" and _end(content):
        status = "pending"
    how = progress(line, content)
    room = CARD_CHARACTERS - len(how) - len(" · ")
    card = _card(f"agent-{line.id}", f"{asked(line)}: {reveal_line(line.task)}"[:room], status)
    card["title"] = f"{card['title']} · {how}"
    if line.is_over and line.words and (level == "full" or line.state == "failed"):
        card["output"] = one_line(line.words, CARD_CHARACTERS)
    return card


def _fit(listed: Mapping[str, Card], which: str) -> dict[str, Card]:
    """Keep as many cards as have room, and count the others on one more."""
    kept: dict[str, Card] = {}
    for name, card in listed.items():
        if len(kept) == CARDS or weigh_cards(kept) + weigh_cards({name: card}) > CARDS_CHARACTERS:
            break
        kept[name] = card
    left = list(listed.values())[len(kept) :]
    if left:
        states, order = {card["status"] for card in left}, ("in_progress", "error", "pending")
        state = next((each for each in order if each in states), "complete")
        kept[which] = _card(which, wording.LEFT_OUT[which].format(number=len(left)), state)
    return kept


def _card(name: str, title: str, status: str) -> Card:
    return {"id": name, "title": one_line(title, CARD_CHARACTERS) or name, "status": status}


def _block(card: Card) -> Card:
    block = {
        "type": "task_card",
        "task_id": card["id"],
        "title": card["title"],
        "status": card["status"],
    }
    if card.get("output"):
        words = {"type": "text", "text": card["output"]}
        section = {"type": "rich_text_section", "elements": [words]}
        block["output"] = {"type": "rich_text", "elements": [section]}
    return block
