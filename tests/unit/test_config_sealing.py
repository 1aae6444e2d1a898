"""Sealed secrets: opened by the same key under the same name, by nothing else."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from app.config.process import Sealer

SEALER = Sealer(SecretStr("k" * 40))


@given(st.text(), st.text())
def test_a_secret_comes_back_as_it_was_and_is_never_sealed_alike(name: str, secret: str) -> None:
    sealed = SEALER.seal(name, secret)

    assert SEALER.open(name, sealed) == secret
    assert SEALER.seal(name, secret) != sealed


def test_another_key_or_another_name_opens_nothing() -> None:
    sealed = SEALER.seal("a", "hunter2")

    assert Sealer(SecretStr("j" * 40)).open("a", sealed) is None
    assert SEALER.open("b", sealed) is None
    assert "hunter2" not in sealed


@given(st.binary())
def test_bytes_come_back_as_they_were_and_only_with_the_same_key_and_name(secret: bytes) -> None:
    sealed = SEALER.seal_bytes("a", secret)

    assert SEALER.open_bytes("a", sealed) == secret
    assert SEALER.open_bytes("b", sealed) is None
    assert Sealer(SecretStr("j" * 40)).open_bytes("a", sealed) is None


@given(st.text() | st.binary(max_size=60).map(lambda raw: raw.hex()))
def test_whatever_else_is_found_opens_nothing(found: str) -> None:
    assert SEALER.open("a", found) is None
