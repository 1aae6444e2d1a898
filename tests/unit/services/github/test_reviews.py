"""How an answer becomes a review: what is taken out of it, and what the diff can carry."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from app.services.github.reviews import LineRemark, read_remarks, sort_remarks

ANSWER = """Two things.

```review
a.py:2: Why two?
./b/c d.md:4-3: Shorter:
  ```suggestion
  x:1: = 1
    y
  ```

- `a.py:7`: Gone.
```

That is all."""
WORD = re.compile("w[0-9]+;")
PATCHES = {"a.py": "@@ -1,2 +1,3 @@ def f\n one\n+@@ -1 +50 @@\n two\n@@ -9 +10 @@\n-x\n+y"}


def test_a_block_of_comments_is_taken_out_of_an_answer() -> None:
    left, remarks = read_remarks(ANSWER)

    assert left == "Two things.\n\n\nThat is all."
    assert remarks == (
        LineRemark("a.py", 2, 2, "Why two?"),
        LineRemark("b/c d.md", 3, 4, "Shorter:\n```suggestion\nx:1: = 1\n  y\n```"),
        LineRemark("a.py", 7, 7, "Gone."),
    )


def test_words_that_begin_no_comment_belong_to_the_one_before_or_to_the_answer() -> None:
    left, remarks = read_remarks("```review\nIn short:\na.py:1: One.\nAnd more.")

    assert left == "In short:"
    assert remarks == (LineRemark("a.py", 1, 1, "One.\nAnd more."),)


def test_a_block_that_is_only_shown_or_of_another_kind_stays() -> None:
    for answer in (
        "````\n```review\na.py:1: One.\n```\n````",
        "```python\na.py:1: One.\n```",
        "a.py:1: One.",
        "```review``` is how",
    ):
        assert read_remarks(answer) == (answer, ())


def test_a_comment_fits_where_one_piece_of_the_diff_shows_all_its_lines() -> None:
    fitting = [LineRemark("a.py", 1, 3, "a"), LineRemark("a.py", 10, 10, "b")]
    others = [
        LineRemark("a.py", 4, 4, "below"),
        LineRemark("a.py", 3, 10, "in two pieces"),
        LineRemark("a.py", 50, 50, "a line that looks like a piece"),
        LineRemark("a.py", 1, 1, ""),
        LineRemark("b.py", 1, 1, "another file"),
    ]

    assert sort_remarks([*fitting, *others], PATCHES) == (fitting, others)


def test_a_comment_that_fits_nowhere_can_be_read_all_the_same() -> None:
    assert str(LineRemark("a.py", 1, 2, "One.\nTwo.")) == "- `a.py:1-2`: One.\n  Two."


FENCES = ("```review", "```", "~~~review", "~~~", "  ```", "```suggestion", "````")
LINES = (*FENCES, "w{};", "  w{};", "a.py:1: w{};", "- `a.py:1-2`: w{};", "b.py:1:")


@given(st.lists(st.sampled_from(LINES)))
def test_no_word_of_an_answer_is_lost_and_none_is_said_twice(lines: list[str]) -> None:
    answer = "\n".join(line.format(number) for number, line in enumerate(lines))

    left, remarks = read_remarks(answer)

    kept = "\n".join((left, *(each.words for each in remarks)))
    assert sorted(WORD.findall(kept)) == sorted(WORD.findall(answer))
