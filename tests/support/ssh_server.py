"""A real sshd on loopback, one process for each connection, that lets in one key.

It runs as whoever runs the tests. As root it wants a folder in /run, which it gets in a mount
namespace of its own, so that nothing of the machine is touched.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socketserver
import subprocess
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

SSHD = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
_CONFIGURATION = """\
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
AuthenticationMethods publickey
PermitRootLogin yes
StrictModes no
UsePAM no
PidFile none
LogLevel VERBOSE
"""
_CLIENT = """\
Host *
    IdentityFile {person}/.ssh/key
    IdentitiesOnly yes
    UserKnownHostsFile {person}/.ssh/known
    StrictHostKeyChecking yes
"""


@dataclass
class SshServer:
    """An sshd that opens for the key of one person, which lies in that person's HOME."""

    folder: Path
    person: Path
    visits: list[int] = field(default_factory=list)
    """How each connection ended."""

    def __enter__(self) -> Self:
        self.folder.mkdir()
        (self.person / ".ssh").mkdir(mode=0o700, parents=True)
        for key in (self.folder / "host", self.person / ".ssh" / "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
        shutil.copyfile(self.person / ".ssh" / "key.pub", self.folder / "authorized")
        (self.folder / "sshd").write_text(_CONFIGURATION.format(folder=self.folder))
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self._introduce()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def log(self) -> str:
        """What sshd said."""
        return (self.folder / "log").read_text()

    def url(self, path: Path) -> str:
        """Tell the address of a folder behind it."""
        return f"ssh://{getpass.getuser()}@127.0.0.1:{self._server.server_address[1]}{path}"

    def _introduce(self) -> None:
        """Give the person an ssh that knows this server, and the key to it."""
        host = (self.folder / "host.pub").read_text()
        port = self._server.server_address[1]
        (self.person / ".ssh" / "known").write_text(f"[127.0.0.1]:{port} {host}")
        # Real ssh reads the configuration of the account, not of HOME; so it is told which one.
        configuration = self.person / ".ssh" / "config"
        configuration.write_text(_CLIENT.format(person=self.person))
        (self.person / "bin").mkdir()
        command = self.person / "bin" / "ssh"
        command.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {configuration} "$@"\n')
        command.chmod(0o755)

    def command(self) -> list[str]:
        """Tell the command that serves one connection."""
        daemon = [str(SSHD), "-i", "-e", "-f", str(self.folder / "sshd")]
        if os.getuid() != 0:
            return daemon
        return ["bwrap", "--dev-bind", "/", "/", "--tmpfs", "/run", "--dir", "/run/sshd", *daemon]


class _Handler(socketserver.BaseRequestHandler):
    owner: SshServer

    def handle(self) -> None:
        with (self.owner.folder / "log").open("ab") as log:
            done = subprocess.run(
                self.owner.command(), stdin=self.request, stdout=self.request, stderr=log
            )
        self.owner.visits.append(done.returncode)
