"""What a confined agent can see, write and reach, with real processes."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Coroutine
from pathlib import Path

import pytest

from app.children import layout, sandbox
from app.children.environment import MARKER, visible_prefixes
from app.children.proc_table import new_marker
from app.children.sandbox import Bubblewrap, DaemonSockets, Plain, Unavailable, find_bubblewrap
from tests.unit.children.conftest import World
from tests.unit.children.helpers import carriers, eventually_now, outcome

PYTHON = os.path.realpath(sys.executable)
"""The interpreter itself: a checkout in a hidden folder is hidden with its environment."""
pytestmark = pytest.mark.anyio

RESOLVER = Path("/etc/resolv.conf").resolve()


async def inside(
    bubblewrap: Bubblewrap, world: World, script: str, *words: str, **changes: object
) -> tuple[int, str, str]:
    argv = ["/bin/sh", "-c", script, "sh", *words]
    wrapped = bubblewrap.wrap(argv, world.confinement(**changes))
    return await outcome(wrapped, world.env, world.workspace)


async def test_nothing_of_the_bridge_the_person_or_another_agent_is_readable(
    bubblewrap: Bubblewrap, world: World
) -> None:
    hidden = [
        world.dotenv,
        world.person / "diary",
        world.data / "store.db",
        world.other_home / "login",
        Path(f"/proc/{os.getpid()}/environ"),
    ]

    # Shown with everything in it, as a checkout is whose virtual environment holds the agent.
    _, output, _ = await inside(
        bubblewrap,
        world,
        'for f in "$@"; do cat "$f"; done; ls -A "$HOME/.."',
        *(str(path) for path in hidden),
        prefixes=(world.checkout,),
    )

    assert "canary" not in output
    assert os.environ["PATH"] not in output


async def test_own_home_and_workspace_are_writable_and_last(
    bubblewrap: Bubblewrap, world: World
) -> None:
    status, _, words = await inside(bubblewrap, world, "echo a > here && echo b > ~/there")

    assert (status, words) == (0, "")
    assert (world.workspace / "here").read_text() == "a\n"
    assert (world.home / "there").read_text() == "b\n"


@pytest.mark.parametrize("place", ["person", "data", "checkout", "other_home"])
async def test_nothing_else_is_writable(bubblewrap: Bubblewrap, world: World, place: str) -> None:
    folder: Path = getattr(world, place)

    status, _, _ = await inside(
        bubblewrap, world, 'echo x > "$1/new"', str(folder), prefixes=(world.checkout,)
    )

    assert status != 0
    assert not (folder / "new").exists()


async def test_system_and_kernel_settings_are_closed_even_to_root(
    bubblewrap: Bubblewrap, world: World
) -> None:
    # The value is the one it has: a test that fails must not change the machine.
    script = """
    test -w /etc/passwd && echo etc
    setting=/proc/sys/kernel/core_pattern
    value=$(cat $setting); (echo "$value" > $setting) 2>/dev/null && echo kernel
    grep CapEff /proc/self/status
    """

    _, output, _ = await inside(bubblewrap, world, script)

    assert output.split() == ["CapEff:", "0000000000000000"]


async def test_a_child_starts_where_a_daemon_has_just_removed_its_socket_or_folder(
    bubblewrap: Bubblewrap, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = frozenset(map(Path, ["/var/lib/test-gone.sock", "/srv/test-gone/daemon.sock"]))
    monkeypatch.setattr(DaemonSockets, "find", lambda _self: gone)

    status, output, words = await inside(bubblewrap, world, "echo runs")

    assert (status, output, words) == (0, "runs\n", "")


async def test_a_namespace_of_its_own_does_not_lift_a_mask(
    bubblewrap: Bubblewrap, world: World
) -> None:
    script = 'unshare -Urm sh -c \'umount "$1"; cat "$1/diary"\' sh "$1"'

    _, output, _ = await inside(bubblewrap, world, script, str(world.person))

    assert "canary" not in output


async def test_the_run_folder_with_its_sockets_and_secrets_is_empty(
    bubblewrap: Bubblewrap, world: World
) -> None:
    _, output, _ = await inside(bubblewrap, world, "ls /run; test -r /etc/resolv.conf && echo dns")

    assert set(output.split()) - {"dns"} <= set(RESOLVER.parts)
    assert ("dns" in output) == RESOLVER.is_file()


async def test_the_temporary_folder_is_its_own(
    bubblewrap: Bubblewrap, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout, "_SCRATCH", (Path("/tmp"),))

    _, output, words = await inside(bubblewrap, world, "echo x > /tmp/mine; pwd; ls /tmp")
    outside = await asyncio.to_thread(Path("/tmp/mine").exists)

    # HOME and workspace of this test lie in /tmp and are shown there.
    assert output.split() == [str(world.workspace), "mine", world.person.parts[2]]
    assert words == ""
    assert not outside


async def test_a_command_under_the_persons_home_runs_through_its_links(
    bubblewrap: Bubblewrap, world: World
) -> None:
    version = world.person / ".tools/versions/1"
    (version / "bin").mkdir(parents=True)
    (version / "lib/node_modules/agent").mkdir(parents=True)
    interpreter = version / "bin/interpreter"
    interpreter.write_text('#!/bin/sh\necho "works: $(cat "$(dirname "$1")/words")"\n')
    interpreter.chmod(0o755)
    script = version / "lib/node_modules/agent/main.js"
    script.write_text("#!/usr/bin/env interpreter\n")
    script.chmod(0o755)
    (script.parent / "words").write_text("yes")
    (version / "bin/agent").symlink_to("../lib/node_modules/agent/main.js")
    (world.person / ".tools/current").symlink_to("versions/1")
    path = f"{world.person}/.tools/current/bin:/usr/bin:/bin:/missing"
    confinement = world.confinement(prefixes=visible_prefixes(["agent"], path=path))

    # Through the link the script's own folder is `bin`, so it looks where the link points.
    command = bubblewrap.wrap(
        ["sh", "-c", 'interpreter "$(readlink -f "$(which agent)")"'], confinement
    )
    status, output, words = await outcome(command, world.env | {"PATH": path}, world.workspace)

    assert (status, output, words) == (0, "works: yes\n", "")


async def test_this_very_interpreter_runs_where_the_home_of_whoever_tests_is_hidden(
    bubblewrap: Bubblewrap, world: World
) -> None:
    argv = [sys.executable, "-c", "import app.errors, ssl; print('works')"]
    confinement = world.confinement(
        person=Path.home(), prefixes=visible_prefixes(argv, path=world.env["PATH"])
    )

    _, output, words = await outcome(bubblewrap.wrap(argv, confinement), world.env, world.workspace)

    assert (output, words) == ("works\n", "")


async def test_what_is_shown_in_words_can_be_read_and_what_is_writable_written(
    bubblewrap: Bubblewrap, world: World
) -> None:
    mirror, gate = world.data / "mirrors/a.git", world.data / "gates/1.git"
    mirror.mkdir(parents=True)
    gate.mkdir(parents=True)
    (mirror / "HEAD").write_text("ref\n")

    _, output, _ = await inside(
        bubblewrap,
        world,
        'cat "$1/HEAD"; touch "$1/x" || echo closed; touch "$2/y" && echo open',
        str(mirror),
        str(gate),
        visible=(mirror,),
        writable=(gate,),
    )

    assert output.split() == ["ref", "closed", "open"]


@pytest.mark.parametrize(
    "script",
    [
        "echo x > lib/part/.git/config",
        "echo x > lib/part/.git/new",
        "rm -rf lib/part/.git",
        "mv lib/part/.git lib/part/other",
        "mv lib/part lib/other",
        "mv lib other",
        "ln -sfn /tmp lib/part/.git/hooks",
        "mount -t tmpfs none lib/part/.git",
    ],
)
async def test_what_is_read_only_in_a_workspace_can_neither_be_changed_nor_moved(
    bubblewrap: Bubblewrap, world: World, script: str
) -> None:
    protected = world.workspace / "lib/part/.git"
    protected.mkdir(parents=True)
    (protected / "config").write_text("kept\n")

    status, _, _ = await inside(bubblewrap, world, script, readonly=(protected,))
    beside, _, _ = await inside(bubblewrap, world, "touch lib/part/x", readonly=(protected,))

    assert status != 0
    assert [path.name for path in protected.iterdir()] == ["config"]
    assert (protected / "config").read_text() == "kept\n"
    assert beside == 0


DIAL = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])))"


async def test_loopback_is_the_childs_own(bubblewrap: Bubblewrap, world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        argv = [PYTHON, "-c", DIAL, str(server.getsockname()[1])]
        alone = bubblewrap.wrap(argv, world.confinement())
        shared = bubblewrap.wrap(argv, world.confinement(shares_network=True))

        status, _, words = await outcome(alone, world.env, world.workspace)
        assert status == 1
        assert "Connection refused" in words
        assert (await outcome(shared, world.env, world.workspace))[0] == 0


async def test_a_child_opens_ports_for_itself(bubblewrap: Bubblewrap, world: World) -> None:
    script = (
        "import socket; server = socket.create_server(('127.0.0.1', 0)); "
        "socket.create_connection(server.getsockname()); print('works')"
    )
    command = bubblewrap.wrap([PYTHON, "-c", script], world.confinement())

    assert await outcome(command, world.env, world.workspace) == (0, "works\n", "")


def test_a_machine_that_gives_no_network_is_found_out(tmp_path: Path) -> None:
    program = tmp_path / "bwrap"
    program.write_text('#!/bin/sh\ncase "$*" in *--unshare-net*) exit 1;; esac\n')
    program.chmod(0o755)

    found = find_bubblewrap(str(tmp_path))

    assert isinstance(found, Bubblewrap)
    assert not found.own_network
    wrapped = found.wrap(["true"], layout.Confinement(home=tmp_path, workspace=tmp_path))
    assert wrapped.guard is not None
    assert "--unshare-net" not in wrapped.guard.options


async def test_a_missing_workspace_fails_loudly(bubblewrap: Bubblewrap, world: World) -> None:
    gone = world.data / "gone"

    command = bubblewrap.wrap(["true"], world.confinement(workspace=gone))
    status, _, words = await outcome(command, world.env, world.home)

    assert status == 1
    assert str(gone) in words


BRIDGE = """
import asyncio, json, sys
from pathlib import Path
from app.children.spawn import ChildCommand, SandboxWrapper
from app.children.spawn import spawn

async def main():
    argv, binary, options, env, cwd = json.loads(sys.argv[1])
    command = ChildCommand(tuple(argv), SandboxWrapper(binary, tuple(options)))
    child = await spawn(command, name="agent", env=env, cwd=Path(cwd))
    print(await child.stdout.read(100), flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


def test_killing_the_bridge_kills_everything_inside(bubblewrap: Bubblewrap, world: World) -> None:
    script = "setsid sleep 1000 & trap '' TERM HUP; echo ready; sleep 1000"
    command = bubblewrap.wrap(["/bin/sh", "-c", script], world.confinement())
    assert command.guard is not None
    guard = command.guard
    words = json.dumps([command.argv, guard.binary, guard.options, world.env, str(world.workspace)])
    with subprocess.Popen([sys.executable, "-c", BRIDGE, words], stdout=subprocess.PIPE) as bridge:
        assert bridge.stdout is not None
        bridge.stdout.readline()
        assert len(carriers(world.marker)) >= 4
        bridge.kill()

    eventually_now(lambda: carriers(world.marker) == [])


async def test_without_a_sandbox_a_command_takes_its_limits_under_a_reaper(world: World) -> None:
    limits = (("nofile", 123), ("core", 0), ("nproc", 5))
    command = Plain().wrap(
        ["sh", "-c", "ulimit -n; ulimit -c; ulimit -p"], world.confinement(limits=limits)
    )

    _, output, _ = await outcome(command, world.env, world.workspace)

    assert command.has_reaper
    assert output.split()[:2] == ["123", "0"]
    # That one would count every process of the person who runs the bridge.
    assert output.split()[2] != "5"


def test_other_systems_are_told_what_isolation_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bwrap").touch(mode=0o755)
    monkeypatch.setattr(sys, "platform", "darwin")

    found = find_bubblewrap(str(tmp_path))

    assert isinstance(found, Unavailable)
    assert found.reason == "bubblewrap needs Linux"
    assert "Linux container or virtual machine" in found.remedy


def test_bubblewrap_is_asked_for_by_name_where_it_is_missing(tmp_path: Path) -> None:
    found = find_bubblewrap(str(tmp_path))

    assert isinstance(found, Unavailable)
    assert found.reason == "bubblewrap is not installed"
    assert "install the package `bubblewrap`" in found.remedy


@pytest.mark.parametrize(
    ("complaint", "remedy"),
    [
        ("bwrap: setting up uid map: Permission denied", "apparmor_restrict_unprivileged_userns"),
        ("bwrap: No permissions to create new namespace, likely", "unprivileged_userns_clone"),
        ("bwrap: Creating new namespace failed: Operation not permitted", "deploy/seccomp.json"),
        ("bwrap: Can't mount proc on /newroot/proc", "systempaths=unconfined"),
        ("bwrap: Unknown option --die-with-parent", "too old"),
        ("bwrap: something new", '"sandbox": "none"'),
    ],
)
def test_a_refusal_is_told_with_its_reason_and_remedy(
    tmp_path: Path, complaint: str, remedy: str
) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text(f'#!/bin/sh\necho "{complaint}" >&2\nexit 1\n')
    fake.chmod(0o755)

    found = find_bubblewrap(str(tmp_path))

    assert isinstance(found, Unavailable)
    assert complaint.removeprefix("bwrap: ") in found.reason
    assert remedy in found.remedy


def test_a_bubblewrap_that_hangs_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_TRIAL_SECONDS", 0.05)
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\nexec sleep 1000\n")
    fake.chmod(0o755)

    found = find_bubblewrap(str(tmp_path))

    assert isinstance(found, Unavailable)
    assert "no answer" in found.reason


async def test_many_start_at_once(bubblewrap: Bubblewrap, world: World) -> None:
    def run(number: int) -> Coroutine[None, None, tuple[int, str, str]]:
        command = bubblewrap.wrap(["echo", str(number)], world.confinement())
        # A marker is one child's alone: whoever ends first sweeps all that carry it.
        return outcome(command, world.env | {MARKER: new_marker(world.bridge)}, world.workspace)

    outcomes = await asyncio.gather(*(run(number) for number in range(20)))

    assert outcomes == [(0, f"{number}\n", "") for number in range(20)]
