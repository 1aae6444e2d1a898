"""The hosts of an agent's list: what they cover, and what is refused."""

from __future__ import annotations

import pytest

from app.config.network import HostPattern, normalise_host, parse_host


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("API.Example.com.", HostPattern("api.example.com")),
        ("*.example.com", HostPattern("*.example.com")),
        ("*.internal.test:4000", HostPattern("*.internal.test", 4000)),
        ("localhost:11434", HostPattern("localhost", 11434)),
        ("10.0.0.7:8080", HostPattern("10.0.0.7", 8080)),
        ("[::1]:8080", HostPattern("::1", 8080)),
        ("[2606:4700::1111]", HostPattern("2606:4700::1111")),
    ],
)
def test_a_host_is_understood(text: str, pattern: HostPattern) -> None:
    assert parse_host(text) == pattern


@pytest.mark.parametrize(
    "text",
    [
        *("", "*", "*.com", "*.", "a b", "https://api.example.com", "api.example.com/v1", "a..b"),
        *("host:", "host:0", "host:65536", "host:x", "host:99999999999", "[::1", "::1", "exa*mple"),
        *("-x.example", "a@b.example", "ex\u0430mple.com", "x" * 254),
    ],
)
def test_what_is_no_host_is_refused(text: str) -> None:
    assert parse_host(text) is None


@pytest.mark.parametrize(
    ("pattern", "host", "port", "covered"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "x.api.example.com", 443, False),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "evilexample.com", 443, False),
        ("api.example.com:444", "api.example.com", 443, False),
        ("api.example.com:444", "api.example.com", 444, True),
    ],
)
def test_a_pattern_covers_what_it_says(pattern: str, host: str, port: int, covered: bool) -> None:
    parsed = parse_host(pattern)

    assert parsed is not None
    assert parsed.covers(host, port) is covered


def test_a_host_of_a_request_is_compared_in_one_spelling() -> None:
    assert normalise_host("API.Example.COM.") == "api.example.com"
    assert normalise_host("[::FFFF:127.0.0.1]") == "::ffff:7f00:1"
    assert normalise_host("evil.example\r\nHost: x") is None
