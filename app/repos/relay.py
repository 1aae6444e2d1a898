"""Carries a push from an agent's git to the gate: bytes both ways over a socket, nothing else.

It is one stdlib file that imports nothing of the package: a copy of it runs in the agent's shoes,
as the `receive-pack` that git is told to call, with the folder of the door as its argument.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

CHUNK_BYTES = 65536


def main(door: str) -> int:
    """Connect to the door and carry bytes until the other side is done."""
    os.chdir(door)  # the path of a socket has little room, that of a folder has much
    gate = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        gate.connect("push")
    except OSError:
        sys.stderr.write("The bridge does not take pushes here now.\n")
        return 1
    threading.Thread(target=_send, args=(gate,), daemon=True).start()
    while data := gate.recv(CHUNK_BYTES):
        while data:
            data = data[os.write(1, data) :]
    return 0


def _send(gate: socket.socket) -> None:
    while data := os.read(0, CHUNK_BYTES):
        gate.sendall(data)
    gate.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    os._exit(main(sys.argv[1]))
