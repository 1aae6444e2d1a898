"""DATABASE_URL: an address of two kinds, whose password is a secret."""

from __future__ import annotations

from pathlib import Path

from app.config import load


def test_the_password_of_the_database_is_a_secret_in_both_its_forms(tmp_path: Path) -> None:
    address = "postgres://bridge:sword%40fish-secret@db.example.com/bridge?sslmode=require"
    environ = {"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL": address}

    configuration = load(environ, home=tmp_path)

    assert {"sword%40fish-secret", "sword@fish-secret"} <= {*configuration.secret_values()}
    assert "fish-secret" not in repr(configuration)
    assert "DATABASE_URL" in configuration.secret_names
    assert "DATABASE_URL" not in configuration.surroundings
    assert configuration.database_url == address.replace("postgres:", "postgresql:")
    assert configuration.database_file is None


def test_the_address_can_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "address"
    file.write_text("postgresql://bridge:swordfish-secret@db/bridge\n")
    file.chmod(0o600)
    environ = {"DATA_DIR": str(tmp_path / "data"), "DATABASE_URL_FILE": str(file)}

    configuration = load(environ, home=tmp_path)

    assert configuration.database_url == "postgresql://bridge:swordfish-secret@db/bridge"
    assert "swordfish-secret" in {*configuration.secret_values()}
