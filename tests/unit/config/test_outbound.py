"""How other machines are reached is set once, and every program gets it in its own words."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.config import from_process, load
from app.config.network import AUTHORITIES
from app.errors import ConfigurationError
from tests.support.certificates import certified

PROXY = "http://ann:secret%2Fword-of-the-proxy@proxy.example:3128"


def test_one_file_of_authorities_reaches_every_program(tmp_path: Path) -> None:
    _, trusted = certified(tmp_path, "model.example")

    given = {"PATH": "", "SSL_CERT_FILE": str(trusted), "NODE_EXTRA_CA_CERTS": "/own.pem"}
    surroundings = load(given, home=tmp_path).surroundings

    named = {name: surroundings[name] for name in AUTHORITIES}
    assert named.pop("NODE_EXTRA_CA_CERTS") == "/own.pem"
    assert set(named.values()) == {str(trusted)}


def test_the_password_of_a_proxy_is_a_secret(tmp_path: Path) -> None:
    configuration = load({"PATH": "", "HTTPS_PROXY": PROXY}, home=tmp_path)

    assert "secret/word-of-the-proxy" in set(configuration.secret_values())


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("SSL_CERT_FILE", "/nowhere.pem", "PEM file"),
        ("SSL_CERT_FILE", __file__, "PEM file"),
        ("SSL_CERT_FILE", "authorities.pem", "absolute path"),
        ("HTTPS_PROXY", "socks5://proxy.example", "http://host:port"),
        ("HTTP_PROXY", "http://:3128", "http://host:port"),
    ],
)
def test_what_leads_nowhere_is_refused(name: str, value: str, remedy: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=remedy) as refused:
        load({"PATH": "", name: value}, home=tmp_path)

    assert value not in str(refused.value)


def test_libraries_find_what_the_settings_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, trusted = certified(tmp_path, "model.example")
    dotenv = tmp_path / ".env"
    dotenv.write_text(f"HTTPS_PROXY=proxy.example:3128\nSSL_CERT_FILE={trusted}\n")
    dotenv.chmod(0o600)
    environment = {"PATH": "", "HOME": str(tmp_path), "AGENT_BRIDGE_ENV_FILE": str(dotenv)}
    monkeypatch.setattr(os, "environ", environment)

    from_process()

    assert environment["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert environment["SSL_CERT_FILE"] == environment["REQUESTS_CA_BUNDLE"] == str(trusted)
