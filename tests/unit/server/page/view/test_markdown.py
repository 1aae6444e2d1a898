"""Markdown of people and agents: it shows, and it can do nothing else."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.server.page.view import highlight, markdown
from app.server.page.view.markdown import ATTRIBUTES, CLASSES, MARKS, PIECE_CHARACTERS, TAGS
from tests.support.document import Element, parse

AT = re.compile(r"@(claude)\b")

SHOWN = [
    ("**bold** *soft* ~~gone~~ `code`", "<strong>bold</strong> <em>soft</em> <s>gone</s>"),
    ("# Title", "<h1>Title</h1>"),
    ("- one\n- two", "<ul>\n<li>one</li>"),
    ("3. three", '<ol start="3">'),
    ("- [ ] open\n- [x] done", "<li>☐ open</li>\n<li>☑ done</li>"),
    ("| a | b |\n|--:|:-:|\n| 1 | 2 |", '<th class="right">a</th>'),
    ("```\nif a < b:\n```", '<pre tabindex="0"><code>if a &lt; b:\n</code></pre>'),
    ("```py\nif a:\n```", '<span class="lang">py</span>'),
    ("```py\nif a:\n```", '<code><span class="hl-k">if</span> a:\n</code>'),
    ("```py\nif a:\n```", '<button type="button" class="copy" data-copy="">Copy</button>'),
    ("```py\nif a", "<code>if a\n</code>"),
    (
        "```diff\n@@ -1 @@\n-a\n+<b>\n c\n```",
        '<span class="del">-a</span>\n<span class="add">+&lt;b&gt;',
    ),
    ("| a |\n|---|\n| b |", '<div class="table" tabindex="0"><table>'),
    ("so[^1]\n\n[^1]: word", '<p>so<sup>1</sup></p>\n<p class="footnote"><sup>1</sup> word</p>'),
    ("so[^n]\n\n[^n]: two words\n[^o]: more", '<p class="footnote"><sup>o</sup> more</p>'),
    ("a class [^a-z] in words", "<p>a class [^a-z] in words</p>"),
    ("مرحبا\n\nhello مرحبا", '<p dir="rtl">مرحبا</p>\n<p>hello'),
    ("- مرحبا\n- hello", '<ul dir="rtl">\n<li>مرحبا</li>\n<li dir="ltr">hello</li>'),
    ("`code` مرحبا", '<p dir="rtl"><code>code</code>'),
    ("pay \u202eevil\u2066 `a\u202eb`", "pay \ufffdevil\ufffd <code>a\ufffdb</code>"),
    ("```\na\u200fb\n```", "<code>a\ufffdb\n</code>"),
    ("[docs](https://example.com/a?b=c&d)", 'href="https://example.com/a?b=c&amp;d"'),
    ("see https://example.com/a_b(c). Then", ">https://example.com/a_b(c)</a>. Then"),
    ("(https://example.com)", '(<a href="https://example.com"'),
    ("<https://example.com>", '<a href="https://example.com"'),
    ("mail [me](mailto:a@b.c)", 'href="mailto:a@b.c"'),
    ("ask @claude now", 'ask <span class="at">@claude</span> now'),
    ("[a file](src/app.py)", '<span class="path" title="src/app.py">a file</span>'),
    ("![shot](https://example.com/a.png)", '<a href="https://example.com/a.png"'),
    ("&copy; &lt;b&gt;", "© &lt;b&gt;"),
]

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)><animate onbegin=alert(1)></svg>",
    "<svg><use href='data:image/svg+xml,<svg onload=alert(1)>'/></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<a href='javascript:alert(1)'>x</a>",
    "<style>* { display: none }</style>",
    "<base href=https://evil.example>",
    "<form action=https://evil.example><button>x</button></form>",
    "<!-- hidden --> <?php x ?> <![CDATA[ x ]]> <!DOCTYPE x>",
    "<div style='position:fixed;inset:0'>x</div>",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt:alert(1))",
    "[x](java\tscript:alert(1))",
    "[x](<java\nscript:alert(1)>)",
    "[x](&#106;avascript:alert(1))",
    "[x](javascript&colon;alert(1))",
    "[x](\x01javascript:alert(1))",
    "[x](vbscript:msgbox)",
    "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "[x](file:///etc/passwd)",
    "[x](//evil.example/a)",
    "[x](/logout)",
    "[x](https://ok.example 'title\" onmouseover=\"alert(1)')",
    '[x](https://ok.example/"onmouseover="alert(1))',
    "[x][y]\n\n[y]: javascript:alert(1)",
    "![x](javascript:alert(1))",
    "![x](https://evil.example/track.gif)",
    "![x](data:image/svg+xml,<svg/onload=alert(1)>)",
    "![<img src=x onerror=alert(1)>](https://evil.example)",
    "[![x](https://evil.example/1.png)](https://evil.example/2)",
    "<javascript:alert(1)>",
    '<https://ok.example/"onmouseover=alert(1)>',
    "```<script>\nalert(1)\n```",
    '```"><img src=x onerror=alert(1)>\n```',
    "`<script>alert(1)</script>`",
    "| <script>alert(1)</script> |\n|---|\n| <img onerror=x> |",
    "# <svg/onload=alert(1)>",
    "@claude<script>",
    "https://ok.example/<script>alert(1)</script>",
    'https://ok.example/" onmouseover=alert(1)',
    "\u202etxt.exe\u202c \u0000 \ufffd",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "<button data-post=/stop data-copy=x>Stop</button>",
    "```<button> data-post=/stop\nx\n```",
    '```py"><script>\n"""<script>alert(1)</script>"""\n```',
    "```diff\n+<script>alert(1)</script>\n-<img src=x onerror=alert(1)>\n```",
    "[^<script>]: <script>alert(1)</script>\n[^1]: [x](javascript:alert(1))\n\n[^<script>][^1]",
]


@pytest.mark.parametrize(("text", "made"), SHOWN)
def test_markdown_is_shown(text: str, made: str) -> None:
    assert made in markdown.html(text, AT)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_markdown_does_nothing_but_show(text: str) -> None:
    for made in (markdown.html(text, AT), markdown.html(text, breaks=True)):
        assert_harmless(made)


signs = st.sampled_from(
    [
        *"<>[]()!`*_~|#&;:/\\\"'\n\t =-+@xa",
        *("javascript:", "https://", "data:", "script", "<script>", "<img src=x onerror=", "on"),
        *(
            "svg",
            "](",
            "![",
            "&#",
            "style=",
            "claude",
            "```",
            "```py\n",
            "```diff\n",
            "[^",
            "[^1]: ",
        ),
        *("| a |\n|---|\n", "\u202e", "\u2067", "\u0627", "data-copy", "<button data-post=/stop>"),
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(signs, max_size=40).map("".join) | st.sampled_from(HOSTILE), st.text(max_size=20))
def test_nothing_at_all_does_more_than_show(text: str, more: str) -> None:
    assert_harmless(markdown.html(text + more, AT))


def assert_harmless(made: str) -> None:
    for element in list(parse(made).elements())[1:]:
        assert element.tag in TAGS
        assert set(element.attributes) <= allowed(element)
        assert not set((element.attributes.get("class") or "").split()) - CLASSES.get(
            element.tag, set()
        )
        if element.tag == "a":
            # What is no address after all has lost it, and leads nowhere.
            address = element.attributes.get("href") or "https:"
            assert re.match(r"(https?|mailto):", address, re.IGNORECASE)
            assert element.attributes["rel"] == "noopener noreferrer nofollow"


def allowed(element: Element) -> set[str]:
    also = {"a": {"target", "rel"}, "pre": {"tabindex"}}.get(element.tag, set())
    return ATTRIBUTES.get(element.tag, set()) | {"class"} | also


def test_no_picture_is_ever_loaded() -> None:
    assert "<img" not in markdown.html("![a](https://x.example/a.png) ![b](/uploads/a/b.png)")


def test_a_code_block_that_grows_is_highlighted_once_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[str] = []
    real = highlight.lines

    def lines(code: str, language: str) -> list[str]:
        seen.append(code)
        return real(code, language)

    monkeypatch.setattr(highlight, "lines", lines)
    code = "x = 1\n" * 50

    for end in range(10, len(code), 10):
        markdown.html(f"So:\n\n```py\n{code[:end]}")
    made = markdown.html(f"So:\n\n```py\n{code}```")

    assert seen == [code.removesuffix("\n")]
    assert 'class="hl-n"' in made


def test_line_ends_are_kept_where_people_typed_them() -> None:
    assert "<br>" in markdown.html("one\ntwo", breaks=True)
    assert "<br>" not in markdown.html("one\ntwo")


def test_names_in_code_and_in_links_are_not_marked() -> None:
    made = markdown.html("`@claude` [@claude](https://a.example)\n\n    @claude", AT)

    assert 'class="at"' not in made


def test_prose_is_what_stands_outside_code() -> None:
    assert "code" not in markdown.prose("a `code` b\n\n```\ncode\n```\n\n    code\n")
    assert markdown.prose("a `code` b\nc") == "a   b\nc"


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "# A\n\n",
                "word " * 50 + "\n\n",
                "- a\n\n- b\n\n",
                "```\nx\n\ny\n```\n\n",
                "> q\nlazy\n\n",
                "| a |\n|---|\n| b |\n\n",
                "1. a\n\n   b\n\n",
                "a[^1]\n\n[^1]: b\n[^2]: c\n\n",
                "\u0627\n\n```py\nx = 1\n```\n\n",
            ]
        ),
        max_size=200,
    )
)
def test_a_text_in_pieces_renders_as_the_whole_does(parts: list[str]) -> None:
    text = "".join(parts)

    pieces = list(markdown.pieces(text))

    assert "".join(pieces) == text
    assert "".join(map(markdown.html, pieces)) == markdown.html(text)


def test_pieces_are_small() -> None:
    pieces = list(markdown.pieces("word " * 50 * 20 + "\n\n" + ("word " * 50 + "\n\n") * 200))

    assert all(len(piece) <= PIECE_CHARACTERS + 300 for piece in pieces)


@pytest.mark.parametrize("sign", ["[", "![", "*a", "`", "<", "|a", "~~a", "&amp", "\\"])
def test_a_flood_of_signs_is_shown_as_it_came(sign: str) -> None:
    flood = sign * (2 * MARKS)

    began = time.process_time()
    made = markdown.html(flood)

    assert made.startswith("<pre>")
    assert time.process_time() - began < 5
    assert list(markdown.pieces(flood)) == [flood]
