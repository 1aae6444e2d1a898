"""What is kept of a failure: its kind and facts, without secrets, and never much."""

from __future__ import annotations

import pytest

from app.core.turns.failure import LOG_CHARACTERS, Failure, failure_of
from app.errors import (
    AgentDied,
    AgentLoginNeeded,
    AgentMisbehaved,
    AgentNotStarted,
    AgentRefused,
    AgentStopped,
    AgentTimedOut,
    GitFailed,
)
from app.model.wording import failure
from app.vault import Vault

SECRET = "hunter2-correct-horse-battery"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (AgentDied("claude", status=70), "crashed"),
        (AgentRefused("claude", -32603, "Internal error"), "refused"),
        (AgentLoginNeeded("claude", -32000, "log in"), "refused"),
        (AgentTimedOut("claude", "session/new", 30), "timed_out"),
        (AgentMisbehaved("claude", "a frame is too long"), "misbehaved"),
        (AgentNotStarted("claude", "not found", "Install it."), "not_started"),
        (AgentStopped("it uses 9 GB", "Raise the limit."), "over_limits"),
        (GitFailed("git fetch", "no route"), "repository"),
        (ValueError("odd"), "bridge"),
    ],
)
def test_every_error_has_its_kind(error: Exception, kind: str) -> None:
    assert failure_of(error).kind == kind


def test_facts_are_apart_from_words() -> None:
    died, refused = AgentDied("claude", status=-9), AgentRefused("claude", -32603, "Overloaded")

    assert failure_of(died).data(str) == {"kind": "crashed", "status": -9}
    assert failure_of(refused).data(str) == {
        "kind": "refused",
        "message": "Overloaded",
        "code": -32603,
    }


def test_a_log_is_kept_without_secrets_and_only_its_end() -> None:
    vault = Vault([SECRET])
    log = "x" * LOG_CHARACTERS + f"token {SECRET}\nTraceback: the end"

    kept = Failure("crashed", log=log).data(vault.redact)["log"]

    assert kept.endswith("Traceback: the end")
    assert len(kept) == LOG_CHARACTERS
    assert SECRET not in kept


def test_a_kind_that_the_agent_names_is_kept_and_has_a_remedy() -> None:
    error = AgentRefused("claude", -32603, "No credit.", {"errorKind": "billing_error"})

    assert failure_of(error).data(str)["reason"] == "billing_error"
    assert failure(error, "Claude", "claude").startswith("Claude failed: No credit. Its provider")
