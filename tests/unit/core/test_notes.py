"""Notes: every code has its words, and facts are put in as they are."""

from __future__ import annotations

import pytest

from app.model import wording
from app.model.inbound import Reason
from app.model.posts import Note, NoteCode

SEVERAL = "several agents are here and none was mentioned"


@pytest.mark.parametrize("code", NoteCode)
def test_every_code_has_words_that_use_its_facts_alone(code: NoteCode) -> None:
    words = wording.note(Note(code, "Ann", "it"))

    assert words
    assert "{" not in words


def test_what_a_person_wrote_is_never_a_template() -> None:
    note = Note(NoteCode.MESSAGE_CHANGED, "{about}", "say {by} and {x}")

    assert wording.note(note) == "{about} edited a message: say {by} and {x}"


def test_the_title_of_an_ask_is_quoted() -> None:
    note = Note(NoteCode.EXPIRED_ASK, about="Run make")

    assert wording.note(note) == "Nobody answered: `Run make`"


@pytest.mark.parametrize("why", [Reason.SEVERAL_HERE, SEVERAL])
def test_a_silence_is_told_by_its_code_or_as_an_older_release_kept_it(why: str) -> None:
    note = Note(NoteCode.NOBODY_ANSWERS, about=why)

    assert wording.note(note) == f"No agent answers: {SEVERAL}."
