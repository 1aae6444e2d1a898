"""Turns posts into the JSON of the callback; pure."""

from __future__ import annotations

from typing import Any

from app.model.posts import PostContent, PostSend


def render(post: PostSend) -> dict[str, Any]:
    """Describe a post as a whole: a receiver that has its id already replaces it."""
    content = post.content
    made = {
        "type": "post",
        "id": post.remote_id or post.marker,
        "place": post.target.external,
        "agent": post.target.agent,
        "kind": content.kind,
        "state": content.state,
        "text": content.text,
        "note": content.note,
        "facts": [{"text": fact.text, "url": fact.url} for fact in content.facts],
    }
    return made | _ask(content) if content.kind == "ask" else made


def _ask(content: PostContent) -> dict[str, Any]:
    """Describe what is asked, word for word as it would run, and how it can be answered."""
    asked = content.asked
    words = [asked.title, *(fact.text + fact.tail for fact in asked.facts)]
    return {
        "text": "\n".join(filter(None, words)),
        "link": asked.link,
        "ask": content.ask,
        "options": [{"id": option.id, "name": option.name} for option in content.offered],
        "free_text": content.free_text,
    }
