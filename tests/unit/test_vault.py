"""What the vault lets through and what it does not."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Callable
from random import Random
from string import ascii_letters, digits
from threading import Barrier, Thread
from unittest import mock
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.vault import MASK, GrowingText, Vault
from tests.support.secret_forms import FORMS as SPOKEN

SECRET = "xoxb-4711/AbC+dEf=gHi~jKl&mNo"

FORMS: dict[str, Callable[[str], str]] = {
    "exact": lambda secret: secret,
    "quoted": lambda secret: quote(secret, safe=""),
    "quoted but for slashes": quote,
    "quoted as a form": quote_plus,
    "quoted in small letters": lambda secret: "".join(f"%{octet:02x}" for octet in secret.encode()),
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64 without padding": lambda secret: base64.b64encode(secret.encode()).decode().rstrip("="),
    "base64 for addresses": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
    "hex": lambda secret: secret.encode().hex(),
    "hex in capitals": lambda secret: secret.encode().hex().upper(),
    "JSON": lambda secret: json.dumps(secret)[1:-1],
    "JSON in JSON": lambda secret: json.dumps(json.dumps(secret))[3:-3],
    "JSON of another alphabet": lambda secret: json.dumps(secret, ensure_ascii=False)[1:-1],
    "repr": lambda secret: repr(secret)[1:-1],
    "HTML": html.escape,
}

secrets = st.text(st.characters(codec="utf-8"), min_size=8, max_size=40).filter(
    lambda value: not Vault([value]).contains(MASK)
)
secret_lists = st.lists(secrets, min_size=1, max_size=4)

# No form of these can be spelled with the letters of prose.
foreign = st.lists(st.text("ABCXYZ0189", min_size=8, max_size=40), min_size=1, max_size=4)
prose = st.text(st.sampled_from(" ,.\nabcdefghijklmnopqrstuvwxyz"), max_size=60)


def stream(vault: Vault, pieces: list[str]) -> str:
    """Send a text through the vault piece by piece."""
    text = GrowingText(vault)
    out = ""
    for number, piece in enumerate((*pieces, "")):
        final = number == len(pieces)
        safe, waiting = text.split(piece, final=final)
        text.take(safe, waiting, final=final)
        out += safe
    assert text.waiting == ""
    return out


def cut(text: str, borders: list[int]) -> list[str]:
    """Cut a text at the given places, each taken modulo its length."""
    places = sorted({border % (len(text) + 1) for border in borders})
    return [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]


def test_text_comes_back_as_the_same_object_without_secrets() -> None:
    text = "nothing to hide"

    assert Vault().redact(text) is text
    assert Vault().hold_back(text, final=False) == (text, "")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_secret_is_masked(form: Callable[[str], str]) -> None:
    vault = Vault([SECRET])

    assert vault.redact(f"before {form(SECRET)} after") == f"before {MASK} after"
    assert vault.contains(form(SECRET))


@pytest.mark.parametrize("before", ["", "x", "xy", "user:"])
@pytest.mark.parametrize("after", ["", "z", "zz"])
def test_a_secret_inside_a_longer_base64_text_is_masked(before: str, after: str) -> None:
    vault = Vault([SECRET])
    encoded = base64.b64encode(f"{before}{SECRET}{after}".encode()).decode()

    redacted = vault.redact(encoded)

    assert MASK in redacted
    # A character at each end shares its bits with a neighbour and says almost nothing.
    assert len(redacted) - len(MASK) <= len(before + after) * 4 / 3 + 8


def test_most_of_a_secret_counts_as_the_secret() -> None:
    vault = Vault([SECRET])

    assert vault.contains(SECRET[:-3])
    assert vault.contains(SECRET[3:])
    assert not vault.contains(SECRET[:10])


def test_secrets_in_the_depth_of_a_json_value_are_masked() -> None:
    value = {"a": [1, None, {SECRET: f"x {SECRET}"}], "b": "plain"}

    assert Vault([SECRET]).redact_json(value) == {"a": [1, None, {MASK: f"x {MASK}"}], "b": "plain"}
    assert Vault().redact_json(value) is value


PIECES = (
    *("sk4secr", "et7val", "ue9xyz", "sk4secret7value9xyz", "p.w d:1", " ", "\n", "a", "1"),
    *("<b", "<b>", "<", ">", "](", "](to)", "][", "][to]", ")", "]", "&", "&am", "&amp;", ";"),
    *("\x1b[0m", "\x1b[", "\x1b]0;", "\x1b\\", "\x07", "\u212a"),
)
"""Of secrets, and of all that hides letters from one place to another."""


@example(["\x1b]0;", "sk4secr<b>et7val<b>ue9xyz\x07"])
@example(["<b", "sk4secr&amp;et7val&amp;ue9xyz>"])
@example(["](", "sk4secr<b>et7val<b>ue9xyz)"])
@example(["][", "sk4secr<b>et7val<b>ue9xyz]"])
@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=8).map("".join), max_size=6))
def test_texts_that_are_searched_at_once_lose_what_each_would_lose_alone(texts: list[str]) -> None:
    vault = Vault(["sk4secret7value9xyz", "p.w d:1 "])
    alone = [vault.redact(text) for text in texts]

    assert vault.redact_json(texts) == alone
    assert vault.redact_json([{text: [text]} for text in texts]) == [
        {text: [text]} for text in alone
    ]


def test_texts_without_a_secret_are_searched_once(monkeypatch: pytest.MonkeyPatch) -> None:
    vault = Vault([SECRET])
    search = mock.Mock(wraps=vault.contains)
    monkeypatch.setattr(Vault, "contains", search)
    monkeypatch.setattr(Vault, "redact", None)

    vault.redact_json({"channel": "C1", "blocks": [{"type": "section", "text": "hello"}]})

    search.assert_called_once()


def test_short_values_are_ignored() -> None:
    vault = Vault(["true", "1234567"])

    assert vault.redact("true 1234567") == "true 1234567"


def test_repr_shows_no_value() -> None:
    vault = Vault([SECRET])

    assert repr(vault) == "Vault(1 secrets)"


def test_overlapping_secrets_leave_nothing_of_either() -> None:
    vault = Vault(["aaaabbbbcccc", "bbbbccccdddd"])

    assert vault.redact("<aaaabbbbccccdddd>") == f"<{MASK}>"


def test_a_secret_that_continues_another_is_held_until_it_is_clear_which_one_it_is() -> None:
    vault = Vault(["aaaabbbb", "aaaabbbbcccc"])

    assert vault.hold_back("x aaaabbbb", final=False) == ("x ", "aaaabbbb")
    assert stream(vault, ["x aaaabbbb", "cc", "cc y"]) == f"x {MASK} y"
    assert stream(vault, ["x aaaabbbb", " y"]) == f"x {MASK} y"


def test_a_repeated_letter_is_not_held_back_for_ever() -> None:
    vault = Vault(["a" * 12])
    held = ""

    for _ in range(200):
        _, held = vault.hold_back(held + "a" * 10, final=False)

    assert len(held) < 1000
    assert "a" * 12 not in stream(vault, ["a" * 10] * 200)


def test_only_what_may_become_a_secret_is_held_back() -> None:
    vault = Vault(["correct-horse-battery"])

    safe, held = vault.hold_back("the password is correct-ho", final=False)

    assert (safe, held) == ("the password is ", "correct-ho")
    assert vault.hold_back(held + "use", final=False)[0] + vault.hold_back("use", final=True)[0]
    assert stream(vault, ["correct-ho", "use"]) == "correct-house"


def test_what_was_held_back_leaves_at_the_end() -> None:
    vault = Vault(["correct-horse-battery"])

    assert vault.hold_back("correct-ho", final=True) == ("correct-ho", "")


def test_a_long_secret_is_found_over_many_pieces() -> None:
    secret = "".join(Random(7).choices(ascii_letters + "+/", k=1200))
    vault = Vault([secret])

    assert stream(vault, [*f"<<{secret}>>"]) == f"<<{secret[:3]}{MASK}>>"


def test_the_first_letters_of_a_secret_are_remembered_behind_another_one() -> None:
    one, other = "q7w3e9r1t5y8u2i4", "z6x0c5v9b3n7m1l8"
    vault = Vault([one, other])

    pieces = [f"{one} and {other[:2]}", f"{other[2:]} too"]

    assert stream(vault, pieces) == f"{MASK} and {other[:2]}{MASK} too"


@pytest.mark.long
@settings(max_examples=300)
@given(st.data(), secret_lists, st.sampled_from(sorted(FORMS)), prose, prose)
def test_no_form_of_any_secret_passes_whatever_the_borders(
    data: st.DataObject, values: list[str], form: str, before: str, after: str
) -> None:
    vault = Vault(values)
    shown = [FORMS[form](value) for value in values]
    text = before + after.join(shown) + after
    borders = data.draw(st.lists(st.integers(0, 10_000), max_size=8))

    out = stream(vault, cut(text, borders))

    assert not any(leak in out for leak in shown if len(leak) >= 8)
    assert not vault.contains(out.replace(MASK, "\0"))


@settings(max_examples=200)
@given(foreign, prose, st.lists(st.integers(0, 10_000), max_size=8))
def test_text_without_secrets_is_unchanged_whatever_the_borders(
    values: list[str], text: str, borders: list[int]
) -> None:
    vault = Vault(values)

    assert vault.redact(text) == text
    assert stream(vault, cut(text, borders)) == text


PUNCTUATED = {"on lines"}
"""Forms in which what ends a sentence may follow the first letter: that is not held back."""

random_tokens = st.builds(
    lambda seed, size: "".join(Random(seed).choices(ascii_letters + digits + "-_", k=size)),
    st.integers(),
    st.integers(32, 80),
)


@pytest.mark.parametrize("form", SPOKEN)
@settings(max_examples=15)
@given(st.data(), random_tokens, prose)
def test_no_usual_form_of_a_random_secret_passes_whatever_the_borders(
    form: str, data: st.DataObject, secret: str, around: str
) -> None:
    vault = Vault([secret])
    whole = SPOKEN[form](secret)
    text = f"{around} {whole} {around}"
    borders = data.draw(st.lists(st.integers(0, 10_000), max_size=4 * (form not in PUNCTUATED)))

    assert whole not in vault.redact(text)
    assert whole not in stream(vault, cut(text, borders))


@pytest.mark.parametrize(
    "text",
    [
        "You should change me, then change the other one. Change me!",
        "DEVELOPMENT teams write development tools: develop-ment t o o l s",
        "-----BEGIN RSA PRIVATE KEY-----\n(your key here)\n-----END RSA PRIVATE KEY-----",
        "sk-ant-api03-... and sk-ant-api03-xxxxxxxxxxxx are no keys",
        "a - b - c; x[i] = `y-${i}`; // ---------- ** ** __init__",
        "0123456789 " * 20,
    ],
)
def test_prose_and_code_are_left_alone(text: str) -> None:
    pem = "\n".join(
        (
            "-----BEGIN RSA PRIVATE KEY-----",
            "MIIEpAIBAAKCAQEA" + "k3Y" * 300,
            "-----END RSA PRIVATE KEY-----",
        )
    )
    vault = Vault(["changeme", "development-token", pem, "sk-ant-api03-Zq8Lw2Rk5Vt1Nx9Jb"])

    assert vault.redact(text) == text
    assert stream(vault, [*text]) == text


def test_only_the_secret_is_masked_however_it_is_marked() -> None:
    vault = Vault([SECRET])

    assert vault.redact(f"see `{SECRET.upper()}`, ok?") == f"see `{MASK}`, ok?"
    assert vault.redact(f"**{'**'.join(SECRET)}** ok") == f"**{MASK}** ok"


@given(secret_lists, prose, prose)
def test_streaming_hides_as_much_as_redacting_at_once(
    values: list[str], before: str, after: str
) -> None:
    vault = Vault(values)
    text = before + values[0] + after

    assert not vault.contains(vault.redact(text).replace(MASK, "\0"))
    assert values[0] not in stream(vault, [*text])


@pytest.mark.long
def test_registering_while_others_redact_is_safe() -> None:
    vault = Vault()
    start = Barrier(5)
    leaks: list[str] = []

    def work(number: int) -> None:
        start.wait(timeout=5)
        for turn in range(50):
            secret = f"secret-{number}-{turn}-value"
            vault.register(secret)
            leaks.extend(text for text in [vault.redact(secret)] if text != MASK)

    threads = [Thread(target=work, args=(number,)) for number in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert leaks == []
    assert repr(vault) == "Vault(250 secrets)"
