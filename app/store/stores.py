"""Opens every store of the pipe on one database, to serve or only to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from sqlalchemy import URL, Connection, make_url
from sqlalchemy.exc import DatabaseError

from app.clock import SystemClock
from app.errors import StoreUnavailable
from app.model.keys import AreaOf, no_area
from app.store.agents import AgentStore
from app.store.checkouts import CheckoutStore, ProposalStore
from app.store.conversations import ConversationStore
from app.store.database import Database
from app.store.database.schema import HEAD_REVISION, check_fit, plan_undo, revision_of
from app.store.decisions import IntakeStore
from app.store.dialects import POSTGRESQL
from app.store.gaps import GapStore
from app.store.grants import GrantStore
from app.store.guarding import Guard, put_on_guard
from app.store.inbox import DeliveryStore
from app.store.ledger import AskStore
from app.store.names import NameStore
from app.store.people import LoginStore, PersonStore, TokenStore
from app.store.posts import PostStore
from app.store.sealed import SealedStore
from app.store.sessions import ProcessStore, SessionStore
from app.store.spending import SpendingStore
from app.store.subagents import SubagentStore
from app.store.transcript import TranscriptStore
from app.store.tree import DelegationTree
from app.store.turns import TurnStore
from app.store.upkeep import VitalStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stores:
    """The store of the pipe; features build theirs on the same database."""

    database: Database
    now: Callable[[], float]
    deliveries: DeliveryStore
    gaps: GapStore
    decisions: IntakeStore
    sessions: SessionStore
    conversations: ConversationStore
    turns: TurnStore
    transcript: TranscriptStore
    asks: AskStore
    grants: GrantStore
    posts: PostStore
    processes: ProcessStore
    logins: LoginStore
    people: PersonStore
    tokens: TokenStore
    checkouts: CheckoutStore
    proposals: ProposalStore
    names: NameStore
    sealed: SealedStore
    agents: AgentStore
    tree: DelegationTree
    vitals: VitalStore
    spending: SpendingStore
    subagents: SubagentStore

    def open(self, kind: Callable[[Database, Callable[[], float]], T]) -> T:
        """Open the store of a feature on the same database."""
        return kind(self.database, self.now)

    @classmethod
    def on(cls, database: Database, now: Callable[[], float], area_of: AreaOf = no_area) -> Stores:
        """Open every store on one database."""
        shared = (database, now, area_of)
        return cls(
            database=database,
            now=now,
            deliveries=DeliveryStore(*shared),
            gaps=GapStore(*shared),
            decisions=IntakeStore(*shared),
            sessions=SessionStore(*shared),
            spending=SpendingStore(*shared),
            conversations=ConversationStore(*shared),
            turns=TurnStore(*shared),
            transcript=TranscriptStore(*shared),
            asks=AskStore(*shared),
            grants=GrantStore(*shared),
            posts=PostStore(*shared),
            processes=ProcessStore(*shared),
            logins=LoginStore(*shared),
            people=PersonStore(*shared),
            tokens=TokenStore(*shared),
            checkouts=CheckoutStore(*shared),
            proposals=ProposalStore(*shared),
            names=NameStore(*shared),
            sealed=SealedStore(*shared),
            agents=AgentStore(*shared),
            tree=DelegationTree(*shared),
            vitals=VitalStore(*shared),
            subagents=SubagentStore(*shared),
        )


def name_store(url: str) -> str:
    """Name a database for people: its file, or its server and name without the password."""
    address = make_url(url)
    if address.get_backend_name() == "sqlite":
        return address.database or ""
    user, host, port = address.username, address.host, address.port
    shown = URL.create(POSTGRESQL, user, host=host, port=port, database=address.database)
    return shown.render_as_string()


def revision(url: str) -> str | None:
    """Return a database's migration; None if there is no database yet.

    Raises:
        StoreUnavailable: it cannot be read, or its tables do not fit this migration.
    """
    return None if _is_missing(url) else _look(url, _check_revision)


def was_cut_off(url: str) -> bool:
    """Tell whether an upgrade to this release was cut off, so that the next start does it again.

    Raises:
        StoreUnavailable: it cannot be read, or its tables do not fit its version.
    """
    return not _is_missing(url) and bool(_look(url, plan_undo))


def _check_revision(connection: Connection) -> str | None:
    found = revision_of(connection)
    if found == HEAD_REVISION:
        check_fit(connection)
    return found


def _look(url: str, function: Callable[[Connection], T]) -> T:
    database = _open_readonly(url)
    try:
        database.check()
        with database.engine.connect() as connection:
            return function(connection)
    except DatabaseError as error:
        raise StoreUnavailable(f"{name_store(url)} cannot be read: {error.orig}") from error
    finally:
        database.engine.dispose()


@contextmanager
def reading(url: str, guard: Guard | None = None) -> Iterator[Stores | None]:
    """Read from a database; None if there is none yet. Without a guard sealed values are masked.

    Raises:
        StoreUnavailable: it cannot be read, or belongs to another version.
    """
    found = revision(url)
    if found is None:
        yield None
        return
    if found != HEAD_REVISION:
        raise StoreUnavailable(
            f"it is at migration {found}, this version needs {HEAD_REVISION}. "
            "Run `agent-bridge serve` once"
        )
    database = _open_readonly(url)
    if guard is not None:
        put_on_guard(database.engine.dialect, guard)
    try:
        yield Stores.on(database, SystemClock().now)
    except DatabaseError as error:
        raise StoreUnavailable(f"{name_store(url)} cannot be read: {error.orig}") from error
    finally:
        database.engine.dispose()


def _is_missing(url: str) -> bool:
    address = make_url(url)
    return address.get_backend_name() == "sqlite" and not Path(address.database or "").exists()


def _open_readonly(url: str) -> Database:
    database = Database(url, readonly=True)
    # A write is refused instead of waiting for ever.
    database.writer.close()
    return database
