"""Probes an agent's isolation from inside: tries to read what no agent may read.

What cannot be tried counts as not isolated: only a probe that ran and read nothing proves
isolation.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.children.environment import MARKER
from app.children.layout import Confinement
from app.children.sandbox import Sandbox
from app.children.spawn import ChildCommand
from app.children.stop import StopSteps, running
from app.errors import AgentNotStarted

_PROBE_SECONDS: Final = 15.0
"""A probe takes about 30 ms; a machine under load gets time, since a failure closes the agent."""
_STEPS: Final = StopSteps(close=0.5, terminate=0.5, kill=1.0)
"""The probe is ours and ends by itself: short steps are enough."""
_READ_BYTES: Final = 65536
"""Of each file: all of any `.env`, and enough of an environment to tell whose it is."""
_CHUNK_BYTES: Final = 65536
_DONE: Final = "done"
_OWN_ENVIRONMENT: Final = "the bridge's environment"

# Only what every Unix has. Contents are compared and not just read: a hidden file reads as empty,
# and the bridge's number may be another process inside the namespace.
_PROGRAM: Final = f"""
for file in "$@"; do echo file; od -An -v -tx1 -N {_READ_BYTES} "$file" 2>/dev/null; done
test -w "$HOME" && test -w . && echo {_DONE}
"""


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """The result of one probe."""

    leaks: tuple[str, ...]
    """The names of what the probe could read."""
    isolated: bool
    words: str
    """For people: log, doctor, page."""
    conclusive: bool = True
    """Whether it could be tried at all."""


@dataclass(frozen=True, slots=True)
class _Target:
    name: str
    file: Path
    secret: bytes
    is_canary: bool = False


async def probe(
    sandbox: Sandbox,
    confinement: Confinement,
    *,
    env: Mapping[str, str],
    hidden: Mapping[str, Path],
    remedy: str = "",
) -> ProbeResult:
    """Try every path of `hidden` (name to path) from inside; never raises for what it finds.

    A file is tried itself; in a folder, a canary is placed for the time of the probe. The bridge's
    own /proc is always tried. `remedy` is for people, if the sandbox does not hold.
    """
    targets: list[_Target] = []
    try:
        await asyncio.to_thread(_place_canaries, hidden, targets)
        words = [*(str(target.file) for target in targets), f"/proc/{os.getpid()}/environ"]
        command = sandbox.wrap(["/bin/sh", "-c", _PROGRAM, "probe", *words], confinement)
        async with asyncio.timeout(_PROBE_SECONDS):
            answer = await _run(command, confinement.workspace, env)
    except TimeoutError:
        return _failed(f"the probe gave no answer within {_PROBE_SECONDS:g} s", remedy)
    except (AgentNotStarted, OSError) as error:
        return _failed(f"the probe could not run ({error})", remedy)
    finally:
        await asyncio.to_thread(_remove_canaries, targets)
    blocks = answer.splitlines(keepends=True)
    if not blocks or blocks[-1].strip() != _DONE:
        return _failed(f"the probe failed ({answer.strip()[-200:]})", remedy)
    return _judge(sandbox, _leaks(targets, "".join(blocks[:-1]), env[MARKER]), remedy)


async def _run(command: ChildCommand, cwd: Path, env: Mapping[str, str]) -> str:
    """Return the probe's output, followed by its error if it failed."""
    async with running(command, name="probe", env=env, cwd=cwd, steps=_STEPS) as child:
        written = bytearray()
        while data := await child.stdout.read(_CHUNK_BYTES):
            written += data
        failed = await child.wait() != 0
        return written.decode(errors="replace") + (f"\n{child.last_words()}" if failed else "")


def _leaks(targets: Sequence[_Target], answer: str, marker: str) -> tuple[str, ...]:
    contents = [bytes.fromhex(text) for text in answer.split("file\n")[1:]]
    read = tuple(
        target.name
        for target, content in zip(targets, contents, strict=False)
        if target.secret and content == target.secret
    )
    # The bridge cannot read its own to compare. Inside, its pid may be one of the
    # probe's own processes, and those carry the marker.
    environment = contents[-1]
    return (*read, _OWN_ENVIRONMENT) if environment and marker.encode() not in environment else read


def _judge(sandbox: Sandbox, leaks: tuple[str, ...], remedy: str) -> ProbeResult:
    if leaks:
        return ProbeResult(
            leaks, isolated=False, words=_not(f"it can read {', '.join(leaks)}", remedy)
        )
    if sandbox.name == "none":
        return ProbeResult((), isolated=False, words=_not("it runs without a sandbox", remedy))
    return ProbeResult((), isolated=True, words=f"isolated ({sandbox.name})")


def _failed(reason: str, remedy: str) -> ProbeResult:
    return ProbeResult((), isolated=False, words=_not(reason, remedy), conclusive=False)


def _not(reason: str, remedy: str) -> str:
    return f"not isolated: {reason}. {remedy}".rstrip()


def _place_canaries(hidden: Mapping[str, Path], targets: list[_Target]) -> None:
    """Fill `targets` one by one, so that every canary is known even if a later one fails."""
    for name, path in hidden.items():
        if path.is_dir():
            canary = path / f".probe-{secrets.token_hex(8)}"
            secret = secrets.token_bytes(32)
            targets.append(_Target(name, canary, secret, is_canary=True))
            canary.write_bytes(secret)
        elif path.exists():
            with path.open("rb") as file:
                targets.append(_Target(name, path, file.read(_READ_BYTES)))


def _remove_canaries(targets: Sequence[_Target]) -> None:
    for target in targets:
        if target.is_canary:
            target.file.unlink(missing_ok=True)
