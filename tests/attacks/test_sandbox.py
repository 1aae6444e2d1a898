"""A hostile agent inside bubblewrap tries to get out: files, processes, devices, namespaces."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.support.ordinary import IS_ROOT, USERS, Running, Server, agents, laid_out

pytestmark = pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")

CANARY = "canary-that-no-agent-reads"


@pytest.fixture(scope="module", params=USERS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with laid_out(request.param) as server:
        yield server


@pytest.fixture(scope="module")
def bridge(server: Server) -> Iterator[Running]:
    server.dotenv.write_text(f"# {CANARY}\nRETENTION_DAYS=9\n")
    server.dotenv.chmod(0o600)
    (server.home / ".ssh").mkdir()
    (server.home / ".ssh" / "id_ed25519").write_text(CANARY)
    (server.folder / "database").mkdir()
    persona(server).parent.mkdir(parents=True)
    persona(server).write_text(CANARY)
    server.own(server.folder)
    isolated = server.demo(mode="free", sandbox="bubblewrap")
    entries = {
        "demo": isolated,
        "other": isolated,
        "shut": server.demo(mode="free", sandbox="bubblewrap", network="none"),
        "open": server.demo(mode="free", sandbox="none"),
    }
    url = f"sqlite:///{server.folder}/database/elsewhere.db"
    with server.serving(AGENTS_JSON=agents(**entries), DATABASE_URL=url) as bridge:
        yield bridge


@contextmanager
def daemon(path: Path) -> Iterator[None]:
    """Serve a socket as a daemon does, open to every user."""
    with ExitStack() as stack:
        if not path.parent.exists():
            path.parent.mkdir()
            stack.callback(path.parent.rmdir)
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(str(path))
        stack.callback(path.unlink)
        path.chmod(0o666)
        listening.listen()
        yield


CONNECT = "import socket; socket.socket(socket.AF_UNIX).connect({path!r})"


@pytest.mark.parametrize("name", ["run/daemon.sock", "daemon.sock"], ids=["hidden", "covered"])
@pytest.mark.skipif(not IS_ROOT, reason="only root may put a socket where daemons do")
def test_no_socket_of_a_daemon_is_reached(bridge: Running, name: str) -> None:
    # In a folder of its own, or next to a folder that every program may need.
    path = Path("/var/lib") / f"test-{os.getpid()}-{name}"
    code = shlex.quote(CONNECT.format(path=str(path)))
    with daemon(path):
        said = shell(bridge, f"python3 -c {code}", "shut")
        reached = shell(bridge, f"python3 -c {code}", "open")

    assert said.startswith(" 1."), said
    assert reached.startswith(" 0."), reached


def persona(server: Server) -> Path:
    """Return a file that says who an agent is."""
    return server.data_dir / "agents" / "demo" / "SOUL.md"


def shell(bridge: Running, command: str, agent: str = "demo") -> str:
    """Let an agent run a command, and return what it printed."""
    said = bridge.ask(f"run {command}", agent)
    assert "ended with status" in said, said
    return said.partition("ended with status")[2]


def test_nothing_of_the_bridge_or_the_person_is_read(bridge: Running, server: Server) -> None:
    wanted = [
        server.dotenv,
        server.data_dir / "secrets",
        persona(server),
        server.folder / "database" / "elsewhere.db",
        server.folder / "database" / "elsewhere.db-wal",
        server.home / ".ssh" / "id_ed25519",
        Path(f"/proc/{bridge.pid}/environ"),
        Path(f"/proc/{bridge.pid}/maps"),
        Path("/run/docker.sock"),
    ]
    found = [path for path in wanted if path.exists()]

    tries = "; ".join(f"head -c 64 {path} >/dev/null 2>&1 && echo read {path}" for path in wanted)
    seen = shell(bridge, f"{tries}; ls -A /run; echo looked")

    # Where the bridge's number is one of the sandbox's own processes, that is what was read.
    assert len(found) >= 7
    assert [path for path in wanted[:6] if f"read {path}" in seen] == []
    assert "docker.sock" not in seen
    assert "looked" in seen


def test_an_agent_cannot_change_who_it_is(bridge: Running, server: Server) -> None:
    file = persona(server)

    shell(bridge, f"mkdir -p {file.parent}; echo evil > {file}; rm -rf {file.parent}; echo tried")

    assert file.read_text() == CANARY


def test_the_bridge_is_neither_signalled_nor_traced(bridge: Running) -> None:
    tries = (
        f"kill -9 {bridge.pid} 2>/dev/null; kill -9 1 2>/dev/null; kill -9 -1 2>/dev/null;"
        f" head -c 1 /proc/{bridge.pid}/mem >/dev/null 2>&1 && echo memory; echo tried"
    )

    bridge.ask(f"run ({tries}) & wait")

    os.kill(bridge.pid, 0)
    assert bridge.http.get("/readyz").is_success


@pytest.mark.long
def test_another_agent_and_another_session_are_not_read(bridge: Running, server: Server) -> None:
    bridge.ask(f"write note.txt {CANARY}")
    bridge.ask(f"run echo {CANARY} > ~/note.txt; echo {CANARY} > note.txt", "other")

    seen = shell(
        bridge, f"grep -rs {CANARY[:6]}-that {server.data_dir} / --include=note.txt | wc -l"
    )

    assert seen.splitlines()[-1] == "0" or "\n0\n" in seen


def test_nothing_is_written_outside(bridge: Running, server: Server) -> None:
    targets = [
        server.checkout / "app" / "planted.py",
        server.home / "planted",
        server.data_dir / "planted",
        server.folder / "planted",
        Path("/etc/planted-by-an-agent"),
        Path("/usr/planted-by-an-agent"),
    ]

    tries = "; ".join(f"touch {path} 2>/dev/null" for path in targets)
    shell(bridge, f"{tries}; true")

    assert [path for path in targets if path.exists()] == []


def test_a_namespace_of_its_own_opens_nothing(bridge: Running, server: Server) -> None:
    inside = f"umount {server.folder} /srv; cat {server.dotenv} | tr a-z n-za-m"

    seen = shell(bridge, f"unshare -Urm sh -c '{inside}' 2>&1; echo tried")

    assert "tried" in seen
    assert "pnanel-gung" not in seen


def test_the_kernel_and_devices_are_closed(bridge: Running) -> None:
    # The value is the one it has: an attack that works must not change the machine.
    setting = "/proc/sys/kernel/core_pattern"
    tries = (
        f'v=$(cat {setting}); (echo "$v" > {setting}) 2>/dev/null && echo kernel;'
        " (echo h > /proc/sysrq-trigger) 2>/dev/null && echo sysrq;"
        " mknod here b 8 0 2>/dev/null && echo device;"
        " ls /dev/sda /dev/vda /dev/mem /dev/kmsg 2>/dev/null;"
        " grep CapEff /proc/self/status"
    )

    seen = shell(bridge, tries)

    words = seen.replace("```", "").split()
    assert words[-2:] == ["CapEff:", "0000000000000000"]
    assert not {"kernel", "sysrq", "device"} & set(words)
    assert "/dev/" not in seen


@pytest.mark.long
def test_without_isolation_the_memory_of_the_bridge_is_closed_to_ordinary_users(
    bridge: Running, server: Server
) -> None:
    if server.uid == 0:
        pytest.skip("root may read every process")
    paths = [f"/proc/{bridge.pid}/{name}" for name in ("environ", "mem", "maps")]

    tries = "; ".join(f"head -c 1 {path} >/dev/null 2>&1 && echo read" for path in paths)
    seen = shell(bridge, f"{tries}; echo tried", "open")

    assert "tried" in seen
    assert "read" not in seen
