"""The daily log: every text is a log, and every entry comes back as it was written."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from app.features.memory.model import Remembered, add_entry, drop_entry, format_log, parse_log

DAY = "2026-03-01"
NOTE = Remembered(DAY, "- The staging database is called bluefin.", "14:05", 12, 7)

texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], include_characters="\n"), min_size=1
).filter(str.strip)
entries = st.builds(
    Remembered,
    st.just(DAY),
    texts.map(lambda text: "\n".join(text.splitlines()).strip()),
    st.just("09:30"),
    st.integers(1, 10**12) | st.none(),
    st.none(),
)


def test_an_entry_says_when_and_from_which_session_it_came() -> None:
    log = add_entry("", NOTE)

    assert log == "## 14:05 · session 12 · note 7\n- The staging database is called bluefin.\n"
    assert parse_log(DAY, log) == (NOTE,)


def test_a_note_is_added_once() -> None:
    log = add_entry("", NOTE)

    assert add_entry(log, NOTE) == log


def test_what_people_write_by_hand_is_an_entry_too() -> None:
    log = add_entry("Deploys are on Tuesday.\n", NOTE)

    assert [each.text for each in parse_log(DAY, log)] == ["Deploys are on Tuesday.", NOTE.text]
    assert parse_log(DAY, log)[0].session is None


def test_one_entry_can_be_removed() -> None:
    second = replace(NOTE, note=8, text="- Another one.")
    log = add_entry(add_entry("", NOTE), second)

    assert parse_log(DAY, drop_entry(DAY, log, NOTE.id)) == (second,)
    assert drop_entry(DAY, log, "no such id") == log


@given(st.lists(entries, max_size=5))
def test_entries_come_back_whatever_they_say(written: list[Remembered]) -> None:
    read = parse_log(DAY, format_log(written))

    assert [each.session for each in read] == [each.session for each in written]
    for back, entry in zip(read, written, strict=True):
        assert back.text.replace("\n ## ", "\n## ").strip() == entry.text.strip()


@given(st.text())
def test_any_text_is_a_log_that_stays_the_same_when_it_is_written_again(text: str) -> None:
    once = format_log(parse_log(DAY, text))

    assert format_log(parse_log(DAY, once)) == once
