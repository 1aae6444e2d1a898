"""Unsafe configurations, each given to the real command line: it refuses, or says what is wrong."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import takewhile
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
from tests.support.variants import quick

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


def write(folder: Path, name: str, text: str, mode: int = 0o600, parent: int = 0o700) -> None:
    """Write a file and set who may do what with it and its folder."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(mode)
    file.parent.chmod(parent)


def shared_agents(folder: Path) -> None:
    write(folder, "etc/agents.json", agents(one={})["AGENTS_JSON"], mode=0o666)


def agents_in_shared_folder(folder: Path) -> None:
    write(folder, "etc/agents.json", agents(one={})["AGENTS_JSON"], parent=0o777)


def shared_token(folder: Path) -> None:
    write(folder, "etc/token", TOKEN, mode=0o666)


def shared_parent(folder: Path) -> None:
    (folder / "srv").mkdir()
    (folder / "srv").chmod(0o777)
    (folder / "srv/data").mkdir(mode=0o700)


def shared_program(folder: Path) -> None:
    write(folder, "bin/agent", "#!/bin/sh", mode=0o755, parent=0o777)


def writable_program(folder: Path) -> None:
    write(folder, "bin/agent", "#!/bin/sh", mode=0o777)


TABLE = [
    *(
        Unsafe(
            f"AGENTS_JSON_FILE {what}",
            {"AGENTS_JSON": "", "AGENTS_JSON_FILE": "{tmp}/etc/agents.json"},
            "AGENTS_JSON_FILE",
            "writable by other users",
            prepare,
        )
        for what, prepare in {
            "for everybody": shared_agents,
            "in a folder for everybody": agents_in_shared_folder,
        }.items()
    ),
    Unsafe(
        "BRIDGE_ADMIN_TOKEN_FILE for everybody",
        {"BRIDGE_ADMIN_TOKEN_FILE": "{tmp}/etc/token"},
        "BRIDGE_ADMIN_TOKEN_FILE",
        "chmod 600",
        shared_token,
    ),
    Unsafe(
        "a DATA_DIR in a folder for everybody",
        {"DATA_DIR": "{tmp}/srv/data"},
        "DATA_DIR",
        "could replace it",
        shared_parent,
    ),
    Unsafe(
        "a webhook secret that is the admin token",
        {**GITHUB, "BRIDGE_ADMIN_TOKEN": GITHUB["GITHUB_WEBHOOK_SECRET"]},
        "GITHUB_WEBHOOK_SECRET",
        "different random string",
    ),
    Unsafe(
        "a key for a collector over plain HTTP",
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector.example.com:4318",
            "OTEL_EXPORTER_OTLP_HEADERS": f"api-key={CANARY}",
        },
        "OTEL_EXPORTER_OTLP_ENDPOINT",
        "https://",
    ),
    Unsafe("a relative command", agents(one={"command": "bin/x"}), "AGENTS_JSON", "absolute path"),
    *(
        Unsafe(
            f"a command {what}",
            agents(one={"command": "{tmp}/bin/agent"}),
            "AGENTS_JSON",
            "chmod o-w {tmp}/bin",
            prepare,
        )
        for what, prepare in {
            "in a folder for everybody": shared_program,
            "for everybody": writable_program,
        }.items()
    ),
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


# Those before it are the review's.
REVIEWED = next(number for number, each in enumerate(TABLE) if "home" in each.what)


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
    environ = {name: value for name, value in environ.items() if value or name == "PATH"}

    with pytest.raises(ConfigurationError) as caught:
        load(environ, known=known_agents(), services=registered_services(), home=tmp_path / "home")

    assert caught.value.setting == unsafe.setting
    assert unsafe.words.replace("{tmp}", str(tmp_path)) in str(caught.value)
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


def free_port() -> int:
    """Find a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.mark.parametrize("command", ["serve", "doctor"])
@pytest.mark.parametrize("unsafe", quick(2, {each.what: each for each in TABLE[:REVIEWED]}))
def test_what_the_review_found_is_refused_by_serve_and_doctor(
    unsafe: Unsafe, command: str, tmp_path: Path
) -> None:
    unsafe.prepare(tmp_path)
    given = filled({**agents(one={}), **unsafe.settings}, tmp_path)

    done = run(tmp_path, command, **{name: value for name, value in given.items() if value})

    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert unsafe.setting in said
    assert unsafe.words.replace("{tmp}", str(tmp_path)) in " ".join(said.split())
    assert CANARY not in said


def serve_until(folder: Path, words: str, **settings: str) -> str:
    """Serve until something is said, and return all that was said until then."""
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "DATA_DIR": str(folder / "data"),
        "AGENT_BRIDGE_ENV_FILE": "/dev/null",
        **settings,
    }
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [*COMMAND, "serve"],
            env={**environment, "PYTHONPATH": str(ROOT)},
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        ) as serving,
    ):
        assert serving.stdout is not None
        lines = [*takewhile(lambda line: words not in line, serving.stdout)]
        serving.kill()
    return "".join(lines) or (folder / "log").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_a_data_folder_of_another_user_refuses_to_start(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir(mode=0o700)
    os.chown(tmp_path / "data", 12345, 12345)

    done = run(tmp_path, "serve")

    assert (done.returncode, done.stdout) == (1, "")
    assert "DATA_DIR: belongs to another user" in done.stderr


@pytest.mark.parametrize("command", ["serve", "doctor"])
def test_a_settings_file_in_a_folder_for_everybody_refuses_to_start(
    command: str, tmp_path: Path
) -> None:
    write(tmp_path, "etc/.env", "LOG_LEVEL=info", parent=0o777)

    done = run(tmp_path, command, AGENT_BRIDGE_ENV_FILE=str(tmp_path / "etc/.env"))

    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert f"is in {tmp_path}/etc, which is writable by other users" in said


def test_a_program_that_everybody_can_replace_is_not_found_on_path(tmp_path: Path) -> None:
    write(tmp_path, "bin/claude-agent-acp", "#!/bin/sh", mode=0o755, parent=0o777)
    environ = {"PATH": str(tmp_path / "bin"), "DATA_DIR": str(tmp_path / "data")}

    found = load(
        environ, known=known_agents(), services=registered_services(), home=tmp_path / "home"
    )

    assert found.agents_source == "demo"


def test_a_file_in_a_sticky_folder_is_taken(tmp_path: Path) -> None:
    write(tmp_path, "etc/token", TOKEN, parent=0o1777)
    environ = {"PATH": "", "BRIDGE_ADMIN_TOKEN_FILE": str(tmp_path / "etc/token")}

    found = load(environ, services=registered_services(), home=tmp_path)

    assert found.settings.bridge_admin_token is not None


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


@pytest.mark.parametrize(
    ("address", "proxies", "warned"),
    [
        ("https://bridge.example.com", "", ["TRUSTED_PROXIES"]),
        ("https://bridge.example.com", "127.0.0.1,10.0.0.0/8", []),
        ("http://127.0.0.1:8000", "", []),
    ],
)
def test_a_proxy_that_is_not_named_is_warned_of(
    address: str, proxies: str, warned: list[str], tmp_path: Path
) -> None:
    environ = {"PATH": "", "BRIDGE_BASE_URL": address, "TRUSTED_PROXIES": proxies}

    configuration = load(environ, services=registered_services(), home=tmp_path)

    assert [each.subject for each in cautions(configuration)] == warned


PUBLIC = {
    "HOST": "0.0.0.0",
    "BRIDGE_ADMIN_TOKEN": TOKEN,
    "BRIDGE_BASE_URL": "https://bridge.example.com",
}
BOXED = {"sandbox": "auto"}
ON_LINEAR = {**LINEAR, "LINEAR_API_URL": "http://127.0.0.1:9/graphql"}
WARNED = {
    "an agent without isolation that is on the page alone, and named": (
        {**agents(one={**BOXED, "agents_allow": ["two"]}, two={}), **ON_LINEAR},
        "one: agents_allow names two, which is not isolated",
    ),
    "a named agent with more network": (
        agents(
            one={**BOXED, "network": "restricted", "agents_allow": ["t?o"]},
            two=BOXED,
        ),
        "one: agents_allow names two, which can connect to more",
    ),
    "a named agent with a longer list of hosts": (
        agents(
            one={**BOXED, "network": "restricted", "agents_allow": ["two"]},
            two={**BOXED, "network": "restricted", "network_hosts": ["a.example"]},
        ),
        "one: agents_allow names two, which can connect to more",
    ),
    "a named agent with more permissions": (
        agents(
            one={**BOXED, "permissions": "read-only", "agents_allow": ["two"]},
            two=BOXED,
        ),
        "one: agents_allow names two, which may do more without a question",
    ),
    "notes that are kept unasked on a platform": (
        {**agents(one={"memory": "auto"}), **ON_LINEAR},
        'one: "memory": "auto" keeps notes of conversations on linear',
    ),
    "notes that are kept unasked about a repository": (
        {**agents(one={"memory": "auto"}), "GITHUB_REPO": "acme/app"},
        'one: "memory": "auto" keeps notes of conversations about a repository',
    ),
    "variables that decide which code runs": (
        agents(
            one={"env": {"LD_PRELOAD": "/x.so", "PATH": "/x"}, "env_passthrough": ["NODE_PATH"]}
        ),
        "one: LD_PRELOAD, NODE_PATH, PATH in its variables",
    ),
    "a folder that everybody can write": (
        {"GITHUB_REPO": "folder:{tmp}/project"},
        "folder: every user of this machine can write {tmp}/project",
    ),
    "a public page": (PUBLIC, "HOST: page, API and tools are open"),
}


@pytest.mark.parametrize("case", quick(3, list(WARNED)))
def test_a_risky_configuration_is_warned_of_by_serve_and_doctor(case: str, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project").chmod(0o777)
    settings, words = WARNED[case]
    given = filled({**agents(one={}), "PORT": str(free_port()), **settings}, tmp_path)
    subject, _, problem = filled({"": words}, tmp_path)[""].partition(": ")

    assert f"! {subject}: {problem}" in serve_until(tmp_path, "Listening on", **given)
    checked = run(tmp_path, "doctor", "--json", **given)

    found = [each for each in json.loads(checked.stdout)["findings"] if each["what"] == subject]
    assert [each for each in found if each["verdict"] == "warning" and problem in each["reason"]]


@pytest.mark.parametrize(
    "settings",
    [
        {**PUBLIC, "HOOKS_PORT": "8001", "TRUSTED_PROXIES": "127.0.0.1"},
        agents(one={**BOXED, "agents_allow": ["*"]}, two={}),
        agents(one={**BOXED, "agents_allow": ["two"], "agents_deny": ["two"]}, two={}),
        agents(one={"memory": "auto"}),
        # It is refused when it is asked for, so there is nothing to warn of.
        agents(one={**BOXED, "network": "restricted"}, two=BOXED),
        agents(one=BOXED, two={}),
    ],
)
def test_a_safe_configuration_is_not_warned_of(settings: dict[str, str], tmp_path: Path) -> None:
    environ = {"PATH": "", **agents(one={}), **settings}

    assert [*cautions(load(environ, services=registered_services(), home=tmp_path))] == []


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
