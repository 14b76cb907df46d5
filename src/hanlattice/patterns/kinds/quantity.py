"""QUANTITY: a number with a unit of measure: 3.5公里, 120平方米, 25℃, 500 kg, 3到5米, 三斤二两.

The value is a decimal and the symbol of the unit: ``3.5 km``, ``25 °C``, ``3..5 m``. Units without a symbol in
common use keep their name: ``5 斤``, ``3 亩``. Counted things (3个, 5人) are not quantities.
"""

import re
from decimal import Decimal

from hanlattice.patterns import numerals
from hanlattice.patterns.numerals import SIGNS, Amount, amount, integer, second_number, signed, written
from hanlattice.patterns.scan import DIGITS, JOINTS, Found, Scan, Words

_NAMES = {
    "米": "m", "公里": "km", "千米": "km", "分米": "dm", "厘米": "cm", "公分": "cm", "毫米": "mm", "微米": "μm",
    "纳米": "nm", "英里": "mi", "海里": "nmi", "英尺": "ft", "英寸": "in", "光年": "ly", "丈": "丈", "尺": "尺",
    "寸": "寸",
    "里路": "里", "华里": "里", "千克": "kg", "公斤": "kg", "斤": "斤", "市斤": "斤", "两": "两", "克": "g",
    "毫克": "mg",
    "微克": "μg", "吨": "t", "克拉": "ct", "磅": "lb", "盎司": "oz", "升": "L", "毫升": "mL", "加仑": "gal",
    "桶": "桶",
    "立方米": "m³", "立方": "m³", "立方厘米": "cm³", "平方米": "m²", "平米": "m²", "平方公里": "km²",
    "平方千米": "km²",
    "平方厘米": "cm²", "公顷": "ha", "亩": "亩", "摄氏度": "°C", "华氏度": "°F", "度": "°",
    "公里每小时": "km/h", "千米每小时": "km/h", "米每秒": "m/s", "千瓦": "kW", "瓦": "W", "兆瓦": "MW",
    "千瓦时": "kWh", "千瓦·时": "kWh", "千瓦小时": "kWh", "度电": "kWh", "伏": "V", "伏特": "V", "毫安": "mA",
    "毫安时": "mAh", "赫兹": "Hz",
    "千卡": "kcal",
    "大卡": "kcal", "焦耳": "J", "千焦": "kJ", "帕": "Pa", "千帕": "kPa", "兆帕": "MPa", "像素": "px", "分贝": "dB",
    "马力": "hp", "摩尔": "mol", "毫米汞柱": "mmHg",
}  # fmt: skip
_SYMBOLS = {
    name.lower(): name
    for name in (
        "km", "cm", "mm", "nm", "kg", "mg", "g", "mL", "L", "kW", "kWh", "MWh", "GWh", "mAh", "mA", "V", "Hz",
        "GHz", "MHz", "kHz", "GB", "MB", "KB", "TB", "Mbps", "Gbps", "kcal", "kJ", "kPa", "MPa", "dB", "mmHg",
        "mmol", "m", "W", "μm", "μg", "μL", "N·m",
        "°C", "°F", "°", "m²", "m³", "km²", "cm²", "cm³", "hm²",
    )
} | {
    "m2": "m²", "m3": "m³", "km2": "km²", "cm2": "cm²", "cm3": "cm³", "hm2": "hm²", "㎡": "m²", "㎥": "m³",
    "㎢": "km²", "㎠": "cm²", "㎤": "cm³", "kw·h": "kWh", "ma·h": "mAh",
}  # fmt: skip
# Lower-case b is a bit, where the prefix is a capital letter.
_BITS = {name: name for name in ("Kb", "Mb", "Gb", "Tb")}
# By what another unit is counted: mg/dL, m/s², 3公里/小时, 7.5L/100km.
_PER = {
    "s": "s", "s2": "s²", "s²": "s²", "min": "min", "h": "h", "d": "d", "a": "a", "t": "t", "dl": "dL",
    "分钟": "min", "小时": "h", "100km": "100km", "100公里": "100km", "百公里": "100km", "100g": "100g",
    "100克": "100g", "100ml": "100mL", "100毫升": "100mL",
}  # fmt: skip
# These are also the beginning of other words: 3米/秒 has an end, 5吨/年轻人 has not.
_SHORT_TIMES = {"秒": "s", "分": "min", "时": "h", "天": "d", "日": "d", "年": "a"}
_UNITS = Words(_NAMES)
_CODES = Words(_SYMBOLS, ignore_case=True)
_BIT_CODES = Words(_BITS)
_DENOMINATORS = Words(_PER, ignore_case=True)

# What follows a word that looks like a unit, and makes it another word.
_OTHER_WORDS = (
    "米线", "米饭", "里长", "度假", "升为", "升任", "升至", "升级", "升学", "升高", "升到", "升华", "克隆", "克服",
    "尺度", "寸步", "伏击", "两个", "两人", "两岸", "两地", "两会", "两国", "两种", "两好友", "两步", "两知己",
    "两句", "两下", "桶装", "度过", "度春", "度蜜", "瓦解", "斤斤", "丈夫", "丈人",
)  # fmt: skip
_SMALL = {"斤": ("两", Decimal("0.1"))}
_HALF_OF_OTHERS = frozenset("个年天月日小夜价成径圆斤两")
_DECIMALS = (DIGITS | numerals.CHINESE_DIGITS.keys()) - {"两"}
# The units after which digits are decimals: the number is below the first, and there are up to so many digits.
_WITH_DECIMALS = {"米": (10, 2), "尺": (10, 1), "斤": (100, 1), "度": (100, 1)}
_AFTER_DECIMALS = JOINTS | frozenset("、。,.!?;:()” \n的高长宽深厚左上以多几出体了吧呢啊呀吗和与或") | {""}
_OF_MYRIADS = re.compile(
    "粉丝|跑分|额度|像素|播放|阅读|点赞|销量|月薪|年薪|存款|预算|房价|身价|[0-9]W[+个粉人像播次多元阅]"
)
_NEAR = 10  # characters beside a number with W or g
_NO_UNITS = ("G", "M", "v", "w")  # 5G is no mass, 5M no length
_LETTER = re.compile(r"\(?[A-Za-zμΩ]")
_AFTER_SHORT_TIME = re.compile(r"\Z|[^\u4e00-\u9fff]|[的以左至到增降提升减之为是]")
# Networks and memory: 2g to 6g, and powers of two.
_GENERATIONS = "(?:[2-6]|8|16|32|64|128|256|512)"
_GENERATION = re.compile(rf"(?<![0-9.~至到-]){_GENERATIONS}\Z")
_MASS = re.compile(
    rf"(?<![0-9.])(?!{_GENERATIONS}g)[0-9]+(?:\.[0-9]+)? ?(?:[mk]?g|m[lL]|[毫千]?克|毫升|公斤)(?![A-Za-z])"
)
_ZERO = Words({"零下": -1, "零上": 1})

FIRST = numerals.FIRST | frozenset("-+负零半")


def parse(scan: Scan, i: int) -> Found | None:
    """The quantity at ``i``, or the range of quantities."""
    if scan[i] == "半":
        return _half(scan, i)
    if scan[i - 1] == "/" and scan[i - 2] in DIGITS:  # 血压120/80mmHg
        return None
    start, sign = _sign(scan, i)
    number = _number(scan, i, start, sign) if start >= 0 else None
    if number is None or number.bare:
        return None
    unit = _unit_after(scan, i, number)
    if unit is None or not _is_unit(scan, start, number, unit):
        return None
    end, number = _with_smaller(scan, number, unit, sign)
    return _range(scan, number._replace(end=end), unit[1], sign)


def _half(scan: Scan, i: int) -> Found | None:
    """半斤, 半米."""
    if scan[i + 1] not in ("斤", "吨", "米", "升", "亩") or scan[i - 1] in ("一", "多", "大"):
        return None
    unit = _UNITS.at(scan, i + 1)
    assert unit is not None
    return Found(unit[0], f"0.5 {unit[1]}")


def _sign(scan: Scan, i: int) -> tuple[int, int]:
    """The start of the number after a sign, and the sign; -1 if there is a sign that is none."""
    zero = _ZERO.at(scan, i)
    if zero is not None:
        return scan.gap(zero[0]), zero[1]
    if scan[i] in ("-", "+") and (scan[i + 1] not in DIGITS or (scan[i - 1].isascii() and scan[i - 1].isalnum())):
        return -1, 0
    return (i + 1, SIGNS[scan[i]]) if scan[i] in SIGNS else (i, 0)


def _number(scan: Scan, i: int, start: int, sign: int) -> Amount | None:
    """The number or range of numbers after a sign. 零下 and 零上 are signs of both ends."""
    if _ZERO.at(scan, i) is None:
        return signed(scan, start, sign)
    number = scan.once(amount, start)
    return None if number is None else number.signed(sign)


def _unit_after(scan: Scan, i: int, number: Amount) -> tuple[int, str] | None:
    """The unit after the number of the quantity at ``i``. After 零下, 零上 and 负 only degrees are units."""
    unit = _unit(scan, scan.gap(number.end))
    is_zero = _ZERO.at(scan, i) is not None
    if unit is None or not (is_zero or scan[i] == "负"):
        return unit
    if unit[1] not in ("°", "°C", "°F"):
        return None
    return (unit[0], "°C") if is_zero and unit[1] == "°" else unit


def _unit(scan: Scan, i: int) -> tuple[int, str] | None:
    """The unit at ``i``, also one by another, such as μg/m³; none if it is by something unknown, as in 5mg/kcal."""
    found = None if scan.starts(i, *_OTHER_WORDS) > 0 else _one_unit(scan, i)
    if found is None:
        return None
    end, unit = found
    by = _denominator(scan, end + 1, unit) if scan[end] == "/" else None
    if by is not None:
        return by[0], f"{unit}/{by[1]}"
    if scan[end] in ("/", "·") and _LETTER.match(scan.text, end + 1) is not None:
        return None
    is_product = unit == "t" and scan.starts(end, "公里", "千米", "海里", "·公里") > 0  # 吨公里
    if is_product or scan[end] in ("²", "³") or _is_generation(scan, i, end):
        return None
    return end, unit


def _one_unit(scan: Scan, i: int) -> tuple[int, str] | None:
    """The unit at ``i`` that is not one by another."""
    units = (words.at(scan, i) for words in (_UNITS, _BIT_CODES, _CODES))
    found = next((unit for unit in units if unit is not None and not scan.cuts(unit[0])), None)
    if found is None or scan.text[i : found[0]] in _NO_UNITS:
        return None
    is_myriad = scan.text[i : found[0]] == "W" and _OF_MYRIADS.search(
        scan.text, max(0, i - _NEAR), found[0] + _NEAR
    )
    return None if is_myriad else found


def _is_generation(scan: Scan, i: int, end: int) -> bool:
    """Whether g is that of 4g网络 or 128g内存, where no other mass is near."""
    begin = max(0, i - _NEAR)
    if scan.text[i:end] != "g" or _GENERATION.search(scan.text, begin, i) is None:
        return False
    return _MASS.search(scan.text, begin, min(len(scan.text), end + _NEAR)) is None


def _denominator(scan: Scan, i: int, unit: str) -> tuple[int, str] | None:
    """The unit at ``i`` by which another one is counted."""
    short = _SHORT_TIMES.get(scan[i])
    found = _DENOMINATORS.at(scan, i) or _one_unit(scan, i)
    if found is None and short is not None and _AFTER_SHORT_TIME.match(scan.text, i + 1) is not None:
        return i + 1, short
    return None if found is None or scan.cuts(found[0]) or found[1] == f"100{unit}" else found


def _is_unit(scan: Scan, start: int, number: Amount, unit: tuple[int, str]) -> bool:
    """Whether an ambiguous unit is one here."""
    text = scan.text[start : number.end]
    if unit[1] in ("°", "L", "两", "升") and number.chinese and len(text) == 1 and scan[unit[0] - 1] in "度升两":
        return unit[1] == "L" or (unit[1] == "两" and text not in ("一", "两"))
    if unit[1] == "V" and text == "三" and scan[unit[0] - 1] == "伏":  # 三伏 are the hottest days
        return False
    return unit[1] != "两" or not number.chinese or text not in ("十", "百")


def _with_smaller(scan: Scan, number: Amount, unit: tuple[int, str], sign: int) -> tuple[int, Amount]:
    """What follows the unit and adds to the number: 三斤二两, 三斤半, 一米七五."""
    found = _smaller(scan, unit) or _half_of(scan, unit[0]) or _decimals(scan, number, unit)
    if found is None or number.low is None or number.low != number.high:
        return unit[0], number
    end, more = found
    total = number.low + (-more if sign < 0 else more)
    return end, number._replace(low=total, high=total)


def _smaller(scan: Scan, unit: tuple[int, str]) -> tuple[int, Decimal] | None:
    """The end and the size of a smaller unit: 二两 after 三斤."""
    smaller = _SMALL.get(unit[1])
    more = None if smaller is None else integer(scan, unit[0])
    if smaller is None or more is None or scan[more.end] != smaller[0]:
        return None
    return more.end + 1, more.value * smaller[1]


def _half_of(scan: Scan, i: int) -> tuple[int, Decimal] | None:
    """半 after the name of a unit: 三斤半."""
    is_half = scan[i] == "半" and not scan[i - 1].isascii() and scan[i + 1] not in _HALF_OF_OTHERS
    return (i + 1, Decimal("0.5")) if is_half else None


def _decimals(scan: Scan, number: Amount, unit: tuple[int, str]) -> tuple[int, Decimal] | None:
    """Digits after a unit, if nothing follows that they could count: 一米七五, 三斤二, 37度5."""
    name = scan.text[scan.gap(number.end) : unit[0]]
    limit, most = _WITH_DECIMALS.get(name, (0, 0))
    digits = integer(scan, unit[0])
    if digits is None or not most or number.low is None or abs(number.low) >= limit or number.low % 1:
        return None
    if len(digits.digits) > most or not _DECIMALS.issuperset(scan.text[unit[0] : digits.end]):
        return None
    has_point = scan[digits.end] == "." and scan[digits.end + 1] in DIGITS
    if has_point or scan[digits.end] not in _AFTER_DECIMALS:
        return None
    return digits.end, Decimal(f"0.{digits.digits}")


def _range(scan: Scan, first: Amount, unit: str, sign: int) -> Found:
    """The quantity, or the range if another of the same unit follows a joint, as in 3米至5米 and -3℃至5℃."""
    joint = scan.joint(first.end)
    zero = _ZERO.at(scan, joint)
    start, last_sign = second_number(scan, first.end, sign) if zero is None else (scan.gap(zero[0]), zero[1])
    last = signed(scan, start, last_sign) if start > 0 else None
    other = None if last is None else _unit_after(scan, joint, last)
    if last is not None and other is not None and other[1] == unit:
        end, last = _with_smaller(scan, last, other, last_sign)
        first = first.to(last._replace(end=end), descending=True) or first
    if first.low is None or first.high is None:
        return Found(first.end, None)
    low, high = (written(n) for n in sorted((first.low, first.high)))
    return Found(first.end, f"{low} {unit}" if low == high else f"{low}..{high} {unit}")
