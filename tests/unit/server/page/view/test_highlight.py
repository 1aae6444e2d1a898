"""What highlighted code may and may not do."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.server.page.view import highlight

TAG = re.compile(r'</?span(?: class="hl-[a-z]+")?>')


def test_keywords_strings_and_comments_have_a_class() -> None:
    shown = highlight.lines('def name():\n    return "a"  # why', "python")

    assert '<span class="hl-k">def</span>' in shown[0]
    assert '<span class="hl-f">name</span>' in shown[0]
    assert "hl-s" in shown[1]
    assert '<span class="hl-c"># why</span>' in shown[1]


@given(st.text(max_size=300), st.sampled_from(sorted(highlight._LANGUAGES)))
def test_every_line_keeps_its_characters_and_holds_nothing_but_spans(code: str, name: str) -> None:
    shown = highlight.lines(code, name)

    assert "\n".join(unescape(TAG.sub("", line)) for line in shown) == code
    assert all(line.count("<span") == line.count("</span>") for line in shown)
    assert not any("<" in TAG.sub("", line) for line in shown)


@pytest.mark.parametrize(
    ("code", "language"),
    [
        ("def f(): pass", "klingon"),
        ("x = 1\n" * (highlight.CHARACTERS // 6 + 1), "python"),
        ("x = '" + "a" * highlight.LINE_CHARACTERS + "'", "python"),
    ],
    ids=["unknown language", "long text", "long line"],
)
def test_what_no_lexer_should_read_stays_plain(code: str, language: str) -> None:
    assert "<span" not in "".join(highlight.lines(code, language))


@pytest.mark.parametrize(
    ("path", "language"),
    [("a/b/tokens.py", "python"), ("Makefile", "make"), ("x.tsx", "tsx"), ("notes", ""), ("", "")],
)
def test_a_file_has_the_language_of_its_name(path: str, language: str) -> None:
    assert highlight.language_of(path) == language
