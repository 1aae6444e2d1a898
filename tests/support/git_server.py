"""Git repositories behind smart HTTP on loopback, opened by tokens; it remembers who came.

It is `git http-backend` behind the standard library's server, so what it refuses is what the real
thing refuses: no token, a token for another repository, one that may only read. Beside each
repository stands an LFS server with the batch API; its storage, as others are, is opened by a key
of its own and refuses whoever also shows a token.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

BACKEND = "git"
QUIET = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "Ann",
    "GIT_AUTHOR_EMAIL": "ann@example.com",
    "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@example.com",
}
COMMITTER = "Ann <ann@example.com>"
CONFIG = """\
[core]
	repositoryformatversion = 0
	bare = true
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
"""
STORAGE_KEY = "key-of-the-storage-0123456789"
MUCH_MORE = 8 * 1024**2


@dataclass(frozen=True)
class Visit:
    """One request: with which token, to which repository, to do what."""

    token: str
    repository: str
    what: Literal["fetch", "push", "download", "upload", "get", "put", "verify"]
    status: int


@dataclass
class GitServer:
    """Bare repositories under one folder, served over HTTP."""

    folder: Path
    tokens: dict[str, tuple[str, Literal["read", "write"]]] = field(default_factory=dict)
    """What each token opens: one repository, to read or to write."""
    moved: dict[str, str] = field(default_factory=dict)
    """Repositories that were renamed."""
    large: dict[str, dict[str, bytes]] = field(default_factory=dict)
    """The large files of each repository, by hash."""
    broken: set[str] = field(default_factory=set)
    """Large files that the storage gives out damaged."""
    endless: set[str] = field(default_factory=set)
    """Large files of which the storage sends much more than there is."""
    large_elsewhere: str = ""
    """Where the LFS server sends whoever asks it."""
    visits: list[Visit] = field(default_factory=list)
    is_old: bool = False
    """Whether it speaks only the first version of git's protocol, as some servers still do."""

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        handler = type("Handler", (_Handler,), {"owner": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def path(self, name: str) -> Path:
        """Tell where a repository lies on the disk."""
        return self.folder / f"{name}.git"

    def create(self, name: str, files: dict[str, str] | None = None) -> str:
        """Make a repository with a first commit on main; returns the commit."""
        bare = self.path(name)
        for folder in ("objects", "refs"):
            (bare / folder).mkdir(parents=True)
        (bare / "HEAD").write_text("ref: refs/heads/main\n")
        (bare / "config").write_text(CONFIG)
        return self.commit(name, files or {"README.md": "# Hello\n"}, "First")

    def keep_large(self, name: str, content: bytes) -> str:
        """Have a large file; returns the pointer to it."""
        oid = hashlib.sha256(content).hexdigest()
        self.large.setdefault(name, {})[oid] = content
        return pointer(content)

    def commit(
        self, name: str, files: dict[str, str], message: str, *, branch: str = "main"
    ) -> str:
        """Commit files to a branch as a person would; returns the commit."""
        start = next((each for each in (branch, "main") if self.head(name, each)), "")
        stream = [
            f"commit refs/heads/{branch}\nmark :1\ncommitter {COMMITTER} now\n",
            _data(f"{message}\n"),
            f"from refs/heads/{start}^0\n" if start else "",
        ]
        for path, text in files.items():
            mode = "100755" if text.startswith("#!") else "100644"
            stream.append(f"M {mode} inline {path}\n{_data(text)}")
        options = ("--quiet", "--date-format=now", "--cat-blob-fd=1")
        given = "".join([*stream, "get-mark :1\n"])
        return git(self.path(name), "fast-import", *options, given=given)

    def take_away(self, name: str, path: str, message: str) -> str:
        """Commit to main that a file of its top folder is no more; returns the commit."""
        bare = self.path(name)
        listed = git(bare, "ls-tree", "main").splitlines()
        rest = "".join(f"{line}\n" for line in listed if not line.endswith(f"\t{path}"))
        tree = git(bare, "mktree", given=rest)
        commit = git(bare, "commit-tree", tree, "-p", "main", "-m", message)
        git(bare, "update-ref", "refs/heads/main", commit)
        return commit

    def head(self, name: str, branch: str) -> str:
        """Tell the commit of a branch; nothing if there is no such branch."""
        return git(
            self.path(name), "for-each-ref", "--format=%(objectname)", f"refs/heads/{branch}"
        )

    def branches(self, name: str) -> list[str]:
        """List all branches."""
        listed = git(self.path(name), "for-each-ref", "--format=%(refname)", "refs")
        return [ref.removeprefix("refs/heads/") for ref in listed.splitlines()]

    def show(self, name: str, branch: str, path: str) -> str:
        """Read a file of a branch."""
        return git(self.path(name), "show", f"refs/heads/{branch}:{path}")

    def log(self, name: str, branch: str, form: str = "%an <%ae>%n%B") -> str:
        """Read the last commit of a branch."""
        return git(self.path(name), "log", "-1", f"--format={form}", f"refs/heads/{branch}")

    def pushes(self) -> list[Visit]:
        """List who pushed."""
        return [visit for visit in self.visits if visit.what == "push" and visit.status == 200]


class _Handler(BaseHTTPRequestHandler):
    owner: GitServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_PUT(self) -> None:
        self._serve()

    def log_message(self, *_: object) -> None:
        """Say nothing: the owner remembers."""

    def _serve(self) -> None:
        body = self._body()
        parts = urlsplit(self.path)
        name = parts.path.partition(".git/")[0].strip("/")
        service = "receive-pack" if "receive-pack" in self.path else "upload-pack"
        what: Literal["fetch", "push"] = "push" if service == "receive-pack" else "fetch"
        token = self._token()
        if "/info/lfs/" in parts.path or parts.path.startswith("/storage/"):
            self._send(*self._large(parts.path, name, token, body))
            return
        status, headers, answer = self._answer(parts.path, parts.query, name, what, token, body)
        if self.command == "POST" or status != 200:
            self.owner.visits.append(Visit(token, name, what, status))
        self._send(status, headers, answer)

    def _send(self, status: int, headers: list[tuple[str, str]], answer: bytes) -> None:
        self.send_response(status)
        for key, value in headers:
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def _answer(
        self, path: str, query: str, name: str, what: str, token: str, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        owner = self.owner
        if name in owner.moved:
            target = f"{owner.url}{path.replace(name, owner.moved[name])}?{query}"
            return 301, [("Location", target)], b""
        opened, right = owner.tokens.get(token, ("", ""))
        if owner.tokens and opened != name:
            return 401, [("WWW-Authenticate", 'Basic realm="git"')], b"no"
        if owner.tokens and what == "push" and right != "write":
            return 403, [], b"read only"
        if not owner.path(name).exists():
            return 404, [], b"Repository not found"
        return self._backend(path, query, token, body)

    def _large(
        self, path: str, name: str, token: str, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        if self.owner.large_elsewhere:
            return 307, [("Location", f"{self.owner.large_elsewhere}{path}")], b""
        if path.startswith("/storage/"):
            _, _, *names, oid = path.split("/")
            what, name = self.command.lower(), "/".join(names)
            status, answer = self._stored(name, oid, body)
        elif path.endswith("/objects/batch"):
            asked = json.loads(body)
            what = asked["operation"]
            status, answer = self._batch(name, token, asked)
        else:
            what, asked = "verify", json.loads(body)
            there = self.owner.large.get(name, {}).get(asked["oid"], b"")
            status, answer = (200 if len(there) == asked["size"] else 404), b"{}"
        self.owner.visits.append(Visit(token, name, what, status))  # type: ignore[arg-type]
        return status, [("Content-Type", "application/vnd.git-lfs+json")], answer

    def _stored(self, name: str, oid: str, body: bytes) -> tuple[int, bytes]:
        if "Authorization" in self.headers or self.headers.get("X-Storage") != STORAGE_KEY:
            return 400, b"one key, and the right one"
        files = self.owner.large.setdefault(name, {})
        if self.command == "PUT":
            files[oid] = body
            return (200 if hashlib.sha256(body).hexdigest() == oid else 422), b""
        found = files[oid]
        if oid in self.owner.endless:
            return 200, found + bytes(MUCH_MORE)
        return 200, found[::-1] if oid in self.owner.broken else found

    def _batch(self, name: str, token: str, asked: dict[str, Any]) -> tuple[int, bytes]:
        opened, right = self.owner.tokens.get(token, ("", ""))
        upload = asked["operation"] == "upload"
        if self.owner.tokens and (opened != name or (upload and right != "write")):
            return 403, b"{}"
        if "application/vnd.git-lfs+json" not in self.headers.get("Content-Type", ""):
            return 415, b"{}"
        objects = [self._planned(name, each, upload=upload) for each in asked["objects"]]
        return 200, json.dumps({"transfer": "basic", "objects": objects}).encode()

    def _planned(self, name: str, each: dict[str, Any], *, upload: bool) -> dict[str, Any]:
        oid, there = each["oid"], each["oid"] in self.owner.large.get(name, {})
        if there and upload:
            return each
        if not there and not upload:
            return {**each, "error": {"code": 404, "message": "Object does not exist"}}
        place = f"{self.owner.url}/storage/{name}/{oid}"
        actions = {"upload" if upload else "download": {
            "href": place, "header": {"X-Storage": STORAGE_KEY}
        }}  # fmt: skip
        if upload:
            actions["verify"] = {"href": f"{self.owner.url}/{name}.git/info/lfs/verify"}
        return {**each, "authenticated": True, "actions": actions}

    def _backend(
        self, path: str, query: str, token: str, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        environment = {
            **QUIET,
            "GIT_PROJECT_ROOT": str(self.owner.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": "" if self.owner.is_old else self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": token or "somebody",
        }
        done = subprocess.run(
            [BACKEND, "http-backend"], input=body, env=environment, capture_output=True
        )
        head, _, answer = done.stdout.partition(b"\r\n\r\n")
        headers = [
            (key.strip(), value.strip())
            for key, _, value in (line.partition(":") for line in head.decode().split("\r\n"))
        ]
        status = next((int(v.split()[0]) for k, v in headers if k == "Status"), 200)
        return status, [(k, v) for k, v in headers if k != "Status"], answer

    def _token(self) -> str:
        kind, _, value = self.headers.get("Authorization", "").partition(" ")
        if kind != "Basic":
            return ""
        return base64.b64decode(value).decode().partition(":")[2]

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().split(b";")[0], 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body


def _data(text: str) -> str:
    """Write a text for git's fast-import."""
    return f"data {len(text.encode())}\n{text}\n"


def pointer(content: bytes) -> str:
    """Write what stands in a repository in place of a large file."""
    oid = hashlib.sha256(content).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"


def git(folder: Path, *arguments: str, given: str = "", more: dict[str, str] | None = None) -> str:
    """Run git as a person would; returns what it says.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    done = subprocess.run(
        ["git", *arguments],
        cwd=folder,
        env={**QUIET, "HOME": str(folder), **(more or {})},
        input=given,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()
