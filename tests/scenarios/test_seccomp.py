"""The seccomp profile for containers: agents are isolated under it, and little else is allowed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.children.sandbox import _WALLS, Unavailable, find_bubblewrap
from tests.support.bridge import BridgeProcess, demo
from tests.support.ordinary import IS_ROOT, ORDINARY_UID
from tests.support.platform import Platform
from tests.support.under_seccomp import LIBRARY, Filter

pytestmark = pytest.mark.one_database

PROFILE = Path(__file__).parents[2] / "deploy" / "seccomp.json"
WHOLE: dict[str, Any] = json.loads(PROFILE.read_text())
FOR_BUBBLEWRAP = {"clone", "clone3", "mount", "pivot_root", "umount2", "unshare"}
NEVER = {
    *("acct", "bpf", "delete_module", "finit_module", "init_module", "ioperm", "iopl"),
    *("kexec_file_load", "kexec_load", "open_by_handle_at", "perf_event_open", "reboot"),
    *("add_key", "keyctl", "request_key", "process_vm_readv", "process_vm_writev", "pidfd_getfd"),
    *("setns", "swapon", "swapoff", "settimeofday", "clock_settime", "userfaultfd", "quotactl"),
    *("io_uring_setup", "fsopen", "fsmount", "move_mount", "open_tree", "mount_setattr", "syslog"),
}
"""What a container must not do to its host, and bubblewrap has no need for."""
FOUND = find_bubblewrap(os.environ["PATH"])
needs_bubblewrap = pytest.mark.skipif(
    isinstance(FOUND, Unavailable) or LIBRARY is None,
    reason=f"bubblewrap or libseccomp is missing: {FOUND}, {LIBRARY}",
)
PERSON: dict[str, Any] = (
    {"user": ORDINARY_UID, "group": ORDINARY_UID, "extra_groups": []} if IS_ROOT else {}
)


def allowed(profile: dict[str, Any]) -> set[str]:
    """List the calls that a profile allows."""
    return {
        name
        for rule in profile["syscalls"]
        if rule["action"] == "SCMP_ACT_ALLOW"
        for name in rule["names"]
    }


def isolate(profile: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    """Try what the bridge does for every agent, as an ordinary user under a profile."""
    command = ["bwrap", *_WALLS, "--unshare-net", "--tmpfs", "/tmp", "--", "/bin/sh", "-c", ":"]
    return subprocess.run(
        command,
        preexec_fn=Filter(profile).load,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        **PERSON,
    )


def test_beyond_what_programs_need_it_allows_what_bubblewrap_needs_and_no_more() -> None:
    first, *_ = WHOLE["syscalls"]

    assert set(first["names"]) == FOR_BUBBLEWRAP
    assert NEVER.isdisjoint(allowed(WHOLE))
    assert WHOLE["defaultAction"] == "SCMP_ACT_ERRNO"


@needs_bubblewrap
def test_every_name_in_it_is_a_system_call() -> None:
    newer = {"cachestat", "fchmodat2", "futex_requeue", "futex_wait", "futex_wake"}

    assert set(Filter(WHOLE).unknown) <= newer | {"map_shadow_stack", "mseal"}


@needs_bubblewrap
def test_agents_can_be_isolated_under_it() -> None:
    done = isolate(WHOLE)

    assert (done.returncode, done.stderr) == (0, "")


@needs_bubblewrap
def test_without_the_calls_for_bubblewrap_they_cannot() -> None:
    less = {**WHOLE, "syscalls": WHOLE["syscalls"][1:]}
    less["syscalls"].append({"names": ["clone"], "action": "SCMP_ACT_ALLOW"})

    assert isolate(less).returncode != 0


@pytest.mark.long
@pytest.mark.timeout(200)  # it imports everything itself
@needs_bubblewrap
def test_a_whole_bridge_works_under_it(tmp_path: Path) -> None:
    wrapper = [sys.executable, "-m", "tests.support.under_seccomp", str(PROFILE)]
    agents = {"demo": demo(sandbox="bubblewrap", mode="free")}
    with (
        Platform() as platform,
        BridgeProcess(tmp_path, platform, agents=agents, wrapper=wrapper) as bridge,
    ):
        bridge.say("t1", "run git --version")

        platform.wait(lambda posts: any("git version" in post.text for post in posts), 120)
