"""Renders what stands on the simulated platforms as HTML, in the look of a conversation there.

Words of posts are shown as the platform would show them; everything around them is simpler.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from typing import Any

from markdown_it import MarkdownIt

from sim.github.state import Comment, Issue
from sim.linear import LinearSession
from sim.slack.model import Message

STYLE = """
* { box-sizing: border-box }
body { margin: 0; padding: 20px; width: 760px; background: #fff; color: #1d1c1d;
  font: 15px/1.47 "Inter", "Helvetica Neue", "Liberation Sans", sans-serif }
h1 { font-size: 18px; margin: 0 0 14px }
p { margin: 0 0 6px }
a { color: #1264a3; text-decoration: none }
ul, ol { margin: 0 0 8px; padding-left: 22px }
hr { border: 0; border-top: 1px solid #ddd }
details summary { color: #57606a }
pre { background: #f6f7f8; border: 1px solid #e2e2e2; border-radius: 6px; padding: 8px 10px;
  font-size: 12.5px; margin: 4px 0 8px; white-space: pre-wrap }
code { font-size: 88%; background: #f2f3f4; border-radius: 4px; padding: 1px 4px }
pre code { background: none; padding: 0; font-size: 100% }
.row { display: flex; gap: 10px; margin: 0 0 14px }
.body { flex: 1; min-width: 0 }
.face { width: 36px; height: 36px; border-radius: 8px; color: #fff; font-weight: 600; flex: none;
  display: grid; place-items: center }
.who { font-weight: 700 }
.soft { color: #616061; font-size: 13px }
.step { margin: 0 0 3px }
.button { display: inline-block; border: 1px solid #bbb; border-radius: 6px; padding: 4px 12px;
  font-weight: 600; font-size: 13px; margin: 4px 6px 2px 0 }
.card { border: 1px solid #d5d9de; border-radius: 8px; margin: 0 0 14px }
.head { background: #f6f8fa; padding: 7px 14px; font-size: 13px; border-radius: 8px 8px 0 0;
  border-bottom: 1px solid #d5d9de }
.text { padding: 10px 14px }
"""
COLOURS = {"Ann": "#2f6f4f", "Claude": "#b5562f"}
MARKS = {"completed": "✓", "complete": "✓", "in_progress": "»", "inProgress": "»"}
_MARKDOWN = MarkdownIt("commonmark", {"html": True, "breaks": True}).enable("table")


def page(title: str, parts: Iterable[str]) -> str:
    """Put a conversation under a title."""
    head = f'<!doctype html><meta charset="utf-8"><style>{STYLE}</style>'
    return f"{head}<h1>{escape(title)}</h1>{''.join(parts)}"


def slack(messages: Iterable[Message], names: dict[str, str]) -> Iterator[str]:
    """Show a thread on Slack; names are those of users."""
    for message in messages:
        shown = [_block(block, names) for block in _blocks(message)]
        if message.stream is not None or not message.blocks:
            shown.insert(0, _mrkdwn(message.text, names, markdown=message.stream is not None))
        yield _row(names[message.user], "".join(shown))


def github(issue: Issue, names: dict[str, str]) -> Iterator[str]:
    """Show an issue on GitHub with its comments."""
    yield _card(names.get(issue.user.login, issue.user.login), issue.body or "")
    for comment in issue.comments:
        if not comment.minimized:
            yield _card(names.get(comment.user.login, comment.user.login), _without_marker(comment))


def linear(session: LinearSession, names: dict[str, str]) -> Iterator[str]:
    """Show an agent session in Linear."""
    yield f'<p class="soft">{escape(session.issue.description)}</p><hr>'
    if session.plan:
        yield _box("Plan", "".join(_step(step["status"], step["content"]) for step in session.plan))
    for activity in session.visible:
        who, content = names.get(activity.user.name, activity.user.name), activity.content
        if content["type"] == "action":
            words = f"{content.get('action', '')} {content.get('parameter', '')}"
            yield f'<p class="soft">{_MARKDOWN.renderInline(words)}</p>'
        elif content["type"] == "thought":
            yield f'<p class="soft">{_MARKDOWN.renderInline(activity.body)}</p>'
        else:
            options = (activity.signal_metadata or {}).get("options", [])
            yield _row(who, _MARKDOWN.render(activity.body) + _buttons(o["value"] for o in options))
    for link in session.urls:
        yield f'<p><span class="button">↗ {escape(link["label"])}</span></p>'


def _blocks(message: Message) -> list[dict[str, Any]]:
    tasks = list(message.stream.tasks.values()) if message.stream is not None else []
    return [*({"type": "task_card", **task} for task in tasks), *message.blocks]


def _block(block: dict[str, Any], names: dict[str, str]) -> str:
    match block["type"]:
        case "markdown":
            return str(_MARKDOWN.render(block["text"]))
        case "section":
            return _mrkdwn(block["text"]["text"], names)
        case "context":
            words = " · ".join(each.get("text", "") for each in block["elements"])
            return f'<div class="soft">{_mrkdwn(words, names)}</div>'
        case "actions":
            return _buttons(
                each["text"]["text"] for each in block["elements"] if each["type"] == "button"
            )
        case "task_card":
            return _step(block["status"], block["title"])
        case "plan":
            return "".join(_block({"type": "task_card", **task}, names) for task in block["tasks"])
        case "rich_text":
            return "".join(f"<pre>{escape(words)}</pre>" for words in _texts(block))
        case _:
            return ""


def _texts(block: dict[str, Any]) -> Iterator[str]:
    for element in block["elements"]:
        yield "".join(each.get("text", "") for each in element.get("elements", ()))


def _mrkdwn(text: str, names: dict[str, str], *, markdown: bool = False) -> str:
    """Turn Slack's own marks into HTML."""
    for user, name in names.items():
        text = text.replace(f"<@{user}>", f"**@{name}**")
    text = re.sub(r"<([^|>\s]+)\|([^>]+)>", r"[\2](\1)", text)
    if not markdown:
        text = re.sub(r"(?<![\w*])\*([^*\n]+)\*(?![\w*])", r"**\1**", text)
    return str(_MARKDOWN.render(text))


def _without_marker(comment: Comment) -> str:
    return re.sub(r"<!--.*?-->", "", comment.body, flags=re.DOTALL)


def _buttons(labels: Iterable[str]) -> str:
    return "".join(f'<span class="button">{escape(label)}</span>' for label in labels)


def _step(status: str, words: str) -> str:
    return f'<p class="step">{MARKS.get(status, "·")} {escape(words)}</p>'


def _row(who: str, body: str) -> str:
    colour, letter = COLOURS.get(who, "#555"), escape(who[0])
    face = f'<div class="face" style="background: {colour}">{letter}</div>'
    words = f'<div class="body"><div class="who">{escape(who)}</div>{body}</div>'
    return f'<div class="row">{face}{words}</div>'


def _card(who: str, body: str) -> str:
    return _box(f"<b>{escape(who)}</b>", _MARKDOWN.render(body))


def _box(head: str, body: str) -> str:
    inside = f'<div class="head">{head}</div><div class="text">{body}</div>'
    return f'<div class="card">{inside}</div>'
