"""Installs node and the real agents from npm, at the pinned versions, into `.agents`.

What cannot be installed is said in one line and left out: its tests are skipped, not failed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[2] / ".agents"
PINS = Path(__file__).with_name("pins.toml")
INSTALL_SECONDS = 900.0
"""The largest is 460 MB; nobody waits longer than this for one of them."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One package at one version."""

    name: str
    package: str
    version: str

    @property
    def folder(self) -> Path:
        """Where it is installed: each has a folder of its own, so that they share nothing."""
        return FOLDER / self.name

    @property
    def installed(self) -> bool:
        """Whether this very version is there, complete."""
        try:
            stamp = json.loads((self.folder / "installed.json").read_text())
        except (OSError, ValueError):
            return False
        return bool(stamp == [self.package, self.version])


def pins() -> tuple[Pin, ...]:
    """Return what is pinned, node first."""
    return tuple(
        Pin(name, pin["package"], pin["version"])
        for name, pin in tomllib.loads(PINS.read_text()).items()
    )


def command_of(name: str, program: str, *arguments: str) -> tuple[str, ...]:
    """Return the command of an installed agent."""
    return (str(FOLDER / name / "node_modules" / ".bin" / program), *arguments)


def node_folder() -> Path:
    """Return the folder of the pinned node."""
    return FOLDER / "node" / "node_modules" / "node" / "bin"


def install(pin: Pin) -> str:
    """Install one package; what went wrong in one line, nothing if all went well."""
    shutil.rmtree(pin.folder, ignore_errors=True)
    pin.folder.mkdir(parents=True)
    # A package.json of its own: else npm looks for one in the folders above.
    (pin.folder / "package.json").write_text("{}")
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-progress", "--loglevel=error"]
    # npm takes an older version without a word where node is too old: so it runs on the pinned one.
    path = f"{node_folder()}:{os.environ['PATH']}"
    try:
        done = subprocess.run(
            [*command, f"{pin.package}@{pin.version}"],
            cwd=pin.folder,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"npm took longer than {INSTALL_SECONDS:g} s"
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return lines[0] if lines else f"npm ended with status {done.returncode}"
    if not (node_folder() / "node").exists():
        return "npm did not run the script that fetches node"
    (pin.folder / "installed.json").write_text(json.dumps([pin.package, pin.version]))
    return ""


def main() -> None:
    """Install what is not there yet, line by line."""
    if shutil.which("npm") is None:
        _say("npm was not found: the tests of real agents are skipped\n")
        return
    for pin in pins():
        _say(f"{pin.name:<10} {pin.version:<10} ")
        if pin.installed:
            _say("is there\n")
            continue
        start = time.monotonic()
        problem = install(pin)
        taken = time.monotonic() - start
        _say(f"not installed: {problem}\n" if problem else f"ok {taken:.0f} s\n")


def _say(words: str) -> None:
    sys.stdout.write(words)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
