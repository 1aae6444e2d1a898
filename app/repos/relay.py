"""Stands where an agent's git looks for a remote: carries pushes, and has fetches made fresh.

It is one stdlib file that imports nothing of the package: a copy of it lies in the door of the gate
and runs in the agent's shoes. As `relay.py push DOOR` it is the `receive-pack` that git calls, and
carries bytes both ways over a socket. As `relay.py fetch MIRROR` it is the `upload-pack`: it waits
until the bridge has brought the mirror up to date, then lets git read it. As `relay.py partial
MIRROR` it is the `upload-pack` for a mirror that lacks the content of files: it hears what git asks
for, and passes that on when the bridge has fetched it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading

CHUNK_BYTES = 65536
ASKED_AT_ONCE = 100_000
"""As many names as the bridge listens to; the checkout of most trees wants fewer."""
END = b"0000"
"""The packet with which a request ends: https://git-scm.com/docs/protocol-v2."""


def main(what: str, path: str) -> int:
    """Do what git wants: push, or fetch."""
    os.chdir(os.path.dirname(__file__))  # noqa: PTH120 - a socket's path has little room
    if what == "partial":
        return _read_partial(path)
    if what == "fetch":
        _ask("fetch")
        os.execvp("git", ["git", "upload-pack", path])  # noqa: S606 - it takes the place of this one
    _push()
    return 0


def _push() -> None:
    gate = _connected("push")
    threading.Thread(target=_send, args=(gate,), daemon=True).start()
    _pass_on(gate, 1)


def _read_partial(path: str) -> int:
    """Let git read a mirror; each of its requests waits until what it needs is there."""
    git = ("git", "-c", "uploadpack.allowFilter=true", "upload-pack", path)
    # The only version in which a request says all that it wants at once.
    reading = subprocess.Popen(["env", "GIT_PROTOCOL=version=2", *git], stdin=subprocess.PIPE)
    assert reading.stdin is not None
    request: list[bytes] = []
    while packet := _packet():
        request.append(packet)
        if packet == END:
            _see_to(request)
            reading.stdin.write(b"".join(request))
            reading.stdin.flush()
            request.clear()
    reading.stdin.close()
    return reading.wait()


def _packet() -> bytes:
    """Read one packet of what git says; nothing at the end."""
    size = sys.stdin.buffer.read(len(END))
    return size + sys.stdin.buffer.read(max(0, int(size or b"0", 16) - len(END)))


def _see_to(request: list[bytes]) -> None:
    """Have the bridge do what a request needs."""
    words = [packet[len(END) :].strip() for packet in request]
    if b"command=ls-refs" in words:
        _ask("fetch")
    wanted = [word[len(b"want ") :] for word in words if word.startswith(b"want ")]
    for start in range(0, len(wanted), ASKED_AT_ONCE):
        _ask("objects", b"\n".join(wanted[start : start + ASKED_AT_ONCE]))


def _ask(what: str, names: bytes = b"") -> None:
    """Wait until the bridge has done something; what it says about it is for the person."""
    gate = _connected(what)
    gate.sendall(names)
    gate.shutdown(socket.SHUT_WR)
    _pass_on(gate, 2)


def _connected(what: str) -> socket.socket:
    gate = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        gate.connect(what)
    except OSError:
        sys.exit("The bridge does not listen here now.")
    return gate


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
