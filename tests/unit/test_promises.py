"""Promises are held against the README and against the tests that prove them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.promises import PROMISES, Promise

TESTS = Path(__file__).parents[1]


def test_the_readme_makes_exactly_these_promises() -> None:
    readme = (TESTS.parent / "README.md").read_text()
    _, _, behind = readme.partition("## Promises\n\n")
    said, _, _ = behind.partition("\n\n")

    assert said.splitlines() == [f"{each.number}. {each.sentence}" for each in PROMISES]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: promise.number)
def test_each_test_of_a_promise_exists_and_counts_once(promise: Promise) -> None:
    assert promise.tests
    assert len(set(promise.tests)) == len(promise.tests)
    assert [test for test in promise.tests if test not in found_in(test.partition("::")[0])] == []


def found_in(file: str) -> set[str]:
    """List the tests that pytest finds in a file."""
    path = TESTS / file
    assert path.name.startswith("test_")
    body = ast.parse(path.read_text()).body
    functions = (node for node in body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return {f"{file}::{node.name}" for node in functions if node.name.startswith("test_")}
