"""MONEY: 3500元, 1.2亿美元, ￥99.5, 三块五, 5元3角, 壹万贰仟元整, HK$88.

The value is a decimal and the ISO 4217 code of the currency: ``3500 CNY``; ``3000..5000 CNY`` for a range. ¥ is
read as CNY and $ as USD. 余, 多 and 上 do not change it; 几 and 数 leave it open.
"""

import re
from decimal import Decimal

from hanlattice.patterns import numerals
from hanlattice.patterns.numerals import CHINESE_DIGITS, Amount, second_number, signed, single, written
from hanlattice.patterns.scan import DIGITS, Found, Scan, Words

_YUAN = "CNY"
_CURRENCIES = Words(
    {
        "元": _YUAN, "圆": _YUAN, "块钱": _YUAN, "块": _YUAN, "人民币": _YUAN, "美元": "USD", "美金": "USD",
        "欧元": "EUR",
        "英镑": "GBP", "日元": "JPY", "日圆": "JPY", "港元": "HKD", "港币": "HKD", "新台币": "TWD", "台币": "TWD",
        "韩元": "KRW", "卢布": "RUB", "澳元": "AUD", "加元": "CAD", "瑞士法郎": "CHF", "泰铢": "THB", "卢比": "INR",
        "印度卢比": "INR", "新加坡元": "SGD", "新元": "SGD", "澳门元": "MOP", "澳门币": "MOP", "瑞典克朗": "SEK",
        "挪威克朗": "NOK", "丹麦克朗": "DKK", "越南盾": "VND", "印尼盾": "IDR", "马来西亚林吉特": "MYR",
        "巴西雷亚尔": "BRL",
        "土耳其里拉": "TRY", "南非兰特": "ZAR", "墨西哥比索": "MXN", "菲律宾比索": "PHP", "迪拉姆": "AED",
        "新西兰元": "NZD",
    }
)  # fmt: skip
_UNNAMED = ("元", "圆", "块钱", "块")  # also of other currencies, if one is named before the number
_SYMBOLS = Words(
    {
        "¥": _YUAN, "人民币": _YUAN, "$": "USD", "US$": "USD", "HK$": "HKD", "NT$": "TWD", "A$": "AUD", "C$": "CAD",
        "S$": "SGD", "€": "EUR", "£": "GBP", "₩": "KRW", "₽": "RUB", "₹": "INR", "฿": "THB", "美元": "USD",
        "港币": "HKD",
        "RMB": _YUAN, "CNY": _YUAN, "CN¥": _YUAN, "USD": "USD", "EUR": "EUR", "GBP": "GBP", "JPY": "JPY",
        "HKD": "HKD",
        "TWD": "TWD", "KRW": "KRW", "SGD": "SGD", "AUD": "AUD", "CAD": "CAD", "CHF": "CHF",
    }
    | {name: code for name, code in _CURRENCIES.table.items() if name not in _UNNAMED},
    ignore_case=True,
)  # fmt: skip
_CODES = Words({code: code for code in _SYMBOLS.table.values()} | {"RMB": _YUAN}, ignore_case=True)
_SIZES = Words({"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}, ignore_case=True)
_PARTS = (("角", "毛"), ("分",))
_NUMERALS = DIGITS | CHINESE_DIGITS.keys()
_FRACTIONS = (Decimal("0.1"), Decimal("0.01"))

# 块, 毛 and 角 are money before 钱 and before these; elsewhere they are pieces, hairs and corners.
_AFTER_MONEY = frozenset("，。！？；,.!?;:)、”」 \n的了吧呢吗啊呀就才都也没不多左买卖") | {""}
_PIECES = frozenset("斤个只瓶张本条份碗盒包袋人天次位把台杯件支根克吨")  # after 一: what a price is for
_NO_SIGN_AFTER = frozenset("减欠抱担背肩胜")  # 减负100元
_ZEROS = frozenset("零〇")
_NOT_MONEY = frozenset("年月日号天周点时个次倍期家种位名成%")
_NOT_YUAN = (
    "元二次",
    "元一次",
    "元论",
    "元里",
    "元素",
    "元件",
    "元首",
    "元旦",
    "元音",
    "元方程",
    "元户",
    "元宵",
    "元宇宙",
    "元老",
)
# 月薪15k, 年薪20-30w: k and w count thousands and myriads after a word for income.
_INCOME = re.compile(
    "(?:薪资?|工资|收入|[月年]入|存款)(?:大约|约|近|只有|不到|超过|过|达到?|是|为|有|才|仅)? ?:? ?\\Z"
)
_IN_THOUSANDS = re.compile(
    r"([0-9]{1,4}(?:\.[0-9]{1,2})?)([kw]?)(?:[-~至到]([0-9]{1,4}(?:\.[0-9]{1,2})?)([kw]))?"
    "(?![A-Za-z0-9.]| ?[美日港欧])",
    re.IGNORECASE,
)
_THOUSANDS = {"k": Decimal(1000), "w": Decimal(10_000)}
_LONGEST_INCOME = 8  # characters before an amount

FIRST = numerals.FIRST | _SYMBOLS.first | frozenset("-负")


def parse(scan: Scan, i: int) -> Found | None:
    """The amount of money at ``i``, or the range of amounts."""
    sign = -1 if scan[i] in ("-", "负") else 0
    if sign and scan[i] == "负" and scan[i - 1] in _NO_SIGN_AFTER:
        return None
    if sign and scan[i - 1].isascii() and scan[i - 1] not in ("", " ", ":", "("):
        return None
    first = _one(scan, i + abs(sign), sign)
    if first is None:
        return _in_thousands(scan, i) if scan[i] in DIGITS else None
    money, currency = first
    joint, last_sign = second_number(scan, money.end, sign)
    last = _one(scan, joint, last_sign) if joint > 0 and money.low == money.high else None
    if last is None or last[1] != currency:
        return _as_found(money, currency)
    return _as_found(money.to(last[0], descending=bool(last_sign)) or money, currency)


def _as_found(money: Amount, currency: str) -> Found:
    if money.low is None or money.high is None:
        return Found(money.end, None)
    low, high = sorted((money.low, money.high))
    number = written(low) if low == high else f"{written(low)}..{written(high)}"
    return Found(money.end, f"{number} {currency}")


def _in_thousands(scan: Scan, i: int) -> Found | None:
    """15k and 20-30w after a word for income."""
    match = _IN_THOUSANDS.match(scan.text, i)
    unit = None if match is None else (match[4] or match[2]).lower()
    if match is None or not unit or _INCOME.search(scan.text, max(0, i - _LONGEST_INCOME), i) is None:
        return None
    low = high = Decimal(match[1]) * _THOUSANDS[match[2].lower() or unit]
    if match[3]:
        high = Decimal(match[3]) * _THOUSANDS[unit]
    return _as_found(Amount(match.end(), low.normalize(), high.normalize()), _YUAN)


def _one(scan: Scan, i: int, sign: int) -> tuple[Amount, str] | None:
    symbol = _SYMBOLS.at(scan, i)
    if symbol is not None:
        number = _in_words(scan, signed(scan, scan.gap(symbol[0]), sign))
        unit = 0 if number is None else scan.gap(number.end)
        if number is None or (number.chinese and not _CURRENCIES.at(scan, unit)):
            return None
        if not scan[symbol[0] - 1].isascii() and scan[unit] in _NOT_MONEY:  # 日元3月份
            return None
        counted = _counted(scan, scan.gap(symbol[0]), sign)
        is_named = scan.starts(unit, *_UNNAMED) > 0
        return (counted[0], symbol[1]) if counted and (is_named or counted[1] == symbol[1]) else (number, symbol[1])
    return _counted(scan, i, sign)


def _in_words(scan: Scan, number: Amount | None) -> Amount | None:
    """The number with an English word for its size, as in $3.5 million."""
    size = None if number is None else _SIZES.at(scan, scan.gap(number.end))
    if number is None or size is None or scan.cuts(size[0]):
        return number
    return number.times(Decimal(size[1]))._replace(end=size[0])


def _counted(scan: Scan, i: int, sign: int) -> tuple[Amount, str] | None:
    """A number with a currency after it: 3500元, 三块五, 五毛, 100 USD."""
    number = signed(scan, i, sign)
    if number is None:
        return None
    unit = scan.gap(number.end)
    code = _CODES.at(scan, unit)
    if code is not None:
        return number._replace(end=code[0]), code[1]
    if scan[unit] in ("角", "毛", "分"):
        coins = _small_change(scan, i, number)
        return None if coins is None else (coins[0].signed(sign), coins[1])
    found = _CURRENCIES.at(scan, unit)
    if found is None or scan.starts(unit, *_NOT_YUAN) > 0 or (number.bare and scan.text[i : number.end] in "亿万"):
        return None
    end, currency = found
    if currency != _YUAN or scan[unit] == "人":
        return number._replace(end=end), currency
    end, change = _change(scan, end)
    if scan[unit] == "块" and scan.text[unit:end] == "块" and not _is_money(scan, i, unit):
        return None
    if change and number.low is not None and number.low == number.high:
        total = number.low + (-change if sign < 0 else change)
        number = number._replace(low=total, high=total)
    return number._replace(end=_suffix(scan, end)), currency


def _is_money(scan: Scan, i: int, unit: int) -> bool:
    """Whether 块 is money though no 钱 follows it."""
    return _ends_a_price(scan, unit + 1) and scan.text[i:unit] not in ("一", "1")


def _change(scan: Scan, i: int) -> tuple[int, Decimal]:
    """What follows 元 or 块: 3角, 三毛二分, 零5分, 五 (after 块), 零五, 八毛五."""
    total, end = Decimal(0), i
    for names, size in zip(_PARTS, _FRACTIONS, strict=True):
        start = end + 1 if scan[end] in _ZEROS else end
        if scan[end] == " " and scan[scan.gap(end + 2)] in names:  # 3 元 5 角
            start = end + 1
        digit = _digit(scan, start)
        if digit is None:
            break
        if scan[unit := scan.gap(start + 1)] in names:
            total += digit * size
            end = unit + 1
        elif (bare := _size_without_unit(scan, start)) is not None:
            return start + 1, total + digit * bare
        elif scan[start + 1] != "分":
            break
    return end, total


def _digit(scan: Scan, i: int) -> int | None:
    """The digit at ``i``, alone; None for the number of pieces in 六块一斤."""
    if _is_piece(scan, i) or (scan[i + 1] in _NUMERALS and not _is_piece(scan, i + 1)):
        return None
    digit = CHINESE_DIGITS.get(scan[i], scan[i])
    return int(digit) if digit in DIGITS else None


def _size_without_unit(scan: Scan, i: int) -> Decimal | None:
    """What a digit without a unit counts: 角 after 块, 分 after 毛 and after 块零; None for another number."""
    if scan[i] == "两":
        return None
    if scan[i - 1] == "块":
        is_price = scan[i + 1] not in _NUMERALS or _is_piece(scan, i + 1)
        return _FRACTIONS[0] if is_price else None
    is_fen = scan[i - 1] in _PARTS[0] or (scan[i - 1] in _ZEROS and scan[i - 2] == "块")
    return _FRACTIONS[1] if is_fen and _ends_a_price(scan, i + 1) else None


def _ends_a_price(scan: Scan, i: int) -> bool:
    return scan[i] in _AFTER_MONEY or _is_piece(scan, i)


def _is_piece(scan: Scan, i: int) -> bool:
    """Whether this is what a price is for: 一斤, 1个."""
    return scan[i] in ("一", "1") and scan[i + 1] in _PIECES


def _small_change(scan: Scan, i: int, number: Amount) -> tuple[Amount, str] | None:
    """五毛, 八角钱, 3角5分, 5分钱, 八毛五."""
    number = number if number.low != number.high else scan.once(single, i) or number
    name = scan[scan.gap(number.end)]
    end = scan.gap(number.end) + 1
    total = number.times(Decimal("0.01") if name == "分" else Decimal("0.1"))
    fen = _digit(scan, end) if name != "分" and total.low is not None and total.low == total.high else None
    if fen is not None and total.low is not None:
        has_unit = scan[end + 1] == "分"
        if has_unit or (name == "毛" and _ends_a_price(scan, end + 1)):
            more = total.low + fen * _FRACTIONS[1]
            return Amount(_suffix(scan, end + 2) if has_unit else end + 1, more, more), _YUAN
    if scan[end] == "钱":
        return total._replace(end=end + 1), _YUAN
    return (total._replace(end=end), _YUAN) if name == "毛" and _ends_a_price(scan, end) else None


def _suffix(scan: Scan, i: int) -> int:
    """The position after 钱, 整, 正 or 人民币."""
    end = max(i, scan.starts(i, "钱", "整", "正"))
    return max(end, scan.starts(end, "人民币"))
