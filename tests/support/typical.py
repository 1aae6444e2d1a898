"""A typical coding turn for the player agent: a plan, 40 calls, three asks, 300 changed lines.

It works in any workspace; in a clone of a repository that has `FILES` its result is proposed.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

from tests.support.plays import plan, player, put, text, thought

NAME = "expired tokens"
"""What a message must hold for the turn to be played."""
WORDS = f"Old logins still work. Please fix the {NAME}, with tests."
"""A message that does."""
TITLE = "Refuse expired tokens"
CALLS = 40
ASKED = ("app/auth/tokens.py", "pytest -q tests/auth", "tests/auth/test_expiry.py")
"""What is asked, in this order: an edit, a command, one more edit."""
TESTS = "tests/auth/test_expiry.py"

_EDIT = [
    {"optionId": "yes", "name": "Yes", "kind": "allow_once"},
    {"optionId": "all", "name": "Yes, allow all edits during this session", "kind": "allow_always"},
    {"optionId": "no", "name": "No, and tell Claude what to do differently", "kind": "reject_once"},
]
_RUN = [
    _EDIT[0],
    {
        "optionId": "all",
        "name": "Yes, and don't ask again for pytest commands in this project",
        "kind": "allow_always",
    },
    _EDIT[2],
]
_STEPS = (
    "Find why expired tokens are accepted",
    "Refuse them, with a leeway for clocks that differ",
    "Cover the borders with tests",
    "Run the whole test suite",
)
_OLD = '''"""Signs and reads the tokens of a login."""

import hmac
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

LIFETIME = 3600


class TokenError(Exception):
    """A token that is refused."""


def sign(claims, key):
    body = urlsafe_b64encode(json.dumps(claims).encode())
    return body + b"." + _mark(body, key)


def read(token, key):
    body, _, mark = token.partition(b".")
    if not hmac.compare_digest(mark, _mark(body, key)):
        raise TokenError("wrong signature")
    claims = json.loads(urlsafe_b64decode(body))
    if claims["exp"] < time.time() - LIFETIME:
        raise TokenError("expired")
    return claims


def _mark(body, key):
    return hmac.new(key, body, "sha256").hexdigest().encode()
'''
_NEW = (
    _OLD.replace("LIFETIME = 3600\n", "LEEWAY = 30  # seconds by which clocks may differ\n")
    .replace("def read(token, key):\n", "def read(token, key, now=time.time):\n")
    .replace(
        """    if claims["exp"] < time.time() - LIFETIME:
        raise TokenError("expired")
    return claims
""",
        """    _check_time(claims, now())
    return claims


def _check_time(claims, now):
    expires, begins = claims.get("exp"), claims.get("nbf", 0)
    if not isinstance(expires, (int, float)):
        raise TokenError("never expires")
    if now >= expires + LEEWAY:
        raise TokenError("expired")
    if now < begins - LEEWAY:
        raise TokenError("not valid yet")
""",
    )
)
LEEWAY = 30
_CASES = (
    ("long_ago", -86_400, False),
    ("an_hour_ago", -3_600, False),
    ("a_minute_ago", -60, False),
    ("just_outside_the_leeway", -31, False),
    ("at_the_end_of_the_leeway", -30, False),
    ("just_inside_the_leeway", -29, True),
    ("a_second_ago", -1, True),
    ("now", 0, True),
    ("in_a_second", 1, True),
    ("in_a_minute", 60, True),
    ("in_an_hour", 3_600, True),
    ("tomorrow", 86_400, True),
    ("in_a_week", 604_800, True),
    ("in_a_month", 2_592_000, True),
    ("in_a_year", 31_536_000, True),
)
_HEAD = '''"""Tokens are refused when they have expired, give or take a leeway."""

import pytest

from app.auth.tokens import TokenError, read, sign

KEY = b"only for tests"
NOW = 1_700_000_000


def make(**claims):
    return sign({"sub": "ann", **claims}, KEY)


def clock():
    return NOW
'''
_TEST = """

def test_a_token_that_{about}():
    token = make(
        nbf=NOW + {nbf:_},
        exp=NOW + {exp:_},
    )

    {end}
"""
_TAKEN = """claims = read(token, KEY, clock)

    assert claims["sub"] == "ann"
    assert claims["exp"] > NOW - 30"""
_REFUSED = '''with pytest.raises(TokenError) as refused:
        read(token, KEY, clock)

    assert str(refused.value) == "expired"'''
_EARLY = '''with pytest.raises(TokenError) as refused:
        read(token, KEY, clock)

    assert str(refused.value) == "not valid yet"'''
FILES = {
    "app/auth/tokens.py": _OLD,
    "app/auth/login.py": "from app.auth.tokens import read, sign\n",
    "app/settings.py": "DEBUG = False\n",
    "tests/auth/test_login.py": "def test_login():\n    assert True\n",
}
"""The repository before the turn."""
_FAILED = """\
..F.....F...                                                             [100%]
FAILED tests/auth/test_expiry.py::test_at_the_end_of_the_leeway - TokenError: expired
FAILED tests/auth/test_login.py::test_login_with_an_old_token - KeyError: 'exp'
2 failed, 10 passed in 1.84s"""
_PASSED = """\
........................................................................ [ 34%]
........................................................................ [ 68%]
..................................................................       [100%]
210 passed in 14.21s"""
ANSWER = """\
Expired tokens are refused now. `read()` compared the expiry with the time of *issue*, so every \
token lived an hour longer than it said.

```python
if now >= expires + LEEWAY:
    raise TokenError("expired")
```

- A token without `exp` is refused as well.
- Clocks may differ by 30 seconds (`LEEWAY`).
- All 210 tests pass, 21 of them new.
"""
NARRATION = (
    "I'll start with the code that reads tokens.",
    "Now I'll look at how the tests make tokens.",
    "Found it: the expiry is compared with the time of issue. Let me fix that first.",
    "Let me see whether the tests agree.",
    "Two tests fail: one pins the old border. I'll look at its history.",
    "That border was never meant. I'll write the tests down before I go on.",
    "Now the whole suite.",
)
"""What the agent says before its answer."""


def typical_turn(folder: Path, name: str = NAME, *, hold: str = "") -> None:
    """Write the turn down; with `hold` the last tests run until that file is there."""
    put(folder, name, _steps(hold))


def typical_agent(folder: Path, *, hold: str = "", **more: Any) -> dict[str, Any]:
    """Write the registry entry of an agent that plays the turn, which is put into a folder."""
    typical_turn(folder, hold=hold)
    rules = [{"allow": {"command": ["ruff check app tests", "pytest -q"]}}]
    return player(folder, **{"display_name": "Claude", "permissions": rules, **more})


def _steps(hold: str) -> list[dict[str, Any]]:
    say = iter(NARRATION)
    numbers = count(1)

    def narrate() -> dict[str, Any]:
        return text(next(say))

    def read(*paths: str) -> list[dict[str, Any]]:
        return [_call(next(numbers), f"Read {path}", "read", path) for path in paths]

    def search(*words: str) -> list[dict[str, Any]]:
        return [_call(next(numbers), f'grep "{word}"', "search") for word in words]

    def edit(path: str, old: str | None, new: str, *, ask: bool) -> dict[str, Any]:
        place = f"$CWD/{path}"
        verb, raw = "Write", {"file_path": place, "content": new}
        if old is not None:
            verb, raw = "Edit", {"file_path": place, "old_string": old, "new_string": new}
        diff = {"type": "diff", "path": place, "oldText": old, "newText": new}
        use = _call(next(numbers), f"{verb} {path}", "edit", path, content=[diff], rawInput=raw)
        return {**use, "write": {path: new}, **({"options": _EDIT} if ask else {})}

    def run(command: str, output: str, *, ask: bool = False, fails: bool = False) -> dict[str, Any]:
        shown = [{"type": "content", "content": {"type": "text", "text": output}}]
        use = _call(next(numbers), f"`{command}`", "execute", rawInput={"command": command})
        end = {"status": "failed" if fails else "completed", "content": shown}
        return {**use, "end": end, **({"options": _RUN} if ask else {})}

    return [
        {"sessionUpdate": "session_info_update", "title": TITLE},
        thought("The report says that old tokens still work. Where is the expiry checked?"),
        _plan(0),
        narrate(),
        *search("exp", "LIFETIME", "TokenError"),
        *read("app/auth/tokens.py", "app/auth/login.py", "app/auth/session.py", "app/settings.py"),
        *read("app/auth/middleware.py", "app/auth/keys.py", "app/api/errors.py", "README.md"),
        narrate(),
        *read("tests/auth/test_login.py", "tests/auth/test_session.py", "tests/conftest.py"),
        *search("sign(", "read(token", "freeze"),
        *read("tests/auth/factories.py", "tests/clock.py", "tests/keys.py", "tests/people.py"),
        _plan(1),
        narrate(),
        edit("app/auth/tokens.py", _OLD, _NEW, ask=True),
        narrate(),
        run("pytest -q tests/auth", _FAILED, ask=True, fails=True),
        narrate(),
        run("git log -3 --oneline -- tests/auth", "1f2e3d4 Sign tokens\n9a8b7c6 First tests"),
        *read("tests/auth/test_login.py", "docs/tokens.md", "docs/auth.md", "app/auth/clock.py"),
        *search("leeway", "skew", "utcnow", "time.time"),
        _plan(2),
        narrate(),
        edit(TESTS, None, _tests(), ask=True),
        *read(TESTS, "app/auth/tokens.py", "pyproject.toml"),
        run("ruff check app tests", "All checks passed!"),
        _plan(3),
        narrate(),
        {**run("pytest -q", _PASSED), **({"hold": hold} if hold else {})},
        run("git status --short", " M app/auth/tokens.py\n?? tests/auth/test_expiry.py"),
        *read(TESTS),
        _plan(4),
        {
            "sessionUpdate": "usage_update",
            "used": 48_300,
            "size": 200_000,
            "cost": {"amount": 0.43, "currency": "USD"},
        },
        text(ANSWER),
    ]


def _call(number: int, title: str, kind: str, path: str = "", **more: Any) -> dict[str, Any]:
    where = {"locations": [{"path": f"$CWD/{path}"}]} if path else {}
    raw = {"rawInput": {"file_path": f"$CWD/{path}"}} if kind == "read" else {}
    shown = {"toolCallId": f"toolu-{number}", "title": title, "kind": kind}
    return {"use": {**shown, **where, **raw, **more}}


def _plan(done: int) -> dict[str, Any]:
    states = ["completed"] * done + ["in_progress"] + ["pending"] * len(_STEPS)
    return plan(*zip(_STEPS, states, strict=False))


def _tests() -> str:
    """Write one test after another, as agents do."""
    tests = [
        _TEST.format(about=f"expires_{name}", nbf=0, exp=seconds, end=_TAKEN if taken else _REFUSED)
        for name, seconds, taken in _CASES
    ]
    tests += [
        _TEST.format(about=f"begins_{name}", nbf=seconds, exp=99_999, end=_EARLY)
        for name, seconds, _ in _CASES
        if seconds > LEEWAY
    ]
    return "".join([_HEAD, *tests])
