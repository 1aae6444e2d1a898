"""What IDENTITY.md says about an agent, and what is refused in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.agents.identity import COLOURS, Identity, read_identity

WHOLE = """---
name: Ada
emoji: \N{OWL}
creature: "owl"
vibe: calm and exact
colour: teal
---

You review code.
"""
PLAIN = st.text(st.characters(categories=("L", "N")), min_size=1, max_size=40)


def test_every_key_is_read_and_the_text_follows() -> None:
    found = read_identity(WHOLE)

    assert found == Identity("Ada", "\N{OWL}", "owl", "calm and exact", "teal", "You review code.")
    assert found.words == (
        "Your name is Ada. You appear as: owl. Your manner: calm and exact. Your emoji is \N{OWL}."
        "\n\nYou review code."
    )


def test_a_file_without_front_matter_is_text_alone() -> None:
    assert read_identity("Be kind.\n---\nname: x\n") == Identity(text="Be kind.\n---\nname: x")


@pytest.mark.parametrize(
    ("front", "problem"),
    [
        ("nmae: Ada", "Line 2: this is none of the keys. Write one of name, emoji"),
        ("\nname: Ada\nname: Bo", "Line 4: name is there twice"),
        ("name:", "Line 2: name needs 1 to 200 plain characters"),
        ("vibe: " + "x" * 201, "Line 2: vibe needs 1 to 200"),
        ("# who\nemoji: owl", "Line 3: emoji is not one emoji"),
        ("colour: #ff0000", f"Line 2: colour is unknown. Write one of {', '.join(COLOURS)}."),
        ("name: a\u202eb", "Line 2: name needs"),
        ("just words", "Line 2: this is none of the keys"),
    ],
)
def test_a_wrong_line_is_named_with_its_remedy_and_the_rest_is_used(
    front: str, problem: str
) -> None:
    found = read_identity(f"---\n{front}\n---\nText.")

    assert found.problem.startswith(problem)
    assert found.text == "Text."


def test_front_matter_that_never_ends_is_told_and_still_text() -> None:
    found = read_identity("---\nname: Ada\n")

    assert found.problem.startswith("Line 1: the front matter is not closed")
    assert "name: Ada" in found.text


@given(st.text())
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = read_identity(f"---\n{text}")

    assert found.problem or not found.words.startswith("---\n")


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "name": PLAIN,
            "creature": PLAIN,
            "vibe": PLAIN,
            "emoji": st.sampled_from(["\N{OWL}", "\U0001f3f3\ufe0f\u200d\U0001f308"]),
            "colour": st.sampled_from(COLOURS),
        },
    ),
    st.sampled_from(["", '"', "'"]),
    PLAIN,
)
def test_good_front_matter_comes_back_as_it_was_written(
    values: dict[str, str], quote: str, text: str
) -> None:
    lines = "".join(f"{key}: {quote}{value}{quote}\n" for key, value in values.items())

    assert read_identity(f"---\n{lines}---\n{text}\n") == Identity(**values, text=text)
