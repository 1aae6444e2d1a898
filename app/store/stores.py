"""Opens every store of the pipe on one database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from app.model.keys import AreaOf, no_area
from app.store.agents import AgentStore
from app.store.checkouts import CheckoutStore
from app.store.conversations import ConversationStore
from app.store.database import Database
from app.store.decisions import IntakeStore
from app.store.delegations import DelegationStore
from app.store.grants import GrantStore
from app.store.inbox import DeliveryStore
from app.store.ledger import AskStore
from app.store.logins import LoginStore
from app.store.names import NameStore
from app.store.posts import PostStore
from app.store.proposals import ProposalStore
from app.store.sealed import SealedStore
from app.store.sessions import ProcessStore, SessionStore
from app.store.spending import SpendingStore
from app.store.transcript import TranscriptStore
from app.store.tree import DelegationTree
from app.store.turns import TurnStore
from app.store.vitals import VitalStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stores:
    """The store of the pipe; features build theirs on the same database."""

    database: Database
    now: Callable[[], float]
    deliveries: DeliveryStore
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
    checkouts: CheckoutStore
    proposals: ProposalStore
    names: NameStore
    sealed: SealedStore
    agents: AgentStore
    delegations: DelegationStore
    tree: DelegationTree
    vitals: VitalStore
    spending: SpendingStore

    def open(self, kind: Callable[[Database, Callable[[], float]], T]) -> T:
        """Open the store of a feature on the same database."""
        return kind(self.database, self.now)

    @classmethod
    def on(cls, database: Database, now: Callable[[], float], area_of: AreaOf = no_area) -> Stores:
        """Open every store on one database."""
        return cls(
            database=database,
            now=now,
            deliveries=DeliveryStore(database),
            decisions=IntakeStore(database, now, area_of),
            sessions=SessionStore(database, now, area_of),
            spending=SpendingStore(database, area_of),
            conversations=ConversationStore(database),
            turns=TurnStore(database, now),
            transcript=TranscriptStore(database, now),
            asks=AskStore(database, now, area_of),
            grants=GrantStore(database, now),
            posts=PostStore(database, now),
            processes=ProcessStore(database),
            logins=LoginStore(database, now),
            checkouts=CheckoutStore(database),
            proposals=ProposalStore(database, now),
            names=NameStore(database),
            sealed=SealedStore(database, now),
            agents=AgentStore(database, now),
            delegations=DelegationStore(database, now),
            tree=DelegationTree(database, now),
            vitals=VitalStore(database, now),
        )
