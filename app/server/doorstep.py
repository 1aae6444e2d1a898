"""The plain pages at the door: what happened, and how to get in or to try again.

They run no script and load nothing.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import Final

from fastapi.responses import HTMLResponse

_STYLE: Final = """
:root { color-scheme: light dark; --bg: #fbfbfa; --card: #fff; --line: #e4e4e0; --ink: #1d1d1b;
  --soft: #6b6b66; --accent: #3557d6; }
@media (prefers-color-scheme: dark) { :root { --bg: #161615; --card: #212120; --line: #31312f;
  --ink: #ececea; --soft: #a5a59f; --accent: #8ba3ff; } }
* { box-sizing: border-box; }
body { margin: 0; min-height: 100vh; display: grid; place-content: center; padding: 24px;
  font: 16px/1.6 system-ui, sans-serif; color: var(--ink); background: var(--bg); }
main { width: min(36rem, 100vw - 48px); }
p { margin: 0 0 1em; } .brand { color: var(--soft); margin: 0; }
h1 { font-size: 1.5rem; line-height: 1.3; margin: 0 0 .75em; }
code, pre { font: .875em/1.5 ui-monospace, monospace; }
pre { margin: 0 0 1em; padding: 12px 14px; border: 1px solid var(--line); border-radius: 10px;
  background: var(--card); white-space: pre-wrap; overflow-wrap: anywhere; }
a { color: var(--accent); }
"""
_LINKS: Final = """<p>For a new link, run this on the machine of the bridge, with the same settings:
</p>
<pre>agent-bridge login</pre>
<p>After <code>make run</code> it is <code>.venv/bin/agent-bridge login</code> in the same folder;
in a container, <code>docker compose exec bridge agent-bridge login</code>.</p>"""
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
        f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def not_signed_in() -> HTMLResponse:
    """Tell somebody who has no log-in how to get one."""
    return _page(
        401,
        "You are not signed in",
        "<p>Open the log-in link that the bridge printed when it was started. It works once, and "
        "for 15 minutes.</p>",
    )


def link_of_no_use() -> HTMLResponse:
    """Tell somebody that this link opens nothing any more."""
    return _page(
        410,
        "This log-in link does not work any more",
        "<p>A link works once, and for 15 minutes: this one was used, is too old or was withdrawn. "
        'If it was you, in this browser, <a href="/">open the page</a>.</p>',
    )


def signed_out() -> HTMLResponse:
    """Tell somebody that the log-in has ended."""
    words = "<p>This browser has to log in again before it can use the bridge.</p>"
    return _page(200, "You are signed out", words)


def installed(agent: str, found: str) -> HTMLResponse:
    """Tell an admin that an agent's application is installed."""
    words = f'<p>It is {escape(found)}. <a href="/">Open the page</a>.</p>'
    return _page(200, f"{escape(agent)} is installed", words, links=False)


def not_installed(again: str, reason: str) -> HTMLResponse:
    """Tell an admin that an agent's application was not installed, and why."""
    words = f'<p>{escape(reason)}</p><p><a href="{escape(again)}">Begin again</a>.</p>'
    return _page(400, "The installation did not work", words, links=False)


def _page(status: int, title: str, words: str, *, links: bool = True) -> HTMLResponse:
    content = f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · Agent Bridge</title>
<style>{_STYLE}</style>
<main>
<p class="brand">Agent Bridge</p>
<h1>{title}</h1>
{words}
{_LINKS if links else ""}
</main>
"""
    return HTMLResponse(content, status_code=status, headers=_HEADERS)
