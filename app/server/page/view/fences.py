"""Renders code blocks of a Markdown text: a label, a copy button, highlighted lines; pure.

A block that is not closed stays plain: it may still be growing, and would be read again and again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from typing import Any, Final

from markdown_it.token import Token

from app.server.page.view import highlight
from app.server.page.view.cards import visible

PATCH: Final = "udiff"
SPANS: Final = {"lang", "add", "del", "hunk", *highlight.CLASSES.values()}
"""The classes that a code block may have inside."""
COPY: Final = '<button type="button" class="copy" data-copy="">Copy</button>'

_LANGUAGE: Final = re.compile(r"[\w+#.-]{1,30}")
_LINES: Final = (("+++", "hunk"), ("---", "hunk"), ("@@", "hunk"), ("+", "add"), ("-", "del"))


def render(_self: object, tokens: Sequence[Token], index: int, *_: Any) -> str:
    """Render one code block."""
    token = tokens[index]
    found = _LANGUAGE.match(token.info.strip())
    language = found[0] if found else ""
    label = f'<span class="lang">{escape(language)}</span>' if language else ""
    code, kind = visible(token.content).removesuffix("\n"), ""
    if not _is_closed(token):
        made = escape(code)
    elif language.lower() in {"diff", "patch"}:
        made, kind = "\n".join(map(_patch, code.split("\n"))), f' class="{PATCH}"'
    else:
        made = "\n".join(highlight.lines(code, language))
    return f'<div class="code">{label}{COPY}<pre{kind}><code>{made}\n</code></pre></div>\n'


def _is_closed(token: Token) -> bool:
    """Return whether a block has ended; one that is only indented has no mark of its end."""
    if token.type != "fence" or token.map is None:
        return True
    lines = len(token.content.removesuffix("\n").split("\n")) if token.content else 0
    return token.map[1] - token.map[0] == lines + 2


def _patch(line: str) -> str:
    kind = next((kind for mark, kind in _LINES if line.startswith(mark)), "")
    return f'<span class="{kind}">{escape(line)}</span>' if kind else escape(line)
