"""Reads the settings once, checks them as a whole and freezes them.

Only this package reads the environment, and only in `from_process` and
`forget_process_secrets`.
"""

from __future__ import annotations

from app.config.agents import AgentConfig, AgentLimits
from app.config.cautions import Caution, cautions, describe_unserved
from app.config.configuration import Configuration, load
from app.config.fields import Account
from app.config.permissions import PermissionRule
from app.config.process import (
    BridgeSecrets,
    ensure_secrets,
    find_secret_key,
    forget_process_secrets,
    from_process,
    share_outbound,
)
from app.config.records import AgentRecord
from app.config.roster import AgentsSource, KnownAgent
from app.config.services import IdForm, KnownService, ServiceCredentials, ServiceSettings
from app.config.settings import Settings

__all__ = [
    "Account",
    "AgentConfig",
    "AgentLimits",
    "AgentRecord",
    "AgentsSource",
    "BridgeSecrets",
    "Caution",
    "Configuration",
    "IdForm",
    "KnownAgent",
    "KnownService",
    "PermissionRule",
    "ServiceCredentials",
    "ServiceSettings",
    "Settings",
    "cautions",
    "describe_unserved",
    "ensure_secrets",
    "find_secret_key",
    "forget_process_secrets",
    "from_process",
    "load",
    "share_outbound",
]
