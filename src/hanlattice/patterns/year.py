"""Years in a text: counted, relative and of eras, with the parts that follow them; decades and centuries."""

import re
from datetime import MAXYEAR, MINYEAR
from typing import NamedTuple

from hanlattice.patterns import numerals
from hanlattice.patterns.calendar import UNKNOWN, Calendar, Dated, Fixed
from hanlattice.patterns.numerals import Integer, integer
from hanlattice.patterns.part_of_year import edge, inside_year, month_at, short_holiday
from hanlattice.patterns.scan import Scan, Words

PIVOT = 50
"""Two digits from here on are a year of the 20th century, below it of the 21st."""
_YEARS = Words(
    {
        "今年": 0,
        "本年": 0,
        "去年": -1,
        "上一年": -1,
        "明年": 1,
        "下一年": 1,
        "前年": -2,
        "后年": 2,
        "大前年": -3,
        "大后年": 3,
    }
)
# In normal form 乾 is 干.
_REIGNS = Words(
    {
        "民国": 1912, "顺治": 1644, "康熙": 1662, "雍正": 1723, "干隆": 1736, "嘉庆": 1796,
        "道光": 1821, "咸丰": 1851,
        "同治": 1862, "光绪": 1875, "宣统": 1909, "昭和": 1926, "平成": 1989, "令和": 2019,
    }
)  # fmt: skip
# Eras with their first year and their length.
_SHORT_REIGNS = Words(
    {
        "建安": (196, 25), "嘉禾": (232, 7), "太康": (280, 10), "永嘉": (307, 7), "武德": (618, 9),
        "贞观": (627, 23),
        "永徽": (650, 6), "开元": (713, 29), "天宝": (742, 15), "大历": (766, 14), "贞元": (785, 21),
        "元和": (806, 15),
        "景德": (1004, 4), "天圣": (1023, 10), "庆历": (1041, 8), "嘉佑": (1056, 8), "熙宁": (1068, 10),
        "元丰": (1078, 8), "元佑": (1086, 9), "政和": (1111, 8), "宣和": (1119, 7), "靖康": (1126, 2),
        "建炎": (1127, 4), "绍兴": (1131, 32), "淳熙": (1174, 16), "至元": (1264, 31), "洪武": (1368, 31),
        "永乐": (1403, 22), "宣德": (1426, 10), "正统": (1436, 14), "景泰": (1450, 8), "天顺": (1457, 8),
        "成化": (1465, 23), "弘治": (1488, 18), "正德": (1506, 16), "嘉靖": (1522, 45), "隆庆": (1567, 6),
        "万历": (1573, 48), "天启": (1621, 7), "崇祯": (1628, 17),
    }
)  # fmt: skip
_SHARED_NAME, _SHARED_YEARS = "至元", 6  # another era of this name, from 1335 on, had so many years
_CENTURIES = Words({"上世纪": 19, "上个世纪": 19, "本世纪": 20})
_NO_YEAR = (
    "级", "来", "前", "后", "以", "之", "内", "间", "历史", "多", "余", "龄", "期", "轻", "一遇",
    "过去", "的历史", "时间", "了",
)  # fmt: skip
# Before 84年 that are 84 years.
_LASTING = re.compile(
    "(?:建交|成立|建国|建党|建军|建校|建队|结婚|婚姻|[过逝]去|过|相隔|时隔|走过|历经|经历|经过|未来|达|满|近|约|超|每|活|僧腊|整整|足足"
    "|产权|期限|寿命)(?:了|已|近|约|为|有)?\\Z"
)
# Before and after 60年 that is 1960.
_IN_A_YEAR = re.compile("(?:[从自于]|在(?!位)|出?生于)\\Z")
_OF_A_YEAR = re.compile("出?生|版|届|[初底末春夏秋冬]|的?时候|那|[上下]半年")
_LONGEST_SIGN = 5  # characters before a year

FIRST = _YEARS.first | _REIGNS.first | _SHORT_REIGNS.first | _CENTURIES.first


def century_at(scan: Scan, i: int) -> Dated | None:
    """20世纪, 上世纪90年代, 80年代, 2010年代; 初 and 末 after them do not change the value."""
    century, end = None, i
    named = _CENTURIES.at(scan, i)
    number = None if named else integer(scan, i)
    if named is not None:
        end, century = named
    elif number is not None and scan.starts(scan.gap(number.end), "世纪") > 0 and 1 <= number.value <= 30:
        end, century = scan.gap(number.end) + 2, number.value - 1
    decade = integer(scan, end if century is None else scan.gap(end))
    if decade is not None and scan.starts(scan.gap(decade.end), "年代") > 0 and decade.value % 10 == 0:
        tens = decade.value // 10
        if century is None and decade.value < 100:
            century = 20 if tens < 2 else 19
        written = f"{tens:03}X" if century is None or decade.value > 99 else f"{century:02}{tens % 10}X"
        return Dated(edge(scan, scan.gap(decade.end) + 2), Fixed(written))
    return None if century is None else Dated(edge(scan, end), Fixed(f"{century:02}XX"))


def century_of_era(scan: Scan, i: int) -> Dated | None:
    """公元5世纪, and 公元前5世纪, which ISO 8601 cannot write."""
    before = scan.starts(i, "公元前")
    start = before if before > 0 else scan.starts(i, "公元")
    found = century_at(scan, start) if start > 0 else None
    return found._replace(when=UNKNOWN) if found is not None and before > 0 else found


class _Year(NamedTuple):
    """A year: ``known`` is False if it depends on a given day that is missing."""

    end: int
    year: int | None
    known: bool = True


def from_year(scan: Scan, i: int) -> Dated | None:
    """A year, alone or with what follows it: a month and a day, a quarter, a season, a holiday."""
    if scan.starts(i, "公元前") > 0:
        return year_before_zero(scan, i)
    year, number = _named_year(scan, i), None
    if year is None:
        number = integer(scan, i)
        year = None if number is None else _counted_year(scan, i, number)
    if year is None and (spelled := spelled_year(scan, i)) is not None:
        year = _Year(*spelled)
    if year is None:
        return None if number is None else _year_before_part(scan, number)
    of = scan[year.end] == "的"  # 去年的3月5日
    start = year.end + 1 if of else scan.gap(year.end)
    inside = inside_year(scan, start) or short_holiday(scan, start)
    if inside is not None and (not of or inside.end > year.end + 2):
        when = inside.when.in_year(year.year, year.known) if isinstance(inside.when, Calendar) else inside.when
        return Dated(inside.end, when)
    return Dated(edge(scan, year.end, "度", "年底", "年初", "年末"), Calendar(year.year, known=year.known))


def _year_before_part(scan: Scan, number: Integer) -> Dated | None:
    """2023上半年, 2022第一季度, 2021国庆节: a year without 年, before a part of it that is not a month."""
    if number.chinese or len(number.digits) != 4 or not 1900 <= number.value < 2100:
        return None
    start = scan.gap(number.end)
    part = None if month_at(scan, start) is not None else inside_year(scan, start) or short_holiday(scan, start)
    if part is None or not isinstance(part.when, Calendar) or part.end < start + 2:
        return None
    return Dated(part.end, part.when.in_year(number.value))


def year_before_zero(scan: Scan, i: int) -> Dated | None:
    """公元前221年, and 前206年 where it ends a range of such years."""
    start = scan.starts(i, "公元前", "前")
    number = _year_number(scan, start) if start > 0 else None
    if number is None:
        return None
    before_zero = number[1] - 1  # ISO 8601 counts the year 0, which is 1 BC
    return Dated(number[0], Fixed(f"{'-' if before_zero > 0 else ''}{before_zero:04}"))


def _year_number(scan: Scan, i: int) -> tuple[int, int] | None:
    """The end and the value of a year from 1 to 9999 of an era: 618年, 二百年, 六一八年."""
    start = scan.gap(i)
    number = integer(scan, start)
    if number is not None and scan[scan.gap(number.end)] == "年":
        end, value = scan.gap(number.end), number.value
    else:
        amount = scan.once(numerals.single, start)
        if amount is None or amount.low is None or amount.low != amount.high or amount.low % 1:
            return None
        end, value = scan.gap(amount.end), int(amount.low)
    return (end + 1, value) if scan[end] == "年" and 0 < value < 10_000 else None


def _named_year(scan: Scan, i: int) -> _Year | None:
    """今年, 公元618年, 康熙六十一年, 民国元年."""
    relative = _YEARS.at(scan, i)
    if relative is not None and scan[i - 1] in ("以", "之") and scan[i] == "前":  # 以前年度
        return None
    if relative is not None:
        year = None if scan.today is None else scan.today.year + relative[1]
        is_known = year is not None and MINYEAR <= year <= MAXYEAR
        return _Year(relative[0], year if is_known else None, is_known)
    reign = _REIGNS.at(scan, i) or _short_reign(scan, i)
    start, zero = (reign[0], reign[1] - 1) if reign is not None else (scan.starts(i, "公元"), 0)
    if start < 0:
        return None
    if scan.starts(start, "元年") > 0 and reign is not None and scan.starts(i, _SHARED_NAME) > 0:
        return _Year(start + 2, None, known=False)
    if scan.starts(start, "元年") > 0 and reign is not None:
        return _Year(start + 2, zero + 1)
    number = _year_number(scan, start)
    if number is not None and number[1] <= _SHARED_YEARS and scan.starts(i, _SHARED_NAME) > 0:
        return _Year(number[0], None, known=False)
    return None if number is None or zero + number[1] > MAXYEAR else _Year(number[0], zero + number[1])


def _short_reign(scan: Scan, i: int) -> tuple[int, int] | None:
    """The end and the first year of an era whose name is also another word: a year of the era has to follow it."""
    reign = _SHORT_REIGNS.at(scan, i)
    if reign is None:
        return None
    end, (first, length) = reign
    number = integer(scan, end)
    is_counted = number is not None and number.chinese and 1 <= number.value <= length and scan[number.end] == "年"
    return (end, first) if is_counted or scan.starts(end, "元年") > 0 else None


def _counted_year(scan: Scan, i: int, number: Integer) -> _Year | None:
    """2024年, 二〇二四年, and 98年 or 08年 where it is not a duration."""
    end = scan.gap(number.end)
    if scan[end] != "年" or scan[i - 1] == "第" or scan[end + 1] in ("级", "代"):
        return None
    if number.chinese and not _by_digits(scan, i, number):
        return None
    if len(number.digits) == 4 and 1000 <= number.value < 3000:
        return _Year(end + 1, number.value)
    if len(number.digits) != 2 or not _is_a_year(scan, i, number, end + 1):
        return None
    return _Year(end + 1, number.value + (1900 if number.value >= PIVOT else 2000))


def _is_a_year(scan: Scan, i: int, number: Integer, end: int) -> bool:
    """Whether two digits with 年, which ends at ``end``, are a year: 98年, 08年; not 建交58年 or 84年过去了.

    Without a sign, 50年 to 80年 are durations, as they are in most texts.
    """
    if month_at(scan, end) is not None:
        return True
    is_estimate = number.chinese and number.digits[1] == str(int(number.digits[0]) + 1)
    if 10 <= number.value < PIVOT or is_estimate or scan.starts(end, *_NO_YEAR) > 0:
        return False
    begin = max(0, i - _LONGEST_SIGN)
    if number.value >= PIVOT and _LASTING.search(scan.text, begin, i) is not None:
        return False
    if number.value % 10 or number.value in (0, 90):
        return True
    if _IN_A_YEAR.search(scan.text, begin, i) is not None or _OF_A_YEAR.match(scan.text, end) is not None:
        return True
    joint = scan.joint(end)
    return joint > 0 and (last := integer(scan, joint)) is not None and scan[last.end] == "年"


def spelled_year(scan: Scan, i: int) -> tuple[int, int] | None:
    """The end and the value of a year from 1901 to 2099 in Chinese numerals with 千, such as 两千零八年.

    两千年 is a length, and so is what 前 or 历史 follows.
    """
    number = scan.once(numerals.single, i) if scan[i] in "一二两" and scan[i + 1] == "千" else None
    if number is None or number.low is None or number.low != number.high or scan[number.end] != "年":
        return None
    if not 1900 < number.low < 2100 or number.low % 100 == 0 or scan[number.end - 1] in numerals.ABOUT:
        return None
    is_length = _LASTING.search(scan.text, max(0, i - _LONGEST_SIGN), i) is not None
    if is_length or scan.starts(number.end + 1, *_NO_YEAR) > 0:
        return None
    return number.end + 1, int(number.low)


def _by_digits(scan: Scan, i: int, number: Integer) -> bool:
    """Whether a Chinese numeral is written digit by digit, as 二〇二四 and 九八 are and 五十 is not."""
    return numerals.CHINESE_DIGITS.keys() >= set(scan.text[i : number.end])
