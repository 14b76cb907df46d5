"""IP: addresses and networks of IP versions 4 and 6: 192.168.1.1, 10.0.0.0/8, 2001:db8::1.

The value is in the form of RFC 5952. Four numbers after a word such as 版本 are a version.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from string import hexdigits

from hanlattice.patterns.scan import BEFORE_VERSION, Found, Scan

FIRST = frozenset(hexdigits + ":")

_ADDRESS = re.compile(
    r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\.[0-9])"
    r"|(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{0,4}:?)[0-9A-Fa-f:]{2,39}+(?:(?:\.[0-9]{1,3}){3})?(?!\.?[0-9]))"
)
_PREFIX = re.compile(r"/[0-9]{1,3}(?![0-9])")


def parse(scan: Scan, i: int) -> Found | None:
    """The IP address or network at ``i``."""
    match = _ADDRESS.match(scan.text, i)
    if match is None or scan.continues(i) or scan.follows(i, BEFORE_VERSION):
        return None
    if ":" in match[0] and not _is_version_6(scan, i, match[0]):
        return None
    prefix = _PREFIX.match(scan.text, match.end())
    try:
        address = _written(ip_address(match[0]))
        if prefix is not None:
            network = ip_network(address + prefix[0], strict=False)
            return Found(prefix.end(), f"{address}/{network.prefixlen}")
    except ValueError:
        return None
    return Found(match.end(), address)


def _is_version_6(scan: Scan, i: int, address: str) -> bool:
    """Whether this is an address of version 6, and not a time, or names with :: between them as in C++."""
    if "::" not in address:
        return address.count(":") >= 6
    if scan[i - 1].isascii() and scan[i - 1].isalnum():
        return False
    groups = [group for group in address.split(":") if group]
    is_known = (
        address == "::1" or "." in address or (len(groups) > 0 and len(groups[0]) == 4 and not groups[0].isalpha())
    )
    return is_known or len(groups) > 2


def _written(address: IPv4Address | IPv6Address) -> str:
    """The form of RFC 5952, in which an IPv4 address mapped to IPv6 keeps its points."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address) if mapped is None else f"::ffff:{mapped}"
