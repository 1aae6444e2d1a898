"""What the player agent plays: a piece of ordinary work, and everything that must do nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.support.bridge import ROOT

PLAYER = [sys.executable, str(ROOT / "tests" / "support" / "player_agent.py")]

OLD = """    nonce = new_nonce()
    state = sign({"nonce": nonce})
    response.set_cookie("next", target)
    return redirect(provider, state=state)
"""
NEW = """    nonce = new_nonce()
    state = sign({"nonce": nonce, "next": safe_path(target)})
    return redirect(provider, state=state)
"""
STEPS = (
    ("Find where the target is lost", "completed"),
    ("Keep it in the signed state", "completed"),
    ("Run the tests", "in_progress"),
    ("Open the pull request", "pending"),
)
READ = ("login.py", "session.py", "redirects.py", "middleware.py", "test_login.py", "conftest.py")
FOUND = """The target is lost when the session cookie is renewed:

```python
response.set_cookie("next", target)  # gone with the next response
```

| case | now | should be |
|---|---|---|
| `/settings` | lost | kept |
| `//evil.example` | lost | `/` |
"""
REPORT = (
    "I keep the target in the **signed state** instead, where `safe_path()` has already looked at "
    "it:\n\n1. `auth/login.py` signs the target together with the nonce.\n"
    "2. The callback reads it back.\n"
)


def player(folder: Path, **more: Any) -> dict[str, Any]:
    """Write the registry entry of a player whose plays are in a folder."""
    env = {"PLAYS": str(folder), "AGENT_BRIDGE_DEMO_FAULTS": "1"}
    return {"command": PLAYER, "sandbox": "none", "env": env, **more}


def put(folder: Path, name: str, steps: list[dict[str, Any]]) -> None:
    """Write a play down."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(steps))


def text(words: str) -> dict[str, Any]:
    """Say something."""
    content = {"type": "text", "text": words}
    return {"sessionUpdate": "agent_message_chunk", "content": content}


def thought(words: str) -> dict[str, Any]:
    """Think something."""
    return {**text(words), "sessionUpdate": "agent_thought_chunk"}


def plan(*steps: tuple[str, str]) -> dict[str, Any]:
    """Show a plan."""
    entries = [{"content": c, "priority": "medium", "status": s} for c, s in steps]
    return {"sessionUpdate": "plan", "entries": entries}


def call(number: int, title: str, kind: str, **more: Any) -> dict[str, Any]:
    """Show a tool call that has ended well, unless it says otherwise."""
    return {
        "sessionUpdate": "tool_call",
        "toolCallId": f"call-{number}",
        "title": title,
        "kind": kind,
        "status": "completed",
        **more,
    }


def edit(number: int, path: str, old: str, new: str) -> dict[str, Any]:
    """Show a change of a file."""
    diff = {"type": "diff", "path": path, "oldText": old, "newText": new}
    return call(number, path, "edit", content=[diff])


def many(number: int) -> list[dict[str, Any]]:
    """Run so many commands, each with a card of its own."""
    return [call(each, f"Run `step {each}`", "execute") for each in range(1, number + 1)]


def working_day(folder: Path) -> None:
    """Write down what two agents do for people: answer, watch, and fix up to a question."""
    put(folder, "changed", [text("Three fixes and a faster start, see `CHANGELOG.md`.")])
    put(folder, "watch", [thought("Reading the logs."), {"hold": "forever"}])
    put(folder, "lose", [thought("Where is `next` written?"), text(FOUND)])
    put(folder, "fix", _fix())


def _fix() -> list[dict[str, Any]]:
    tests = call(20, "Run `pytest tests/auth -q`", "execute", status="pending")
    tests["rawInput"] = {"command": "pytest tests/auth -q"}
    usage = {"used": 18_200, "size": 200_000, "cost": {"amount": 0.08, "currency": "USD"}}
    return [
        thought("The cookie is renewed in the middleware, so the target must be lost there."),
        text(REPORT),
        plan(*STEPS),
        edit(1, "auth/login.py", OLD, NEW),
        *(call(number, f"auth/{name}", "read") for number, name in enumerate(READ, 2)),
        {"sessionUpdate": "usage_update", **usage},
        tests,
        {"ask": {name: value for name, value in tests.items() if name != "sessionUpdate"}},
    ]
