"""The lines of a change as HTML: numbered, marked, highlighted, and nothing but what was there."""

from __future__ import annotations

import re
import time
from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from app.model.text import Line, compare
from app.server.page.view import diffs, highlight
from app.server.page.view.diffs import LINE_CHARACTERS, compare_words, mark

TAG = re.compile(r'</?(?:span(?: class="hl-[a-z]+")?|mark)>')
TEXT = st.text(st.characters(exclude_characters="\n"), max_size=60)


def plain(html: str) -> str:
    return unescape(TAG.sub("", html))


def marked(old: str, new: str) -> tuple[str, str]:
    before, after = compare_words(old, new)
    return mark(old, before), mark(new, after)


def test_the_words_that_differ_are_marked() -> None:
    assert marked("sign(nonce)", "sign(nonce, target)") == (
        "sign(nonce)",
        "sign(nonce<mark>, target</mark>)",
    )
    assert marked("a = old_name + 1", "a = new_name + 1") == (
        "a = <mark>old_name</mark> + 1",
        "a = <mark>new_name</mark> + 1",
    )
    assert marked("one two three", "zero one four three") == (
        "one <mark>two</mark> three",
        "<mark>zero </mark>one <mark>four</mark> three",
    )


def test_lines_that_have_little_in_common_have_no_marks() -> None:
    assert marked("return redirect(target)", "raise Refused") == (
        "return redirect(target)",
        "raise Refused",
    )


@given(TEXT, TEXT, st.sampled_from(["python", "html", ""]))
def test_a_marked_line_keeps_its_characters_and_holds_nothing_but_marks(
    old: str, new: str, language: str
) -> None:
    made = diffs.rows([Line("del", old, 1, 0), Line("add", new, 0, 1)], language)

    assert [plain(row.html) for row in made] == [highlight.show(old), highlight.show(new)]
    assert not any("<" in TAG.sub("", row.html) for row in made)
    assert all(row.html.count("<mark>") == row.html.count("</mark>") for row in made)


@given(TEXT)
def test_nothing_in_a_line_hides_or_reorders(text: str) -> None:
    assert highlight.HIDDEN.search(highlight.show(text)) is None


def test_long_lines_are_quick() -> None:
    words = " ".join(map(str, range(LINE_CHARACTERS // 4)))
    began = time.monotonic()

    for _ in range(20):
        compare_words(words[:LINE_CHARACTERS], words[::-1][:LINE_CHARACTERS])
    compare_words("x " * 10**6, "y " * 10**6)

    assert time.monotonic() - began < 5


def test_lines_are_numbered_on_both_sides() -> None:
    old = "\n".join(map(str, range(1, 41)))
    lines = compare(old, old.replace("20", "x\ny").replace("39", "z"))

    numbers = {line.text: (line.old, line.new) for line in lines if line.kind != "gap"}

    assert (numbers["19"], numbers["20"], numbers["x"], numbers["y"]) == (
        (19, 19),
        (20, 0),
        (0, 20),
        (0, 21),
    )
    assert (numbers["21"], numbers["z"], numbers["40"]) == ((21, 22), (0, 40), (40, 41))


def test_what_was_there_and_what_is_there_now_stand_side_by_side() -> None:
    kinds = ["gap", "same", "del", "del", "add", "del", "add", "same", "note"]
    lines = [Line(kind, str(n)) for n, kind in enumerate(kinds)]  # type: ignore[arg-type]  # kinds

    made = list(diffs.blocks(diffs.rows(lines, "")))

    shown = [(b.kind, *([str(r.html) for r in side] for side in (b.before, b.after))) for b in made]
    assert shown == [
        ("gap", ["0"], []),
        ("same", ["1"], []),
        ("change", ["2", "3"], ["4"]),
        ("change", ["5"], ["6"]),
        ("same", ["7"], []),
        ("note", ["8"], []),
    ]


def test_the_lines_of_an_ask_keep_their_signs_and_have_marks() -> None:
    made = diffs.excerpt_rows(" same\n-a = <old>\n+a = <new>\n⋯")

    assert [(row.kind, plain(row.html)) for row in made] == [
        ("same", " same"),
        ("del", "-a = <old>"),
        ("add", "+a = <new>"),
        ("gap", "⋯"),
    ]
    assert "<mark>new</mark>" in made[2].html
