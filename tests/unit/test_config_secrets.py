"""The bridge's own secrets: made once, kept well."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from app.config import BridgeSecrets, Configuration, ensure_secrets, load
from app.errors import ConfigurationError
from app.services import registered_services

TOKEN = "given-token-0123456789"
KEY = "given-key-0123456789-0123456789-0123456789"


def configured(tmp_path: Path, environ: Mapping[str, str] | None = None) -> Configuration:
    """Load a configuration with a DATA_DIR of its own."""
    return load(
        {"DATA_DIR": f"{tmp_path}/data", **(environ or {})},
        services=registered_services(),
        home=tmp_path / "home",
    )


def test_secrets_are_made_once(tmp_path: Path) -> None:
    first = ensure_secrets(configured(tmp_path))
    second = ensure_secrets(configured(tmp_path))

    assert first == second
    assert len(set(first.values())) == 2
    assert min(map(len, first.values())) >= 40


def test_loading_makes_nothing(tmp_path: Path) -> None:
    configured(tmp_path)

    assert not (tmp_path / "data").exists()


def test_nobody_else_can_read_them(tmp_path: Path) -> None:
    ensure_secrets(configured(tmp_path))

    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secrets"]
    assert stat.S_IMODE((tmp_path / "data/secrets").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "data").stat().st_mode) == 0o700


def test_no_representation_shows_them(tmp_path: Path) -> None:
    made = ensure_secrets(configured(tmp_path))

    assert not any(value in repr(made) for value in made.values())


def test_what_is_given_wins(tmp_path: Path) -> None:
    made = ensure_secrets(configured(tmp_path))

    mixed = ensure_secrets(configured(tmp_path, {"BRIDGE_ADMIN_TOKEN": TOKEN}))

    assert mixed.admin_token.get_secret_value() == TOKEN
    assert mixed.secret_key == made.secret_key


def test_nothing_is_made_when_both_are_given(tmp_path: Path) -> None:
    environ = {"BRIDGE_ADMIN_TOKEN": TOKEN, "BRIDGE_SECRET_KEY": KEY}

    given = ensure_secrets(configured(tmp_path, environ))

    assert list(given.values()) == [TOKEN, KEY]
    assert not (tmp_path / "data").exists()


def test_many_starts_at_once_agree(tmp_path: Path) -> None:
    configuration = configured(tmp_path)
    together = Barrier(8)

    def start(_: int) -> BridgeSecrets:
        together.wait(timeout=5)
        return ensure_secrets(configuration)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(start, range(8)))

    assert len({tuple(one.values()) for one in found}) == 1
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["secrets"]


def test_a_file_that_others_can_read_refuses(tmp_path: Path) -> None:
    ensure_secrets(configured(tmp_path))
    (tmp_path / "data/secrets").chmod(0o644)

    with pytest.raises(ConfigurationError, match=r"DATA_DIR: .*other users.*chmod 600"):
        ensure_secrets(configured(tmp_path))


@pytest.mark.parametrize("content", ["", "BRIDGE_ADMIN_TOKEN=short\n", "\0\0\0"])
def test_a_damaged_file_refuses(tmp_path: Path, content: str) -> None:
    made = ensure_secrets(configured(tmp_path))
    (tmp_path / "data/secrets").write_text(content)

    with pytest.raises(ConfigurationError, match=r"DATA_DIR: .*damaged.*Restore") as caught:
        ensure_secrets(configured(tmp_path))

    assert not any(value in str(caught.value) for value in made.values())


def test_a_link_in_its_place_refuses(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "data/secrets").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(ConfigurationError, match="DATA_DIR"):
        ensure_secrets(configured(tmp_path))
