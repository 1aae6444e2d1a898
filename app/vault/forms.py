"""Lists the usual forms of a secret: escaped, quoted, and in common encodings."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable, Iterator
from urllib.parse import quote, quote_plus


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
