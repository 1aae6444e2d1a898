"""Has one agent ask another one, without an agent that really does."""

from __future__ import annotations

from app.features.delegation.store import DelegationStore
from app.model.delegation import Delegation, DelegationLimits, NewDelegation
from app.model.types import Speaker, TurnRef
from app.store.stores import Stores

ADA = Speaker("ada", "Ada", "person")


async def ask_agent(
    stores: Stores, caller: TurnRef, agent: str, task: str, *, name: str = "Claude"
) -> Delegation:
    """Let a running turn ask an agent; `name` is what people call the one that asks."""
    asker = Speaker("claude", name, "agent")
    new = NewDelegation("message", agent, caller.session, caller.turn, task, ADA, speaker=asker)
    begun = await stores.open(DelegationStore).begin(new, DelegationLimits(depth=3))
    assert begun.delegation is not None
    return begun.delegation
