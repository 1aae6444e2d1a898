"""Whom the simulated GitHub tells that something new was said: by mail, and in the inbox."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from sim.github.state import Account, Issue

_CODE = re.compile(r"`[^`\n]*`|^```.*?^```", re.DOTALL | re.MULTILINE)
_MENTION = re.compile(r"(?<![\w@/.-])@([A-Za-z0-9][A-Za-z0-9-]*)(?![\w/\[-])")


class Notification(NamedTuple):
    """What one person is told: something new was said."""

    login: str
    reason: str
    """`mention`, or `subscribed` for those who took part or were mentioned before."""
    words: str
    """What was said when it was new: a later edit notifies no one."""


def notify(
    issue: Issue, by: Account, words: str, accounts: Mapping[str, Account]
) -> Iterator[Notification]:
    """Tell those who took part and those who are mentioned; whoever speaks takes part from now."""
    mentioned = {each.lower() for each in _MENTION.findall(_CODE.sub("", words))}
    people = {login for login, each in accounts.items() if each.type == "User"}
    issue.subscribed |= mentioned & people
    for login in sorted(issue.subscribed - {by.login.lower()}):
        yield Notification(login, "mention" if login in mentioned else "subscribed", words)
    if by.type == "User":
        issue.subscribed.add(by.login.lower())
