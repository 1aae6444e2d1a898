"""What reaches an agent of the bridge's environment, and what a command brings along."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from app.children.environment import MARKER, agent_environment, visible_prefixes
from tests.unit.children.helpers import outcome

HOME = Path("/data/agents/claude/home")
SECRETS = {
    "SLACK_BOT_TOKEN": "canary",
    "ANTHROPIC_API_KEY": "canary",
    "AWS_SECRET_ACCESS_KEY": "canary",
    "SSH_AUTH_SOCK": "canary",
    "LD_PRELOAD": "canary",
    "PYTHONPATH": "canary",
    "NODE_OPTIONS": "canary",
    "XDG_RUNTIME_DIR": "canary",
    "XDG_CONFIG_HOME": "canary",
    "TMPDIR": "canary",
    "LCK": "canary",
    MARKER: "canary",
}


def test_only_listed_names_are_handed_on() -> None:
    listed = {"PATH": "/bin", "LANG": "C", "LC_ALL": "C", "https_proxy": "p", "SHELL": "/bin/sh"}

    env = agent_environment(listed | SECRETS, home=HOME, own={}, marker="m")

    assert env == listed | {"HOME": str(HOME), MARKER: "m"}


def test_an_agent_gets_its_own_keys_but_never_another_home_or_marker() -> None:
    own = {"ANTHROPIC_API_KEY": "mine", "PATH": "/agent/bin", "HOME": "/root", MARKER: "forged"}

    env = agent_environment({"PATH": "/bin", "HOME": "/root"}, home=HOME, own=own, marker="m")

    assert env == {
        "ANTHROPIC_API_KEY": "mine",
        "PATH": "/agent/bin",
        "HOME": str(HOME),
        MARKER: "m",
    }


def test_an_agent_that_lives_in_the_persons_home_finds_its_folders() -> None:
    base = {"HOME": "/home/ada", "XDG_CONFIG_HOME": "/home/ada/etc", "XDG_RUNTIME_DIR": "/run/1"}

    env = agent_environment(base, home=Path("/home/ada"), own={}, marker="m")

    assert env["XDG_CONFIG_HOME"] == "/home/ada/etc"
    assert "XDG_RUNTIME_DIR" not in env


@pytest.mark.anyio
async def test_a_real_child_knows_nothing_else(tmp_path: Path) -> None:
    env = agent_environment(dict(os.environ) | SECRETS, home=tmp_path, own={}, marker="m")

    _, output, _ = await outcome(["/usr/bin/env"], env, tmp_path)

    assert "canary" not in output
    assert f"{MARKER}=m" in output.splitlines()


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_a_node_agent_brings_its_packages_and_its_interpreter(tmp_path: Path) -> None:
    node = tmp_path / ".nvm/v22"
    program(node / "bin/node")
    package = program(tmp_path / ".npm/lib/node_modules/acp/dist/x.js", "#!/usr/bin/env node\n")
    agent = tmp_path / ".npm/bin/agent"
    agent.parent.mkdir()
    agent.symlink_to("../lib/node_modules/acp/dist/x.js")

    seen = visible_prefixes(["agent"], path=f"{agent.parent}:{node / 'bin'}")

    assert package.parents[2] in seen
    assert node / "bin" in seen


def test_a_tool_in_the_local_folder_does_not_show_other_programs_data(tmp_path: Path) -> None:
    local = tmp_path / ".local"
    program(local / "bin/agent")
    (local / "lib/python3.11").mkdir(parents=True)
    (local / "share/opencode").mkdir(parents=True)

    seen = visible_prefixes(["agent"], path=str(local / "bin"))

    assert {local / "bin", local / "lib"} <= set(seen)
    assert local not in seen
    assert local / "share" not in seen


def test_a_link_out_of_the_local_folder_shows_the_program_it_means(tmp_path: Path) -> None:
    real = program(tmp_path / ".local/share/claude/versions/1.0")
    link = tmp_path / ".local/bin/claude"
    link.parent.mkdir()
    link.symlink_to(real)

    seen = visible_prefixes(["claude"], path=str(link.parent))

    assert real in seen
    assert tmp_path / ".local/share" not in seen


def test_a_virtual_environment_is_shown_whole_with_the_checkout_it_points_to(
    tmp_path: Path,
) -> None:
    venv, checkout = tmp_path / "venv", tmp_path / "checkout"
    checkout.mkdir()
    base = program(tmp_path / "python/bin/python3")
    (tmp_path / "python/lib").mkdir()
    (venv / "bin").mkdir(parents=True)
    (venv / "bin/python").symlink_to(base)
    program(venv / "bin/agent", f"#!{venv}/bin/python\n")
    (venv / "pyvenv.cfg").touch()
    packages = venv / "lib/python3.11/site-packages"
    packages.mkdir(parents=True)
    (packages / "editable.pth").write_text(f"import sys\n{checkout}\n")

    seen = visible_prefixes([str(venv / "bin/agent")], path="/bin")

    assert {venv, checkout, tmp_path / "python/lib", base} <= set(seen)


def test_a_shim_shows_the_version_manager(tmp_path: Path) -> None:
    program(tmp_path / ".pyenv/shims/python")

    assert tmp_path / ".pyenv" in visible_prefixes([], path=str(tmp_path / ".pyenv/shims"))


def test_a_script_brings_its_project_and_another_argument_only_itself(tmp_path: Path) -> None:
    script = program(tmp_path / "acp/dist/index.js")
    (tmp_path / "acp/package.json").touch()
    key = program(tmp_path / ".ssh/id_ed25519")

    seen = visible_prefixes(["node", str(script), "--key", str(key)], path="/nowhere")

    assert {script, tmp_path / "acp", key} <= set(seen)
    assert key.parent not in seen


def test_missing_folders_and_commands_and_loops_do_no_harm(tmp_path: Path) -> None:
    loop = tmp_path / "bin/agent"
    loop.parent.mkdir()
    loop.symlink_to(loop)

    seen = visible_prefixes([str(loop), "/no/such"], path=f"/missing::relative:{loop.parent}")

    assert loop.parent in seen
    assert Path("/no/such") not in seen
