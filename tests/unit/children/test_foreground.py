"""What a program may show on the user's terminal, and what is dropped."""

from __future__ import annotations

import pytest

from app.children.foreground import LONGEST_SEQUENCE, OutputFilter

SHOWN = {
    "text": "Open https://example.com/?a=1;b\r\n\tcode: ünï\b\a",
    "colours": "\x1b[1;38;5;4mbold\x1b[0m\x1b[m",
    "cursor": "\x1b[2K\x1b[1A\x1b[10;2H\x1b[?25l\x1b[?25h\x1b7\x1b8",
    "second screen": "\x1b[?1049h\x1b[2J\x1b[?1049l",
    "boxes": "\x1b(0lqk\x1b(B",
}
DROPPED = {
    "where the cursor is": "\x1b[6n",
    "whether it is well": "\x1b[5n",
    "what it is": "\x1b[c\x1b[>c\x1b[=c\x1bZ",
    "its title": "\x1b]2;rm -rf\x07\x1b[21t",
    "its title to come back": "\x1b]0;words\x1b\\",
    "its size": "\x1b[18t",
    "its modes": "\x1b[?25$p",
    "its colours": "\x1b]11;?\x07",
    "its settings": "\x1bP$qm\x1b\\",
    "the clipboard": "\x1b]52;c;cm0gLXJm\x07",
    "the mouse": "\x1b[?1000h\x1b[?1003h",
    "keys in other forms": "\x1b[>4;2m\x1b[?u",
    "an answer to ENQ": "\x05",
    "one in eight bits": "\x9b\x85",
    "commands of a program": "\x1b_G\x1b\\\x1b^x\x1b\\",
    "a reset": "\x1bc",
}


@pytest.mark.parametrize("text", SHOWN.values(), ids=SHOWN)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_what_a_log_in_shows_is_shown(text: str, size: int) -> None:
    assert show(text, size) == text


@pytest.mark.parametrize("text", DROPPED.values(), ids=DROPPED)
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_what_a_terminal_answers_or_keeps_is_dropped(text: str, size: int) -> None:
    assert show(f"a{text}b", size) == "ab"


@pytest.mark.parametrize("size", [1, 1000])
def test_no_sequence_comes_about_by_dropping_another(size: int) -> None:
    for inner in ("\x00", "\x05", "\x1b", "\x1b[6n", "\x1b]0;x\x07"):
        assert "\x1b[6n" not in show(f"\x1b{inner}[6n\x1b[{inner}6n\x1b[6{inner}n", size)


def test_a_sequence_without_an_end_holds_back_only_so_much() -> None:
    screen = OutputFilter()
    screen.filter(b"\x1b]0;" + b"x" * LONGEST_SEQUENCE)

    assert screen.filter(b"words") == b"words"


def show(text: str, size: int) -> str:
    """Show a text in pieces."""
    data, screen = text.encode(), OutputFilter()
    pieces = (data[at : at + size] for at in range(0, len(data), size))
    return b"".join(map(screen.filter, pieces)).decode()
