"""TIME: a time of the day, alone or with its date: 15:30, 下午三点半, 明天上午, 2024-03-05 15:30, 10分钟后.

The value is in ISO 8601: ``T15:30``, ``2024-03-05T15:30``, and ``start/end`` for a range. Parts of the day are
those of TIMEX3: ``TMO`` morning, ``TMI`` midday, ``TAF`` afternoon, ``TEV`` evening, ``TNI`` night. Hours are not
guessed: 3点 without a part of the day is ``T03:00``.
"""

import re
from datetime import timedelta
from typing import NamedTuple

from hanlattice.patterns import single_date
from hanlattice.patterns.calendar import UNKNOWN, Calendar, When, days_after, next_day
from hanlattice.patterns.kinds import duration
from hanlattice.patterns.numerals import CHINESE_DIGITS, integer
from hanlattice.patterns.scan import DIGITS, JOINTS, Found, Scan, Words

_PARTS = Words(
    {
        "凌晨": "TMO", "清晨": "TMO", "早晨": "TMO", "早上": "TMO", "上午": "TMO", "中午": "TMI", "正午": "TMI",
        "下午": "TAF", "午后": "TAF", "傍晚": "TEV", "晚上": "TEV", "晚间": "TEV", "夜晚": "TEV", "夜里": "TNI",
        "夜间": "TNI", "深夜": "TNI", "午夜": "TNI", "半夜": "TNI",
    }
)  # fmt: skip
_OF_DAYS = Words(
    {
        "今早": (0, "TMO"), "今晨": (0, "TMO"), "今晚": (0, "TEV"), "今夜": (0, "TNI"), "明早": (1, "TMO"),
        "明晨": (1, "TMO"), "明晚": (1, "TEV"), "昨晚": (-1, "TEV"), "昨夜": (-1, "TNI"), "前晚": (-2, "TEV"),
        "后晚": (2, "TEV"),
    }
)  # fmt: skip
_BEFORE_HOURS = frozenset("早晨晚夜")  # parts of the day right before an hour: 晚8点
# Without seconds, a minus would be a joint: 8:00-09:00.
_DIGITAL = re.compile(
    r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2})(?:\.[0-9]{1,6})?(Z|[+-][0-9]{2}:[0-9]{2})?|(Z|\+[0-9]{2}:[0-9]{2}))?"
    r"(?![0-9]|:[0-9])"
)
_MERIDIEM = re.compile(r" ?([ap])\.?m\.?(?![A-Za-z0-9])", re.IGNORECASE)
_HOUR = re.compile(r"([0-9]{1,2})(?= ?[apAP]\.?[mM])")
_NAMES = ("2p", "2a", "4a")  # 2PM and 2AM are bands, 4AM is a team
_QUARTERS = Words({"半": 30, "一刻": 15, "三刻": 45})
_BESIDE = {"过": 1, "差": -1}  # 八点过五分, 三点差一刻, 差五分三点
_OFFSETS = Words({"以前": -1, "之前": -1, "前": -1, "以后": 1, "之后": 1, "后": 1})

# A number with 点 before one of these counts points. A number between these words is a score.
_POINTS = ("意见", "建议", "要求", "原因", "理由", "体会", "看法", "希望", "启示", "说明", "思考", "措施", "好处",
"结论", "区别",
           "不同", "优势", "内容", "问题", "方面", "经验", "共识", "感受", "注意", "名字",
           "倡议", "主张", "服务", "遗憾", "变化", "特点",
           "困难", "规定", "连线", "一线", "法", "式")  # fmt: skip
_SCORE_BEFORE = ("比例", "比例尺", "赔率", "比分", "以", "比分是", "比分为", "战成", "打成", "总分")
_SCORE_AFTER = ("战胜", "击败", "获胜", "取胜", "胜", "负于", "领先", "落后", "险胜", "大胜", "逆转", "的比分")
_GREETING = frozenset("好")
_NOT_COUNTED = frozenset("第有这那几")
_POINTS_AFTER = ("以下", "如下", "注意", "提出", "提了", "做到", "强调")  # 注意以下五点
_NOT_A_START = _NOT_COUNTED | JOINTS | {".", ":"}

FIRST = single_date.FIRST | _PARTS.first | _OF_DAYS.first | _BEFORE_HOURS | {"零", "差"}


class Clock(NamedTuple):
    """A time of the day: its end, its value, and the part of the day that it names."""

    end: int
    value: str
    part: str = ""


def parse(scan: Scan, i: int) -> Found | None:
    """The time at ``i``, a range of times, or an hour counted from now."""
    scan = single_date.recurring(scan, i)
    when, start = _day_before(scan, i)
    hours = _range_of_hours(scan, start, dated=when is not None)
    if hours is not None:
        return Found(hours[1].end, _range(scan, hours[0].end, when, *hours))
    first = _clock(scan, start, "", dated=when is not None)
    if first is None:
        return _offset(scan, i) if when is None else None
    joint = scan.joint(first.end)
    last = _clock(scan, joint, first.part, dated=True) if joint > 0 and first.value[1:2].isdigit() else None
    if last is not None and last.value[1:2].isdigit():
        return Found(last.end, _range(scan, joint, when, first, last))
    return Found(first.end, _dated(scan, _after_midnight(scan, when, first), first.value))


def _after_midnight(scan: Scan, when: When | None, clock: Clock) -> When | None:
    """The day of a time: 昨晚2点 and 昨晚12点半 are today."""
    is_late = clock.part.endswith("晚") or clock.part in ("晚上", "晚间", "夜晚", "今夜", "昨夜")
    if when is None or not is_late or not "T00" <= clock.value < "T05":
        return when
    return next_day(single_date.on(scan, when))


def _range_of_hours(scan: Scan, i: int, *, dated: bool) -> tuple[Clock, Clock] | None:
    """The ends of a range whose 点 or 时 follows the second number: 下午1-3点, 9至11时."""
    part = _part_at(scan, i)
    start = scan.gap(i + len(part)) if part else i
    number = integer(scan, start)
    joint = -1 if number is None else scan.joint(number.end)
    if number is None or joint < 0 or len(number.digits) > 2 or scan[i - 1] in _NOT_A_START:
        return None
    value = _written(_hour(number.value, part, 0), 0, None)
    last = _spoken(scan, joint, part, dated=dated or len(part) > 1)
    return None if value is None or last is None else (Clock(number.end, value, part), last)


def _part_at(scan: Scan, i: int) -> str:
    """The part of the day at ``i``: 下午, 今晚, or 晚 right before a number; an empty string without one."""
    named = _OF_DAYS.at(scan, i) or _PARTS.at(scan, i)
    if named is not None:
        return scan.text[i : named[0]]
    return scan[i] if scan[i] in _BEFORE_HOURS and scan[i - 1] != "最" else ""


def _range(scan: Scan, i: int, when: When | None, first: Clock, last: Clock) -> str | None:
    """The value of a range of times, whose end is at ``i``.

    The end is on the day that it names, else on the day of the start, or on the next one if its time is earlier.
    There is no value for 12点半到1点, whose end may be in the afternoon.
    """
    if when is None:
        return f"{first.value}/{last.value}"
    day = _named_day(scan, i)
    if day is None and last.value < first.value:
        is_clear = first.value >= "T13" or last.part != first.part
        day = next_day(single_date.on(scan, when)) if is_clear else UNKNOWN
    elif day is None:
        day = when
    start, end = _dated(scan, when, first.value), _dated(scan, day, last.value)
    return None if start is None or end is None or end < start else f"{start}/{end}"


def _day_before(scan: Scan, i: int) -> tuple[When | None, int]:
    """The day before a time, and where the time starts. 今晚 is a day and a part of it."""
    named = _named_day(scan, i)
    if named is not None:
        return named, i
    found = scan.once(single_date.date_at, i)
    if found is None or not _is_a_day(found.when):
        return None, i
    end = found.end
    is_joined = scan[end] == "T" and scan[end + 1] in DIGITS
    return found.when, end + 1 if is_joined else scan.gap(end)


def _named_day(scan: Scan, i: int) -> When | None:
    """The day of 今晚, 明早, 昨夜."""
    named = _OF_DAYS.at(scan, i)
    if named is None:
        return None
    return UNKNOWN if scan.today is None else days_after(scan.today, named[1][0])


def _is_a_day(when: When) -> bool:
    return when.value is None or not isinstance(when, Calendar) or when.day is not None


def _dated(scan: Scan, when: When | None, clock: str) -> str | None:
    if when is None:
        return clock
    day = single_date.on(scan, when).value
    return None if day is None else day + clock


def _clock(scan: Scan, i: int, part: str, *, dated: bool) -> Clock | None:
    """A time of the day. Without a part of its own it takes ``part``."""
    own = _part_at(scan, i)
    end = i + len(own)
    start = scan.gap(end) if own else i
    is_hour = len(own) > 1 or (dated and not own)  # 晚一点 is a little later
    found = _digital(scan, start, own or part) or _spoken(scan, start, own or part, dated=is_hour)
    if found is not None or len(own) < 2 or scan[end] in _GREETING:
        return found
    of_day = _OF_DAYS.at(scan, i)
    return Clock(end, str(_PARTS.table[own]) if of_day is None else of_day[1][1], own)


def _digital(scan: Scan, i: int, part: str) -> Clock | None:
    """15:30, 15:30:45, 3:30 PM."""
    match = _DIGITAL.match(scan.text, i)
    if match is None and scan[i] in DIGITS:
        return _before_meridiem(scan, i, part)
    if match is None or (i > 0 and scan.continues(i)) or _is_score(scan, i, match.end()):
        return None
    hour, minute, second = int(match[1]), int(match[2]), match[3]
    end = match.end()
    meridiem = _MERIDIEM.match(scan.text, end) if hour <= 12 else None
    if meridiem is not None:
        end, hour = meridiem.end(), _of_24(hour, meridiem)
    value = _written(_hour(hour, part, minute), minute, None if second is None else int(second))
    return None if value is None else Clock(end, value + (match[4] or match[5] or ""), part)


def _before_meridiem(scan: Scan, i: int, part: str) -> Clock | None:
    """5pm, 11 a.m. 2PM and 4AM alone are mostly names."""
    match = _HOUR.match(scan.text, i)
    meridiem = None if match is None else _MERIDIEM.match(scan.text, match.end())
    if match is None or meridiem is None or not 1 <= int(match[1]) <= 12 or (i > 0 and scan.continues(i)):
        return None
    is_name = not part and scan[i - 1] not in JOINTS and scan.joint(meridiem.end()) < 0
    if is_name and match[1] + meridiem[1].lower() in _NAMES:
        return None
    return Clock(meridiem.end(), f"T{_of_24(int(match[1]), meridiem):02}:00", part)


def _of_24(hour: int, meridiem: re.Match[str]) -> int:
    return hour % 12 + (12 if meridiem[1] in "pP" else 0)


def _is_score(scan: Scan, start: int, end: int) -> bool:
    return scan.follows(start, _SCORE_BEFORE) or scan.starts(end, *_SCORE_AFTER) > 0


def _spoken(scan: Scan, i: int, part: str, *, dated: bool) -> Clock | None:
    """三点半, 15时30分, 九点整, 七点二十. ``dated``: a date or a part of the day stands before it."""
    before = _beside(scan, i) if scan[i] == "差" else None  # 差五分三点
    number = integer(scan, i if before is None else before[0])
    if number is None or len(number.digits) > 2 or scan[i - 1] in _NOT_COUNTED:
        return None
    if number.chinese and scan.starts(i, "一一点") > 0:  # 唯一一点
        return None
    start = scan.gap(number.end)
    sign = scan[start]
    if sign not in ("点", "时") or (sign == "时" and scan[start + 1] in ("间", "候", "代", "常", "期", "而", "装")):
        return None
    end, minute, second, clear = _minutes(scan, start + 1, sign)
    if before is not None:
        if clear or sign != "点":
            return None
        minute, clear = before[1], True
    if not (clear or dated or _is_bare_hour(scan, i, end, sign, number.value, chinese=number.chinese)):
        return None
    hour = _hour(number.value, part, max(minute, 0)) - (minute < 0)
    value = None if hour < 0 else _written(hour, minute % 60, second)  # 零点差五分 is on the day before
    return None if value is None else Clock(end, value, part)


def _beside(scan: Scan, i: int) -> tuple[int, int] | None:
    """The end and the minutes of 差五分, 过五分 or 差一刻 beside an hour; negative before it."""
    sign = _BESIDE.get(scan[i])
    if sign is None:
        return None
    end = scan.starts(i + 1, "一刻")
    minutes = 15
    if end < 0:
        number = integer(scan, i + 1)
        if number is None or not 0 < number.value < 60 or scan[number.end] != "分":
            return None
        end, minutes = number.end + 1, number.value
    if scan[end] == "钟":
        if sign > 0:  # 八点过五分钟 is five minutes later
            return None
        end += 1
    return end, minutes * sign


def _is_bare_hour(scan: Scan, start: int, end: int, sign: str, hour: int, *, chinese: bool) -> bool:
    """Whether a number with 点 or 时 alone is an hour: 9点, 八点, 15时, 零点; not 一点, 三点意见, 3.5点."""
    if (
        scan.starts(end, *_POINTS) > 0
        or scan.follows(start, _POINTS_AFTER)
        or scan[end] in CHINESE_DIGITS
        or scan[end] in DIGITS
    ):
        return False
    return not chinese or hour == 0 or (sign == "点" and hour > 2)


def _minutes(scan: Scan, i: int, sign: str) -> tuple[int, int, int | None, bool]:
    """The end, minutes and seconds after an hour, and whether they show that it is one."""
    quarter = _QUARTERS.at(scan, i)
    if quarter is not None and sign == "点":
        return quarter[0], quarter[1], None, True
    end = scan.starts(i, "整", "正", "钟")
    if end > 0:
        return end, 0, None, True
    beside = _beside(scan, i) if sign == "点" else None
    if beside is not None:
        return *beside, None, True
    number = integer(scan, scan.gap(i))
    if number is None or number.value > 59 or len(number.digits) > 2:
        return i, 0, None, False
    end = scan.gap(number.end)
    if scan[end] == "分" and scan[end + 1] != "钟":
        second = integer(scan, scan.gap(end + 1))
        unit = 0 if second is None else scan.gap(second.end)
        if second is not None and second.value < 60 and scan[unit] == "秒":
            return unit + 1, number.value, second.value, True
        return end + 1, number.value, None, True
    if scan[i] == " ":
        return i, 0, None, False
    two = number.end - i >= 2 and (number.value >= 10 or scan[i] in "0零〇")
    if two and sign == "点" and scan[number.end] not in ("点", "个", "元", "%", "万"):
        return number.end, number.value, None, True
    return i, 0, None, False


def _hour(hour: int, part: str, minute: int) -> int:
    """The hour of 24 that a part of the day makes of an hour: 下午3 is 15, 晚上12 is 24, 夜里2 is 2.

    晚上12点半 is half past midnight.
    """
    if part.startswith(("下午", "午后", "傍晚")):
        return hour + 12 if hour < 12 else hour
    if part.startswith(("中午", "正午")):
        return hour + 12 if hour < 4 else hour
    if part.startswith("凌晨"):
        return hour % 12 if hour == 12 else hour
    if part.endswith("晚") or part[:1] in ("晚", "夜", "深", "午", "半") or part.endswith("夜"):
        if hour == 12 and minute:
            return 0
        first = 7 if part in ("夜里", "夜间", "深夜", "午夜", "半夜") else 5  # 半夜五点 is before dawn
        return hour + 12 if first <= hour <= 12 else hour
    return hour


def _written(hour: int, minute: int, second: int | None) -> str | None:
    """The ISO 8601 form of a time; None if there is no such time."""
    if hour > 24 or minute > 59 or (second or 0) > 60 or (hour == 24 and (minute or second)):
        return None
    return f"T{hour:02}:{minute:02}" + ("" if second is None else f":{second:02}")


def _offset(scan: Scan, i: int) -> Found | None:
    """10分钟前, 两个小时后. There is a value if the given day has a time."""
    length = scan.once(duration.length, i)
    side = None if length is None else _OFFSETS.at(scan, length.end)
    if length is None or side is None or length.unit not in duration.CLOCK:
        return None
    count = duration.seconds(length)
    if scan.now is None or count is None:
        return Found(side[0], None)
    try:
        moment = scan.now + timedelta(seconds=float(count) * side[1])
    except OverflowError:
        return Found(side[0], None)
    return Found(side[0], moment.isoformat(timespec="minutes" if length.unit != "S" else "seconds"))
