"""Which addresses are on the internet, and which are this machine's or its neighbours'."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.children.network.dialing import is_own, is_public


@pytest.mark.parametrize("address", ["8.8.8.8", "93.184.215.14", "2606:4700:4700::1111"])
def test_addresses_on_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.0.1"),
        *("169.254.169.254", "100.64.0.1", "192.0.2.1", "198.18.0.1", "203.0.113.5"),
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "64:ff9b::a83f:8110",
        *("224.0.0.1", "240.0.0.1", "255.255.255.255"),
        *("::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "fe80::1"),
        *("fe80::1%eth0", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "2001:db8::1"),
        *("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::808:808", "100::1"),
        *("2002:7f00:1::", "2001:0:7f00:1::", "not an address", ""),
    ],
)
def test_everything_else_is_not(address: str) -> None:
    assert not is_public(address)


@given(st.ip_addresses(v=4))
def test_a_wrapped_address_is_what_it_wraps(address: object) -> None:
    assert is_public(f"::ffff:{address}") == is_public(str(address))


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "0.0.0.0"]
)
def test_the_addresses_of_this_machine_are_known(address: str) -> None:
    assert is_own(address)


def test_the_address_of_this_machine_in_its_network_is_its_own() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        try:
            line.connect(("198.51.100.1", 9))
        except OSError:
            pytest.skip("this machine is in no network")
        assert is_own(line.getsockname()[0])


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:4700:4700::1111", "nonsense", ""])
def test_other_addresses_are_not(address: str) -> None:
    assert not is_own(address)
