"""Opens all ports of the store on one database."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.core.delegation.store import DelegationStore
from app.core.delegation.tree import DelegationTree
from app.core.erasure.ports import PersonStore, PurgeStore
from app.core.keys import AreaOf, no_area
from app.core.schedules.store import ScheduleStore
from app.core.stores.asks import AskStore
from app.core.stores.conversations import ConversationStore
from app.core.stores.grants import GrantStore
from app.core.stores.housekeeping import LoginStore, ProcessStore, SealedStore
from app.core.stores.inbox import DeliveryStore, IntakeStore
from app.core.stores.memory import MemoryStore
from app.core.stores.repositories import CheckoutStore, NameStore, ProposalStore
from app.core.stores.sessions import PostStore, SessionStore, TranscriptStore, TurnStore
from app.core.stores.spending import SpendingStore
from app.core.suspension import SuspensionStore
from app.core.together.store import GroupStore, ReviewStore
from app.core.vitals import VitalStore
from app.store.agents import AgentRows
from app.store.checkouts import CheckoutRows
from app.store.conversations import ConversationRows
from app.store.database import Database
from app.store.decisions import Decisions
from app.store.delegations import DelegationRows
from app.store.grants import GrantRows
from app.store.groups import GroupRows
from app.store.inbox import Deliveries
from app.store.ledger import Asks
from app.store.logins import Logins
from app.store.memory import MemoryRows
from app.store.names import Names
from app.store.people import PersonRows
from app.store.posts import Posts
from app.store.proposals import ProposalRows
from app.store.purging import PurgeRows
from app.store.reviews import ReviewRows
from app.store.schedules import ScheduleRows
from app.store.sealed import SealedRows
from app.store.sessions import Processes, Sessions
from app.store.spending import SpendingRows
from app.store.suspensions import SuspensionRows
from app.store.transcript import Transcript
from app.store.tree import Tree
from app.store.turns import Turns
from app.store.vitals import VitalRows


@dataclass(frozen=True, slots=True)
class Stores:
    """The store, by port."""

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
    agents: AgentRows
    memory: MemoryStore
    schedules: ScheduleStore
    reviews: ReviewStore
    groups: GroupStore
    delegations: DelegationStore
    tree: DelegationTree
    vitals: VitalStore
    purges: PurgeStore
    spending: SpendingStore
    people: PersonStore
    suspensions: SuspensionStore

    @classmethod
    def on(cls, database: Database, now: Callable[[], float], area_of: AreaOf = no_area) -> Stores:
        """Open every port on one database."""
        return cls(
            deliveries=Deliveries(database),
            decisions=Decisions(database, now, area_of),
            sessions=Sessions(database, now, area_of),
            spending=SpendingRows(database, area_of),
            conversations=ConversationRows(database, now),
            turns=Turns(database, now),
            transcript=Transcript(database, now),
            asks=Asks(database, now, area_of),
            grants=GrantRows(database, now),
            posts=Posts(database, now),
            processes=Processes(database),
            logins=Logins(database, now),
            checkouts=CheckoutRows(database),
            proposals=ProposalRows(database, now),
            names=Names(database),
            sealed=SealedRows(database, now),
            agents=AgentRows(database, now),
            memory=MemoryRows(database, now),
            schedules=ScheduleRows(database, now),
            reviews=ReviewRows(database, now),
            groups=GroupRows(database, now),
            delegations=DelegationRows(database, now),
            tree=Tree(database, now),
            vitals=VitalRows(database, now),
            purges=PurgeRows(database, now),
            people=PersonRows(database, now),
            suspensions=SuspensionRows(database, now),
        )
