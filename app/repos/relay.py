"""Stands where an agent's git looks for a remote: carries pushes, and has fetches made fresh.

It is one stdlib file that imports nothing of the package: a copy of it lies in the door of the gate
and runs in the agent's shoes. As `relay.py push DOOR` it is the `receive-pack` that git calls, and
carries bytes both ways over a socket. As `relay.py fetch MIRROR` it is the `upload-pack`: it waits
until the bridge has brought the mirror up to date, then lets git read it.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

CHUNK_BYTES = 65536


def main(what: str, path: str) -> int:
    """Do what git wants: push, or fetch."""
    os.chdir(os.path.dirname(__file__))  # noqa: PTH120 - a socket's path has little room
    gate = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        gate.connect(what)
    except OSError:
        sys.stderr.write("The bridge does not listen here now.\n")
        return 1
    if what == "fetch":
        _pass_on(gate, 2)
        os.execvp("git", ["git", "upload-pack", path])  # noqa: S606 - it takes the place of this one
    threading.Thread(target=_send, args=(gate,), daemon=True).start()
    _pass_on(gate, 1)
    return 0


def _pass_on(gate: socket.socket, target: int) -> None:
    while data := gate.recv(CHUNK_BYTES):
        while data:
            data = data[os.write(target, data) :]


def _send(gate: socket.socket) -> None:
    while data := os.read(0, CHUNK_BYTES):
        gate.sendall(data)
    gate.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    os._exit(main(*sys.argv[1:]))
