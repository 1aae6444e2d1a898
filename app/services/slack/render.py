"""Renders a post for Slack as blocks and buttons; pure.

An agent's text goes out as Markdown, with everything that would notify people made harmless;
everything else is escaped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from app.model.ask_wording import Sentence, gap, label, notes, sentence
from app.model.asks import CHOICE
from app.model.posts import DelegatedLine, PostContent, Verbosity
from app.model.text import reveal_line
from app.model.updates import AskOption, AskView, ShownFact
from app.model.wording import MORE_AGENTS, OPEN, asked, headline, record
from app.model.wording import progress as how_far
from app.services.common.wording import DONE_IN, NO_MESSAGE, PUSHED_TO, pull_request
from app.services.slack import cards, wording
from app.services.slack.cards import FINAL, word
from app.services.slack.events import is_direct
from app.services.slack.text import (
    PART_CHARACTERS,
    defang,
    escape,
    head,
    literal,
    mention,
    piece,
    tail,
    weigh,
)

SECTION_CHARACTERS: Final = 2_900
"""Text of one section; Slack takes 3,000."""
BUTTON_CHARACTERS: Final = 75
"""Text on a button, and of an option to choose."""
URL_CHARACTERS: Final = 3_000
"""Address of a button."""
SUMMARY_CHARACTERS: Final = 300
"""Text of a notification."""
THOUGHT_CHARACTERS: Final = 500
TASK_CHARACTERS: Final = 120
"""Text of a task that another agent was asked, in one line below an answer."""
AGENTS: Final = 8
"""Agents that were asked and have a line below an answer."""
DELEGATED_CHARACTERS: Final = 2_000
"""Text of all those lines: most of what one block takes."""
BARE_CHARACTERS: Final = 3_900
"""Text of a message without blocks; Slack changes a message to 4,000 at most."""
LINK: Final = "link-"
"""Begins the name of a button that opens an address; pressing it needs nothing from us."""

_CONTROLS: Final = {"button", "static_select", "feedback_buttons"}
_SIGNS: Final = {"complete": "✓", "error": "✗", "in_progress": "▶", "pending": "…"}

Block = dict[str, Any]
Sealing = Callable[..., str]


def verbosity(content: PostContent, channel: str) -> Verbosity:
    """Tell how much to show: little in channels, where others read along."""
    return content.verbosity or ("normal" if is_direct(channel) else "quiet")


def progress(content: PostContent, start: int, level: Verbosity, *, seal: Sealing) -> list[Block]:
    """Render a message that shows what a turn does, and the end of the text so far."""
    above = cards.blocks(content, level) or [_context(f"*{word(content)}*")]
    if level == "full" and content.thought and content.state not in FINAL:
        thought = head(escape(" ".join(content.thought.split())), THOUGHT_CHARACTERS)
        above.append(_context(f"_{thought}_"))
    below = list(_note(content))
    if content.state == "queued":
        commands = {wording.SEND_NOW: "queue now", wording.DISCARD: "queue drop"}
        below.append(_buttons([(name, seal("command", words)) for name, words in commands.items()]))
    room = PART_CHARACTERS - weigh_blocks([*above, *below])
    words = piece(content.text, tail(content.text, start, room), None)
    return [*above, *answer(words, below)]


def answer(words: str, below: Sequence[Block]) -> list[Block]:
    """Render a part of an answer, and what is below it."""
    text = [{"type": "markdown", "text": words}] if words.strip() else []
    return [*text, *below] or [_context("…")]


def still_working() -> list[Block]:
    """Render what people are notified of when a stream ends before the work does."""
    return [_context(wording.ANSWER_COMES)]


def reduced(content: PostContent, level: Verbosity) -> list[Block]:
    """Render what is left of a message that showed the progress: the answer is below it."""
    done = cards.blocks(content, level)
    below = wording.ANSWER_BELOW if done else wording.ENDED_BELOW.format(state=word(content))
    return [*done, _context(below)]


def ending(content: PostContent) -> list[Block]:
    """Render what is below an answer: the bridge's note, and the facts."""
    blocks = list(_note(content))
    if not content.said.strip() and not content.note and not lead(content):
        blocks.append(_context(NO_MESSAGE if content.state == "done" else word(content)))
    if lines := _delegated(content):
        blocks.append(_context(lines))
    if foot := _foot(content):
        blocks.append(_context(foot[:SECTION_CHARACTERS]))
    if links := _links(content):
        blocks.append({"type": "actions", "elements": links})
    return blocks


def lead(content: PostContent) -> list[Block]:
    """Render the outcome of a turn that pushed something: the first line of its answer."""
    pushed = content.outcome.pushed if content.outcome is not None else None
    if pushed is None or content.state != "done":
        return []
    branch = escape(reveal_line(pushed.branch)).replace("`", "'")
    where = f"*{PUSHED_TO}* `{branch}`"
    if pushed.link:
        where = f"*{DONE_IN} <{pushed.link}|{pull_request(pushed.number)}>*"
    words = " · ".join((where, *map(escape, headline(content))))
    return [{"type": "section", "text": {"type": "mrkdwn", "text": words}}]


def _foot(content: PostContent) -> str:
    """Write one line about what the turn did and cost."""
    cost = content.outcome and content.outcome.price
    return " · ".join([*map(escape, record(content)), *([cost] if cost else [])])


def _delegated(content: PostContent) -> str:
    """Write one line for each agent that was asked, as far as there is room."""
    lines: list[str] = []
    for each in content.delegated[:AGENTS]:
        words = _asked(each, content)
        if sum(map(len, lines)) + len(words) > DELEGATED_CHARACTERS:
            break
        lines.append(words)
    more = len(content.delegated) - len(lines)
    return "\n".join([*lines, *([MORE_AGENTS.format(number=more)] if more > 0 else [])])


def _asked(line: DelegatedLine, content: PostContent) -> str:
    task = escape(defang(reveal_line(line.task)[:TASK_CHARACTERS]))
    link = f"<{line.link}|{OPEN}>" if line.link else ""
    how = how_far(line, content)
    why = reveal_line(line.words)[:TASK_CHARACTERS] if line.state == "failed" else ""
    said = f"{'↳ ' * (line.depth - 1)}{escape(asked(line))}: {task}"
    return " · ".join(filter(None, (said, f"{how}: {escape(defang(why))}" if why else how, link)))


def _links(content: PostContent) -> list[Block]:
    """Render a button for each address: the pull request, the thread on the page."""
    addresses = (
        fact
        for fact in content.facts
        if fact.url.startswith(("https://", "http://")) and len(fact.url) <= URL_CHARACTERS
    )
    return [
        {
            "type": "button",
            "action_id": f"{LINK}{number}",
            "text": {"type": "plain_text", "text": _label(wording.LINKS.get(fact.text, fact.text))},
            "url": fact.url,
        }
        for number, fact in enumerate(addresses)
    ]


def feedback(marker: str, seal: Sealing) -> Block:
    """Render the two buttons that rate an answer."""
    pair = {
        f"{kind}_button": {
            "text": {"type": "plain_text", "text": sign, "emoji": True},
            "accessibility_label": words,
            "value": seal("rate", marker, verdict),
        }
        for kind, sign, words, verdict in (
            ("positive", "👍", wording.HELPED, "good"),
            ("negative", "👎", wording.DID_NOT_HELP, "bad"),
        )
    }
    element = {"type": "feedback_buttons", "action_id": "feedback", **pair}
    return {"type": "context_actions", "elements": [element]}


def weigh_blocks(blocks: Sequence[Block]) -> int:
    """Measure the text of blocks as Slack counts it: all of them together."""
    return sum(weigh(text) for block in blocks for text in _texts(block))


def _texts(block: object) -> Iterator[str]:
    """List every text that is shown in a block."""
    if isinstance(block, list):
        for part in block:
            yield from _texts(part)
    if not isinstance(block, dict) or block.get("type") in _CONTROLS:
        return
    for key, part in block.items():
        if key in {"text", "title"} and isinstance(part, str):
            yield part
        yield from _texts(part)


def ask(content: PostContent, seal: Sealing) -> list[Block]:
    """Render an ask with a button for each answer or a list of choices, or its outcome."""
    blocks = list(_render_ask(content.asked, is_open=content.state == "open"))
    if content.mentions and content.state == "open":
        named = " ".join(map(mention, content.mentions))
        blocks.insert(0, {"type": "section", "text": {"type": "mrkdwn", "text": named}})
    if content.url:
        blocks.append(_context(f"<{escape(content.url)}>"))
    if content.offered and content.ask is not None:
        number, options = content.ask, content.offered
        if all(option.kind == CHOICE for option in options):
            blocks.append(_list(options, seal("choice", number)))
        else:
            blocks.append(
                _buttons([(option.name, seal("ask", number, option.id)) for option in options])
            )
            long = [each.name for each in options if len(each.name) > BUTTON_CHARACTERS]
            blocks[-1:-1] = [_words(literal(reveal_line(name))) for name in long]
        if content.free_text:
            blocks.append(_context(wording.OWN_ANSWER))
    if content.note:
        # The note names an answer in the agent's words.
        blocks.append(_words(literal(reveal_line(content.note))[:SECTION_CHARACTERS]))
    if links := _links(content):
        blocks.append({"type": "actions", "elements": links})
    return blocks


def notice(content: PostContent) -> list[Block]:
    """Render a notice from the bridge."""
    blocks, left = list[Block](), escape(content.note or content.text or "…")
    while left:
        cut = head(left, SECTION_CHARACTERS)
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": cut}})
        left = left[len(cut) :]
    return blocks


def verbatim(blocks: Sequence[Block]) -> list[Block]:
    """Replace the Markdown and the cards among blocks by plain text, which Slack always accepts."""
    return [written for block in blocks for written in _verbatim(block)]


def _verbatim(block: Block) -> Iterator[Block]:
    match block["type"]:
        case "markdown":
            yield from _plain(block["text"])
        case "rich_text":
            for part in block["elements"]:
                yield from _plain("".join(each["text"] for each in part["elements"]))
        case "context_actions":
            return
        case "plan":
            lines = [f"{_SIGNS[card['status']]} {card['title']}" for card in block["tasks"]]
            yield _words("\n".join([block["title"], *lines])[:SECTION_CHARACTERS])
        case _:
            yield block


def bare(blocks: Sequence[Block]) -> str:
    """Write blocks as one text without any markup."""
    words = "\n".join(text for block in blocks for text in _texts(block))
    return head(escape(words), BARE_CHARACTERS) or "…"


def summary(content: PostContent) -> str:
    """Write the line that a notification shows."""
    words = content.said.strip() or content.note or word(content)
    return escape(" ".join(words[:SUMMARY_CHARACTERS].split())) or "…"


def words_below(content: PostContent) -> str:
    """Write the bridge's note, the foot and the links as one text."""
    links = [(fact.url, escape(fact.text)) for fact in content.facts if fact.url]
    addresses = " · ".join(f"<{url}|{words.replace('|', '/')}>" for url, words in links)
    parts = (escape(content.note), _delegated(content), _foot(content), addresses)
    return "\n".join(filter(None, parts))


def _note(content: PostContent) -> Iterator[Block]:
    if content.note:
        yield _context(head(escape(content.note), SECTION_CHARACTERS))


def _buttons(labelled: list[tuple[str, str]]) -> Block:
    return {
        "type": "actions",
        "elements": [
            {
                "type": "button",
                "action_id": f"button-{number}",
                "text": {"type": "plain_text", "text": _label(label) or "…"},
                "value": value,
            }
            for number, (label, value) in enumerate(labelled)
        ],
    }


def _list(options: Sequence[AskOption], sealed: str) -> Block:
    """Render choices as a list to pick from; the pick is checked against the ask."""
    # The values of options are too short for a seal; the name of the list is not.
    return {
        "type": "actions",
        "elements": [
            {
                "type": "static_select",
                "action_id": sealed,
                "placeholder": {"type": "plain_text", "text": wording.CHOOSE},
                "options": [
                    {
                        "text": {"type": "plain_text", "text": _label(option.name)},
                        "value": option.id,
                    }
                    for option in options
                ],
            }
        ],
    }


def _label(name: str) -> str:
    """Shorten a name in its middle: its beginning and end usually tell it apart."""
    half = BUTTON_CHARACTERS // 2
    return name if len(name) <= BUTTON_CHARACTERS else f"{name[:half]}…{name[-half:]}"


def _render_ask(view: AskView, *, is_open: bool) -> Iterator[Block]:
    """Render exactly what people decide about: as markup, the stars of `rm *a *b` would vanish."""
    said = sentence(view)
    if said is not None:
        yield {"type": "rich_text", "elements": [_sentence(said)]}
    elif view.heading or not view.facts:
        question = view.heading or "?"
        asks = wording.ASKS.format(agent=view.agent, question=question)
        yield from _plain(asks if view.agent else question)
    # Of a change that was decided on, the sentence tells enough.
    facts = [each for each in view.facts if is_open or not said or each.kind != "change"]
    code = [element for fact in facts for element in _fact_code(fact, bare=said is not None)]
    if code:
        yield {"type": "rich_text", "elements": code}
    for words in notes(view):
        yield _context(words)
    if view.link and view.partial:
        yield _context(f"<{view.link}|{wording.SHOW_EVERYTHING}>")


def _sentence(said: Sentence) -> Block:
    """Render what an agent wants in one line, its subject as code."""
    parts: list[Block] = [
        {"type": "text", "text": f"{literal(said.words)}{' ' if said.subject else ':'}"}
    ]
    if said.subject:
        code = {"type": "text", "text": literal(said.subject), "style": {"code": True}}
        parts.append(code)
    if said.amount:
        parts.append({"type": "text", "text": f" ({said.amount})"})
    return {"type": "rich_text_section", "elements": parts}


def _fact_code(fact: ShownFact, *, bare: bool) -> Iterator[Block]:
    """Render a fact as code; `bare` without the label that a sentence above it makes needless."""
    if bare and fact.kind == "path":
        return
    if not bare:
        head = f"{label(fact)} {fact.path}" if fact.path else label(fact)
        yield _rich("rich_text_section", head, bold=True)
    if fact.text:
        yield _rich("rich_text_preformatted", fact.text)
    if words := gap(fact):
        yield _rich("rich_text_section", words)
    if fact.tail:
        yield _rich("rich_text_preformatted", fact.tail)


def _rich(kind: str, text: str, *, bold: bool = False) -> Block:
    """Render text in which Slack reads no markup, mentions or emoji."""
    element: Block = {"type": "text", "text": literal(text)}
    return {"type": kind, "elements": [{**element, "style": {"bold": True}} if bold else element]}


def _plain(text: str) -> Iterator[Block]:
    text = literal(text)
    for begin in range(0, len(text), SECTION_CHARACTERS):
        cut = text[begin : begin + SECTION_CHARACTERS]
        yield {"type": "section", "text": {"type": "plain_text", "text": cut, "emoji": False}}


def _context(text: str) -> Block:
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text or "…"}]}


def _words(text: str) -> Block:
    """Render titles small and verbatim: as markup, stars and underscores would vanish."""
    plain = {"type": "plain_text", "text": text or "…", "emoji": False}
    return {"type": "context", "elements": [plain]}
