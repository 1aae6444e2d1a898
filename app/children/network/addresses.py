"""Tells internet addresses from those of this machine and its local networks."""

from __future__ import annotations

import ipaddress
import socket
from typing import Final

_GLOBAL_UNICAST: Final = ipaddress.IPv6Network("2000::/3")
"""All that was ever assigned; the rest of IPv6 is local or reserved."""
_NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")
_AZURE: Final = ipaddress.IPv4Address("168.63.129.16")
"""Azure's wire server: a public address by its number, which every machine there reaches at home.
https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16"""
_ANY_PORT: Final = 9


def is_public(address: str) -> bool:
    """Tell whether an address is global unicast; addresses that wrap another are unwrapped."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:  # also an address with a zone: those are link-local
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        is_local = parsed.is_multicast or parsed.is_reserved or parsed == _AZURE
        return parsed.is_global and not is_local
    if parsed.ipv4_mapped is not None:
        return is_public(str(parsed.ipv4_mapped))
    if parsed in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
    if parsed.sixtofour is not None or parsed.teredo is not None:
        return False
    return parsed in _GLOBAL_UNICAST and parsed.is_global


def is_own(address: str) -> bool:
    """Tell whether an address belongs to this machine, so that it would connect to itself."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
        parsed = parsed.ipv4_mapped
    if parsed.is_loopback or parsed.is_unspecified:
        return True
    family = socket.AF_INET if parsed.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as line:
            line.connect((str(parsed), _ANY_PORT))  # sends nothing
            return ipaddress.ip_address(line.getsockname()[0]) == parsed
    except OSError:
        return False
