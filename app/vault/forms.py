"""Writes a secret in its usual forms, and folds text so that any of them is found.

Folding leaves letters and digits: case, separators, zero-width characters and Markdown marks are
dropped. Where each letter comes from can be told, so that only the secret is masked.
"""

from __future__ import annotations

import base64
import html
import json
import re
import string
import unicodedata
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus

_LETTERS = string.ascii_lowercase + string.digits
_ASCII = bytes(range(128)).lower() + bytes(128)
_DROPPED = bytes(code for code in range(256) if not chr(code).isalnum() or code > 127)

# What a renderer takes away together with its letters, so that its neighbours meet: link targets,
# tags, entities, and the escape sequences of terminals. At the end of a text it may be unfinished.
_HIDDEN = re.compile(
    r"\]\([^()\s]{0,2000}(?:\)|\Z)"
    r"|\]\[[^\[\]\n]{0,200}(?:\]|\Z)"
    r"|</?[a-zA-Z!][^<>]{0,1000}(?:>|\Z)"
    r"|&[a-zA-Z]{2,30}(?:;|\Z)"
    r"|\x1b\[[0-9;?]*(?:[@-~]|\Z)"
    r"|\x1b\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\|\Z)"
)
# Each with a character of it that is rarer: one character is found many times faster than two.
_MAY_HIDE = (("<", "<"), ("&", "&"), ("\x1b", "\x1b"), ("(", "]("), ("[", "]["))


def escape(value: str) -> set[str]:
    """Return the value as escaped once and twice: JSON in a repr, a repr in JSON, and so on."""
    once = {each(value) for each in _ESCAPES}
    return once | {each(form) for each in _ESCAPES for form in once}


_ESCAPES: tuple[Callable[[str], str], ...] = (
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: json.dumps(text)[1:-1].replace("/", "\\/"),
    lambda text: repr(text)[1:-1],
    html.escape,
)


def percent(value: str) -> set[str]:
    """Return the value as it is written in addresses and forms."""
    octets = value.encode(errors="surrogatepass")
    usual = {quote(octets, safe=""), quote(octets), quote_plus(octets)}
    every = "".join(f"%{octet:02X}" for octet in octets)
    lower = {_lower_escapes(form) for form in usual}
    return usual | lower | {every, every.lower()}


def _lower_escapes(quoted: str) -> str:
    head, *escaped = quoted.split("%")
    return head + "".join(f"%{part[:2].lower()}{part[2:]}" for part in escaped)


def base64_cores(octets: bytes, encode: Callable[[bytes], bytes]) -> set[str]:
    """Return the encodings of a secret, alone and in the midst of other octets.

    Of the latter only those characters count that no neighbour has a bit in.
    """
    whole = encode(octets).decode()
    return {whole, whole.rstrip("="), *_cores(octets, encode, octets_per_group=3, bits=6)}


def encodings(value: str) -> Iterator[str]:
    """Yield a plain value in the encodings that are at hand in every shell and language.

    Separators do not matter: hex covers hex with colons, too.
    """
    octets = value.encode()
    wide = [value.encode("utf-16-le"), value.encode("utf-16-be")]
    yield from escape(value)
    yield from percent(value)
    yield from (each.hex() for each in (octets, *wide))
    for number in (r"\x{:02x}", "0x{:02x} ", r"\u{:04x}", r"\{:03o}", r"0{:o} ", "{} ", "{:03} "):
        yield "".join(map(number.format, octets))
    once = base64_cores(octets, base64.b64encode)
    twice = (core.encode() for core in once)
    yield from once
    for inner in (*wide, octets.hex().encode(), *twice):
        yield from base64_cores(inner, base64.b64encode)
    yield base64.b32encode(octets).decode()
    yield from _cores(octets, base64.b32encode, octets_per_group=5, bits=5)


def _cores(
    octets: bytes, encode: Callable[[bytes], bytes], *, octets_per_group: int, bits: int
) -> Iterator[str]:
    for before in range(octets_per_group):
        text = encode(bytes(before) + octets).decode()
        first = -(-8 * before // bits)
        last = 8 * (before + len(octets)) // bits
        yield text[first:last]


class _Table(dict[int, str | None]):
    """Folds one character: to a small letter or digit that looks like it, or to nothing."""

    def __missing__(self, code: int) -> str | None:
        plain = unicodedata.normalize("NFKC", chr(code)).lower()
        folded = self[code] = plain if len(plain) == 1 and plain in _LETTERS else None
        return folded


_TABLE = _Table()

# Where all characters are that look like a letter or digit of ASCII and are none.
_ALIKE = re.compile(
    "[\u00aa-\u00ba\u02b0-\u02e3\u1d2c-\u1dbb\u2070-\u209c\u2102-\u217f\u2460-\u24ea"
    "\u2c7c\u2c7d\ua7f1-\ua7f4\uff10-\uff5a\U000107a5\U0001ccd6-\U0001ccf9\U0001d400-\U0001d7ff"
    "\U0001f12b-\U0001f149\U0001fbf0-\U0001fbf9\u017f\u212a]"
)


def fold(text: str) -> bytes:
    """Return the letters and digits of a text, in small letters."""
    if not text.isascii() and _ALIKE.search(text):
        return text.translate(_TABLE).encode()
    return text.encode(errors="replace").translate(_ASCII, _DROPPED)


def visible(text: str) -> str | None:
    """Return the text with what renderers take away blanked out; None if there is nothing of it."""
    for character, mark in _MAY_HIDE:
        if character in text and mark in text:
            break
    else:
        return None
    seen = _HIDDEN.sub(lambda found: "\0" * len(found[0]), text)
    return None if seen == text else seen


def positions(text: str) -> list[int]:
    """Return where in the text each of its folded letters comes from."""
    return [at for at, character in enumerate(text) if _TABLE[ord(character)] is not None]


def position_from_end(text: str, letters: int) -> int:
    """Return where in the text its last folded letters begin, given how many they are."""
    for at in range(len(text) - 1, -1, -1):
        letters -= _TABLE[ord(text[at])] is not None
        if letters == 0:
            return at
    return 0
