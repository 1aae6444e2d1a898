"""Who is spoken to in a comment of GitHub."""

from __future__ import annotations

import pytest

from app.services.github.names import GitHubIdentity, Identities
from app.services.github.payloads import GitHubAccount

US = Identities.of(
    [
        GitHubIdentity("claude", "claude-bridge[bot]", 11),
        GitHubIdentity("codex", "codex-bridge[bot]", 12),
    ]
)


@pytest.mark.parametrize(
    ("text", "mentioned"),
    [
        ("@claude-bridge please look", ("claude",)),
        ("please look, @claude-bridge[bot]", ("claude",)),
        ("@Claude-Bridge look", ("claude",)),
        ("@codex-bridge and @claude-bridge and @codex-bridge", ("codex", "claude")),
        ("(@claude-bridge)", ("claude",)),
        ("**@claude-bridge**: look", ("claude",)),
        ("- @claude-bridge look", ("claude",)),
        ("`@claude-bridge` is a bot", ()),
        ("```\n@claude-bridge look\n```", ()),
        ("~~~\n@claude-bridge look", ()),
        ("    @claude-bridge look", ()),
        ("> @claude-bridge look", ()),
        ("> @claude-bridge look\n\nthanks", ()),
        ("> somebody said\n\n@claude-bridge look", ("claude",)),
        ("<a href='@claude-bridge'>x</a>", ()),
        ("<b>@claude-bridge</b>", ("claude",)),
        ("mail@claude-bridge", ()),
        ("https://github.com/@claude-bridge", ()),
        ("@claude-bridges and @claude-bridge-2", ()),
        ("@claude-bridge/team", ()),
        ("claude-bridge", ()),
        ("@@claude-bridge", ()),
        ("", ()),
    ],
)
def test_mentions_count_where_people_speak(text: str, mentioned: tuple[str, ...]) -> None:
    assert US.mentioned(text) == mentioned


@pytest.mark.parametrize(
    ("text", "spoken"),
    [
        ("@claude-bridge stop", "stop"),
        ("@claude-bridge[bot] stop all", "stop all"),
        ("@claude-bridge @codex-bridge, status", "status"),
        ("@claude-bridge\nsay a\nsay b", "say a\nsay b"),
        ("please @claude-bridge stop", "please @claude-bridge stop"),
    ],
)
def test_a_command_is_what_follows_the_mentions_at_the_beginning(text: str, spoken: str) -> None:
    assert US.after(text) == spoken


def test_nobody_but_a_bot_is_taken_for_one_of_us_by_its_login() -> None:
    assert US.agent(GitHubAccount(id=99, login="claude-bridge[bot]", type="Bot")) == "claude"
    assert US.agent(GitHubAccount(id=99, login="claude-bridge[bot]")) is None
    assert US.agent(GitHubAccount(id=12, login="renamed[bot]", type="Bot")) == "codex"


def test_the_address_in_commits_is_the_one_github_links_to_the_bot() -> None:
    assert US.known[0].address == "11+claude-bridge[bot]@users.noreply.github.com"
