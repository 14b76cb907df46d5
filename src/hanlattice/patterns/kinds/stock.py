"""STOCK: codes of listed shares: 600519.SH, SZ000858, 00700.HK, NASDAQ:AAPL, AAPL.US, 贵州茅台（600519）.

The value is the code and its exchange: ``600519.SH``, ``00700.HK``, ``NASDAQ:AAPL``. Six digits alone are a code
only in brackets after a name, or after a word such as 股票代码; their first digits give the exchange.
"""

import re
from string import ascii_letters

from hanlattice.patterns.scan import DIGITS, Found, Scan

FIRST = DIGITS | frozenset(ascii_letters)

# One to three digits with .hk may be a domain.
_AFTER = re.compile(r"([0-9]{6})\.(SH|SZ|BJ)|([0-9]{4,5}(?=\.HK)|[0-9]{1,3}(?=\.(?-i:HK)))\.(HK)", re.IGNORECASE)
_BEFORE = re.compile(r"(SH|SZ|BJ)\.?([0-9]{6})|(HK)\.?([0-9]{5})", re.IGNORECASE)
_ABROAD = re.compile(r"(NASDAQ|NYSE|AMEX) ?: ?([A-Z]{1,5}(?:\.[A-Z])?)")
# AAPL.US, and as agencies write them AAPL.O (NASDAQ) and BABA.N (NYSE). One letter with .N is mostly an initial.
_TICKER = re.compile(r"([A-Z]{1,5})\.US(?![A-Za-z0-9./-])|([A-Z]{2,5})\.([NO])(?![A-Za-z0-9.])")
_OF_SUFFIX = {"N": "NYSE", "O": "NASDAQ"}
_CODE = re.compile(r"[0-9]{6}(?![0-9])")
_WORDS = ("股票代码", "证券代码", "股票代号", "a股代码", "代码")
_EXCHANGES = (("SH", ("60", "68", "90")), ("SZ", ("00", "30", "20")), ("BJ", ("43", "83", "87", "88", "92")))


def parse(scan: Scan, i: int) -> Found | None:
    """The stock code at ``i``."""
    match = _AFTER.match(scan.text, i)
    if match is not None:
        code, exchange = (match[1], match[2]) if match[1] else (match[3].zfill(5), match[4])
        return Found(match.end(), f"{code}.{exchange.upper()}")
    match = _BEFORE.match(scan.text, i)
    if match is not None:
        code, exchange = (match[2], match[1]) if match[1] else (match[4], match[3])
        return Found(match.end(), f"{code}.{exchange.upper()}")
    match = _ABROAD.match(scan.text, i)
    if match is not None:
        return Found(match.end(), f"{match[1]}:{match[2]}")
    match = _TICKER.match(scan.text, i) if scan[i - 1] != "." else None
    if match is not None:
        return Found(match.end(), match[0] if match[1] else f"{_OF_SUFFIX[match[3]]}:{match[2]}")
    return _digits(scan, i)


def _digits(scan: Scan, i: int) -> Found | None:
    match = _CODE.match(scan.text, i)
    if match is None:
        return None
    in_brackets = scan[i - 1] == "(" and scan[match.end()] == ")" and scan[i - 2] > "\u3000"
    exchange = next((name for name, starts in _EXCHANGES if match[0].startswith(starts)), None)
    if exchange is None or not (in_brackets or scan.follows(i, _WORDS)):
        return None
    return Found(match.end(), f"{match[0]}.{exchange}")
