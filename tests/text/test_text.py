import itertools
import pickle
import sys
import time
import unicodedata

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from hanlattice.errors import HanlatticeError
from hanlattice.kernels.library import kernels
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser, _Table
from hanlattice.text.windows import Window, sentences, windows, windows_of_texts
from merged import merged

# Characters that expand, compose, reorder, stay, or sit at the edges of these, besides anything else.
TRICKY = (
    "e\u0301\u0323\u0327a\u030aㄱㅏ가각ㅠㅋｶﾞﾊﾟがは\u3099㎏㎡…ﷺﬁ①½ＡＢ１２，。！\u3000 　\t\r\nİΣßK"
    "กำा\u09c7\u09be\u0b47\u0b57\U00011131\U00011127😀👨‍👩‍👧🇨🇳\u200d\ufe0f\ud800\udc00中国國豈\U0002f800\x00\u0344\u1e9b"
)
texts = st.text(st.sampled_from(TRICKY) | st.characters(exclude_categories=()), max_size=40)


def second_characters() -> set[str]:
    """Every character that canonical composition can join to the one before it, from the Unicode data."""
    pairs = (unicodedata.decomposition(chr(code)).split() for code in range(sys.maxunicode + 1))
    found = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and not pair[0].startswith("<")}
    return found | set(map(chr, range(0x1161, 0x1176))) | set(map(chr, range(0x11A8, 0x11C3)))


@given(texts)
@example("e\u0301中㎏")
@example("ㄱㅏㅠㅠ")
@example("\ud83d\ude00")
def test_nfkc_is_exactly_that_of_the_whole_text(text: str) -> None:
    assert Normaliser()(text).text == unicodedata.normalize("NFKC", text)


def test_every_character_is_normalised_as_unicode_says() -> None:
    everything = "".join(chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000)
    assert Normaliser()(everything).text == unicodedata.normalize("NFKC", everything)


def test_no_cut_is_made_before_a_character_that_composes() -> None:
    text = "".join(f"中{second}" for second in sorted(second_characters()))
    normal = Normaliser()(text)
    assert normal.text == unicodedata.normalize("NFKC", text)
    for first in ("e", "\u09c7", "\u1100", "가", "\u0b47", "\u1b05"):
        for second in second_characters():
            normal = Normaliser()(first + second)
            assert normal.text == unicodedata.normalize("NFKC", first + second), (first, second)


@given(texts, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_offsets_cover_the_text_in_order(text: str, nfkc: bool, lower: bool, digits: bool, simplify: bool) -> None:
    normal = Normaliser(nfkc, lower, digits, simplify)(text)
    assert len(normal.text) == len(normal.starts) == len(normal.ends)
    assert normal.starts.dtype == normal.ends.dtype == np.int32
    ranges = list(dict.fromkeys(zip(normal.starts.tolist(), normal.ends.tolist(), strict=True)))
    assert [0, *(end for _, end in ranges)] == [*(start for start, _ in ranges), len(text)]


@given(texts)
def test_each_piece_normalises_to_what_it_is_mapped_to(text: str) -> None:
    normal = Normaliser()(text)
    ranges = dict.fromkeys(zip(normal.starts.tolist(), normal.ends.tolist(), strict=True))
    assert "".join(unicodedata.normalize("NFKC", text[start:end]) for start, end in ranges) == normal.text


@given(st.lists(texts, max_size=5))
@example(["e", "\u0301", "", "㎏", "中"])
@example([])
def test_many_texts_at_once_are_as_one_by_one(several: list[str]) -> None:
    for many, one in zip(
        Normaliser(simplify=True).all(several), map(Normaliser(simplify=True), several), strict=True
    ):
        assert many.text == one.text
        assert many.starts.tolist() == one.starts.tolist()
        assert many.ends.tolist() == one.ends.tolist()


@pytest.mark.skipif(kernels() is None, reason="the kernels are not compiled")
@given(st.lists(st.text("北京國，Ａa１㎏é\u0301☺ \0\ud800", max_size=20), max_size=3), st.booleans(), st.booleans())
def test_the_kernel_translates_as_numpy_does(several: list[str], lower: bool, tidy: bool) -> None:
    normaliser = Normaliser(lower=lower, simplify=True, tidy=tidy)
    by_kernel, by_numpy = _Table(normaliser, kernels()), _Table(normaliser)
    for text in several:
        assert by_kernel.translated(text) == by_numpy.translated(text)


def test_a_normaliser_that_was_used_is_pickled_without_its_tables() -> None:
    normaliser = Normaliser(simplify=True)
    normaliser("東京")
    again = pickle.dumps(normaliser)
    assert len(again) < 1000
    assert pickle.loads(again) == normaliser
    assert pickle.loads(again)("東京").text == "东京"


@pytest.mark.parametrize(
    ("text", "is_aligned"),
    [
        ("中國，１", True),
        ("重㎏", False),
        ("e\u0301中", False),
        ("\u0301中", True),
        ("中 国", True),
        (" 中国", False),
        ("", True),
    ],
)
def test_which_texts_need_arrays_of_origins(text: str, is_aligned: bool) -> None:
    """Only those that become longer or shorter, wherever they are among the others."""
    normaliser = Normaliser(simplify=True, tidy=True)
    found = normaliser.all(["国", text, "", "中"])
    assert [*found.moved] == ([] if is_aligned else [1])
    assert found[1].is_aligned == is_aligned
    assert found.texts == [one.text for one in found] == ["国", normaliser(text).text, "", "中"]
    assert [one.text for one in found[1:3]] == found.texts[1:3]


@given(texts, st.data())
def test_spans_go_back_and_forth(text: str, data: st.DataObject) -> None:
    normal = Normaliser()(text)
    assume(normal.text)
    start = data.draw(st.integers(0, len(normal.text) - 1))
    end = data.draw(st.integers(start + 1, len(normal.text)))
    first, last = normal.original(start, end)
    assert 0 <= first < last <= len(text)
    wide_start, wide_end = normal.normalised(first, last)
    assert wide_start <= start < end <= wide_end
    assert normal.original(wide_start, wide_end) == (first, last)


@given(texts, st.booleans(), st.booleans())
def test_the_other_options_work_character_by_character(text: str, lower: bool, digits: bool) -> None:
    expected = unicodedata.normalize("NFKC", text)
    if lower:
        expected = "".join(character.lower() for character in expected)
    if digits:
        expected = "".join("0" if character.isdigit() else character for character in expected)
    assert Normaliser(lower=lower, digits=digits)(text).text == expected


@pytest.mark.parametrize(
    ("text", "normal", "origin"),
    [
        ("", "", []),
        ("中国", "中国", [(0, 1), (1, 2)]),
        ("Ａ１，", "A1,", [(0, 1), (1, 2), (2, 3)]),
        ("5㎏米", "5kg米", [(0, 1), (1, 2), (1, 2), (2, 3)]),
        ("cafe\u0301店", "café店", [(0, 1), (1, 2), (2, 3), (3, 5), (5, 6)]),
        ("\u1112\u1161\u11ab국", "한국", [(0, 3), (3, 4)]),
        ("녕ㅠㅠ", "녕\u1172\u1172", [(0, 1), (1, 2), (2, 3)]),
        ("ｶﾞｽ", "ガス", [(0, 2), (2, 3)]),
        ("ﬁn", "fin", [(0, 1), (0, 1), (1, 2)]),
        ("e\u0301\u0323", "ẹ\u0301", [(0, 3), (0, 3)]),
        ("a😀\u3000b", "a😀 b", [(0, 1), (1, 2), (2, 3), (3, 4)]),
        ("\ud83d，", "\ud83d,", [(0, 1), (1, 2)]),
    ],
)
def test_where_characters_come_from(text: str, normal: str, origin: list[tuple[int, int]]) -> None:
    found = Normaliser()(text)
    assert found.text == normal
    assert list(zip(found.starts.tolist(), found.ends.tolist(), strict=True)) == origin


def test_a_character_that_expanded_is_never_split() -> None:
    normal = Normaliser()("重5㎏的")  # 重5kg的
    assert normal.original(2, 3) == normal.original(3, 4) == normal.original(2, 4) == (2, 3)
    assert normal.normalised(2, 3) == (2, 4)
    assert normal.original(0, 3) == (0, 3)


def test_empty_spans_stay_empty() -> None:
    normal = Normaliser()("5㎏")
    assert [normal.original(i, i) for i in (0, 1, 3)] == [(0, 0), (1, 1), (2, 2)]
    assert Normaliser()("").original(0, 0) == (0, 0)
    assert normal.normalised(2, 2) == (3, 3)


def test_simplification_follows_the_table_of_opencc() -> None:
    assert Normaliser(simplify=True)("中華民國臺灣後來發現頭髮在裡面").text == "中华民国台湾后来发现头发在里面"
    assert Normaliser(simplify=True)("乾於徵瞭著藉覆甚").text == "干于征瞭著藉覆甚"
    assert Normaliser(nfkc=False, simplify=True)("國，１").text == "国，１"
    opencc = pytest.importorskip("opencc", reason="opencc is only needed to check the stored table")
    convert = opencc.OpenCC("t2s").convert
    common = [chr(code) for code in range(0x4E00, 0xA000)]
    expected = "".join(convert(convert(character)) for character in common)  # 薴 becomes 苧, which becomes 苎
    assert Normaliser(nfkc=False, simplify=True)("".join(common)).text == expected


def test_a_million_characters_take_well_under_a_second() -> None:
    text = ("中国人民银行（北京）２０２４年公布，《人民日报》：“你好……”！" * 40_000)[:1_000_000]
    normalise = Normaliser()
    normalise(text[:100])
    began = time.process_time()
    normal = normalise(text)
    assert time.process_time() - began < 1
    assert normal.text == unicodedata.normalize("NFKC", text)


def test_piled_up_marks_do_not_take_forever() -> None:
    text = "a" + "\u0301" * 200_000
    began = time.process_time()
    assert Normaliser()(text).text == unicodedata.normalize("NFKC", text)
    assert time.process_time() - began < 2


def test_piled_up_marks_in_another_order_do_not_take_forever() -> None:
    n = 50_000
    began = time.process_time()
    assert Normaliser()("b" + "\u0301\u0327" * n).text == "b" + "\u0327" * n + "\u0301" * n
    assert time.process_time() - began < 2


@given(st.text(st.sampled_from("e\u0301\u0323\u0327\u0344\u0f71\u0f72\u0f73\u0fb7\u3099か가\u11a8ﾞ"), min_size=33))
def test_a_long_pile_of_marks_is_normalised_like_a_short_one(text: str) -> None:
    assert Normaliser()(text).text == unicodedata.normalize("NFKC", text)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("", []),
        ("你好", ["你好"]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("他说：“走吧。”她点头……然后呢？！", ["他说：“走吧。”", "她点头……", "然后呢？！"]),
        ("（真的！）好；行", ["（真的！）", "好；", "行"]),
        ("标题\r\n\r\n  正文。\n“引", ["标题\r\n\r\n  ", "正文。\n", "“引"]),
        ("\n\n", ["\n\n"]),
        ("我们11个\n中国学生\r\n和老师。\n来", ["我们11个\n中国学生\r\n和老师。\n", "来"]),
        ("第一章\r\n　　某年\u2029某月", ["第一章\r\n　　", "某年\u2029", "某月"]),
    ],
)
def test_sentences(text: str, pieces: list[str]) -> None:
    assert [text[start:end] for start, end in sentences(text)] == pieces


prose = st.text(st.sampled_from("中国人民，、。！？；…”」 \nab"), max_size=120)
sizes = st.integers(1, 20).flatmap(lambda size: st.tuples(st.just(size), st.integers(0, size - 1)))


@given(prose)
def test_sentences_cover_the_text(text: str) -> None:
    found = sentences(text)
    assert "".join(text[start:end] for start, end in found) == text
    assert all(start < end for start, end in found)


@given(prose, sizes)
def test_windows_fit_and_their_cores_partition_the_text(text: str, limits: tuple[int, int]) -> None:
    size, overlap = limits
    found = windows(text, size, overlap)
    assert [0, *(window.core_end for window in found)] == [
        *(window.core_start for window in found),
        len(text),
    ]
    for window in found:
        assert window.start <= window.core_start < window.core_end <= window.end
        assert window.end - window.start <= size


@given(prose, sizes, st.booleans(), st.data())
def test_merging_what_every_window_sees_finds_every_span_once(
    text: str, limits: tuple[int, int], nested: bool, data: st.DataObject
) -> None:
    size, overlap = limits
    found = windows(text, size, overlap)
    spans = set()
    for start, end in sentences(text):
        cuts = sorted(data.draw(st.sets(st.integers(start, end), max_size=8)))
        pairs = [(a, b) for a in cuts for b in cuts if a < b] if nested else itertools.pairwise(cuts)
        # A sentence in one window needs no overlap; elsewhere spans up to the overlap are promised.
        whole = end - start <= size
        spans |= {Span(a, b, data.draw(st.sampled_from("PL"))) for a, b in pairs if whole or b - a <= overlap}
    seen = [[span.moved(-w.start) for span in spans if w.start <= span.start and span.end <= w.end] for w in found]
    assert sorted(merged(found, seen, nested)) == sorted(spans)


def test_short_sentences_are_packed_and_long_ones_cut_at_a_comma() -> None:
    assert windows("一二。三四。五六。", 6, 2) == [Window(0, 6, 0, 6), Window(6, 9, 6, 9)]
    text = "一二三四五六，八九十一二三四五"
    assert windows(text, 10, 2) == [Window(0, 8, 0, 7), Window(6, 15, 7, 15)]
    assert windows("", 10, 2) == []


def test_a_name_across_a_wrapped_line_is_seen_whole() -> None:
    lines = "今天我和小王去看了住在河边的王\n国维和他的朋友，后来又一起去城里的一家\n老书店坐了一个下午"
    at = lines.index("王\n国维")
    name = Span(at, at + 4, "PER")
    for size in range(18, 40):
        found = windows(lines, size, 8)
        seen = [[name.moved(-w.start)] if w.start <= at and at + 4 <= w.end else [] for w in found]
        assert merged(found, seen) == [name]
    assert windows(lines, 20, 2)[0].core_end == lines.index("\n") + 1


def test_a_span_with_gaps_is_moved_piece_by_piece() -> None:
    spans = [[], [Span.of([(1, 2), (4, 6)], "P")]]
    assert merged([Window(0, 8, 0, 6), Window(4, 10, 6, 10)], spans) == [Span.of([(5, 6), (8, 10)], "P")]


def test_windows_that_disagree_give_no_overlapping_spans() -> None:
    text = "一二三四五六七八九十"
    first, second = windows(text, 8, 4)[:2]
    assert (first, second) == (Window(0, 8, 0, 6), Window(4, 10, 6, 10))
    seen = [[Span(4, 7, "P")], [Span(1, 6, "P")]]
    assert merged([first, second], seen) == [Span(4, 7, "P")]
    assert merged([first, second], seen, nested=True) == [Span(4, 7, "P"), Span(5, 10, "P")]


@pytest.mark.parametrize(("size", "overlap"), [(0, 0), (5, 5), (5, -1)])
def test_impossible_windows_are_an_error(size: int, overlap: int) -> None:
    with pytest.raises(HanlatticeError, match="cannot overlap by"):
        windows("中国", size, overlap)


@given(st.lists(prose, max_size=4), sizes)
def test_windows_of_several_texts_are_those_of_each(texts: list[str], limits: tuple[int, int]) -> None:
    cut = windows_of_texts(texts, *limits)
    expected = [windows(text, *limits) for text in texts]
    assert [cut.of(i) for i in range(len(texts))] == expected
    flat = [(i, w) for i, own in enumerate(expected) for w in own]
    assert list(cut.texts) == [texts[i][w.start : w.end] for i, w in flat]
    assert list(zip(cut.owner, cut.start, strict=True)) == [(i, w.start) for i, w in flat]
    assert list(cut.first) == [sum(map(len, expected[:i])) for i in range(len(texts) + 1)]
