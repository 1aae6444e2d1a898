"""What an attacker runs inside an agent's sandbox: one try per call, its outcome on one line.

A single file of the standard library, run as `python inside.py TRY ARGUMENT ...` by an agent.
"""

from __future__ import annotations

import os
import socket
import sys
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlsplit

SECONDS = 20.0


class Hello(BaseHTTPRequestHandler):
    """Answers everything with a word."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def get(url: str) -> str:
    """Fetch an address as any program would: through the proxy, if the environment names one."""
    try:
        with urllib.request.urlopen(url, timeout=SECONDS) as answer:
            return f"status {answer.status}"
    except urllib.error.HTTPError as error:
        return f"status {error.code}"
    except OSError as error:
        return f"no connection: {error}"


def connect(target: str) -> str:
    """Ask the proxy for a tunnel, whatever NO_PROXY says."""
    line = tunnel(target)
    with line:
        return line.recv(100).decode().splitlines()[0]


def tunnel(target: str) -> socket.socket:
    """Ask the proxy for a tunnel and wait for nothing."""
    proxy = urlsplit(os.environ["HTTPS_PROXY"])
    assert proxy.hostname is not None
    line = socket.create_connection((proxy.hostname, proxy.port or 80), SECONDS)
    line.sendall(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
    return line


def dial(host: str, port: str) -> str:
    """Connect without a proxy."""
    try:
        socket.create_connection((host, int(port)), SECONDS).close()
    except OSError as error:
        return f"no connection: {error}"
    return "connected"


def serve(port: str) -> str:
    """Serve on loopback for as long as the sandbox lives, and look whether it is there."""
    server = HTTPServer(("127.0.0.1", int(port)), Hello)
    if os.fork() == 0:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(null, number)
        server.serve_forever()
    server.socket.close()
    return get(f"http://127.0.0.1:{port}/")


def many(count: str, target: str) -> str:
    """Ask for many tunnels, keep them all, and count those that were opened."""
    lines = [tunnel(target) for _ in range(int(count))]
    return f"{sum(b'200' in heard(line) for line in lines)} open"


def heard(line: socket.socket) -> bytes:
    """Return the beginning of an answer, nothing if there is none."""
    try:
        return line.recv(100)
    except OSError:
        return b""


if __name__ == "__main__":
    sys.stdout.write(f"{globals()[sys.argv[1]](*sys.argv[2:])}\n")
