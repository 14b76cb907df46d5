"""Word pieces pooled to characters, against the slowest program that states the rule.

Faults that go red here: a character that reads its neighbour's piece; a piece read where its window is cut; a
stretch of several unknown characters read as one; marks of the tokenizer read as characters.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

pytest.importorskip("transformers", reason="the extra 'pretrained' is not installed")

import tiny_language_models
from hanlattice.embeddings.language_model import open_language_model
from hanlattice.embeddings.low_rank import LowRank, adapt
from hanlattice.embeddings.pretrained import POOLINGS, Pretrained, build_pretrained
from hanlattice.embeddings.queried import Queried
from hanlattice.embeddings.subwords import SubwordReader, windows
from hanlattice.errors import ModelError
from hanlattice.inputs.batch import Batch, Words

TEXTS = (
    "重庆人和药店",
    "今天天气很好",  # 气 is unknown
    "hello重庆abc 12!",
    " 北京\n\t上海  ",
    "",
    "   ",
    "ＨＥＬＬＯ１２３",
    "㍿北ﬁİ京",
    "😀😁a😀北",
    "\ud800北\x00京\ufffd",
    "[SEP]北[MASK]京[UNK]",
    "王小红 hello " * 12,
    "气" * 40,
    "a" * 130,
)


def model(name: str = "bert", positions: int = 64, **settings: Any) -> Pretrained:
    opened = open_language_model(tiny_language_models.folder(name, positions))
    return build_pretrained(*opened, **{"dropout": 0.0, **settings}).eval()


@cache
def one_reader() -> SubwordReader:
    return model().subwords


def deep_model() -> tuple[Any, Any]:
    """A model of five layers, and its tokenizer."""
    import transformers

    _, tokenizer = open_language_model(tiny_language_models.folder())
    config = tiny_language_models.config("bert")
    config.num_hidden_layers = 5
    return transformers.AutoModel.from_config(config), tokenizer


def batch(*texts: str, longer: int = 0) -> Batch:
    """Of texts alone: a language model reads nothing else."""
    n = max(map(len, texts)) + longer
    mask = torch.arange(n) < torch.tensor([len(text) for text in texts])[:, None]
    none = torch.zeros(len(texts), 0, dtype=torch.long)
    return Batch(mask.long(), mask.long(), mask, Words(none, none, none, none, none.bool()), texts)


def naive_pieces(tokenizer: Any, text: str) -> list[tuple[int, int, int]]:
    """Piece, start and end; where one unknown piece stands for several characters, those one by one."""
    text = "".join("\ufffd" if 0xD800 <= ord(c) < 0xE000 else c for c in text)
    read = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True, split_special_tokens=True)
    pieces = []
    for piece, (start, end) in zip(read["input_ids"], read["offset_mapping"], strict=True):
        if piece == tokenizer.unk_token_id and end - start > 1:
            for i in range(start, end):
                pieces += [(alone, i, i + 1) for alone in tokenizer.encode(text[i], add_special_tokens=False)]
        else:
            pieces.append((piece, start, end))
    return pieces or [(tokenizer.unk_token_id, 0, len(text))]


def naive_vectors(p: Pretrained, ids: list[int], begins: list[int]) -> list[Tensor]:
    """Of each piece, from the window whose cut edges are farthest; each window is read alone."""
    best: list[tuple[float, Tensor]] = [(-1.0, torch.empty(0))] * len(ids)
    for begin in begins:
        inside = ids[begin : begin + p.window]
        marked = [p.tokenizer.cls_token_id, *inside, p.tokenizer.sep_token_id]
        with torch.no_grad():
            h = p.language_model(input_ids=torch.tensor([marked])).last_hidden_state[0, 1:-1]
        for i, vector in enumerate(h):
            left = i if begin > 0 else float("inf")
            right = len(inside) - 1 - i if begin + p.window < len(ids) else float("inf")
            if min(left, right) > best[begin + i][0]:
                best[begin + i] = (min(left, right), vector)
    return [vector for _, vector in best]


def naive(p: Pretrained, text: str) -> list[Tensor]:
    pieces = naive_pieces(p.tokenizer, text)
    begins = [0]
    while begins[-1] + p.window < len(pieces):
        begins.append(min(begins[-1] + p.window // 2, len(pieces) - p.window))
    vectors = naive_vectors(p, [piece for piece, _, _ in pieces], begins)
    pooled = []
    for i in range(len(text)):
        over = [k for k, (_, start, end) in enumerate(pieces) if start <= i < end]
        if not over:
            before = [k for k, (_, _, end) in enumerate(pieces) if end <= i][-1:]
            after = [k for k, (_, start, _) in enumerate(pieces) if start > i][:1]
            over = before + after
        pooled.append(torch.stack([vectors[k] for k in over]).mean(0))
    return pooled


class TestPooling:
    @pytest.mark.parametrize("name", ["bert", "ernie", "electra"])
    @pytest.mark.parametrize("text", TEXTS, ids=ascii)
    def test_characters_are_pooled_by_the_rule(self, name: str, text: str) -> None:
        p = model(name, 16)
        with torch.no_grad():
            x = p(batch(text, longer=2))[0]
        assert x.shape == (len(text) + 2, p.d_out)
        assert not x[len(text) :].any()
        if text:
            torch.testing.assert_close(x[: len(text)], torch.stack(naive(p, text)))

    @pytest.mark.parametrize("name", tiny_language_models.NAMES)
    def test_a_batch_equals_single_texts(self, name: str) -> None:
        p = model(name, 16)
        together = p(batch(*TEXTS, longer=3))
        for text, x in zip(TEXTS, together, strict=True):
            torch.testing.assert_close(x[: len(text)], p(batch(text))[0])

    @given(st.text(st.sampled_from("重庆气hello AB1２ﬁ㍿é\u0301İ😀\n\x00\ud800한か"), min_size=1, max_size=40))
    @settings(max_examples=60)
    def test_every_character_has_a_subword(self, text: str) -> None:
        reader = one_reader()
        (read,) = reader([text])
        expected = naive_pieces(reader.tokenizer, text)
        assert read.ids.tolist() == [piece for piece, _, _ in expected]
        assert (read.first >= 0).all()
        assert (read.first <= read.last).all()
        assert (read.last < len(read.ids)).all()
        for k, (_, start, end) in enumerate(expected):
            assert ((read.first[start:end] <= k) & (k <= read.last[start:end])).all()

    @pytest.mark.parametrize("before", ["İ", "㍿", "ﬁ", "ＡＢ", "é", "e\u0301", "  ", "😀😁", "\x00", "ß"])
    def test_rewriting_by_the_tokenizer_does_not_shift_offsets(self, before: str) -> None:
        for reader in (model().subwords, SubwordReader(widening_tokenizer()), model(by_character=True).subwords):
            read, plain = reader([f"{before}重庆上海", "重庆上海"])
            after = slice(len(before), None)
            assert read.ids[read.first[after]].tolist() == plain.ids.tolist()
            assert read.first[after].tolist() == read.last[after].tolist()

    def test_several_subwords_of_a_character_are_averaged(self) -> None:
        (read,) = SubwordReader(widening_tokenizer())(["北㍿京"])
        assert (read.last - read.first + 1).tolist() == [1, 4, 1]

    @pytest.mark.parametrize("pooling", ["mean", "first", "max"])
    def test_pooling_by_loops(self, pooling: Any) -> None:
        """With a second character of four subwords, one of two, and padding."""
        vectors, n_subwords = torch.randn(2, 3, 4, 5), [[1, 4, 2], [1, 0, 0]]
        weight = torch.tensor(
            [[[1 / n] * n + [0.0] * (4 - n) if n else [0.0] * 4 for n in row] for row in n_subwords]
        )
        found = POOLINGS[pooling]()(vectors, weight)
        for b, row in enumerate(n_subwords):
            for i, n in enumerate(row):
                subwords = vectors[b, i, :n]
                by_hand = {"mean": subwords.sum(0) / max(n, 1), "first": vectors[b, i, 0] * (n > 0)}
                by_hand["max"] = subwords.amax(0) if n else torch.zeros(5)
                torch.testing.assert_close(found[b, i], by_hand[pooling])

    @pytest.mark.parametrize("pooling", ["first", "max"])
    def test_pooling_of_a_text(self, pooling: str) -> None:
        p, mean = (model(pooling=name) for name in (pooling, "mean"))
        with torch.no_grad():
            one, other = (m(batch("北 京", longer=1))[0] for m in (p, mean))
        assert torch.equal(one[0], other[0])  # one subword
        assert not torch.allclose(one[1], other[1])  # a space is pooled from the subwords before and after it
        assert not one[3].any()

    @pytest.mark.parametrize("layers", ["last_four", "mix_last_four"])
    def test_the_last_four_layers(self, layers: Any) -> None:
        opened, tokenizer = deep_model()
        p, text = build_pretrained(opened, tokenizer, layers=layers, dropout=0.0).eval(), "重庆人和药店"
        with torch.no_grad():
            found = p(batch(text))[0]
            ids = torch.tensor([tokenizer.encode(text)])
            states = opened(input_ids=ids, output_hidden_states=True).hidden_states[-4:]
        assert p.d_out == found.shape[1] == (32 if layers == "last_four" else 8)
        four = torch.cat(states, -1) if layers == "last_four" else sum(states) / 4
        torch.testing.assert_close(found, four[0, 1:-1])
        with pytest.raises(ValueError, match=f"layers = '{layers}' needs four layers; this model has 2"):
            model(layers=layers)

    def test_the_mix_is_a_weighted_mean_of_all_layers(self) -> None:
        p, text = model(layers="mix"), "重庆人和药店"
        assert p.mix is not None
        p.mix.weight.data, p.mix.scale.data = torch.tensor([0.3, -1.0, 2.0]), torch.tensor([1.7])
        ids = torch.tensor([p.tokenizer.encode(text)])
        with torch.no_grad():
            layers = p.language_model(input_ids=ids, output_hidden_states=True).hidden_states
            shares = [w / sum(torch.tensor([0.3, -1.0, 2.0]).exp()) for w in torch.tensor([0.3, -1.0, 2.0]).exp()]
            expected = 1.7 * sum(share * layer for share, layer in zip(shares, layers, strict=True))
            torch.testing.assert_close(p(batch(text))[0], expected[0, 1:-1])


class TestWindows:
    @pytest.mark.parametrize("size", [1, 2, 5, 8])
    def test_subwords_are_read_from_the_window_with_the_farthest_edges(self, size: int) -> None:
        for n in range(1, 40):
            starts, chosen = windows(n, size)
            assert starts[0] == 0
            assert starts[-1] + size >= n
            for i, window in enumerate(chosen.tolist()):

                def inside(start: int, i: int = i, n: int = n) -> float:
                    left = i - start if start > 0 else n
                    right = start + size - 1 - i if start + size < n else n
                    return min(left, right)

                assert starts[window] <= i < starts[window] + size
                assert inside(starts[window]) == max(inside(s) for s in starts if s <= i < s + size)

    def test_subwords_are_not_read_at_window_edges(self) -> None:
        starts, chosen = windows(100, 20)
        margins = [min(i - starts[w], starts[w] + 19 - i) for i, w in enumerate(chosen.tolist())]
        assert min(margins[10:90]) >= 4


def widening_tokenizer() -> Any:
    """Fast, with NFKC and lower case before the pieces, and a piece for each letter of a word."""
    import tokenizers
    import transformers

    pieces = tiny_language_models.vocabulary()
    made = tokenizers.Tokenizer(
        tokenizers.models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]")
    )
    made.normalizer = tokenizers.normalizers.Sequence(
        [tokenizers.normalizers.NFKC(), tokenizers.normalizers.Lowercase()]
    )
    made.pre_tokenizer = tokenizers.pre_tokenizers.Split(tokenizers.Regex(r"[\u4e00-\u9fff]|\s+"), "isolated")
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]")


def slow_tokenizer(leaves_out: str = "") -> Any:
    """One that tells no offsets."""
    import transformers

    class Letters(transformers.PythonBackend):
        def __init__(self, **settings: Any):
            self.ids = {piece: i for i, piece in enumerate(tiny_language_models.vocabulary())}
            super().__init__(unk_token="[UNK]", pad_token="[PAD]", **settings)  # type: ignore[no-untyped-call]

        @property
        def vocab_size(self) -> int:
            return len(self.ids)

        def get_vocab(self) -> dict[str, int]:
            return dict(self.ids)

        def _tokenize(self, text: str, **_: Any) -> list[str]:
            return [letter for letter in text.lower() if letter not in leaves_out]

        def _convert_token_to_id(self, token: str) -> int:
            return self.ids.get(token, self.ids["[UNK]"])

        def _convert_id_to_token(self, index: int) -> str:
            return list(self.ids)[index]

    return Letters()


class TestAlignment:
    def test_a_slow_tokenizer_reads_character_by_character(self) -> None:
        tokenizer = slow_tokenizer()
        assert not tokenizer.is_fast
        (read,) = SubwordReader(tokenizer)(["重Ab庆"])
        assert [tokenizer.convert_ids_to_tokens(i) for i in read.ids.tolist()] == ["重", "a", "[UNK]", "庆"]
        assert read.first.tolist() == read.last.tolist() == [0, 1, 2, 3]

    @pytest.mark.parametrize("text", TEXTS, ids=ascii)
    def test_by_character_every_character_is_read_alone(self, text: str) -> None:
        p = model(by_character=True)
        (read,) = p.subwords([text])
        for i, character in enumerate(text):
            own = p.tokenizer.encode("\ufffd" if character == "\ud800" else character, add_special_tokens=False)
            if own:
                assert read.ids[read.first[i] : read.last[i] + 1].tolist() == own

    def test_a_tokenizer_that_leaves_letters_out_is_refused(self) -> None:
        with pytest.raises(ModelError, match=r"cannot be aligned: it leaves out characters of '重庆"):
            SubwordReader(slow_tokenizer(leaves_out="庆１"))

    def test_a_tokenizer_whose_offsets_run_backwards_is_refused(self) -> None:
        made = widening_tokenizer()

        class Backwards:
            is_fast, unk_token_id, pad_token_id = True, 1, 0

            def __call__(self, texts: list[str], **settings: Any) -> Any:
                read = made(texts, **settings)
                return {**read, "offset_mapping": [offsets[::-1] for offsets in read["offset_mapping"]]}

        with pytest.raises(ModelError, match="cannot be aligned: it puts a token at"):
            SubwordReader(Backwards())


class TestLowRank:
    def test_lora_starts_as_the_layer_and_adds_a_product(self) -> None:
        linear, x = torch.nn.Linear(5, 3), torch.randn(2, 4, 5)
        adapted = LowRank(linear, 2, 8.0)
        assert torch.equal(adapted(x), linear(x))
        adapted.up.data.normal_()
        matrix = linear.weight + 4.0 * adapted.up @ adapted.down
        torch.testing.assert_close(adapted(x), x @ matrix.T + linear.bias)

    def test_only_the_layers_named_are_adapted(self) -> None:
        p = model()
        adapt(p.language_model, ("query", "value"), 2, 8.0)
        adapted = {n.rpartition(".")[2] for n, m in p.language_model.named_modules() if isinstance(m, LowRank)}
        assert adapted == {"query", "value"}
        trained = {n.rpartition(".")[2] for n, q in p.language_model.named_parameters() if q.requires_grad}
        assert trained == {"down", "up"}

    def test_a_layer_that_does_not_exist(self) -> None:
        with pytest.raises(
            ValueError, match=r"no linear layer 'q_proj' to adapt; there are dense, key, query, value"
        ):
            adapt(model().language_model, ("q_proj",), 2, 8.0)


class TestQueried:
    def test_each_query_is_read_before_the_text_as_a_first_segment(self) -> None:
        p, queries, texts = model(), ["上海", "hello北京"], ["重庆人和药店", "王小红"]
        with torch.no_grad():
            found = Queried(p, queries)(batch(*texts))
            assert found.shape == (2, 6, 16)
            for b, text in enumerate(texts):
                for t, query in enumerate(queries):
                    encoded = p.tokenizer(query, text, return_tensors="pt")
                    assert encoded["token_type_ids"].unique().tolist() == [0, 1]
                    states = p.language_model(**encoded).last_hidden_state[0]
                    expected = states[-len(text) - 1 : -1]  # every character is one token
                    torch.testing.assert_close(found[b, : len(text), 8 * t : 8 * t + 8], expected)
        assert not found[1, 3:].any()

    def test_long_texts_are_read_in_windows_with_the_query(self) -> None:
        p = model(positions=24)
        text = "北京重庆上海" * 8
        x = Queried(p, ["天"])(batch(text))
        assert x.shape == (1, 48, 8)
        with torch.no_grad():
            first = p.language_model(**p.tokenizer("天", text[:20], return_tensors="pt")).last_hidden_state[0, 3:-1]
        torch.testing.assert_close(x[0, :8], first[:8])

    def test_a_query_that_leaves_no_room_and_no_labels(self) -> None:
        with pytest.raises(ValueError, match="leaves no room for the text"):
            Queried(model(positions=16), ["北京" * 8])
        with pytest.raises(ValueError, match="a corpus without labels has no queries"):
            Queried(model(), [])


def test_a_batch_without_texts_is_an_error() -> None:
    b = batch("重庆")
    with pytest.raises(ValueError, match="give the texts of the sentences"):
        model()(Batch(b.chars, b.bigrams, b.mask, b.words))


def test_weights_of_characters_sum_to_one() -> None:
    from hanlattice.embeddings.subwords import rows_of

    reader = model().subwords
    rows = rows_of(reader(TEXTS), 200, 10, [2], [3], 0)
    sums = rows.weight.sum(2)
    for text, row in zip(TEXTS, sums, strict=True):
        assert np.allclose(row[: len(text)], 1.0)
        assert not row[len(text) :].any()
