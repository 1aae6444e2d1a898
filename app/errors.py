"""Defines every error that callers may catch, as one tree.

    BridgeError
    ├── ConfigurationError      a setting is wrong or unsafe; the bridge does not start
    ├── DataDirInUse            another bridge holds the lock on DATA_DIR
    ├── BackupUnusable          a backup cannot be read, or does not fit where it is to go
    ├── StoreUnavailable        the store cannot be used now (locked, full, away)
    │   ├── FileUnusable        the database file cannot be used; it is unchanged
    │   └── SchemaUnfit         its tables do not fit its version; it is unchanged
    ├── DeliveryRefused         an inbound request failed its check (signature, time, shape)
    ├── DeliveryUnreadable      an accepted delivery cannot be understood
    ├── SpeakerUnknown          a platform cannot tell now who speaks, nor be told anything
    ├── NotFound                a session, turn, ask or agent that does not exist
    ├── Conflict                the thing asked for no longer fits the state it is in
    │   └── LoginTooOld         a log-in that has not just begun decides which program runs
    ├── FileRefused             an agent's file has a name or a text that it must not have
    ├── AgentError              something between the bridge and an agent process
    │   ├── AgentNotStarted     its process could not be started
    │   ├── AgentDied           its process ended during a call
    │   ├── AgentCutOff         the connection to its machine ended during a call
    │   ├── AgentTimedOut       it did not answer within its bound
    │   ├── AgentMisbehaved     it broke the protocol (a frame over the cap, a flood)
    │   ├── AgentStopped        it used more of the machine than it may
    │   └── AgentRefused        it answered with an error of its own
    │       └── AgentLoginNeeded  it wants to be logged in first
    ├── RepositoryError         a repository, or a session's clone of one, cannot be used
    │   ├── GitFailed           git ended with an error or took too long
    │   ├── RepositoryGone      the remote says that there is no such repository, or not for us
    │   └── DiskNearlyFull      there is too little room for more work
    ├── ServiceRefused          a platform lets an adapter do nothing, as it is set up
    └── PostError               a post could not be sent
        ├── PostDelayed         not now: wait, then try again
        └── PostRejected        never: the place is gone or closed to us

An error that an operator can cause carries its remedy. No message holds the value of a setting.
"""

from __future__ import annotations

from typing import Final


class BridgeError(Exception):
    """Everything the bridge raises on purpose."""


class ConfigurationError(BridgeError):
    """A setting is wrong or unsafe; names the setting and the remedy, never the value."""

    def __init__(self, setting: str, problem: str, remedy: str) -> None:
        self.setting = setting
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{setting}: {problem}. {remedy}")


class DataDirInUse(BridgeError):
    """Another bridge holds the lock on this DATA_DIR."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"DATA_DIR {path!r} is in use by another bridge. "
            "Stop that one, or give this one a DATA_DIR of its own."
        )


class BackupUnusable(BridgeError):
    """A backup cannot be read, or does not fit where it is to go; says what to do."""


class StoreUnavailable(BridgeError):
    """The store cannot be read or written now; nothing of what was asked for was done."""

    def __init__(self, cause: str, remedy: str = "") -> None:
        self.cause = cause
        self.remedy = remedy
        super().__init__(f"the store cannot be used now: {cause}{f'. {remedy}' if remedy else ''}")


class FileUnusable(StoreUnavailable):
    """The database file cannot be used; it is unchanged."""

    _REMEDIES: Final = {
        "FULL": "Free some disk space.",
        "BUSY": "Stop the process that locks it.",
        "LOCKED": "Stop the process that locks it.",
        "READONLY": "Let the user of the bridge write it, and the folder it is in.",
        "CANTOPEN": "Let the user of the bridge write it, and the folder it is in.",
        "IOERR": "Free some disk space, and check the disk.",
    }
    """What to do, by a part of SQLite's name for the fault; about all others, restore."""
    _RESTORE: Final = "Move it away, and restore a backup with `agent-bridge restore`."

    def __init__(self, cause: str, fault: str) -> None:
        fitting = (words for name, words in self._REMEDIES.items() if name in fault)
        super().__init__(f"{cause}. The file is unchanged", next(fitting, self._RESTORE))


class SchemaUnfit(StoreUnavailable):
    """The tables of a database do not fit its version; it is unchanged."""

    def __init__(self, cause: str) -> None:
        super().__init__(
            cause,
            "It is unchanged. Restore a backup with `agent-bridge restore`: move the file away "
            "before, or name an empty database in DATABASE_URL.",
        )


class DeliveryRefused(BridgeError):
    """An inbound request failed its check: it is not stored, or stored and not read.

    With the status 200 it is acknowledged all the same, so that the platform does not repeat it.
    """

    def __init__(self, reason: str, *, status: int = 401) -> None:
        self.reason = reason
        self.status = status
        super().__init__(reason)


class DeliveryUnreadable(BridgeError):
    """A stored delivery cannot be understood by its adapter."""


class SpeakerUnknown(BridgeError):
    """A platform can currently neither identify a person nor deliver a message to them."""


class NotFound(BridgeError):
    """There is no such thing."""

    def __init__(self, what: str, name: object) -> None:
        super().__init__(f"there is no {what} {name!r}")


class AgentRemoved(BridgeError):
    """The agent is not in the registry any more; what it said stays readable."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the agent {name!r} was removed. Send this to another agent.")


class Conflict(BridgeError):
    """The thing asked for no longer fits the state it is in."""


class LoginTooOld(Conflict):
    """A log-in that has not just begun wants to decide which program runs."""

    def __init__(self, minutes: int) -> None:
        super().__init__(
            f"this decides which program runs, and needs a log-in of the last {minutes} minutes. "
            "Run `agent-bridge login` on the bridge's machine, open its link in another tab of "
            "this browser, then send this again"
        )


class FileRefused(BridgeError):
    """An agent's file has a name or a text that it must not have; says what to do."""

    def __init__(self, path: str, problem: str, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{path!r} {problem}. {remedy}")


class AgentError(BridgeError):
    """Something went wrong between the bridge and an agent process."""

    log: str = ""
    """The end of what the process wrote to stderr, where it is known; not checked for secrets."""


class AgentNotStarted(AgentError):
    """The agent's process could not be started."""

    def __init__(self, agent: str, cause: str, remedy: str) -> None:
        self.cause = cause
        self.remedy = remedy
        super().__init__(f"{agent} could not be started: {cause}. {remedy}")


class AgentDied(AgentError):
    """The agent's process ended during a call."""

    def __init__(self, agent: str, *, status: int | None, last_words: str = "") -> None:
        self.status = status
        self.last_words = last_words
        how = "without a status"
        if status is not None:
            how = f"signal {-status}" if status < 0 else f"exit status {status}"
        tail = f" Its last words: {last_words}" if last_words else ""
        super().__init__(f"{agent} stopped unexpectedly ({how}).{tail}")


class AgentCutOff(AgentError):
    """The connection to an agent on another machine ended during a call."""

    def __init__(self, agent: str, host: str, *, was_held: bool) -> None:
        self.host = host
        late = " and did not come back in time" if was_held else ""
        super().__init__(
            f"{agent} was cut off: the connection to {host} ended{late}. Send your message again "
            "once it is there: what it has kept of this conversation goes on."
        )


class AgentTimedOut(AgentError):
    """The agent did not answer within its bound."""

    def __init__(self, agent: str, step: str, seconds: float) -> None:
        self.step = step
        super().__init__(f"{agent} did not answer {step} within {seconds:g} s and was stopped.")


class AgentMisbehaved(AgentError):
    """The agent broke the protocol in a way that cannot be repaired."""

    def __init__(self, agent: str, what: str) -> None:
        super().__init__(f"{agent} broke the protocol: {what}. It was stopped.")


class AgentStopped(AgentError):
    """The bridge stopped the agent because it used more of the machine than it may."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"Stopped: {problem}. {remedy}")


class AgentRefused(AgentError):
    """The agent answered with an error of its own."""

    def __init__(self, agent: str, code: int, message: str, data: object = None) -> None:
        self.code = code
        self.message = message
        self.data = data
        super().__init__(f"{agent} answered with an error: {message} (code {code})")


class AgentLoginNeeded(AgentRefused):
    """The agent wants to be logged in before it works."""

    def __init__(self, agent: str, code: int, message: str, data: object = None) -> None:
        super().__init__(agent, code, message, data)
        self.args = (
            f"{agent}: login needed ({message}). "
            f"Run `agent-bridge agents login {agent}`, or give it its key.",
        )


class RepositoryError(BridgeError):
    """A repository, or a session's clone of one, cannot be used."""


class GitFailed(RepositoryError):
    """Git ended with an error or took too long."""

    def __init__(self, command: str, words: str) -> None:
        self.words = words
        super().__init__(f"`{command}` failed: {words.strip() or 'it did not say why'}")


class RepositoryGone(RepositoryError):
    """The remote says that there is no such repository, or that it is not for us."""

    def __init__(self, name: str, words: str) -> None:
        self.words = words
        super().__init__(
            f"The repository {name} cannot be reached: {words}. If it was renamed or moved, set "
            "the new name with `repo OWNER/NAME`, or in the setting that names it; if it was "
            "closed to this agent, open it again."
        )


class DiskNearlyFull(RepositoryError):
    """There is too little room for more work."""

    def __init__(self, free: int, needed: int) -> None:
        super().__init__(
            f"The disk is nearly full: {free // 2**20} MiB are free and {needed // 2**20} MiB must "
            "stay free, so no new work is begun. Delete what is not needed, or give DATA_DIR a "
            "larger disk, then try again."
        )


class ServiceRefused(BridgeError):
    """A platform lets an adapter do nothing, as it is set up."""

    def __init__(self, service: str, cause: str, remedy: str) -> None:
        self.cause = cause
        self.remedy = remedy
        super().__init__(f"{service} is refused: {cause}. {remedy}")


class PostError(BridgeError):
    """A post could not be sent."""


class PostDelayed(PostError):
    """The platform says: not now."""

    def __init__(self, reason: str, *, retry_after: float | None = None) -> None:
        self.retry_after = retry_after
        super().__init__(reason)


class PostRejected(PostError):
    """The platform says: never."""
