"""IP: addresses and networks of IP versions 4 and 6: 192.168.1.1, 10.0.0.0/8, 2001:db8::1.

The value is in the form of RFC 5952. Four numbers after a word such as 版本 are a version.
"""

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from string import hexdigits

from hanlattice.patterns.scan import Found, Scan

FIRST = frozenset(hexdigits + ":")

_ADDRESS = re.compile(
    r"(?:[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?!\.[0-9])"
    r"|(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f:]{0,4}:?)[0-9A-Fa-f:]{2,39}+(?:(?:\.[0-9]{1,3}){3})?(?!\.?[0-9]))"
)
_PREFIX = re.compile(r"/[0-9]{1,3}(?![0-9])")
_BEFORE_VERSION = ("版本", "版本号", "version", "版", "v", "ver")


def parse(scan: Scan, i: int) -> Found | None:
    """The IP address or network at ``i``."""
    match = _ADDRESS.match(scan.text, i)
    if match is None or scan.continues(i) or scan.follows(i, _BEFORE_VERSION):
        return None
    if ":" in match[0] and (("::" not in match[0] and match[0].count(":") < 6) or match[0] == "::"):
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


def _written(address: IPv4Address | IPv6Address) -> str:
    """The form of RFC 5952, in which an IPv4 address mapped to IPv6 keeps its points."""
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address) if mapped is None else f"::ffff:{mapped}"
