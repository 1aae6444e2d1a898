"""Renders the plain pages of log-in, installation and refusal: what happened, what to do next.

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
button { font: inherit; padding: 8px 20px; border: 0; border-radius: 10px; cursor: pointer;
  color: var(--bg); background: var(--accent); }
"""
_LINKS: Final = """<p>For a new link, run this on the bridge's machine, with the same settings:
</p>
<pre>agent-bridge login</pre>
<p>After <code>make run</code> it is <code>.venv/bin/agent-bridge login</code> in the same folder;
in a container, <code>docker compose exec bridge agent-bridge login</code>.</p>"""
_MOVED: Final = """<p>The link opens the page's own address. If this browser is already signed in,
find that address in its history.</p>"""
_BUTTON: Final = '<form method="post"><button autofocus>Sign in</button></form>'
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        f"style-src 'sha256-{base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()}'"
    ),
    # With `no-referrer` a browser hides its origin even from us, and the button is refused.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}


def not_signed_in(*, own_address: bool) -> HTMLResponse:
    """Explain how to log in, or that the page is at another address."""
    return _page(
        401,
        "You are not signed in",
        "<p>Open a log-in link. It works once, within 15 minutes, and this browser stays signed "
        "in for 30 days.</p>" + ("" if own_address else _MOVED),
    )


def sign_in() -> HTMLResponse:
    """Show the button that uses up a log-in link."""
    words = "<p>This link works once. This browser stays signed in for 30 days.</p>"
    return _page(200, "Sign in to Agent Bridge", words + _BUTTON, links=False)


def sign_in_plainly() -> HTMLResponse:
    """Show the button at the plain address of this machine, and what is different there."""
    words = (
        "<p>This link works once. This browser stays signed in until you close it, at most for 12 "
        "hours.</p><p>Browsers send the cookie of this address to every server on this machine "
        "that you open. Until you sign out, do not open in this browser what agents serve at "
        "127.0.0.1. The link with the page's own name has no such limit.</p>"
    )
    return _page(200, "Sign in at the plain address", words + _BUTTON, links=False)


def link_expired() -> HTMLResponse:
    """Say that this link no longer works."""
    return _page(
        410,
        "This log-in link no longer works",
        "<p>A link works once, within 15 minutes. This one was used, expired or was revoked. "
        'If you used it in this browser, <a href="/">open the page</a>.</p>',
    )


def signed_out() -> HTMLResponse:
    """Say that the log-in has ended."""
    words = "<p>Log in again to use the bridge in this browser.</p>"
    return _page(200, "You are signed out", words)


def refused(status: int, reason: str) -> HTMLResponse:
    """Say that a form was refused, and why."""
    sentence = f"{reason[:1].upper()}{reason[1:].rstrip('.')}."
    words = (
        f'<p role="alert">{escape(sentence)}</p><p>Go back in your browser to what you wrote, '
        'or <a href="/">open the page</a>.</p>'
    )
    return _page(status, "This did not work", words, links=False)


def installed(agent: str, found: str) -> HTMLResponse:
    """Say that an agent's application is installed."""
    words = f'<p>It is {escape(found)}. <a href="/">Open the page</a>.</p>'
    return _page(200, f"{escape(agent)} is installed", words, links=False)


def not_installed(again: str, reason: str) -> HTMLResponse:
    """Say that an agent's application was not installed, and why."""
    words = f'<p>{escape(reason)}</p><p><a href="{escape(again)}">Try again</a>.</p>'
    return _page(400, "Installation failed", words, links=False)


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
