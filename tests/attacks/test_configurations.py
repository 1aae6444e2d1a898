"""Unsafe configurations, each given to the real command line: it refuses, or says what is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.agents.catalog import known_agents
from app.config import load
from app.config.cautions import cautions
from app.errors import ConfigurationError
from app.services import registered_services
from tests.support.bridge import DEMO
from tests.support.nursery import nursery

COMMAND = [sys.executable, "-m", "app"]
ROOT = Path(__file__).parents[2]
SECONDS = 60.0
# Whatever has this in it must not be shown.
CANARY = "canary42"
PEM = f"-----BEGIN RSA PRIVATE KEY-----\nMIIE{CANARY}\n-----END RSA PRIVATE KEY-----"
GITHUB = {
    "GITHUB_APP_ID": "4711",
    "GITHUB_PRIVATE_KEY": PEM,
    "GITHUB_WEBHOOK_SECRET": f"fK2-{CANARY}-9sLq",
}
LINEAR = {"LINEAR_WEBHOOK_SECRET": f"fK2-{CANARY}-9sLq", "LINEAR_ACCESS_TOKEN": f"lin-{CANARY}"}
TOKEN = f"v8Xq2-{CANARY}-Lw71"
KEY = f"{TOKEN}-{TOKEN[::-1]}"


def agents(**entries: dict[str, Any]) -> dict[str, str]:
    """Write entries into AGENTS_JSON."""
    return {
        "AGENTS_JSON": json.dumps(
            {name: {"command": DEMO, "sandbox": "none", **more} for name, more in entries.items()}
        )
    }


def second(settings: Mapping[str, str]) -> dict[str, str]:
    """Give settings to a second agent with an identity of its own."""
    pem = PEM.replace("MIIE", "MIIF")
    own = {**settings, "GITHUB_APP_ID": "4712", "GITHUB_PRIVATE_KEY": pem}
    return {f"{name}__TWO": value for name, value in own.items()}


@dataclass(frozen=True)
class Unsafe:
    """One configuration that must not start."""

    what: str
    settings: Mapping[str, str]
    setting: str
    words: str
    prepare: Callable[[Path], object] = lambda _folder: None


def shared_folder(folder: Path) -> None:
    (folder / "data").mkdir(mode=0o700)
    (folder / "data").chmod(0o777)


def linked_home(folder: Path) -> None:
    (folder / "data").mkdir(mode=0o700)
    (folder / "link").symlink_to(folder / "data")


TABLE = [
    Unsafe(
        "a home that is DATA_DIR", agents(one={"home": "{tmp}/data"}), "AGENTS_JSON", "DATA_DIR"
    ),
    Unsafe("a home in it", agents(one={"home": "{tmp}/data/x"}), "AGENTS_JSON", "DATA_DIR"),
    Unsafe(
        "a home above it",
        {**agents(one={"home": "{tmp}/srv"}), "DATA_DIR": "{tmp}/srv/data"},
        "AGENTS_JSON",
        "DATA_DIR",
    ),
    Unsafe(
        "a home that leads to it",
        agents(one={"home": "{tmp}/link"}),
        "AGENTS_JSON",
        "DATA_DIR",
        linked_home,
    ),
    Unsafe(
        "two agents with one home",
        agents(one={"home": "{tmp}/h"}, two={"home": "{tmp}/h"}),
        "AGENTS_JSON",
        "share a home",
    ),
    Unsafe(
        "a home in another's",
        agents(one={"home": "{tmp}/h"}, two={"home": "{tmp}/h/two"}),
        "AGENTS_JSON",
        "share a home",
    ),
    Unsafe("a DATA_DIR for everybody", {}, "DATA_DIR", "chmod 700", shared_folder),
    Unsafe(
        "a GitHub secret of one character",
        {**GITHUB, "GITHUB_WEBHOOK_SECRET": "x"},
        "GITHUB_WEBHOOK_SECRET",
        "at least 16",
    ),
    Unsafe(
        "a former GitHub secret of one character",
        {**GITHUB, "GITHUB_WEBHOOK_SECRET_BEFORE": "x"},
        "GITHUB_WEBHOOK_SECRET_BEFORE",
        "at least 16",
    ),
    Unsafe(
        "a Linear secret of one character",
        {**LINEAR, "LINEAR_WEBHOOK_SECRET": "x"},
        "LINEAR_WEBHOOK_SECRET",
        "at least 16",
    ),
    Unsafe(
        "two Apps with one webhook secret",
        {**agents(one={}, two={}), **GITHUB, **second(GITHUB)},
        "GITHUB_WEBHOOK_SECRET",
        "its own",
    ),
    Unsafe(
        "one App's secret that is another's former one",
        {
            **agents(one={}, two={}),
            **GITHUB,
            **second({**GITHUB, "GITHUB_WEBHOOK_SECRET": f"aB3-{CANARY}-other"}),
            "GITHUB_WEBHOOK_SECRET_BEFORE__TWO": GITHUB["GITHUB_WEBHOOK_SECRET"],
        },
        "GITHUB_WEBHOOK_SECRET_BEFORE",
        "its own",
    ),
    Unsafe(
        "log-ins over plain HTTP",
        {
            "HOST": "0.0.0.0",
            "BRIDGE_ADMIN_TOKEN": TOKEN,
            "BRIDGE_BASE_URL": f"http://{CANARY}.example.com",
        },
        "BRIDGE_BASE_URL",
        "ALLOW_PLAIN_HTTP=true",
    ),
    Unsafe(
        "log-ins over plain HTTP by an address that nobody wrote",
        {"HOST": "192.0.2.7", "BRIDGE_ADMIN_TOKEN": TOKEN},
        "BRIDGE_BASE_URL",
        "ALLOW_PLAIN_HTTP=true",
    ),
    *(
        Unsafe(f"a plain {name}", {name: f"http://{CANARY}.example.com{path}"}, name, "https://")
        for name, path in {
            "SLACK_API_URL": "/api/",
            "GITHUB_API_URL": "",
            "GITHUB_GIT_URL": "",
            "GITHUB_WEB_URL": "",
            "LINEAR_API_URL": "/graphql",
        }.items()
    ),
    *(
        Unsafe(f"the token {token}", {"BRIDGE_ADMIN_TOKEN": token}, "BRIDGE_ADMIN_TOKEN", "random")
        for token in (
            "a" * 16,
            "changeme-changeme-changeme",
            "ChangeMe1234567890XYZ",
            "abcdefghijklmnopqrstuvwxyz",
            "0123456789012345",
            "my-password-is-here",
            "your-token-goes-here",
        )
    ),
    Unsafe("the key aaaa", {"BRIDGE_SECRET_KEY": "a" * 40}, "BRIDGE_SECRET_KEY", "random"),
    Unsafe(
        "one text as key and token",
        {"BRIDGE_ADMIN_TOKEN": KEY, "BRIDGE_SECRET_KEY": KEY},
        "BRIDGE_SECRET_KEY",
        "different random string",
    ),
]


def filled(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Fill in where the test works."""
    return {name: value.replace("{tmp}", str(folder)) for name, value in settings.items()}


@pytest.mark.parametrize("unsafe", TABLE, ids=lambda unsafe: unsafe.what)
def test_an_unsafe_configuration_refuses_to_start(unsafe: Unsafe, tmp_path: Path) -> None:
    """Attack 3 and the table of configurations."""
    unsafe.prepare(tmp_path)
    environ = {
        "PATH": "",
        "DATA_DIR": str(tmp_path / "data"),
        **agents(one={}),
        **filled(unsafe.settings, tmp_path),
    }

    with pytest.raises(ConfigurationError) as caught:
        load(environ, known=known_agents(), services=registered_services(), home=tmp_path / "home")

    assert caught.value.setting == unsafe.setting
    assert unsafe.words in str(caught.value)
    assert CANARY not in str(caught.value)


def run(folder: Path, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder, as a person does."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "DATA_DIR": str(folder / "data"),
        "AGENT_BRIDGE_ENV_FILE": "/dev/null",
        **settings,
    }
    return nursery().run(*words, environment=environment, cwd=folder)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_data_folder_of_another_user_refuses_to_start(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    os.chown(tmp_path / "data", 12345, 12345)

    done = run(tmp_path, "serve")

    assert (done.returncode, done.stdout) == (1, "")
    assert "DATA_DIR: belongs to another user" in done.stderr


def test_what_the_bridge_keeps_is_for_its_owner_alone(tmp_path: Path) -> None:
    """The table of configurations: files in DATA_DIR were made 644."""
    (tmp_path / "data").mkdir(mode=0o755)

    done = run(tmp_path, "ask", "one", "say hello", **agents(one={}))

    assert done.stdout == "hello\n", done.stderr
    kept = [path for path in (tmp_path / "data").iterdir() if not path.is_symlink()]
    assert [path for path in kept if path.stat().st_mode & 0o077] == []
    assert (tmp_path / "data/bridge.db") in kept


def test_a_plain_address_is_served_if_somebody_says_so_in_words(tmp_path: Path) -> None:
    given = {"BRIDGE_BASE_URL": "http://bridge.example.com", "ALLOW_PLAIN_HTTP": "true"}

    configuration = load({"PATH": "", **given}, services=registered_services(), home=tmp_path)

    assert configuration.base_url == "http://bridge.example.com"


def test_a_secret_that_others_can_read_is_warned_of(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    file.chmod(0o644)
    environ = {"PATH": "", "BRIDGE_ADMIN_TOKEN_FILE": str(file)}

    (caution,) = cautions(load(environ, services=registered_services(), home=tmp_path))

    assert f"other users can read {file}" in caution.problem
    assert TOKEN not in f"{caution}"


@pytest.mark.parametrize(("user", "warned"), [(0, True), (1000, False)])
def test_root_with_services_is_warned_of(
    user: int, warned: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configuration = load(
        {"PATH": "", **agents(one={}), **GITHUB}, services=registered_services(), home=tmp_path
    )
    monkeypatch.setattr("os.geteuid", lambda: user)

    assert [each.subject for each in cautions(configuration)] == ["user"] * warned


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try what root is told")
def test_doctor_says_that_it_is_root_and_where_settings_come_from(tmp_path: Path) -> None:
    settings = tmp_path / "bridge.env"
    settings.write_text("LOG_LEVEL=info\n")
    settings.chmod(0o600)
    given = {**agents(one={}), **GITHUB, "GITHUB_API_URL": "http://127.0.0.1:9"}

    done = run(tmp_path, "doctor", AGENT_BRIDGE_ENV_FILE=str(settings), **given)

    assert "the bridge runs as root, and people on github give its agents work" in done.stdout
    assert f"from {settings}" in done.stdout
