"""Sentences for people live in wording modules; the rest of core carries codes and facts."""

from __future__ import annotations

from pathlib import Path

import pytest

import app.core
from tests.support.sentences import list_sentences

CORE = Path(next(iter(app.core.__path__)))
FOR_AGENTS = {
    "turns/prompt.py",
    *(str(path.relative_to(CORE)) for path in CORE.glob("tools/*.py")),
}
"""Text for agents, which is another surface."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=str(path.relative_to(CORE)))
        for path in sorted(CORE.rglob("*.py"))
        if path.name != "wording.py" and str(path.relative_to(CORE)) not in FOR_AGENTS
    ],
)
def test_no_sentence_for_people_is_written_outside_of_wording(path: Path) -> None:
    assert list(list_sentences(path.read_text())) == []


@pytest.mark.parametrize(
    "source",
    [
        'def f(name): return f"{name} was not sent."',
        'WHY = "the time has passed"',
        'options = (AskOption(ALLOW, "Allow once", "allow_once"),)',
        'words = "It cannot be read." if broken else ""',
    ],
)
def test_a_sentence_is_found(source: str) -> None:
    assert len(list(list_sentences(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        '"""A docstring of a module."""',
        'raise Conflict(f"{name} is not there. Choose another one.")',
        'logger.info("no list of repositories for %s", agent)',
        'Effect("hand over", session.id)',
        'note = f"updates:{turn}"',
        'is_missing = "entity not found" in answer.lower()',
        'HIDE = "mutation ($comment: ID!) { hide it from people }"',
    ],
)
def test_codes_logs_and_errors_are_no_sentences(source: str) -> None:
    assert list(list_sentences(source)) == []
