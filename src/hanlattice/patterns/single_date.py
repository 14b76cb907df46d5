"""Single dates in a text: days, weeks, months, quarters, years, decades and centuries, absolute or relative."""

import re
from datetime import MAXYEAR, MINYEAR
from typing import NamedTuple

from hanlattice.patterns import numerals
from hanlattice.patterns.calendar import (
    UNKNOWN,
    Calendar,
    Dated,
    Fixed,
    Week,
    When,
    days_after,
    months_after,
    week,
)
from hanlattice.patterns.kinds import duration
from hanlattice.patterns.numerals import Integer, integer
from hanlattice.patterns.scan import DIGITS, Scan, Words

PIVOT = 50
"""Two digits from here on are a year of the 20th century, below it of the 21st."""

_NUMERIC = re.compile(r"([12][0-9]{3})([-/.])([0-9]{1,2})\2([0-9]{1,2})(?![0-9]|\2[0-9])")
_DAYS = Words(
    {
        "今天": 0,
        "今日": 0,
        "明天": 1,
        "明日": 1,
        "后天": 2,
        "大后天": 3,
        "昨天": -1,
        "昨日": -1,
        "前天": -2,
        "大前天": -3,
    }
)
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
_STEPS = Words({"上上": -2, "上": -1, "上一": -1, "这": 0, "这一": 0, "本": 0, "下": 1, "下一": 1, "下下": 2})
_WEEKDAYS = dict(zip("一二三四五六日天", (1, 2, 3, 4, 5, 6, 7, 7), strict=True))
_SEASONS = Words(
    {
        name + end: code
        for name, code in zip("春夏秋冬", ("SP", "SU", "FA", "WI"), strict=True)
        for end in ("季", "天", "")
    }
)
_QUARTERS = dict(zip("一二三四1234", "12341234", strict=True))
_FIRST_QUARTERS = Words(
    {f"前{n}季度": part for n, part in zip("两二三23", ("Q1/Q2",) * 2 + ("Q1/Q3", "Q1/Q2", "Q1/Q3"), strict=True)}
    | {f"前{n}个季度": part for n, part in zip("两三23", ("Q1/Q2", "Q1/Q3") * 2, strict=True)}
)
# Not 大雪 and the like, which are mostly weather. 清明节 is a holiday.
_SOLAR_TERMS = Words(
    dict.fromkeys(
        (
            "立春",
            "惊蛰",
            "春分",
            "谷雨",
            "立夏",
            "小满",
            "芒种",
            "夏至",
            "立秋",
            "处暑",
            "白露",
            "秋分",
            "霜降",
            "立冬",
            "冬至",
        ),
        0,
    )
)
_NO_SEASON = frozenset("晚招运节奥残耕收粮茶游")
_HALVES = Words({"上半年": "H1", "下半年": "H2"})
WHOLE = frozenset("年度月份")
"""The last character of a year or month, after which a part of it may follow."""

_THIRDS = Words({"上旬": (1, 10), "中旬": (11, 20), "下旬": (21, 31)})
_HOLIDAYS = Words(
    {
        "元旦": (1, 1), "情人节": (2, 14), "妇女节": (3, 8), "植树节": (3, 12), "愚人节": (4, 1), "劳动节": (5, 1),
        "青年节": (5, 4), "儿童节": (6, 1), "建党节": (7, 1), "建军节": (8, 1), "教师节": (9, 10), "国庆节": (10,
        1),
        "平安夜": (12, 24), "圣诞节": (12, 25),
    }
)  # fmt: skip
_LUNAR_HOLIDAYS = Words(
    dict.fromkeys(
        ("春节", "元宵节", "清明节", "端午节", "七夕节", "中元节", "中秋节", "重阳节", "腊八节", "除夕"), 0
    )
)
_LUNAR_DAYS = frozenset("一二三四五六七八九十")
_COUNTED = _LUNAR_DAYS | frozenset("个天名人位家场次批支条项份辆栋套座所周年月件百千万亿")
_LUNAR = re.compile(
    "(?:(?:农历|阴历|旧历|夏历)(?:(?:[0-9]{4}|[〇零一二三四五六七八九]{4}|[甲乙丙丁戊己庚辛壬癸][子丑寅卯辰巳午未申酉戌亥])年)?"
    "闰?(?:[一二三四五六七八九十冬正腊]{1,2}|1?[0-9])|闰[一二三四五六七八九十]{1,2}|正|腊)月"
    "(?:(?:初[一二三四五六七八九十]|[一二三四五六七八九十廿卅]{1,3})[日号]?|[1-3]?[0-9][日号])?"
)
# In normal form 乾 is 干.
_REIGNS = Words(
    {
        "民国": 1912, "顺治": 1644, "康熙": 1662, "雍正": 1723, "干隆": 1736, "嘉庆": 1796,
        "道光": 1821, "咸丰": 1851,
        "同治": 1862, "光绪": 1875, "宣统": 1909, "昭和": 1926, "平成": 1989, "令和": 2019,
    }
)  # fmt: skip
_CENTURIES = Words({"上世纪": 19, "上个世纪": 19, "本世纪": 20})
_OFFSETS = Words({"以前": -1, "之前": -1, "前": -1, "以后": 1, "之后": 1, "后": 1})

# What stands after or before an expression that looks like a date and is something else.
_NO_OFFSET = ("前后", "前者", "前沿", "前途", "前列", "后者", "后期", "后勤", "后代", "后辈")
_NO_RELATIVE = ("今日头条", "明日之星", "后天性", "前天性")
_NO_WEEKDAY = frozenset("鸣福围方大年代次个岁")
_NO_YEAR = ("级", "来", "前", "后", "以", "之", "内", "间", "历史", "多", "余", "龄", "期", "轻")
_NO_DAY = frozenset("线楼门房院馆厅桌车床位台机井坑令文室店厂桥港")
# Before a number with 号 that is not a day: the street, house or part of a house, as in 中山路15、16号, or 第. The
# characters after (?<! are those of other words, such as 铁路, 知道 and 法院.
_ADDRESS = re.compile(
    "(?:(?<![公铁线道])路|(?<![知报轨渠通隧频])道|(?<![法医学务察影剧])院|(?<![景地])区|(?<![公儿校])园"
    "|(?<![家这那哪村城店])里|[街巷弄村镇座幢栋厦附第]|胡同|单元|[一二三四五六七八九十]条"
    "|[0-9一二三四五六七八九十号东西南北中]楼) ?[甲乙丙附]?(?:[0-9]{1,4}(?: ?、|号? ?[-~–—至到]) ?){0,4}\\Z"
)
_LONGEST_ADDRESS = 32  # characters before a number

FIRST = frozenset("公第农阴旧夏闰正腊半周星礼").union(
    numerals.FIRST,
    *(words.first for words in (_DAYS, _YEARS, _STEPS, _HOLIDAYS, _LUNAR_HOLIDAYS, _REIGNS, _CENTURIES, _HALVES)),
)


def on(scan: Scan, when: When) -> When:
    """The date for the given day."""
    return when if scan.today is None else when.on(scan.today)


def date_at(scan: Scan, i: int) -> Dated | None:
    """The date at ``i`` that is not a range of dates."""
    for form in _FORMS:
        found = form(scan, i)
        if found is not None:
            is_cut = scan.cuts(found.end) and not (scan[found.end] == "T" and scan[found.end + 1] in DIGITS)
            return None if is_cut else Dated(_after_weekday(scan, found.end), found.when)
    return None


def day_at(scan: Scan, i: int) -> Dated | None:
    """The day of a month at ``i``, also in Chinese numerals, where the text before shows that it may be one."""
    found = _day_of_month(scan, i)
    return None if found is None else found._replace(end=_after_weekday(scan, found.end))


def _numeric(scan: Scan, i: int) -> Dated | None:
    """2024-03-05, 2024/3/5 or 2024.3.5. Digits that are not a day of the calendar are not a date."""
    match = _NUMERIC.match(scan.text, i) if scan[i] in DIGITS else None
    if match is None or (scan[i - 1] == match[2] and scan[i - 2] in DIGITS):
        return None
    day = Calendar(int(match[1]), int(match[3]), int(match[4]))
    return Dated(match.end(), day) if 1 <= (day.month or 0) <= 12 and day.exists else None


def _day_by_name(scan: Scan, i: int) -> Dated | None:
    """今天, 明天, 大前天."""
    found = _DAYS.at(scan, i)
    if found is None or scan.starts(i, *_NO_RELATIVE) > 0:
        return None
    if scan.today is None:
        return Dated(found[0], UNKNOWN)
    return Dated(found[0], days_after(scan.today, found[1]))


def _week(scan: Scan, i: int) -> Dated | None:
    """周三, 下周三, 上个星期天, 本周, 下下周, 周末."""
    step = _STEPS.at(scan, i)
    end = i if step is None else step[0]
    if step is not None and scan[end] == "个":
        end += 1
    end = scan.starts(end, "周", "星期", "礼拜")
    if end < 0:
        return None
    day: int | str | None = _WEEKDAYS.get(scan[end]) if scan[end + 1] not in _NO_WEEKDAY else None
    if scan[end] == "末":
        day = "WE"
    if day is None and step is None:
        return None
    if day is None and scan[end] in ("期", "年", "刊", "围", "边"):
        return None
    when = Week(None, day) if step is None else week(scan.today, step[1], day)
    return Dated(end + (day is not None), when)


def _holiday(scan: Scan, i: int) -> Dated | None:
    """国庆节, 春节, 农历三月初五. Lunar dates have no value."""
    fixed = _HOLIDAYS.at(scan, i)
    if fixed is not None:
        return Dated(fixed[0], Calendar(None, *fixed[1]))
    lunar = _LUNAR_HOLIDAYS.at(scan, i)
    if lunar is not None:
        return Dated(lunar[0], UNKNOWN)
    match = _LUNAR.match(scan.text, i)
    return None if match is None else Dated(match.end(), UNKNOWN)


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
        return Dated(_edge(scan, scan.gap(decade.end) + 2), Fixed(written))
    return None if century is None else Dated(_edge(scan, end), Fixed(f"{century:02}XX"))


def _century_of_era(scan: Scan, i: int) -> Dated | None:
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


def _from_year(scan: Scan, i: int) -> Dated | None:
    """A year, alone or with what follows it: a month and a day, a quarter, a season, a holiday."""
    if scan.starts(i, "公元前") > 0:
        return year_before_zero(scan, i)
    year = _named_year(scan, i)
    if year is None:
        number = integer(scan, i)
        year = None if number is None else _counted_year(scan, i, number)
    if year is None:
        return None
    inside = _inside_year(scan, scan.gap(year.end))
    if inside is not None:
        when = inside.when.in_year(year.year, year.known) if isinstance(inside.when, Calendar) else inside.when
        return Dated(inside.end, when)
    return Dated(_edge(scan, year.end, "度", "年底", "年初", "年末"), Calendar(year.year, known=year.known))


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
    if relative is not None:
        year = None if scan.today is None else scan.today.year + relative[1]
        is_known = year is not None and MINYEAR <= year <= MAXYEAR
        return _Year(relative[0], year if is_known else None, is_known)
    reign = _REIGNS.at(scan, i)
    start, zero = (reign[0], reign[1] - 1) if reign is not None else (scan.starts(i, "公元"), 0)
    if start < 0:
        return None
    if scan.starts(start, "元年") > 0 and reign is not None:
        return _Year(start + 2, zero + 1)
    number = _year_number(scan, start)
    return None if number is None or zero + number[1] > MAXYEAR else _Year(number[0], zero + number[1])


def _counted_year(scan: Scan, i: int, number: Integer) -> _Year | None:
    """2024年, 二〇二四年, and 98年 or 08年 where it is not a duration."""
    end = scan.gap(number.end)
    if scan[end] != "年" or scan[i - 1] == "第" or scan[end + 1] in ("级", "代"):
        return None
    if (
        len(number.digits) == 4
        and 1000 <= number.value < 3000
        and (not number.chinese or _by_digits(scan, i, number))
    ):
        return _Year(end + 1, number.value)
    if len(number.digits) != 2 or (number.chinese and not _by_digits(scan, i, number)):
        return None
    year = number.value + (1900 if number.value >= PIVOT else 2000)
    is_year = number.value < 10 or number.value >= PIVOT
    is_estimate = number.chinese and number.digits[1] == str(int(number.digits[0]) + 1)
    has_month = _month(scan, end + 1) is not None
    return (
        _Year(end + 1, year)
        if has_month or (is_year and not is_estimate and scan.starts(end + 1, *_NO_YEAR) < 0)
        else None
    )


def _by_digits(scan: Scan, i: int, number: Integer) -> bool:
    """Whether a Chinese numeral is written digit by digit, as 二〇二四 and 九八 are and 五十 is not."""
    return numerals.CHINESE_DIGITS.keys() >= set(scan.text[i : number.end])


def _inside_year(scan: Scan, i: int) -> Dated | None:
    """A part of a year: 3月5日, 第一季度, 前三季度, 上半年, 春天, 国庆节, 冬至. Its year is missing."""
    solar_term = _SOLAR_TERMS.at(scan, i)
    if solar_term is not None:
        return Dated(solar_term[0], UNKNOWN)
    first = _FIRST_QUARTERS.at(scan, i)
    if first is not None:
        return Dated(first[0], Calendar(part=first[1]))
    for words in (_HALVES, _SEASONS):
        found = words.at(scan, i)
        if found is not None and (len(scan.text[i : found[0]]) > 1 or scan[found[0]] not in _NO_SEASON):
            return Dated(found[0], Calendar(part=found[1]))
    start = scan.gap(i + 1) if scan[i] == "第" else i
    if scan[start] in _QUARTERS and (end := scan.starts(scan.gap(start + 1), "季度")) > 0:
        return Dated(end, Calendar(part=f"Q{_QUARTERS[scan[start]]}"))
    return _month(scan, i) or _holiday(scan, i)


def _part_of_year(scan: Scan, i: int) -> Dated | None:
    """A part of a year that is not named: 3月5日, 第一季度, 上半年."""
    is_ambiguous = _SEASONS.at(scan, i) is not None or _SOLAR_TERMS.at(scan, i) is not None
    return None if is_ambiguous else _inside_year(scan, i)


def _month(scan: Scan, i: int) -> Dated | None:
    """3月, 3月5日, 三月份, 3月底, 3月上旬."""
    number = integer(scan, i)
    if number is None or not 1 <= number.value <= 12 or len(number.digits) > 2:
        return None
    end = scan.gap(number.end)
    if scan[end] != "月":
        return None
    # 五月初五 is a day of the lunar calendar, 5月初三天 and 五月初三天 are not.
    if number.chinese and scan[end + 1] == "初" and scan[end + 2] in _LUNAR_DAYS and scan[end + 3] not in _COUNTED:
        return Dated(max(end + 3, scan.starts(end + 3, "日")), UNKNOWN)
    return _in_month(scan, end + 1, number.value)


def _in_month(scan: Scan, i: int, month: int) -> Dated:
    """A month, or what follows it: a day, ten days, the beginning or the end."""
    third = _THIRDS.at(scan, i)
    if third is not None:
        return Dated(third[0], Calendar(None, month, third[1][0], last=third[1][1]))
    day = _day(scan, scan.gap(i))
    if day is not None:
        return Dated(day[0], Calendar(None, month, day[1]))
    return Dated(_edge(scan, i, "份"), Calendar(None, month))


def _day(scan: Scan, i: int) -> tuple[int, int] | None:
    """The end and the number of a day: 5日, 二十号."""
    number = integer(scan, i)
    if number is None or not 1 <= number.value <= 31 or len(number.digits) > 2:
        return None
    end = scan.gap(number.end)
    return (end + 1, number.value) if scan[end] in ("日", "号") else None


def _relative_month(scan: Scan, i: int) -> Dated | None:
    """本月, 上个月, 下下个月, 上个月5号, 本月底."""
    step = _STEPS.at(scan, i)
    end = -1 if step is None else scan.starts(step[0], "月", "个月")
    if step is None or end < 0 or scan[end] in ("球", "亮"):
        return None
    year, month = (0, 1) if scan.today is None else months_after(scan.today, step[1])
    found = _in_month(scan, end, month)
    assert isinstance(found.when, Calendar)
    if scan.today is None:
        return Dated(found.end, found.when.in_year(None, known=False))
    return Dated(found.end, found.when.in_year(year) if 0 < year < 10_000 else UNKNOWN)


def _relative_quarter(scan: Scan, i: int) -> Dated | None:
    """本季度, 上个季度, 下一季度."""
    step = _STEPS.at(scan, i)
    end = -1 if step is None else scan.starts(step[0], "季度", "个季度")
    if step is None or end < 0:
        return None
    if scan.today is None:
        return Dated(end, UNKNOWN)
    year, month = months_after(scan.today, 3 * step[1])
    part = f"Q{(month + 2) // 3}"
    return Dated(end, Calendar(year, part=part) if 0 < year < 10_000 else UNKNOWN)


def _day_alone(scan: Scan, i: int) -> Dated | None:
    """15日 or 15号, in Arabic digits, and not in an address."""
    found = _day_of_month(scan, i) if scan[i] in DIGITS else None
    if found is None or scan[i - 1] == "第" or (scan[i - 1] == "月" and scan[i - 2] in DIGITS):
        return None
    if scan[found.end - 1] == "日" and (side := _OFFSETS.at(scan, found.end)) is not None and side[1] > 0:
        return Dated(side[0], UNKNOWN)  # 3日后: after three days, or after the third day
    return None if scan[found.end - 1] == "号" and _follows_an_address(scan, i) else found


def _day_of_month(scan: Scan, i: int) -> Dated | None:
    """15日 or 十五号 that is not part of a word such as 十五日游 or 二号楼."""
    found = _day(scan, i)
    if found is None or scan[found[0]] in ("内", "游", *_NO_DAY) or scan.starts(found[0], "之内", "以内") > 0:
        return None
    return Dated(found[0], Calendar(day=found[1]))


def _follows_an_address(scan: Scan, i: int) -> bool:
    """Whether a street or a house stands before ``i``, perhaps with other numbers of houses between."""
    return _ADDRESS.search(scan.text, max(0, i - _LONGEST_ADDRESS), i) is not None


def _offset(scan: Scan, i: int) -> Dated | None:
    """三天前, 两周后, 半年以前. The value is as exact as the unit: a month for 三个月前."""
    length = scan.once(duration.length, i)
    side = None if length is None else _OFFSETS.at(scan, length.end)
    if length is None or side is None or length.unit in duration.CLOCK or scan.starts(length.end, *_NO_OFFSET) > 0:
        return None
    count = None if length.number is None else length.number * side[1]
    if scan.today is None or count is None or count != int(count):
        return Dated(side[0], UNKNOWN)
    return Dated(side[0], _moved(scan, length.unit, int(count)))


def _moved(scan: Scan, unit: str, count: int) -> When:
    """The given day moved by days, weeks, months or years; unknown if it leaves the calendar."""
    assert scan.today is not None
    if unit == "W":
        return week(scan.today, count)
    if unit == "D":
        return days_after(scan.today, count)
    if unit == "Y":
        year = scan.today.year + count
        return Calendar(year) if 0 < year < 10_000 else UNKNOWN
    year, month = months_after(scan.today, count)
    return Calendar(year, month) if 0 < year < 10_000 else UNKNOWN


def _edge(scan: Scan, i: int, *more: str) -> int:
    """The position after 底, 初 or 末, which do not change the value, or after one of ``more``."""
    return max(i, scan.starts(i, *more, "底", "初", "末"))


def _after_weekday(scan: Scan, i: int) -> int:
    """The position after a day of the week that follows a day, as in 3月5日（周二）."""
    if scan[i - 1] not in ("日", "号"):
        return i
    start = i + 1 if scan[i] == "(" else i
    end = scan.starts(start, "周", "星期", "礼拜")
    if end < 0 or scan[end] not in _WEEKDAYS:
        return i
    if start == i:
        return end + 1
    return end + 2 if scan[end + 1] == ")" else i


_FORMS = (
    _numeric, _day_by_name, _week, century_at, _century_of_era, _from_year, _offset, _holiday, _relative_month,
    _relative_quarter, _part_of_year, _day_alone,
)  # fmt: skip
