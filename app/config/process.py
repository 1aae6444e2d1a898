"""Reads the configuration of this process: its environment, settings file and own two secrets.

Settings decide which programs run. So the settings file has a fixed path; `.env` in the current
folder comes last, and counts only if the user owns it and it did not come with a git repository.
The file `secrets` in DATA_DIR appears whole or not at all, and only its owner can read it. Secrets
that others gave the bridge are encrypted with its key, each bound to its name.
"""

from __future__ import annotations

import base64
import contextlib
import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from pydantic import SecretStr

from app.config.configuration import Configuration, make_reader
from app.config.network import OUTBOUND
from app.config.roster import KnownAgent
from app.config.services import KnownService
from app.config.settings import SHORTEST_ADMIN_TOKEN, SHORTEST_SECRET_KEY
from app.config.sources import find_writers
from app.errors import ConfigurationError

NONCE_BYTES = 12
"""The size AES-GCM expects; random ones are safe for four billion values under one key."""
KEY_BYTES = 32


class Sealer:
    """Seals and opens with its own key, derived from BRIDGE_SECRET_KEY."""

    def __init__(self, secret_key: SecretStr) -> None:
        drawn = HKDF(
            algorithm=SHA256(), length=KEY_BYTES, salt=None, info=b"agent-bridge stored secrets"
        )
        self._cipher = AESGCM(drawn.derive(secret_key.get_secret_value().encode()))

    def seal(self, name: str, secret: str) -> str:
        """Encrypt a secret for storage under a name."""
        return base64.urlsafe_b64encode(self.seal_bytes(name, secret.encode())).decode()

    def open(self, name: str, sealed: str) -> str | None:
        """Decrypt a secret; None if it was sealed with another key or under another name."""
        try:
            opened = self.open_bytes(name, base64.b64decode(sealed, altchars=b"-_", validate=True))
        except ValueError:  # also binascii's own
            return None
        return None if opened is None else opened.decode()

    def seal_bytes(self, name: str, secret: bytes) -> bytes:
        """Encrypt bytes for storage under a name."""
        nonce = os.urandom(NONCE_BYTES)
        return nonce + self._cipher.encrypt(nonce, secret, name.encode())

    def open_bytes(self, name: str, sealed: bytes) -> bytes | None:
        """Decrypt bytes; None if they were sealed with another key or under another name."""
        try:
            return self._cipher.decrypt(sealed[:NONCE_BYTES], sealed[NONCE_BYTES:], name.encode())
        except (InvalidTag, ValueError):
            return None


SETTING: Final = "AGENT_BRIDGE_ENV_FILE"
"""An environment variable: it cannot be given in the file that it names."""

_DOTENV: Final = ".env"
_GIT_SECONDS: Final = 10.0
"""Looking up one name in a large repository's index takes far less than a second."""
_ELSEWHERE: Final = (
    f"Move it to ~/.config/agent-bridge/.env, or name the file to use in {SETTING} "
    "(/dev/null for none)."
)

# A repository's own configuration must not run anything: neither its file system
# monitor nor the transport of a remote that git would get missing objects from.
_GIT_ENVIRONMENT: Final = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_GIT: Final = (
    *("git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    # A folder in the repository could pose as a bare repository with its own index.
    *("-c", "safe.bareRepository=explicit"),
)

SECRETS = "secrets"

_TOKEN = "BRIDGE_ADMIN_TOKEN"  # noqa: S105 - a name
_KEY = "BRIDGE_SECRET_KEY"


def from_process(
    known: Sequence[KnownAgent] = (),
    services: Sequence[KnownService] = (),
    given: Mapping[str, str] = MappingProxyType({}),
) -> Configuration:
    """Read the configuration of this process: what is given, its environment, its settings file.

    Raises:
        ConfigurationError: for the first thing that is wrong or unsafe.
    """
    environ, home = {**os.environ, **given}, Path.home()
    around = Surrounding(home, Path.cwd(), checkout(), os.geteuid())
    dotenv = find_settings_file(environ, around)
    read = make_reader(environ, known, services, dotenv, home).read_settings_alone()
    share_outbound(read)
    return read


def share_outbound(configuration: Configuration) -> None:
    """Tell the libraries that call platforms how to reach them: they read the environment."""
    given = configuration.surroundings
    os.environ.update({name: given[name] for name in OUTBOUND if name in given})


def forget_process_secrets(configuration: Configuration) -> None:
    """Take the secrets out of this process's environment, so that no child inherits one."""
    for name in configuration.secret_names:
        os.environ.pop(name, None)


@dataclass(frozen=True, slots=True)
class Surrounding:
    """Where this process runs."""

    home: Path
    """The user's HOME."""
    folder: Path
    """The current folder."""
    checkout: Path | None
    """The checkout that the bridge itself runs from, if it is one."""
    user: int
    """The user id."""


def find_settings_file(environ: Mapping[str, str], around: Surrounding) -> Path | None:
    """Return the settings file in use, or None if there is none.

    Raises:
        ConfigurationError: the file is missing, or others could have written it.
    """
    if (named := environ.get(SETTING)) is not None:
        return _read_named(named, around.home)
    fixed = [default_settings_file(around.home)]
    if around.checkout is not None:
        fixed.insert(0, around.checkout / _DOTENV)
    here = around.folder / _DOTENV
    found = next((path for path in (*fixed, here) if path.exists()), None)
    if found is not None:
        _check_writers(found)
        if found not in fixed:
            _check_origin(found, environ, around.user)
    return found


def default_settings_file(home: Path) -> Path:
    """Return where settings are written if there is no file yet."""
    return home / ".config/agent-bridge" / _DOTENV


def checkout() -> Path | None:
    """Return the checkout that this package runs from; None if it is installed elsewhere."""
    root = Path(__file__).parents[2]
    return root if (root / "pyproject.toml").is_file() else None


def _read_named(text: str, home: Path) -> Path | None:
    path = home / text.removeprefix("~/") if text.startswith("~/") else Path(text)
    if path == Path(os.devnull):
        return None
    if not path.is_absolute() or not path.is_file():
        raise ConfigurationError(
            SETTING, "does not name a file", "Write a path that starts with / or ~/."
        )
    _check_writers(path)
    return path


def _check_writers(path: Path) -> None:
    if found := find_writers(path):
        problem, remedy = found
        raise ConfigurationError(str(path), f"{problem}, who could run commands through it", remedy)


def _check_origin(path: Path, environ: Mapping[str, str], user: int) -> None:
    if {path.lstat().st_uid, path.stat().st_uid} != {user}:
        raise ConfigurationError(str(path), "belongs to another user", _ELSEWHERE)
    if not any((folder / ".git").exists() for folder in path.parents):
        return
    match _look_up(path, environ):
        case 0:
            problem = "is tracked by git, so the repository's authors could run commands through it"
        case 1:
            return
        case _:
            problem = "is in a git repository, and git cannot tell whether it is tracked"
    raise ConfigurationError(str(path), problem, _ELSEWHERE)


def _look_up(path: Path, environ: Mapping[str, str]) -> int | None:
    """Ask git whether it tracks a file; None if it cannot be asked."""
    environment = {"PATH": environ.get("PATH", os.defpath), "HOME": "/nonexistent"}
    command = (*_GIT, "ls-files", "--error-unmatch", "--", path.name)
    try:
        return subprocess.run(
            command,
            cwd=path.parent,
            env=environment | _GIT_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        ).returncode
    except (OSError, subprocess.TimeoutExpired):
        return None


@dataclass(frozen=True, slots=True)
class BridgeSecrets:
    """The token for the API and the page, and the key that signs and encrypts."""

    admin_token: SecretStr
    """The API's bearer token."""
    secret_key: SecretStr
    """The key for cookies and stored secrets."""

    @classmethod
    def parse(cls, text: str) -> BridgeSecrets | None:
        """Read both from the text of a secrets file; None if one is missing or too short."""
        kept = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
        token, key = kept.get(_TOKEN, ""), kept.get(_KEY, "")
        if len(token) < SHORTEST_ADMIN_TOKEN or len(key) < SHORTEST_SECRET_KEY:
            return None
        return cls(SecretStr(token), SecretStr(key))

    def write(self) -> str:
        """Write both as the text of a secrets file."""
        token, key = self.values()
        return f"{_TOKEN}={token}\n{_KEY}={key}\n"

    def values(self) -> Iterator[str]:
        """Yield both, for the vault."""
        yield self.admin_token.get_secret_value()
        yield self.secret_key.get_secret_value()


def ensure_secrets(configuration: Configuration) -> BridgeSecrets:
    """Return the bridge's secrets; generate those not given, once per DATA_DIR.

    Raises:
        ConfigurationError: DATA_DIR is not writable, or its secrets file is unusable.
    """
    settings = configuration.settings
    token, key = settings.bridge_admin_token, settings.bridge_secret_key
    if token is not None and key is not None:
        return BridgeSecrets(token, key)
    kept = _load_or_create(configuration.shared_dir)
    return BridgeSecrets(token or kept.admin_token, key or kept.secret_key)


def find_secret_key(configuration: Configuration) -> SecretStr | None:
    """Return the key of this DATA_DIR without generating one; None if there is none yet.

    Raises:
        ConfigurationError: the secrets file of DATA_DIR is unusable.
    """
    given = configuration.settings.bridge_secret_key
    if given is None and (configuration.shared_dir / SECRETS).exists():
        return ensure_secrets(configuration).secret_key
    return given


def _load_or_create(data_dir: Path) -> BridgeSecrets:
    path = data_dir / SECRETS
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.path.lexists(path):
            _create(path)
        text = _read(path)
    except OSError:
        problem, remedy = (
            "the bridge cannot write or read its secrets file",
            "Let the bridge own DATA_DIR.",
        )
    else:
        if (kept := BridgeSecrets.parse(text)) is not None:
            return kept
        problem = "its secrets file is damaged"
        remedy = f"Restore it, or set {_TOKEN} and {_KEY}; new values end every login."
    raise ConfigurationError("DATA_DIR", problem, remedy)


def _create(path: Path) -> None:
    """Write a draft and link it into place, so two bridges at once never leave half a file."""
    draft = path.with_name(f".{SECRETS}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            new = (SecretStr(secrets.token_urlsafe(32)) for _ in range(2))
            file.write(BridgeSecrets(*new).write())
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink()


def _read(path: Path) -> str:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        if os.fstat(descriptor).st_mode & 0o077:
            raise ConfigurationError(
                "DATA_DIR",
                "its secrets file is readable by other users",
                "Run chmod 600 on it. If someone may have read it, delete it.",
            )
        return file.read()
