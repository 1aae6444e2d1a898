"""What the two measures of the code base count: its grain, and the walk of one message."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.walk import Walk, mention, read_layers
from tests.support import grain

MODULE = '''"""Owns a thing.

At length.
"""

from __future__ import annotations

import os  # it is needed


class Thing(Protocol):
    """A thing."""

    size: int
    """How large it is."""

    def grow(self) -> str:
        """Grow."""
        # Because.
        return self._once() + twice() + twice()

    def _once(self) -> str:
        return (
            "a"
        )
'''


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "app/__init__.py": '"""The package."""\n',
        "app/thing.py": MODULE,
        "app/other.py": '"""Owns others."""\nfrom app import thing\n\n\nclass Thing: ...\n',
        "app/third.py": '"""Owns thirds."""\nfrom app.other import Thing\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def test_code_is_what_is_no_import_docstring_comment_or_blank(root: Path) -> None:
    code = {module.name: module.code for module in grain.read(root)}

    assert code == {"app": 0, "app.thing": 8, "app.other": 1, "app.third": 0}


def test_grain_counts_importers_names_protocols_and_helpers(root: Path) -> None:
    modules = grain.read(root)
    (thing,) = (module for module in modules if module.name == "app.thing")

    assert grain.one_importer(modules) == ["app.other", "app.thing"]
    assert grain.names_used_twice(modules) == {"Thing": 2}
    assert grain.protocols(modules) == ["app.thing.Thing"]
    assert [each.name for each in thing.private_used_once()] == ["_once"]


def test_a_turn_back_is_a_call_of_a_higher_layer_that_is_not_the_store() -> None:
    intake, store = ("app.core.intake", "take"), ("app.store.inbox", "append")
    bridge, vault = ("app.main.bridge", "find"), ("app.vault", "redact")
    walk = Walk(
        [(None, intake, 1), (intake, store, 2), (store, vault, 2), (intake, bridge, 1)],
        layers={"main": 0, "store": 1, "core": 2, "vault": 3},
    )

    assert walk.up == {(intake[0], store[0]), (intake[0], bridge[0])}
    assert walk.turns_back == walk.into_main == {(intake[0], bridge[0])}
    assert list(walk.figures()) == [4, 4, 3, 2, 1, 1]
    assert walk.callers("vault.redact") == {"app.store.inbox.append": 2}


def test_the_layers_of_a_walk_are_those_of_the_contract() -> None:
    layers = read_layers()

    assert layers["main"] < layers["services"] < layers["vault"] < layers["errors"]


@pytest.mark.slow
def test_the_walk_of_a_mention_goes_from_the_socket_to_the_agent_and_back(tmp_path: Path) -> None:
    walk = Walk(mention(tmp_path), read_layers())

    assert {"app.services.slack.adapter", "app.acp.session"} <= walk.modules
    assert walk.callers("SlackAdapter.send").total() > 0
