"""Addresses of clients: who counts as one client, and which are trusted proxies."""

from __future__ import annotations

import ipaddress

from dbcare.errors import InvalidValueError

IPV6_NETWORK_BITS = 64  # the smallest network that a provider hands out: one client has all of its addresses


def identify_client(address: str) -> str:
    """Return what counts as one client: an IPv4 address, or the network of an IPv6 address."""
    if ":" not in address:
        return address
    try:
        parsed = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.IPv6Network((parsed, IPV6_NETWORK_BITS), strict=False))


class TrustedProxies:
    """Addresses and networks, from a text such as "10.0.0.5,192.168.0.0/16"."""

    def __init__(self, text: str) -> None:
        self._networks = [_parse_network(part.strip()) for part in text.split(",") if part.strip()]

    def __contains__(self, address: str) -> bool:
        if not self._networks:
            return False
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._networks)


def _parse_network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise InvalidValueError(
            f"`trusted_proxies` must be addresses or networks such as 10.0.0.5,192.168.0.0/16 but got {text!r}."
        ) from None
