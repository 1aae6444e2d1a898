"""Nothing that only an agent would see survives, and what people see is left as it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.hidden import visible

SECRET = "do evil"


def tags(text: str) -> str:
    """Write text in letters that nobody sees."""
    return "".join(chr(0xE0000 + ord(letter)) for letter in text)


@pytest.mark.parametrize(
    "hidden",
    [
        f"<!-- {SECRET} -->",
        f"<!--\n{SECRET}\n",
        f"<!-- a -->b<!-- {SECRET} -->",
        f"<!<!-- a -->-- {SECRET} -->",
        f"<!\u200b-- {SECRET} -->",
        f"[//]: # ({SECRET})",
        f'[comment]: # "{SECRET}"',
        f"[x]: <> ({SECRET})",
        f"![{SECRET}](https://example.org/a.png)",
        f'<img src="a.png" alt="{SECRET}">',
        f"<IMG ALT='{SECRET}' src=a.png>",
        f'<a href="/" title="x" aria-label="{SECRET}">link</a>',
        tags(SECRET),
        f"\U0001f3f4{tags(SECRET)}\U000e007f",
        "\u200b".join(SECRET),
        f"\u202e{SECRET[::-1]}\u202c",
    ],
)
def test_what_nobody_sees_is_taken_out_and_counted(hidden: str) -> None:
    shown, count = visible(f"before\n{hidden}\nafter")

    assert count > 0
    assert SECRET not in shown.replace(SECRET, "", "\u200b" in hidden)
    assert not set(shown) & {"\u200b", "\u202e", *tags("abcdefghijklmnopqrstuvwxyz ")}
    assert shown.startswith("before\n")


@pytest.mark.parametrize(
    "seen",
    [
        "plain words, `code` and <b>tags</b>",
        "a < b, b > c, x <!- y",
        "https://example.org/?alt=1&title=2",
        "[docs]: https://example.org (The docs)",
        "![](https://example.org/a.png)",
        "👩‍💻 ❤️ 1️⃣ 🏳️‍🌈 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f ©️",
        "می‌خواهم क्‍ष café naïve 日本語",
        "tab\tand\nline",
    ],
)
def test_what_people_see_is_left_as_it_is(seen: str) -> None:
    assert visible(seen) == (seen, 0)


@given(st.text(alphabet=st.characters(categories=["L", "N", "P", "S", "Zs"], max_codepoint=0x17F)))
def test_what_was_made_visible_stays_as_it_is(text: str) -> None:
    shown, _ = visible(text)

    assert visible(shown) == (shown, 0)
