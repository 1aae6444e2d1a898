"""Whatever is written into a setting: it is understood, or it is refused in one line."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.catalog import known_agents
from app.config import agents, load, settings
from app.errors import ConfigurationError
from app.services import registered_services

# In capitals, for a legal name of an agent may be shown.
CANARY = "CANARY-42"
NAMES = sorted(
    {
        *settings.NAMES,
        *(name for each in registered_services() for name in each.settings.names().values()),
        *(name for each in registered_services() for name in each.credentials.names().values()),
        "ANTHROPIC_API_KEY",
        "ZZZ",
    }
)

words = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["true", "1", "-1", "1e999", "9" * 5000, "{}", "[]", "null", "~/", "/", "/\0"]),
    st.sampled_from(
        ["http://", "https://h:x/", "http://[", "sqlite:///", "a=b,c", ":,:", "x" * 5000]
    ),
)
values = words.map(lambda word: word + CANARY)
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), values)
json_values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(values, inner, max_size=3),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def refused(environ: Mapping[str, str], home: Path, dotenv: Path | None = None) -> str:
    """Load, and return the words of the refusal, or nothing."""
    try:
        load(
            {"PATH": "", **environ},
            known=known_agents(),
            dotenv=dotenv,
            services=registered_services(),
            home=home,
        )
    except ConfigurationError as error:
        return str(error)
    return ""


@given(name=st.sampled_from(NAMES), value=st.one_of(words, values))
def test_any_text_in_any_setting(home: Path, name: str, value: str) -> None:
    words = refused({name: value}, home)

    assert CANARY not in words
    assert "\n" not in words


@given(key=st.sampled_from(agents.KEYS), value=json_values)
def test_any_value_under_any_key_of_an_agent(home: Path, key: str, value: object) -> None:
    entry = {"command": "x", key: value}

    words = refused({"AGENTS_JSON": json.dumps({"mine": entry})}, home)

    assert CANARY not in words
    assert "\n" not in words


@given(content=st.one_of(st.text(), values, json_values.map(json.dumps)))
def test_any_text_as_agents(home: Path, content: str) -> None:
    words = refused({"AGENTS_JSON": content}, home)

    assert CANARY not in words
    assert "\n" not in words


@given(content=st.lists(st.tuples(st.sampled_from([*NAMES, "", "#", "'", "export "]), words)))
def test_any_text_as_file(home: Path, content: list[tuple[str, str]]) -> None:
    path = home / "dotenv"
    text = "\n".join(f"{name}={value}{CANARY}" for name, value in content)
    path.write_text(text, encoding="utf-8", errors="replace")

    words = refused({}, home, path)

    assert CANARY not in words
    assert "\n" not in words
