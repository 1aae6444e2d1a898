"""Sentences for people live in one wording module per service; the rest carries codes and facts."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import app.services
from tests.support.sentences import list_sentences

SERVICES = Path(next(iter(app.services.__path__)))
FOR_OPERATORS = {"doctor", "live", "manifest", "settings"}
"""Modules of what the operator reads: settings, setup and checks."""


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=str(path.relative_to(SERVICES)))
        for path in sorted(SERVICES.glob("*/**/*.py"))
        if path.stem not in {"wording", *FOR_OPERATORS}
    ],
)
def test_no_sentence_for_people_is_written_outside_of_wording(path: Path) -> None:
    assert list(list_sentences(path.read_text())) == []


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=str(path.relative_to(SERVICES)))
        for path in sorted(SERVICES.rglob("wording.py"))
    ],
)
def test_wording_needs_nothing_of_its_service(path: Path) -> None:
    tree = ast.walk(ast.parse(path.read_text()))
    origins = {node.module or "" for node in tree if isinstance(node, ast.ImportFrom)}
    from_app = {name for name in origins if name.split(".")[0] not in sys.stdlib_module_names}

    assert all(name.startswith(("app.core.", "app.model.", "app.markdown.")) for name in from_app)
