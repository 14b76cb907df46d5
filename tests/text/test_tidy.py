"""White space, emoji and invisible characters: what becomes of them, and that every character knows its place."""

import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tiny
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser
from hanlattice.text.tidy import (
    ALONE,
    LISTED,
    LISTED_LENGTH,
    SEGMENTED_LENGTH,
    SINGLE,
    SLACK,
    SYMBOL,
    WRAPPED,
    is_blank,
    is_symbol,
    needs_tidying,
    tidy,
)
from hanlattice.training.examples import annotated_windows

BLANKS = " \t\n\r\u3000\u00a0\u2028\x85"
INVISIBLE = "\u200b\u200d\ufeff\ufe0f\x00\x7f\xad"
SYMBOLS = f"😀👍🏽❤🇨🇳{SYMBOL}\ue000\ufffd⭐"
ALPHABET = f"中文小米手机aB1é，。、：（)\"'·…—#@.①㎏ＡＢ○e\u0301\ud800\udc00가{BLANKS}{INVISIBLE}{SYMBOLS}"
texts = st.text(st.sampled_from(ALPHABET) | st.characters(exclude_categories=()), max_size=60)
one_line = texts.map(lambda text: "".join(c for c in text if not (c.isspace() and c not in " \t\u3000")))
LETTERS = "山水木石火土田月日目口手足牛羊马鸟虫鱼天地人你我他大小多少上下左右前后东西南北"


def tidied(text: str) -> str:
    return tidy(text).text


def units_of(text: str) -> list[tuple[str, int, int]]:
    """The characters of the tidied text, each with its range in the original."""
    return list(zip(*tidy(text), strict=True))


@settings(deadline=None)
@given(texts)
@example("")
@example(" \n\u200b😀 ")
def test_every_range_lies_in_the_text_in_order_and_none_overlaps(text: str) -> None:
    units = units_of(text)
    assert all(0 <= start < end <= len(text) and len(character) == 1 for character, start, end in units)
    assert all(before[2] <= after[1] for before, after in pairwise(units))


@settings(deadline=None)
@given(texts)
def test_what_is_neither_blank_nor_a_symbol_is_all_there_in_order(text: str) -> None:
    kept = [c for c in text if not is_blank(c) and not is_symbol(c)]
    units = [unit for unit in units_of(text) if unit[0] != SYMBOL and not is_blank(text[unit[1]])]
    assert [character for character, _, _ in units] == kept
    assert all(text[start:end] == character for character, start, end in units)


class TestCommas:
    def test_a_blank_between_words_is_read_as_a_comma(self) -> None:
        assert tidied("今天去了北京 好开心") == "今天去了北京，好开心"
        assert tidied("今天去了北京\n好开心") == "今天去了北京，好开心"

    def test_a_word_of_one_character_keeps_its_blank(self) -> None:
        assert tidied("李 明来了") == "李 明来了"
        assert tidied("我是李 明") == "我是李 明"

    def test_none_beside_other_scripts_or_punctuation(self) -> None:
        assert tidied("我用 iPhone 手机") == "我用 iPhone 手机"
        assert tidied("好的。 北京") == "好的。北京"

    def test_in_a_list_of_names_it_is_the_mark_of_lists(self) -> None:
        assert tidied("张三丰 李四 王五") == "张三丰、李四、王五"
        assert tidied("俄\n澳门\n法国\n意大利\n西班牙\n葡萄牙") == "俄、澳门、法国、意大利、西班牙、葡萄牙"

    def test_text_that_is_cut_into_words_has_neither(self) -> None:
        assert tidied("今天 我 去 了 北京 。") == "今天我去了北京。"
        assert tidied("李明 在 北京") == "李明 在 北京"  # too short to tell

    def test_words_of_one_character_make_a_segmented_text(self) -> None:
        words = ["北京"] * 4 + ["去"]
        assert words.count("去") == SINGLE * len(words)
        assert tidied(" ".join(words)) == "".join(words)
        words = ["北京"] * 5 + ["去"]
        assert tidied(" ".join(words)) == "、".join(words)

    def test_the_words_of_a_segmented_text_are_short(self) -> None:
        words = ["去", "天津市", "天津市", "天津市", "天津"]
        assert sum(map(len, words)) < SEGMENTED_LENGTH * len(words)
        assert tidied(" ".join(words)) == "".join(words)
        assert tidied(" ".join([*words[:-1], "天津市"])) == "、".join([*words[:-1], "天津市"])

    def test_a_list_has_so_many_parts(self) -> None:
        parts = ["张三丰"] * LISTED
        assert tidied(" ".join(parts)) == "、".join(parts)
        assert tidied(" ".join(parts[1:])) == "，".join(parts[1:])

    def test_the_parts_of_a_list_are_short(self) -> None:
        short = ["天" * LISTED_LENGTH] * LISTED
        long = [*short[1:], "天" * (LISTED_LENGTH + 1)]
        assert tidied(" ".join(short)) == "、".join(short)
        assert tidied(" ".join(long)) == "，".join(long)

    def test_a_list_has_no_other_punctuation(self) -> None:
        assert tidied("张三丰 李四 王五来了。") == "张三丰，李四，王五来了。"

    def test_the_comma_stands_for_the_range_of_the_blank(self) -> None:
        assert units_of("北京 \n上海")[2] == ("，", 2, 4)


@settings(deadline=None)
@given(texts)
def test_what_is_left_of_blanks_and_symbols_has_few_forms(text: str) -> None:
    found = tidied(text)
    assert not any(is_blank(c) for c in found if c not in " \n")
    assert not any(is_symbol(c) for c in found if c != SYMBOL)
    assert found == found.strip(" \n")
    assert not any(a in " \n" and b in " \n" for a, b in pairwise(found))
    assert SYMBOL * 2 not in found
    for character, start, end in units_of(text):
        if character in f" \n{SYMBOL}":
            assert all(is_blank(c) or is_symbol(c) for c in text[start:end])
            assert any(is_symbol(c) for c in text[start:end]) == (character == SYMBOL)


@settings(deadline=None)
@given(one_line)
@example("a b c , 中 文 好")
@example("小 米 ， 手 机 ， 好 看")
def test_what_was_tidied_stays_as_it_is(text: str) -> None:
    """But for line ends: that of a paragraph is no longer told from one amid a paragraph."""
    once = tidied(text)
    assert tidied(once) == once


@settings(deadline=None)
@given(texts)
def test_what_needs_no_tidying_is_left_alone(text: str) -> None:
    if not needs_tidying(text):
        assert tidied(text) == text
        assert all(end == start + 1 for _, start, end in units_of(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        (" \t\u3000 ", ""),
        ("\u200b\ufeff\x00", ""),
        ("李\u200b明\ufeff", "李明"),
        ("李明  在\u3000北京", "李明 在 北京"),
        ("李明 \n 在北京", "李明，在北京"),
        ("李明\r\nin\u2028北京\x85ok", "李明\nin\n北京\nok"),
        ("今天😀😀👍🏽好", f"今天{SYMBOL}好"),
        ("今天\ud83d好\ude00", f"今天{SYMBOL}好{SYMBOL}"),
        ("❤️李明❤\ufe0f❤", f"{SYMBOL}李明{SYMBOL}"),
        ("👨\u200d👩\u200d👧和🇨🇳", f"{SYMBOL}和{SYMBOL}"),
        ("好\ue000\ufffd的", f"好{SYMBOL}的"),
        ("😀 😀", f"{SYMBOL} {SYMBOL}"),
        ("你好 ， 李明 。", "你好，李明。"),
        ("New York, USA", "New York, USA"),
        ("你好, world", "你好, world"),
        ("他说: “好” 。", "他说:“好”。"),
        ("李明\n，王伟", "李明\n，王伟"),
        ("二○○一年", "二○○一年"),
    ],
)
def test_forms(text: str, expected: str) -> None:
    assert tidied(text) == expected


class TestCharactersThatStandAlone:
    def test_the_blanks_go_from_so_many_on(self) -> None:
        assert tidied(" ".join(LETTERS[: ALONE - 1])) == " ".join(LETTERS[: ALONE - 1])
        assert tidied(" ".join(LETTERS[:ALONE])) == LETTERS[:ALONE]
        assert tidied("\n".join(LETTERS[:ALONE])) == LETTERS[:ALONE]

    def test_punctuation_may_stand_with_them(self) -> None:
        assert tidied("“小 米” 手 机， 好 看 。") == "“小米”手机，好看。"

    def test_a_word_ends_the_run(self) -> None:
        words = "小 米 ok 好"
        assert tidied(words) == words
        assert tidied("小 米 手 机 好 ok 看了") == "小米手机好 ok 看了"

    def test_half_of_them_have_to_be_chinese(self) -> None:
        assert tidied("a b c d e f") == "a b c d e f"
        assert tidied("a b c 小 米 手") == "abc小米手"
        assert tidied("a b c d 小 米 手") == "a b c d 小米手"

    def test_each_character_keeps_its_place(self) -> None:
        assert [unit[1:] for unit in units_of("小 米 手 机 好")] == [(0, 1), (2, 3), (4, 5), (6, 7), (8, 9)]


class TestWrappedLines:
    def lines(self, *lengths: int) -> list[str]:
        return [(LETTERS * 3)[:length] for length in lengths]

    def test_lines_of_one_length_are_joined(self) -> None:
        lines = self.lines(20, 20, 7)
        assert tidied("\n".join(lines)) == "".join(lines)

    def test_blanks_around_the_text_do_not_count(self) -> None:
        lines = self.lines(20, 20 + SLACK)
        for before, after in ((" ", ""), ("", " "), ("\n", "\n")):
            assert tidied(before + "\n".join(lines) + after).strip() == "".join(lines)
        longer = self.lines(20, 21 + SLACK)
        assert tidied("\n".join(longer)) != "".join(longer)

    def test_from_a_length_on(self) -> None:
        for length in (WRAPPED - 1, WRAPPED):
            lines = self.lines(length, length, 3)
            assert (tidied("\n".join(lines)) == "".join(lines)) == (length == WRAPPED)

    def test_lengths_may_differ_by_a_little(self) -> None:
        for shorter in (SLACK, SLACK + 1):
            lines = self.lines(30, 30 - shorter, 30)
            assert (tidied("\n".join(lines)) == "".join(lines)) == (shorter == SLACK)

    def test_a_sentence_that_ends_with_its_line_stays(self) -> None:
        first, second = self.lines(20, 20)
        assert tidied(f"{first[:-1]}。\n{second}") == f"{first[:-1]}。\n{second}"

    def test_an_empty_or_indented_line_begins_a_paragraph(self) -> None:
        first, second = self.lines(20, 20)
        for between in ("\n\n", "\r\n\r\n", "\n \n", "\n\u3000", "\n\u3000\u3000", "\n\t", "  \n"):
            assert tidied(f"{first}{between}{second}") == f"{first}，{second}"
        for between in ("\n", "\r\n", "\u2028", " \n", "\n\ufeff"):
            assert tidied(f"{first}{between}{second}") == first + second


@pytest.mark.parametrize("unit", ["中 ", "a😀 \n"])
def test_a_million_characters_take_linear_time(unit: str) -> None:
    takes_linear_time(unit, 1_000_000)


@pytest.mark.parametrize(
    "unit",
    [" ", "\n", " \n", "😀", "😀 ", "\u200b", "\u200b ", "中", "中 ", "， ", "a 中 b ", f"{LETTERS[:WRAPPED]}\n",
     "\ud800", "a😀 \n", "❤\ufe0f", "“ ” "],
)  # fmt: skip
def test_characters_of_any_kind_take_linear_time(unit: str) -> None:
    """With quadratic time even a step of 0.1 ns would take longer than the limit."""
    takes_linear_time(unit, 250_000)


def takes_linear_time(unit: str, length: int) -> None:
    text = (unit * length)[:length]
    normaliser = Normaliser(tidy=True, simplify=True)
    began = time.process_time()
    found = normaliser(text)
    assert time.process_time() - began < 12e-6 * length
    assert len(found.starts) == len(found.text) <= len(text)


class TestNormaliser:
    @settings(deadline=None)
    @given(texts, st.booleans())
    def test_nfkc_comes_after_it(self, text: str, simplify: bool) -> None:
        normal = Normaliser(tidy=True)(text)
        assert normal.text == unicodedata.normalize("NFKC", tidied(text))
        simplified = Normaliser(tidy=True, simplify=simplify)(text)
        assert simplified.text == Normaliser(simplify=simplify)(tidied(text)).text

    @settings(deadline=None)
    @given(texts)
    def test_offsets_lie_in_the_text_in_order(self, text: str) -> None:
        normal = Normaliser(tidy=True)(text)
        assert len(normal.text) == len(normal.starts) == len(normal.ends)
        rows = list(zip(normal.starts.tolist(), normal.ends.tolist(), strict=True))
        assert all(0 <= start < end <= len(text) for start, end in rows)
        assert all(a == b or a[1] <= b[0] for a, b in pairwise(rows))

    @settings(deadline=None)
    @given(texts, st.data())
    def test_a_range_that_is_mapped_to_and_fro_holds_itself(self, text: str, data: st.DataObject) -> None:
        normal = Normaliser(tidy=True)(text)
        n = len(normal.text)
        start, end = sorted(data.draw(st.tuples(st.integers(0, n), st.integers(0, n))))
        if start < end:
            there = normal.original(start, end)
            first, last = normal.normalised(*there)
            assert first <= start
            assert end <= last
            assert normal.original(first, last) == there

    @settings(deadline=None)
    @given(st.lists(texts, max_size=5))
    def test_many_texts_at_once_are_as_one_by_one(self, several: list[str]) -> None:
        normaliser = Normaliser(tidy=True, simplify=True)
        for many, one in zip(normaliser.all(several), map(normaliser, several), strict=True):
            assert many.text == one.text
            assert many.starts.tolist() == one.starts.tolist()
            assert many.ends.tolist() == one.ends.tolist()

    @settings(deadline=None)
    @given(st.lists(texts.map(lambda text: text.replace("\0", "")), min_size=1, max_size=6), st.booleans())
    def test_words_joined_by_nul_characters_keep_their_number(self, words: list[str], tidy: bool) -> None:
        normaliser = Normaliser(tidy=tidy, simplify=True)
        found = normaliser.words("\0".join(words)).split("\0")
        assert found == [normaliser(word).text for word in words]

    def test_it_follows_the_settings(self) -> None:
        settings = Config().with_settings({"text": {"tidy": True, "lower": True}}).text
        assert Normaliser.of(settings) == Normaliser(lower=True, tidy=True)


class TestWords:
    def test_a_word_of_which_nothing_is_left_is_none(self) -> None:
        lexicon = Lexicon(["北 京 市 海 淀 区", "\u200b", " "], Normaliser(tidy=True).words)
        assert list(lexicon) == ["北京市海淀区"]
        lexicon.remove("\u200b")
        assert "\u200b" not in lexicon
        assert " 北京市海淀区\n" in lexicon

    def test_words_are_found_as_texts_are_read(self) -> None:
        lexicon = Lexicon(["李\u200b明", "New  York"], Normaliser(tidy=True).words)
        assert lexicon.words_of(lexicon.match("李明在New York")) == ["李明", "New York"]


@pytest.fixture(scope="module")
def ner() -> NER:
    """The model of the small world, which tidies what it reads."""
    whole = tiny.ner()
    return NER(whole.engine, whole.vocabulary, whole.lexicon, whole.config.with_settings({"text": {"tidy": True}}))


class TestEntities:
    @settings(deadline=None, max_examples=60)
    @given(
        st.lists(
            st.sampled_from(["李明", "在", "北京", "工作", "。", "人和药店", *BLANKS, *INVISIBLE, *SYMBOLS]) | texts
        )
    )
    def test_the_text_of_an_entity_is_that_of_its_offsets(self, ner: NER, parts: list[str]) -> None:
        text = "".join(parts)
        document = ner(text)
        assert document.text == text
        for entity in document.entities:
            assert text[entity.start : entity.end] == entity.text
            assert not any(is_blank(end) or is_symbol(end) for end in (entity.text[0], entity.text[-1]))
        assert all(a.end <= b.start for a, b in pairwise(document.entities))

    @pytest.mark.parametrize(
        ("text", "person"),
        [
            ("李\u200b明在北京工作。", "李\u200b明"),
            ("\ufeff 李明在北京工作。", "李明"),
            ("李 明 在 北 京 工 作 。", "李 明"),
            ("\n\n李明在北京工作。\n", "李明"),
        ],
    )
    def test_a_name_is_found_through_white_space_and_symbols(self, ner: NER, text: str, person: str) -> None:
        assert person in [entity.text for entity in ner(text).entities if entity.label == "PER"]

    def test_windows_of_a_long_text(self, ner: NER) -> None:
        text = "李\u200b明在北京工作。 \u3000" * 300
        found = ner(text)
        assert sum(entity.text == "李\u200b明" for entity in found.entities) == 300


def test_spans_of_training_data_go_through_it_nested_or_in_pieces() -> None:
    text = "他 上 肢 ，和下\u200b肢都😀😀疼\n痛。"
    at = text.index
    whole = Entity(text[at("下") : at("痛") + 1], "SYM", at("下"), at("痛") + 1)
    inner = Entity("下\u200b肢", "BODY", at("下"), at("下") + 3)
    ends = ((at("上"), at("肢") + 1), (at("疼"), at("痛") + 1))
    apart = Entity(text[ends[0][0] : ends[1][1]], "SYM", ends[0][0], ends[1][1], fragments=ends)
    config = Config().with_settings({"text": {"tidy": True}})
    normaliser = Normaliser.of(config.text)
    (window,), lost = annotated_windows([Document(text, (apart, whole, inner))], config.text, normaliser)
    said = {("".join(window.text[a:b] for a, b in span.fragments), span.label) for span in window.spans}
    assert said == {("上 肢疼\n痛", "SYM"), (f"下肢都{SYMBOL}疼\n痛", "SYM"), ("下肢", "BODY")}
    assert lost == 0
    normal = normaliser(text)
    back = {span.mapped(normal.original) for span in window.spans}
    assert back == {Span.of(ends, "SYM"), Span(whole.start, whole.end, "SYM"), Span(inner.start, inner.end, "BODY")}


def test_an_entity_of_nothing_but_dropped_characters_is_counted_as_lost() -> None:
    config = Config().with_settings({"text": {"tidy": True}})
    document = Document("李\u200b明", (Entity("\u200b", "PER", 1, 2),))
    (window,), lost = annotated_windows([document], config.text, Normaliser.of(config.text))
    assert (window.spans, lost) == ((), 1)
