"""Describes an agent that is not isolated: what it can read, and how to isolate it.

Page, `serve`, `agents list` and `doctor` show these words, so that all of them say the same.
"""

from __future__ import annotations

import os
import sys
from typing import Final

from app.children.sandbox import NEEDS_LINUX
from app.config import AgentConfig

NOT_ISOLATED: Final = "not isolated"
AS_YOU: Final = "runs as you and can read your files and keys"
AS_ROOT: Final = "runs as root and can read every file on this machine"


def describe_exposure(reason: str, remedy: str) -> str:
    """Say what an agent without isolation can read, why, and how to isolate it.

    The first sentence is the risk, the rest is the remedy.
    """
    risk = AS_ROOT if os.geteuid() == 0 else AS_YOU
    why = f"{NOT_ISOLATED} ({reason})" if reason else NOT_ISOLATED
    return f"{why}: it {risk}. {remedy}"


def explain_choice(entry: AgentConfig) -> str:
    """Say how to isolate an agent that its settings leave without isolation."""
    if not sys.platform.startswith("linux"):
        return NEEDS_LINUX.remedy
    key = '"home": "user"' if entry.home == "user" else '"sandbox": "none"'
    if entry.source == "stored":
        return f"To isolate it, remove {key} from its entry."
    if entry.source == "found":
        return (
            "It was found on PATH. To isolate it, press Isolate it on its page, or run "
            f"`agent-bridge agents add {entry.name}`."
        )
    return f"To isolate it, remove {key} from its entry in AGENTS_JSON."


def shorten_isolation(words: str) -> str:
    """Return how an agent is isolated in a few words, without what to do about it."""
    return NOT_ISOLATED if words.startswith(NOT_ISOLATED) else words
