"""Days without their month in a text: 15日, 15号; and 15日 that are fifteen days, as in 15日内 and 拘留15日."""

import re

from hanlattice.patterns.calendar import UNKNOWN, Calendar, Dated
from hanlattice.patterns.part_of_year import day_with_unit
from hanlattice.patterns.scan import DIGITS, Scan

# 内 in 16日内塔尼亚胡 and 前 in 16日前往 are parts of other words.
_INSIDE = re.compile("[之以]?内(?![塔蒙瓦阁地政贾罗马])|以[上下]")
_BEFORE = re.compile("[之以]?前(?![往后夕来去])")
# Before a number of days, and the events that 前 refers to.
_COUNTING = re.compile(
    "(?:拘留|逾期|超过|少于|多于|连续|过去|为期|期限|(?<![日产预])期为|期限为|提前|满|[长已多]达|未来|(?<![附将])近"
    "|至少|最[多少长短]|不足|延长|每隔?|历时|持续|停留)\\Z"
)
_EVENT = re.compile("(?:召开|举行|举办|届满|期满|开始|开庭|实施|登记|会议)的?\\Z")
_OF_A_MONTH = re.compile("(?:月的?|初)\\Z")
_AT_A_TIME = re.compile("[上下中]午|凌晨|清晨|[早晚起] ?| ?[0-9]")
_LONGEST_SIGN = 6  # characters before a number that decide what it is

_OTHER_THAN_DAYS = re.compile("[游线]|均线")
_MORE_DAYS = re.compile("(?:[、,和与及至到~–—-][0-9]{1,2}号){0,8}")
# What may follow a day with 号: the end, punctuation, a pronoun, or what begins a predicate or a time. A noun makes
# the number one of several things, as in 2号仓库 and 10号染色体.
_AFTER_A_DAY = re.compile(
    r"\Z|[\s、,.。;；!?！？…~～)(\[\]:~–—-]|[今明昨][天日]|零点|出(?!口)|下(?![水铺])|会(?![议场客])|前(?![锋台哨])"
    "|开(?!关)|发(?![电动])|公[布开示告]|[我你他她它咱您这那谁就才都也还又再已正将要可能不没别一以之后左至到在从把给是有等的了过"
    "吗呢吧啊呀哦嘛么喔上中凌早晚半夜周星礼当买卖送收订退换取付交用签派购拍看见说问只打住入来去走离回飞拿举起直预考休转刚该"
    "放停封宣启续确结寄搬约聚抵赴返降落登]"
)
# At the start of a clause a number above those of buildings and players is a day, unless such a thing follows it.
_CLAUSE = re.compile(r"(?:\A|[\s、,.。;；!?！？:：…])(?:[0-9]{1,2}[日号]?[至到~–—-])?\Z")
_THING = re.compile(
    "[线楼门房院馆厅桌车床位台机井坑令文室店厂桥港口洞船塔场地段球]|会[议场]|出口|卫星|高炉|机组|[公产]"
)
_HIGHEST_OF_THINGS = 12
# 今天15号, and the end of a range that begins with a month: 3月5-15号.
_SURE = re.compile("(?:[今明昨][天日]|月[0-9]{1,2}[日号]?[、至到~–—-])\\Z")
_NAMES = (
    "嫦娥", "神舟", "天宫", "长征", "北斗", "东风", "天问", "玉兔", "风云", "中星", "遥感", "实践", "华龙", "雪龙",
    "蛟龙", "天舟",
)  # fmt: skip
# Before a number with 号 that is not a day: the street, house or part of a house, as in 中山路15、16号, or 第. The
# characters after (?<! are those of other words, such as 铁路, 知道 and 法院.
_ADDRESS = re.compile(
    "(?:(?<![公铁线道])路|(?<![知报轨渠通隧频])道|(?<![法医学务察影剧])院|(?<![景地])区|(?<![公儿校])园"
    "|(?<![家这那哪村城店])里|[街巷弄村镇座幢栋厦附第]|胡同|单元|[一二三四五六七八九十]条"
    "|[0-9一二三四五六七八九十号东西南北中]楼) ?[甲乙丙附]?(?:[0-9]{1,4}(?: ?、|号? ?[-~–—至到]) ?){0,4}\\Z"
)
_LONGEST_ADDRESS = 32  # characters before a number


def counts_days(scan: Scan, start: int, unit: int) -> bool:
    """Whether 日 at ``unit``, after a number that begins at ``start``, counts days: 15日内, 拘留15日, 召开15日前.

    十日前 in Chinese numerals counts them, too; 15日前 mostly is a date.
    """
    begin = max(0, start - _LONGEST_SIGN)
    if scan[unit] != "日" or _OF_A_MONTH.search(scan.text, begin, start) is not None:
        return False
    if _INSIDE.match(scan.text, unit + 1) is not None:
        return True
    if _BEFORE.match(scan.text, unit + 1) is not None and (
        scan[start] not in DIGITS or _EVENT.search(scan.text, begin, start) is not None
    ):
        return True
    is_a_time = _AT_A_TIME.match(scan.text, unit + 1) is not None
    return not is_a_time and _COUNTING.search(scan.text, begin, start) is not None


def day_alone(scan: Scan, i: int) -> Dated | None:
    """15日 or 15号, in Arabic digits, and not in an address. 3日后 has no value: it may be after three days."""
    found = day_of_month(scan, i) if scan[i] in DIGITS else None
    if found is None or scan[i - 1] == "第" or (scan[i - 1] == "月" and scan[i - 2] in DIGITS):
        return None
    if scan[found.end - 1] == "日":
        after = scan.starts(found.end, "以后", "之后", "后")
        return Dated(after, UNKNOWN) if after > 0 else found
    is_name = scan.follows(i, _NAMES) or _ADDRESS.search(scan.text, max(0, i - _LONGEST_ADDRESS), i) is not None
    return None if is_name else found


def day_of_month(scan: Scan, i: int) -> Dated | None:
    """15日 or 十五号 that is not a number of days, such as 十五日内, or of something else, such as 二号楼."""
    found = day_with_unit(scan, i)
    if found is None:
        return None
    end, day = found
    if scan[end - 1] == "号":
        is_a_day = _is_a_day(scan, i, end, day)
    else:
        is_a_day = _OTHER_THAN_DAYS.match(scan.text, end) is None and not counts_days(scan, i, end - 1)
    return Dated(end, Calendar(day=day)) if is_a_day else None


def _is_a_day(scan: Scan, start: int, end: int, day: int) -> bool:
    """Whether a number with 号 is a day, to judge by what follows it and others: 5号、6号去, not 5号、6号仓库.

    Between commas, as in a list of players, it is not.
    """
    begin = max(0, start - _LONGEST_SIGN)
    if _SURE.search(scan.text, begin, start) is not None:
        return True
    more = _MORE_DAYS.match(scan.text, end)
    after = end if more is None else more.end()
    is_listed = scan[start - 1] in ("、", ",") and scan[start - 2] not in ("号", "日") and scan[end] in ("、", ",")
    if is_listed and after == end:
        return False
    if _AFTER_A_DAY.match(scan.text, after) is not None:
        return True
    starts_a_clause = day > _HIGHEST_OF_THINGS and _CLAUSE.search(scan.text, begin, start) is not None
    return starts_a_clause and _THING.match(scan.text, after) is None
