"""A bridge whose settings name no agent, and known programs that come to its PATH and go."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path
from typing import Any

from tests.support import postgres
from tests.support.bridge import ADMIN_TOKEN, DEMO, SECRET_KEY
from tests.support.nursery import nursery
from tests.support.observe import Observed
from tests.support.platform import Platform
from tests.support.served import PLAIN_PATH


def install(folder: Path, program: str) -> None:
    """Put a known program on PATH that is the demo agent in truth."""
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    file = folder / program
    interpreter, source = DEMO
    # A sandbox shows the interpreter that the first line of a script names, wherever it is.
    file.write_text(f"#!{interpreter}\n{Path(source).read_text()}")
    file.chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)


class Unnamed(Observed):
    """A bridge that finds its agents itself."""

    def __init__(self, folder: Path, platform: Platform, *programs: str, **more: Any) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        for program in programs:
            install(self.bin, program)
        settings = {"AGENTS_JSON": "", "PATH": f"{self.bin}:{PLAIN_PATH}"}
        settings |= more.pop("settings", {})
        super().__init__(folder, platform, settings=settings, hooks=False, **more)

    def restart(self, *programs: str, **settings: str) -> None:
        """Start again, with more programs on PATH and other settings."""
        self.stop()
        for program in programs:
            install(self.bin, program)
        self.settings |= settings
        self.start()

    def agent(self, name: str) -> dict[str, Any]:
        """Read one agent over the API."""
        answer = self.http.get(f"/api/v1/agents/{name}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def listed(self) -> list[str]:
        """List the agents that there are."""
        return [each["name"] for each in self.http.get("/api/v1/agents").json()["items"]]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command of a person on this machine."""
        environment = {
            "HOME": str(self.folder / "person"),
            "AGENT_BRIDGE_ENV_FILE": os.devnull,
            "DATA_DIR": str(self.data_dir),
            "PORT": str(self.port),
            "BRIDGE_ADMIN_TOKEN": ADMIN_TOKEN,
            "BRIDGE_SECRET_KEY": SECRET_KEY,
            **postgres.settings_of(self.data_dir),
            **self.settings,
        }
        given = {name: value for name, value in environment.items() if value}
        return nursery().run(*words, environment=given, cwd=self.folder / "person")
