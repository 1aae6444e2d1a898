"""What people read: code with its colours, tables, pictures, files, scripts of either direction."""

from __future__ import annotations

import base64
import struct
import zlib
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Agents, Visiting
from tests.support.plays import call, player, put, text
from tests.support.window import PHONE, Window

CODE = 'def greet(name: str) -> str:\n    return f"Hello {name}"  # <b>\n'
PATCH = "@@ -1,2 +1,2 @@\n-old = 1\n+new = 2\n same"
COLUMNS = [f"Column {number}" for number in range(12)]
TABLE = "\n".join(
    [
        f"| {' | '.join(COLUMNS)} |",
        f"|{'---|' * len(COLUMNS)}",
        f"| {' | '.join(f'something{number}' for number in range(len(COLUMNS)))} |",
    ]
)
ARABIC = "مرحبا بالعالم"
COMMAND = 'printf "%s" *a* _b_'

_LINES = """element => {
  const range = document.createRange();
  range.selectNodeContents(element);
  return new Set([...range.getClientRects()].map(each => Math.round(each.top))).size;
}"""
_LISTEN = """button => {
  window.heard = [];
  const hear = new MutationObserver(() => window.heard.push(button.textContent));
  hear.observe(button, { childList: true });
}"""
_LEFT = "element => element.getBoundingClientRect().left"


def png(width: int, height: int) -> str:
    """Draw a picture of one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = b"".join(b"\0" + b"\x35\x57\xd6" * width for _ in range(height))
    made = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    made += chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + made).decode()


def block(**content: Any) -> dict[str, Any]:
    """Say something that is not text."""
    return {"sessionUpdate": "agent_message_chunk", "content": content}


def answer() -> list[dict[str, Any]]:
    run = call(1, "Print it", "execute", rawInput={"command": COMMAND}, rawOutput="three\nlines\n")
    words = (
        f"Here it is[^1]:\n\n```python\n{CODE}```\n\n```diff\n{PATCH}\n```\n\n{TABLE}\n\n"
        f"{ARABIC} `x = 1`\n\nEnglish after it, and \u202ereversed\n\n"
        f"- {ARABIC}\n- one\n\n```python\nname = '{ARABIC}'\n```\n\n"
        "[^1]: With a footnote.\n\nBefore:\n"
    )
    data = base64.b64encode(b"a,b\n1,2\n").decode()
    return [
        run,
        text(words),
        block(type="image", mimeType="image/png", data=png(900, 500)),
        text("\nAfter it.\n"),
        block(type="resource", resource={"uri": "file:///data.csv", "blob": data}),
    ]


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> Agents:
    folder = tmp_path_factory.mktemp("plays")
    put(folder, "answer", answer())
    return {"claude": player(folder, display_name="Claude")}


def copied(window: Window, button: str, inside: str) -> str:
    """Copy something by keyboard and return what is on the clipboard."""
    found = window.page.locator(inside).get_by_role("button", name=button).first
    found.focus()
    expect(found).to_have_css("opacity", "1")
    found.evaluate(_LISTEN)
    window.page.keyboard.press("Enter")
    window.page.wait_for_function("() => window.heard.includes('Copied')")
    expect(found).to_be_focused()
    return str(window.page.evaluate("navigator.clipboard.readText()"))


def is_rtl(page: Page, words: str) -> bool:
    """Return the direction of the innermost block with some words."""
    found = page.locator(".turn .md :is(p, li, pre)", has_text=words).first
    return str(found.evaluate("element => getComputedStyle(element).direction")) == "rtl"


@pytest.mark.long
def test_an_answer_reads_well_and_all_of_it_can_be_copied(visit: Visiting) -> None:
    person = visit(size=(1440, 900))
    person.context.grant_permissions(["clipboard-read", "clipboard-write"])
    window = person.open()
    page = window.page
    window.say("give me the answer")
    expect(window.turns).to_contain_text("After it.")
    window.settled()

    # Code has its language and colours, a patch its lines.
    python = page.locator(".turn .md .code").first
    expect(python.locator(".lang")).to_have_text("python")
    expect(python.locator(".hl-k").first).to_have_text("def")
    expect(page.locator(".udiff .del")).to_have_text("-old = 1")
    expect(page.locator(".udiff .add")).to_have_css("display", "inline-block")
    expect(page.locator(".turn .footnote")).to_contain_text("With a footnote.")
    # A wide table scrolls, its words are whole.
    table = page.locator(".turn .table")
    assert table.evaluate("element => element.scrollWidth > element.clientWidth + 100")
    assert [cell.evaluate(_LINES) for cell in table.locator("td").all()] == [1] * len(COLUMNS)
    # Each block has its own direction, code always the same.
    assert is_rtl(page, "x = 1")
    assert not is_rtl(page, "English after it")
    assert not is_rtl(page, "name = ")
    expect(page.locator(".turn .md")).to_contain_text("and \ufffdreversed")
    # The picture stands in its place, once; the file is a card.
    picture = page.locator(".turn .md img")
    expect(picture).to_have_count(1)
    assert picture.evaluate("element => element.naturalWidth") == 900
    expect(page.locator("#log img")).to_have_count(1)
    expect(window.turns).not_to_contain_text("[image")
    expect(window.turns).not_to_contain_text("[file")
    expect(window.turns).not_to_contain_text("Made")
    card = page.locator(".turn a.file")
    expect(card).to_have_text("data.csv8 bytes")
    with page.expect_download() as download:
        card.click()
    assert download.value.path().read_bytes() == b"a,b\n1,2\n"
    window.picture("reading-end-desktop-light")
    page.locator("#scroll").evaluate("element => { element.scrollTop = 0; }")
    window.picture("reading-begin-desktop-light")

    # Everything is copied as it is.
    assert copied(window, "Copy", ".turn .md .code >> nth=0") == CODE.removesuffix("\n")
    assert copied(window, "Copy", ".turn .md .code >> nth=1") == PATCH
    page.locator(".turn .tool summary").click()
    assert copied(window, "Copy", ".tool .code >> nth=0") == COMMAND
    assert copied(window, "Copy", ".tool .code >> nth=1") == "three\nlines"
    whole = copied(window, "Copy answer", ".turn > .who")
    assert whole.startswith("Here it is1:")
    assert CODE.removesuffix("\n") in whole
    assert "Copy" not in whole
    assert copied(window, "Copy message", "article:not(.turn) > .who") == "give me the answer"

    # The picture opens in full size, and focus comes back.
    page.locator(".turn .picture").click()
    dialog = page.get_by_role("dialog", name="image.png")
    expect(dialog).to_be_visible()
    assert window.findings() == []
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page.locator(".turn .picture")).to_be_focused()


@pytest.mark.slow
def test_an_answer_reads_well_on_a_phone_in_the_dark(visit: Visiting) -> None:
    window = visit(size=PHONE, scheme="dark").open()
    page = window.page
    window.say("give me the answer")
    expect(window.turns).to_contain_text("After it.")
    window.settled()

    assert page.evaluate("document.documentElement.scrollWidth") == PHONE[0]
    assert [cell.evaluate(_LINES) for cell in page.locator(".table td").all()] == [1] * len(COLUMNS)
    assert page.locator(".turn .md img").evaluate(_LEFT) >= 0
    assert window.findings() == []
    window.picture("reading-phone-dark")
