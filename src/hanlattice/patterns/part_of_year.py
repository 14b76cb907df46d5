"""Parts of a year in a text: months and their days, quarters, halves, seasons and holidays."""

import re

from hanlattice.patterns.calendar import UNKNOWN, Calendar, Dated
from hanlattice.patterns.numerals import NUMERALS, integer
from hanlattice.patterns.scan import Scan, Words

_SEASONS = Words(
    {
        name + end: code
        for name, code in zip("春夏秋冬", ("SP", "SU", "FA", "WI"), strict=True)
        for end in ("季", "天", "")
    }
)
_QUARTERS = dict(zip("一二三四1234", "12341234", strict=True))
_FIRST_QUARTERS = Words(
    {
        f"前{number}{quarters}": part
        for part, numbers in (("Q1/Q2", "两二2"), ("Q1/Q3", "三3"))
        for number in numbers
        for quarters in ("季度", "个季度")
    }
)
# Not 大雪 and the like, which are mostly weather. 清明节 is a holiday.
_SOLAR_TERMS = Words(
    dict.fromkeys(
        [
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
        ],
        0,
    )
)
_NO_SEASON = frozenset("晚招运节奥残耕收粮茶游")
_HALVES = Words({"上半年": "H1", "下半年": "H2"})
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
# Short names, which are holidays only after a year, as in 今年国庆.
_SHORT_NAMES = {
    "国庆": (10, 1), "五一": (5, 1), "十一": (10, 1), "六一": (6, 1), "五四": (5, 4), "七一": (7, 1),
    "八一": (8, 1), "双十一": (11, 11), "双11": (11, 11), "双十二": (12, 12), "双12": (12, 12), "圣诞": (12, 25),
}  # fmt: skip
_LUNAR_NAMES = ("中秋", "端午", "清明", "元宵", "重阳", "七夕", "中元", "腊八")
_AFTER_YEAR: Words[tuple[int, int] | None] = Words(_SHORT_NAMES | dict.fromkeys(_LUNAR_NAMES))
_NO_HOLIDAY = re.compile("[月点岁年几多个次]|老人|树")
_AFTER_ELEVEN = re.compile("长?假|小长假|黄金周|期间|放假|国庆|[前后节档]")
_FULL_NAME = re.compile("(?:国际)?(?:劳动|儿童|青年|建党|建军|国庆|情人)?节")
_FESTIVALS = ("二月二", "三月三", "六月六", "九月九")  # of the lunar calendar
_LUNAR_DAYS = frozenset("一二三四五六七八九十")
_COUNTED = _LUNAR_DAYS | frozenset("个天名人位家场次批支条项份辆栋套座所周年月件百千万亿")
_LUNAR = re.compile(
    "(?:(?:农历|阴历|旧历|夏历)(?:(?:[0-9]{4}|[〇零一二三四五六七八九]{4}|[甲乙丙丁戊己庚辛壬癸][子丑寅卯辰巳午未申酉戌亥])年)?"
    "闰?(?:[一二三四五六七八九十冬正腊]{1,2}|1?[0-9])|闰[一二三四五六七八九十]{1,2}|正|腊)月"
    "(?:(?:初[一二三四五六七八九十]|[一二三四五六七八九十廿卅]{1,3})[日号]?|[1-3]?[0-9][日号])?"
)
# 1月28 is a day, unless a joint, a further number, or what the number counts follows it.
_DAY_ALONE = re.compile(r"(?:[12][0-9]|3[01]|0?[1-9])(?![0-9])")
_COUNTING = re.compile(
    " ?[~–—至到%‰℃°万亿千百十多余来几个位名家人只台辆套件项条次场部届级款种支艘架篇张份对组间栋层楼座处批片颗股块元"
    "角分秒度米公里克斤吨升亩天日号月年周岁代倍成折连胜负平死伤战省市县区村城宗亡期具时]"
    "|起(?![、,。 施实执正全在至到对将]|\\Z)|[-/]|[:.+][0-9-]|[、,和及与] ?[0-9]|国(?!庆)"
)

FIRST = _HOLIDAYS.first | _LUNAR_HOLIDAYS.first | _HALVES.first | _FIRST_QUARTERS.first


def inside_year(scan: Scan, i: int) -> Dated | None:
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
    return month_at(scan, i) or holiday(scan, i)


def short_holiday(scan: Scan, i: int) -> Dated | None:
    """国庆, 五一 or 双十一 after a year. 十一 mostly is a number, as in 今年十一岁, and so needs a sign."""
    found = _AFTER_YEAR.at(scan, i)
    if found is None:
        return None
    end, day = found
    if scan[end] in NUMERALS or _NO_HOLIDAY.match(scan.text, end) is not None:
        return None
    if scan.text[i:end] == "十一" and _AFTER_ELEVEN.match(scan.text, end) is None:
        return None
    full = _FULL_NAME.match(scan.text, end)
    return Dated(end if full is None else full.end(), UNKNOWN if day is None else Calendar(None, *day))


def part_of_a_year(scan: Scan, i: int) -> Dated | None:
    """A part of a year that is not named: 3月5日, 第一季度, 上半年."""
    is_ambiguous = _SEASONS.at(scan, i) is not None or _SOLAR_TERMS.at(scan, i) is not None
    return None if is_ambiguous else inside_year(scan, i)


def month_at(scan: Scan, i: int) -> Dated | None:
    """3月, 3月5日, 三月份, 3月底, 3月上旬."""
    number = integer(scan, i)
    if number is None or not 1 <= number.value <= 12 or len(number.digits) > 2 or scan[i] == "两":
        return None
    festival = scan.starts(i, *_FESTIVALS)
    if festival > 0 and scan[festival] not in ("日", "号", "十"):
        return Dated(festival, UNKNOWN)
    end = scan.gap(number.end)
    if scan[end] != "月":
        return None
    # 五月初五 is a day of the lunar calendar, 5月初三天 and 五月初三天 are not.
    if number.chinese and scan[end + 1] == "初" and scan[end + 2] in _LUNAR_DAYS and scan[end + 3] not in _COUNTED:
        return Dated(max(end + 3, scan.starts(end + 3, "日")), UNKNOWN)
    found = in_month(scan, end + 1, number.value)
    day = _DAY_ALONE.match(scan.text, end + 1) if found.end == end + 1 else None
    if day is None or _COUNTING.match(scan.text, day.end()) is not None or scan.cuts(day.end()):
        return found
    return Dated(day.end(), Calendar(None, number.value, int(day[0])))


def in_month(scan: Scan, i: int, month: int) -> Dated:
    """A month, or what follows it: a day, ten days, the beginning or the end."""
    third = _THIRDS.at(scan, i)
    if third is not None:
        return Dated(third[0], Calendar(None, month, third[1][0], last=third[1][1]))
    day = day_with_unit(scan, scan.gap(i))
    if day is not None:
        return Dated(day[0], Calendar(None, month, day[1]))
    return Dated(edge(scan, i, "份"), Calendar(None, month))


def day_with_unit(scan: Scan, i: int) -> tuple[int, int] | None:
    """The end and the number of a day: 5日, 二十号."""
    number = integer(scan, i)
    if number is None or not 1 <= number.value <= 31 or len(number.digits) > 2:
        return None
    end = scan.gap(number.end)
    return (end + 1, number.value) if scan[end] in ("日", "号") else None


def holiday(scan: Scan, i: int) -> Dated | None:
    """国庆节, 春节, 农历三月初五. Lunar dates have no value."""
    fixed = _HOLIDAYS.at(scan, i)
    if fixed is not None:
        return Dated(fixed[0], Calendar(None, *fixed[1]))
    lunar = _LUNAR_HOLIDAYS.at(scan, i)
    if lunar is not None:
        return Dated(lunar[0], UNKNOWN)
    match = _LUNAR.match(scan.text, i)
    return None if match is None else Dated(match.end(), UNKNOWN)


def edge(scan: Scan, i: int, *more: str) -> int:
    """The position after 底, 初 or 末, which do not change the value, or after one of ``more``."""
    return max(i, scan.starts(i, *more, "底", "初", "末"))
