"""Notes: every code has its words, and facts are put in as they are."""

from __future__ import annotations

import pytest

from app.core.notes import Note, NoteCode


@pytest.mark.parametrize("code", NoteCode)
def test_every_code_has_words_that_use_its_facts_alone(code: NoteCode) -> None:
    words = Note(code, "Ann", "it").words

    assert words
    assert "{" not in words


def test_what_a_person_wrote_is_never_a_template() -> None:
    note = Note(NoteCode.MESSAGE_CHANGED, "{about}", "say {by} and {x}")

    assert note.words == "{about} edited a message: say {by} and {x}"


def test_the_title_of_an_ask_is_quoted() -> None:
    assert Note(NoteCode.EXPIRED_ASK, about="Run make").words == ("No answer in time: `Run make`")
