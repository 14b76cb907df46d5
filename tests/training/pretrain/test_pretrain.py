"""Pretraining on raw text: what is read, what is masked, what a stopped run becomes, and the embedding ``own``.

Faults that go red here: held-out lines that are read; a boundary that is masked; a batch that depends on what was
drawn before; a resumed run that ends elsewhere; a frozen body that learns.
"""

import json
import lzma
import os
import random
import shutil
import signal
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open

import tiny
from hanlattice import api
from hanlattice.build import build
from hanlattice.cli import main
from hanlattice.config.settings import Config
from hanlattice.embeddings.body import Body, multiply_in_bfloat16
from hanlattice.embeddings.body_files import BOUNDARY, FIRST, MASK, UNKNOWN, Characters, Shape
from hanlattice.embeddings.body_folder import WEIGHTS, open_body
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.embeddings.own import Own
from hanlattice.errors import ConfigError, DataError, HanlatticeError, ModelError
from hanlattice.inputs.batch import collate
from hanlattice.inputs.reader import Reader
from hanlattice.lexicon import Lexicon
from hanlattice.model.weights import load_weights
from hanlattice.training.distributed import Group
from hanlattice.training.optimiser import freeze_pretrained, optimisers
from hanlattice.training.pretrain import Settings, Silent, Stopped, finish, pretrain
from hanlattice.training.pretrain import loop as loop_module
from hanlattice.training.pretrain import run as run_module
from hanlattice.training.pretrain.batches import Batches, in_order
from hanlattice.training.pretrain.checkpoint import State, save_checkpoint
from hanlattice.training.pretrain.interrupt import Stop
from hanlattice.training.pretrain.loop import CHECKPOINT, FINISH, LOG, RunOptions, rate
from hanlattice.training.pretrain.objective import IntoWords, Masked, into_characters, into_spans, masked, share
from hanlattice.training.pretrain.prepare import is_for_loss, load_ids, prepare
from hanlattice.training.pretrain.start import HEAD

SHAPE = Shape(layers=1, width=16, heads=2, window=16)
HELD_OUT = "class HeldOut:\n    def __call__(self, text):\n        return '秘密' in text\n"
EVERY_STEP = RunOptions(save_every=0.0)
PRECISIONS = ("float32", "bfloat16")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """Three hundred different sentences of the small world, and one that is kept for the held-out loss."""
    path = tmp_path / "text.txt"
    sentences = [f"{document.text}第{i}次。" for i in range(10) for document in tiny.documents()]
    kept = next(line for i in range(100_000) if is_for_loss(line := f"李明在北京工作。第{i}次。"))
    path.write_text("\n".join([*sentences, kept]) + "\n", encoding="utf-8")
    return path


def settings(text: Path, **changes: Any) -> Settings:
    small = Settings((str(text),), shape=SHAPE, batch=8, epochs=1, learning_rate=0.01, warmup=3)
    return replace(small, **changes)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    return load_weights(folder / WEIGHTS)


def assert_equal(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> None:
    assert first.keys() == second.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]


def prepared(folder: Path, *lines: str, held_out: str = "", size: int = 100) -> tuple[Characters, Any, str]:
    """The vocabulary, the summary and the text to learn from."""
    (folder / "given.txt").write_text("\n".join(lines), encoding="utf-8")
    known, summary = prepare([folder / "given.txt"], held_out, size, folder / "ids", Silent(), Stop())
    return known, summary, known.text(load_ids(folder / "ids", "train"))


class TestText:
    def test_ids_round_trip(self, tmp_path: Path) -> None:
        known, summary, text = prepared(tmp_path, "李明在北京。", "", "　王小红去了上海")
        assert text == "\n李明在北京。\n王小红去了上海\n"
        assert (summary.lines, summary.characters, summary.unknown) == (2, 13, 0)
        assert known.text(known.ids("上海在哪")) == "上海在\ufffd"

    def test_it_is_normalised(self, tmp_path: Path) -> None:
        assert prepared(tmp_path, "臺灣ＡＢＣ１２３")[2] == "\n台湾ABC123\n"

    def test_only_the_most_frequent_characters_are_known(self, tmp_path: Path) -> None:
        known, summary, text = prepared(tmp_path, "甲甲甲乙乙丙", size=2)
        assert known.names == "甲乙"
        assert text == "\n甲甲甲乙乙\ufffd\n"
        assert summary.unknown == 1
        assert known.ids("甲乙丙").tolist() == [FIRST, FIRST + 1, UNKNOWN]

    def test_a_capital_whose_lower_case_is_known_is_known(self, tmp_path: Path) -> None:
        known, summary, _ = prepared(tmp_path, "aaaaAAbbb丙", size=2)
        assert known.names == "ab"
        assert summary.unknown == 1

    def test_duplicates_are_left_out(self, tmp_path: Path) -> None:
        _, summary, text = prepared(tmp_path, "李明", "ＡＢ", "李明", "AB")
        assert text == "\n李明\nAB\n"
        assert summary.duplicates == 2

    def test_held_out_lines_are_never_read(self, tmp_path: Path) -> None:
        (tmp_path / "held.py").write_text(HELD_OUT, encoding="utf-8")
        lines = ["公开的事", "秘密的事", "这是秘密"]
        known, summary, text = prepared(tmp_path, *lines, held_out=str(tmp_path / "held.py"))
        assert text == "\n公开的事\n"
        assert summary.left_out == 2
        assert "秘" not in known.names

    def test_a_thousandth_of_the_lines_is_kept_for_the_loss(self, tmp_path: Path) -> None:
        lines = [f"第{i}行" for i in range(5000)]
        _, summary, text = prepared(tmp_path, *lines)
        kept = {line for line in lines if is_for_loss(line)}
        assert 0 < len(kept) == summary.for_loss < 20
        assert set(text.strip().split("\n")) == set(lines) - kept
        ids = load_ids(tmp_path / "ids", "held_out")
        assert int((ids == BOUNDARY).sum()) == len(kept) + 1

    def test_xz_is_decompressed(self, tmp_path: Path) -> None:
        plain, packed = tmp_path / "a.txt", tmp_path / "b.xz"
        plain.write_text("李明\n北京\n", encoding="utf-8")
        packed.write_bytes(lzma.compress("李明\r\n北京".encode()))
        found = []
        for file in (plain, packed):
            known, _ = prepare([file], "", 10, tmp_path / file.name[0], Silent(), Stop())
            found.append(known.text(load_ids(tmp_path / file.name[0], "train")))
        assert found == ["\n李明\n北京\n"] * 2

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.txt", b"", "holds no text to learn from"),
            ("a.txt", b"\n \n", "holds no text to learn from"),
            ("a.txt", bytes(range(256)) * 4, "not text|UTF-8"),
            ("a.xz", b"plain", "cannot be decompressed"),
            ("a.xz", lzma.compress("李明".encode("gb18030")), "is not UTF-8"),
            ("a.xz", lzma.compress(bytes(100)), "is binary"),
        ],
    )
    def test_bad_text(self, tmp_path: Path, name: str, content: bytes, message: str) -> None:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(DataError, match=message):
            pretrain(settings(tmp_path / name), tmp_path / "run")
        assert not (tmp_path / "run" / "config.toml").exists()

    def test_a_stopped_preparation_starts_over(
        self, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stop_at_once(self: Stop) -> None:
            raise Stopped("stopped while the text was prepared")

        with monkeypatch.context() as context:
            context.setattr(Stop, "check", stop_at_once)
            with pytest.raises(Stopped, match="prepared"):
                pretrain(settings(text), tmp_path / "run")
        assert pretrain(Settings.load(tmp_path / "run"), tmp_path / "run", resume=True) == tmp_path / "run"


class TestBatches:
    ids = np.arange(1000).astype(np.uint16)

    def test_they_follow_from_seed_epoch_and_step_alone(self) -> None:
        first, second = (Batches(self.ids, 10, 4, 7) for _ in range(2))
        wanted = [(epoch, step) for epoch in range(3) for step in range(first.steps)]
        expected = {at: first.batch(*at).tolist() for at in wanted}
        for at in random.Random(0).sample(wanted, len(wanted)):
            assert second.batch(*at).tolist() == expected[at]
        assert Batches(self.ids, 10, 4, 8).batch(0, 0).tolist() != expected[0, 0]
        assert expected[0, 0] != expected[1, 0]

    def test_an_epoch_reads_no_place_twice(self) -> None:
        batches = Batches(self.ids, 10, 4, 1)
        for epoch in range(20):
            read = np.concatenate([batches.batch(epoch, step).ravel() for step in range(batches.steps)])
            assert len(set(read.tolist())) == len(read) == batches.steps * 40

    def test_a_text_that_is_shorter_than_a_window_is_one_batch(self) -> None:
        batches = Batches(self.ids[1:6], 10, 4, 1)
        assert (batches.steps, batches.characters) == (1, 10)
        for epoch in range(9):
            assert batches.batch(epoch, 0).tolist() == [[1, 2, 3, 4, 5, *[BOUNDARY] * 5]]

    def test_a_text_that_is_shorter_than_two_windows_fills_a_window(self) -> None:
        batches = Batches(self.ids[1:14], 10, 4, 1)
        found = {tuple(row) for epoch in range(40) for row in batches.batch(epoch, 0).tolist()}
        assert found == {tuple(range(first, first + 10)) for first in (1, 2, 3, 4)}

    def test_batches_of_longer_texts_stay_as_they_were(self) -> None:
        """Another batch would end the resumption of published runs."""
        assert Batches(self.ids, 10, 2, 1).batch(3, 5)[:, 0].tolist() == [244, 954]
        assert [Batches(self.ids[:19], 10, 4, 1).batch(epoch, 0)[0, 0] for epoch in range(6)] == [4, 5, 6, 4, 6, 8]

    def test_characters_of_a_batch(self) -> None:
        for n in (25, 1000):
            batches = Batches(self.ids[:n], 10, 4, 1)
            assert batches.characters == batches.batch(0, 0).size

    def test_rows_in_order(self) -> None:
        assert in_order(self.ids[1:6], 4, 9).tolist() == [[1, 2, 3, 4], [5, 0, 0, 0]]
        assert in_order(self.ids, 4, 3)[:, 0].tolist() == [0, 4 * 124, 4 * 249]
        assert in_order(self.ids[:0], 4, 3).shape == (0, 4)


class TestMasks:
    known = Characters("".join(map(chr, range(0x4E00, 0x4E00 + 50))))

    def ids(self, rows: int = 40, n: int = 30) -> np.ndarray:
        draw = np.random.default_rng(0)
        ids = draw.integers(FIRST, len(self.known), (rows, n))
        ids[draw.random(ids.shape) < 0.1] = BOUNDARY
        return ids

    def lexicon(self) -> Lexicon:
        names = self.known.names
        return Lexicon([names[i : i + n] for i in range(0, 48, 2) for n in (2, 3)])

    @pytest.mark.parametrize("mask", ["characters", "words", "spans"])
    def test_shares_by_counting(self, mask: str) -> None:
        cut = {"characters": into_characters, "spans": into_spans}.get(mask) or IntoWords(
            self.lexicon(), self.known
        )
        ids, draw = self.ids(), np.random.default_rng(1)
        chosen = given_mask = unchanged = total = 0
        for _ in range(60):
            found = masked(ids, cut, 0.15, len(self.known), draw)
            flat, read = ids.ravel(), found.ids.ravel()
            places = set(found.places.tolist())
            assert all(read[i] == flat[i] for i in range(len(flat)) if i not in places)
            assert [flat[i] for i in found.places] == found.targets.tolist()
            assert all(flat[i] != BOUNDARY for i in places)
            assert all(read[i] == MASK or read[i] >= FIRST for i in places)
            chosen += len(places)
            given_mask += sum(read[i] == MASK for i in places)
            unchanged += sum(read[i] == flat[i] for i in places)
            total += sum(flat != BOUNDARY)
        assert chosen / total == pytest.approx(0.15, abs=0.01)
        assert given_mask / chosen == pytest.approx(0.8, abs=0.02)
        assert unchanged / chosen == pytest.approx(0.1 + 0.1 / 50, abs=0.02)

    def test_words_are_masked_whole(self) -> None:
        ids = np.stack([self.known.ids(self.known.names[:20]), self.known.ids(self.known.names[1:21])])
        cut = IntoWords(Lexicon([self.known.names[4:7], self.known.names[10:12]]), self.known)
        units = cut(ids, np.random.default_rng(0))
        names = [self.known.names[:20], self.known.names[1:21]]
        found = [
            "".join(names[i][j] for j in range(20) if units[i, j] == u) for i in range(2) for u in set(units[i])
        ]
        assert sorted(len(word) for word in found if len(word) > 1) == [2, 2, 3, 3]
        assert set("".join(found)) == set("".join(names))

    def test_spans_have_one_to_six_characters_and_cross_no_boundary(self) -> None:
        ids = self.ids()
        units = into_spans(ids, np.random.default_rng(2))
        lengths = []
        for unit in range(int(units.max()) + 1):
            row, column = np.nonzero(units == unit)
            assert len(set(row.tolist())) == 1
            assert column.tolist() == list(range(column[0], column[-1] + 1))
            assert BOUNDARY not in ids[row, column] or len(row) == 1
            lengths.append(len(row))
        assert set(lengths) == {1, 2, 3, 4, 5, 6}

    def test_at_least_one_character_is_chosen(self) -> None:
        ids = np.array([[BOUNDARY, FIRST, BOUNDARY]])
        for seed in range(20):
            found = masked(ids, into_characters, 0.01, 4, np.random.default_rng(seed))
            assert found.targets.tolist() == [FIRST]

    def test_of_boundaries_none_is_chosen(self) -> None:
        found = masked(np.zeros((2, 3), np.int64), into_characters, 0.9, 4, np.random.default_rng(0))
        assert not len(found.targets)
        assert not found.ids.any()

    @pytest.mark.parametrize("size", [1, 2, 3])
    def test_the_processes_of_a_group_share_the_rows(self, size: int) -> None:
        batch = masked(self.ids(7), into_characters, 0.15, len(self.known), np.random.default_rng(0))
        shares = [share(batch, Group(rank, size)) for rank in range(size)]
        assert sum(len(own.targets) for own in shares) == len(batch.targets)
        read = {(row.tobytes(), place % 30): target for own in shares for row, place, target in hidden(own)}
        assert read == {(row.tobytes(), place % 30): target for row, place, target in hidden(batch)}


def hidden(batch: Masked) -> list[tuple[np.ndarray, int, int]]:
    """The row of each chosen character, its place and its id."""
    n = batch.ids.shape[1]
    return [(batch.ids[p // n], p, t) for p, t in zip(batch.places.tolist(), batch.targets.tolist(), strict=True)]


class TestBody:
    def test_padding_is_never_seen(self) -> None:
        torch.manual_seed(0)
        body = Body(SHAPE, 20)
        ids = torch.randint(0, 20, (2, 7))
        mask = torch.arange(7) < torch.tensor([[7], [4]])
        torch.testing.assert_close(body(ids, mask)[1, :4], body(ids[1:, :4])[0])

    def test_order_matters(self) -> None:
        torch.manual_seed(0)
        body = Body(SHAPE, 20)
        torch.nn.init.normal_(body.embedding.weight)
        ids = torch.tensor([[3, 4, 5, 6]])
        assert not torch.allclose(body(ids)[0, 0], body(ids[:, [0, 2, 1, 3]])[0, 0])

    def test_bfloat16_is_close_to_float32(self) -> None:
        torch.manual_seed(0)
        body = Body(SHAPE, 20)
        ids = torch.randint(0, 20, (2, 7))
        exact = body(ids)
        multiply_in_bfloat16(body)
        assert body(ids).dtype == torch.float32
        assert 0 < (body(ids) - exact).abs().max() < 0.05
        assert torch.equal(body.eval()(ids), exact)

    @pytest.mark.parametrize("wrong", [{"layers": 0}, {"heads": 5}, {"width": 10}, {"window": 3}])
    def test_shapes_that_do_not_fit(self, wrong: dict[str, int]) -> None:
        with pytest.raises(ConfigError, match=r"must be"):
            Shape(**{**{"width": 12, "heads": 3}, **wrong})


class TestRun:
    def test_the_loss_falls_and_the_folder_is_whole(
        self, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loop_module, "LOG_EVERY", 50)
        chosen = settings(text, epochs=25, shape=replace(SHAPE, width=32), learning_rate=0.003, half=True)
        folder = pretrain(chosen, tmp_path / "run")
        assert {path.name for path in folder.iterdir()} == {
            "config.toml", "vocabulary.json", WEIGHTS, "README.md", LOG, CHECKPOINT, "text", HEAD,
        }  # fmt: skip
        rows = rows_of(folder)
        assert [row["step"] for row in rows] == sorted({row["step"] for row in rows})
        assert rows[-1]["loss"] < 0.7 * rows[0]["loss"]
        assert rows[-1]["held_out_loss"] < rows[0]["loss"]
        assert rows[-1]["hours_left"] == 0
        assert rows[-1]["characters"] == rows[-1]["step"] * 8 * 16
        assert f" of 8 x 16 characters, {rows[-1]['characters']:,} in all" in (folder / "README.md").read_text(
            "utf-8"
        )
        body, known = open_body(folder)
        assert body.shape == chosen.shape
        assert "李" in known.names
        assert "nats per masked character" in (folder / "README.md").read_text(encoding="utf-8")

    @pytest.mark.parametrize("mask", ["words", "spans"])
    @pytest.mark.parametrize("precision", PRECISIONS)
    def test_other_masks_and_precisions(self, text: Path, tmp_path: Path, mask: Any, precision: Any) -> None:
        open_body(pretrain(settings(text, mask=mask, precision=precision), tmp_path / "run"))

    def test_a_text_with_fewer_windows_than_a_batch(self, tmp_path: Path) -> None:
        (tmp_path / "short.txt").write_text("李明在北京工作，王小红去了上海。" * 3, "utf-8")
        folder = pretrain(settings(tmp_path / "short.txt", epochs=5), tmp_path / "run")
        assert rows_of(folder)[-1]["characters"] == 5 * 2 * 16
        assert " of 2 x 16 characters, 160 in all" in (folder / "README.md").read_text("utf-8")

    def test_hours(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text, hours=1 / 3600), tmp_path / "run", options=EVERY_STEP)
        assert rows_of(folder)[-1]["hours_left"] == 0

    def test_a_rate_that_rises_stays_and_falls_to_zero(self) -> None:
        assert [rate(State(step), 3) for step in range(5)] == [0.25, 0.5, 0.75, 1, 1]
        assert [rate(State(step, decay_from=10, end=14), 3) for step in range(10, 15)] == [1, 0.75, 0.5, 0.25, 0]

    def test_a_folder_with_a_run_is_not_overwritten(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text), tmp_path / "run")
        with pytest.raises(ConfigError, match="already holds a run"):
            pretrain(settings(text), folder)
        with pytest.raises(ConfigError, match="is finished"):
            pretrain(settings(text), folder, resume=True)
        with pytest.raises(ConfigError, match="no run to resume"):
            pretrain(settings(text), tmp_path / "other", resume=True)
        (tmp_path / "README.md").write_text("mine", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"has README\.md, which a run would replace; name an empty folder"):
            pretrain(settings(text), tmp_path)

    def test_a_loss_that_is_no_number_ends_the_run(
        self, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loop_module, "CLIP", float("nan"))
        with pytest.raises(HanlatticeError, match="smaller --learning-rate"):
            pretrain(settings(text), tmp_path / "run")


class Stopping(Silent):
    """Stops the run at a row of the log, by a signal or by an exception."""

    def __init__(self, row: int, how: str):
        self.left, self.how = row, how

    def row(self, row: dict[str, Any], total: int) -> None:
        self.left -= 1
        if self.left == 0:
            if self.how == "signal":
                os.kill(os.getpid(), signal.SIGTERM)
            else:
                raise KeyError("some fault")


class TestResumed:
    @pytest.mark.parametrize("how", ["signal", "exception"])
    def test_the_same_weights_as_of_an_uninterrupted_run(self, text: Path, tmp_path: Path, how: str) -> None:
        chosen = settings(text, epochs=1, mask="spans")
        whole = pretrain(chosen, tmp_path / "whole")
        end = rows_of(whole)[-1]["step"]
        assert end > 20
        for attempt, draw in enumerate(random.Random(how).sample(range(2, end - 2), 3)):
            folder = tmp_path / f"run{attempt}"
            with pytest.raises((Stopped, KeyError)):
                pretrain(chosen, folder, options=EVERY_STEP, watcher=Stopping(draw, how))
            assert not (folder / WEIGHTS).exists()
            pretrain(Settings.load(folder), folder, resume=True, options=RunOptions())
            assert_equal(weights(folder), weights(whole))
            steps = [row["step"] for row in rows_of(folder)]
            assert steps == sorted(set(steps))

    def test_stopped_within_the_decay(self, text: Path, tmp_path: Path) -> None:
        chosen = settings(text, epochs=2)
        whole = pretrain(chosen, tmp_path / "whole", options=EVERY_STEP)
        row = len(rows_of(whole)) - 2
        with pytest.raises(Stopped, match="--resume"):
            pretrain(chosen, tmp_path / "run", options=EVERY_STEP, watcher=Stopping(row, "signal"))
        assert (tmp_path / "run" / FINISH).exists()
        pretrain(chosen, tmp_path / "run", resume=True)
        assert_equal(weights(tmp_path / "run"), weights(whole))

    def test_more_epochs_after_the_end(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text, epochs=1), tmp_path / "run")
        pretrain(replace(Settings.load(folder), epochs=2), folder, resume=True)
        assert_equal(weights(folder), weights(pretrain(settings(text, epochs=2), tmp_path / "whole")))

    @pytest.mark.parametrize("epochs", [1, 8, 9])
    def test_fewer_epochs_than_were_read_are_refused(self, text: Path, tmp_path: Path, epochs: int) -> None:
        """The constant phase of ten epochs ends after nine."""
        folder = pretrain(settings(text, epochs=10), tmp_path / "run")
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        with pytest.raises(ConfigError) as error:
            pretrain(settings(text, epochs=epochs), folder, resume=True)
        assert str(error.value) == (
            f"{folder}: 10 epochs were read already, so --epochs {epochs} is too few; give more, or make a body of"
            " its checkpoint with --finish"
        )
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before

    def test_fewer_epochs_that_were_not_read_yet_are_taken(self, text: Path, tmp_path: Path) -> None:
        chosen, folder = settings(text, epochs=9), tmp_path / "run"
        with pytest.raises(Stopped):
            pretrain(chosen, folder, options=EVERY_STEP, watcher=Stopping(40, "signal"))
        with pytest.raises(ConfigError, match="epochs were read already, so --epochs 1 is too few"):
            pretrain(replace(chosen, epochs=1), folder, resume=True)
        assert Settings.load(folder).epochs == 9
        pretrain(replace(chosen, epochs=2), folder, resume=True)
        assert Settings.load(folder).epochs == 2
        assert_equal(weights(folder), weights(pretrain(replace(chosen, epochs=2), tmp_path / "whole")))

    def test_a_finished_body_without_its_checkpoint_is_not_trained_again(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text), tmp_path / "run")
        (folder / CHECKPOINT).unlink()
        with pytest.raises(ConfigError, match="holds a finished body without its checkpoint: there is nothing to"):
            pretrain(settings(text, epochs=2), folder, resume=True)

    def test_settings_of_an_earlier_version_are_read(self, text: Path, tmp_path: Path) -> None:
        """They do not say whether the body is stored in 16 bits."""
        folder = pretrain(settings(text), tmp_path / "run")
        config = folder / "config.toml"
        config.write_text(config.read_text("utf-8").replace("half = false\n", ""), "utf-8")
        pretrain(replace(Settings.load(folder), epochs=2), folder, resume=True)
        assert "half = false" in config.read_text("utf-8")

    @pytest.mark.parametrize("name", ["head.safetensors", "text/train.u16", "text/text.json"])
    def test_files_of_the_user_are_not_replaced(self, text: Path, tmp_path: Path, name: str) -> None:
        mine = tmp_path / "run" / name
        mine.parent.mkdir(parents=True)
        mine.write_text("mine", "utf-8")
        with pytest.raises(ConfigError, match=f"has {name}, which a run would replace; name an empty folder"):
            pretrain(settings(text), tmp_path / "run")
        assert mine.read_text("utf-8") == "mine"

    def test_a_text_that_cannot_be_prepared_leaves_nothing(
        self, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(*_: Any) -> None:
            raise DataError("cannot be written: No space left on device", "vocabulary.json")

        other = tmp_path / "run" / "text" / "notes.txt"
        other.parent.mkdir(parents=True)
        other.write_text("mine", "utf-8")
        monkeypatch.setattr(Characters, "save", full)
        with pytest.raises(DataError, match="No space left"):
            pretrain(settings(text), tmp_path / "run")
        assert [path for path in (tmp_path / "run").rglob("*") if path.is_file()] == [other]
        monkeypatch.undo()
        pretrain(settings(text), tmp_path / "run")

    def test_a_process_stops_if_another_one_is_to_stop(
        self, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class SecondStops(Group):
            def sum(self, value: torch.Tensor) -> torch.Tensor:
                is_clock = value.shape == (2,)
                return value + torch.tensor([0.0, 1.0]) if is_clock else value

        monkeypatch.setattr(run_module, "join_group", lambda: nullcontext(SecondStops()))
        with pytest.raises(Stopped, match="stopped at step 0"):
            pretrain(settings(text), tmp_path / "run")
        monkeypatch.undo()
        pretrain(settings(text), tmp_path / "run", resume=True)
        assert_equal(weights(tmp_path / "run"), weights(pretrain(settings(text), tmp_path / "whole")))

    def test_a_checkpoint_of_another_run(self, text: Path, tmp_path: Path) -> None:
        first = pretrain(settings(text), tmp_path / "first")
        second = pretrain(settings(text, seed=2), tmp_path / "second")
        shutil.copy(first / CHECKPOINT, second / CHECKPOINT)
        with pytest.raises(ModelError, match="another run, which differs in seed"):
            pretrain(settings(text, seed=2, epochs=2), second, resume=True)

    def test_other_settings_are_refused_by_name_and_nothing_is_written(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text), tmp_path / "run")
        before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        other = settings(text, seed=7, epochs=2, mask="words")
        refused = r"has other settings \(mask, seed\); name another folder"
        with pytest.raises(ConfigError, match=refused):
            pretrain(other, folder, resume=True)
        with pytest.raises(ConfigError, match=refused):
            finish(other, folder, 0.1)
        assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before

    def test_a_text_that_cannot_be_prepared_again_leaves_the_run(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text), tmp_path / "run")
        shutil.rmtree(folder / "text")
        given = text.read_bytes()
        text.write_bytes(b"\xff")
        with pytest.raises(DataError, match="not UTF-8"):
            pretrain(settings(text, epochs=2), folder, resume=True)
        text.write_bytes(given)
        pretrain(settings(text, epochs=2), folder, resume=True)
        assert_equal(weights(folder), weights(pretrain(settings(text, epochs=2), tmp_path / "whole")))

    def test_other_texts_for_a_run_without_its_own_change_nothing(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text), tmp_path / "run")
        shutil.rmtree(folder / "text")
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        given = text.read_text("utf-8")
        text.write_text(given + "马马马马马马\n" * 3, "utf-8")
        with pytest.raises(DataError) as error:
            pretrain(settings(text, epochs=2), folder, resume=True)
        changed = "the texts, --held-out or vocabulary.json changed since this run began; restore them"
        assert str(error.value) == f"{folder}: {changed}"
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        text.write_text(given, "utf-8")
        pretrain(settings(text, epochs=2), folder, resume=True)
        assert_equal(weights(folder), weights(pretrain(settings(text, epochs=2), tmp_path / "whole")))

    def test_a_vocabulary_that_was_removed_is_made_again(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text), tmp_path / "run")
        before = (folder / "vocabulary.json").read_bytes()
        (folder / "vocabulary.json").unlink()
        pretrain(settings(text, epochs=2), folder, resume=True)
        assert (folder / "vocabulary.json").read_bytes() == before

    @pytest.mark.parametrize("row", [1, 2])
    def test_an_error_before_the_first_checkpoint_leaves_nothing(
        self, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: int
    ) -> None:
        monkeypatch.setattr(loop_module, "LOG_EVERY", 2)
        options = RunOptions(save_every=0.0 if row == 2 else 999.0)
        with pytest.raises(KeyError):
            pretrain(settings(text), tmp_path / "run", options=options, watcher=Stopping(row, "exception"))
        assert (tmp_path / "run").exists() == (row == 2)  # there is a checkpoint then

    def test_a_class_that_fails_for_some_text_leaves_nothing(self, text: Path, tmp_path: Path) -> None:
        held = tmp_path / "held.py"
        held.write_text("class HeldOut:\n    def __call__(self, text):\n        {'中文': 1}[text]\n", "utf-8")
        with pytest.raises(ConfigError, match=r"held\.py: HeldOut fails for the text '.*' \(KeyError: "):
            pretrain(settings(text, held_out=str(held)), tmp_path / "run")
        assert not (tmp_path / "run").exists()
        pretrain(settings(text), tmp_path / "run")

    def test_two_processes_do_not_train_in_one_folder(self, text: Path, tmp_path: Path) -> None:
        class Second(Silent):
            def say(self, message: str) -> None:
                with pytest.raises(ConfigError, match="run is in use by another process"):
                    pretrain(settings(text), tmp_path / "run", resume=True)

        folder = pretrain(settings(text), tmp_path / "run", watcher=Second())
        assert not (folder / ".lock").exists()

    def test_a_vocabulary_of_another_run(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text), tmp_path / "run")
        Characters("甲乙丙").save(folder / "vocabulary.json")
        with pytest.raises(ModelError, match="another run, which differs in characters"):
            pretrain(settings(text, epochs=2), folder, resume=True)
        with pytest.raises(ConfigError, match="does not fit"):
            open_body(folder)

    def test_a_text_of_another_run(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text), tmp_path / "run")
        (folder / "text" / "train.u16").write_bytes(bytes(2000))
        with pytest.raises(DataError, match="not the text of this run"):
            pretrain(settings(text, epochs=2), folder, resume=True)

    def test_a_broken_checkpoint(self, text: Path, tmp_path: Path) -> None:
        folder = pretrain(settings(text), tmp_path / "run")
        (folder / CHECKPOINT).write_bytes(b"nothing")
        with pytest.raises(ModelError, match="cannot be resumed from"):
            pretrain(settings(text, epochs=2), folder, resume=True)

    def test_a_checkpoint_that_cannot_be_written_does_not_stop_the_run(
        self, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        calls = iter(range(1000))

        def fail_twice(*arguments: Any) -> None:
            if next(calls) < 2:
                raise DataError("cannot be written: No space left on device", "checkpoint")
            save(*arguments)

        save = save_checkpoint
        monkeypatch.setattr(loop_module, "save_checkpoint", fail_twice)
        pretrain(settings(text), tmp_path / "run", options=EVERY_STEP)
        assert sum("No space left" in message for message in caplog.messages) == 2

    def test_a_disk_that_is_full_at_the_end_of_a_phase_does_not_stop_the_run(
        self, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fail(*_: Any) -> None:
            raise DataError("cannot be written: No space left on device", "checkpoint")

        monkeypatch.setattr(loop_module, "save_checkpoint", fail)
        folder = pretrain(settings(text), tmp_path / "run")
        assert [message.rpartition("; ")[2] for message in caplog.messages if "No space left" in message] == [
            "the run continues without it"
        ] * 2
        monkeypatch.undo()
        assert_equal(weights(folder), weights(pretrain(settings(text), tmp_path / "whole")))


class TestFinished:
    def test_a_prolonged_run_that_is_stopped_keeps_its_length(self, text: Path, tmp_path: Path) -> None:
        folder = tmp_path / "run"
        pretrain(settings(text), folder)
        pretrain(replace(Settings.load(folder), epochs=2), folder, resume=True)
        assert Settings.load(folder).epochs == 2

    def test_a_stopped_run_is_finished_and_can_be_resumed(self, text: Path, tmp_path: Path) -> None:
        chosen, folder = settings(text, epochs=2), tmp_path / "run"
        with pytest.raises(ConfigError, match="no checkpoint to finish"):
            finish(chosen, folder, 0.5)
        with pytest.raises(Stopped):
            pretrain(chosen, folder, options=EVERY_STEP, watcher=Stopping(12, "signal"))
        finish(chosen, folder, 0.5)
        early = weights(folder)
        assert rows_of(folder)[-1]["step"] == 12 + 6
        assert rows_of(folder)[-1]["rate"] == 0
        pretrain(chosen, folder, resume=True)
        assert_equal(weights(folder), weights(pretrain(chosen, tmp_path / "whole")))
        assert any(not torch.equal(early[name], w) for name, w in weights(folder).items())

    def test_a_stopped_finish_continues(self, text: Path, tmp_path: Path) -> None:
        chosen = settings(text, epochs=2)
        with pytest.raises(Stopped):
            pretrain(chosen, tmp_path / "a", options=EVERY_STEP, watcher=Stopping(12, "signal"))
        shutil.copytree(tmp_path / "a", tmp_path / "b")
        finish(chosen, tmp_path / "a", 0.5)
        with pytest.raises(Stopped, match=r"--finish 0\.5"):
            finish(chosen, tmp_path / "b", 0.5, options=EVERY_STEP, watcher=Stopping(3, "signal"))
        finish(chosen, tmp_path / "b", 0.5)
        assert_equal(weights(tmp_path / "a"), weights(tmp_path / "b"))

    @pytest.mark.parametrize("share", [0.0, 1.5])
    def test_a_share_out_of_range(self, text: Path, tmp_path: Path, share: float) -> None:
        with pytest.raises(ConfigError, match="share of steps"):
            finish(settings(text), tmp_path, share)


def own(**embedding: Any) -> Config:
    chosen = {"name": "own", "path": str(tiny.body()), **embedding}
    return Config().with_settings(tiny.settings(epochs=3, pretrained_rate=0.5)).with_settings({"embedding": chosen})


class TestOwn:
    @pytest.mark.parametrize("mode", ["frozen", "tuned"])
    @pytest.mark.parametrize("encoder", ["flat", "bilstm", "transformer", "none"])
    def test_it_trains_is_saved_and_loads(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, encoder: str
    ) -> None:
        copy = shutil.copytree(tiny.body(), tmp_path / "body")
        monkeypatch.setenv("OWN", str(copy))
        config = own(mode=mode, path="$OWN").with_settings({"encoder": {"name": encoder}})
        folder = api.train(config, output=tmp_path / "model").folder
        batch = collate(api.load(folder).reader.read(["李明在重庆工作。", "昨天王小红去了光明集团很好"], Lexicon()))
        expected = api.load(folder).tagger(batch)
        shutil.rmtree(copy)
        shutil.move(folder, tmp_path / "elsewhere")
        ner = api.load(tmp_path / "elsewhere")
        assert torch.equal(ner.tagger(batch), expected)
        before = load_weights(tiny.body() / WEIGHTS)
        embedding: Any = ner.tagger.embedding
        after = embedding.language_model.state_dict()
        assert all(torch.equal(before[name], w) for name, w in after.items()) == (mode == "frozen")

    def test_rates_fall_from_the_last_layer_down(self) -> None:
        chosen = own(mode="tuned").with_settings({"training": {"learning_rate": 0.4, "layer_decay": 0.1}})
        tagger = blank(chosen)
        names = {id(p): name for name, p in tagger.named_parameters()}
        groups = optimisers(tagger, chosen.training)[0].param_groups
        rates = {names[id(p)]: group["rate"] for group in groups for p in group["params"]}
        model = "embedding.language_model."
        assert rates[f"{model}norm.weight"] == pytest.approx(0.2)
        assert rates[f"{model}layers.1.output.weight"] == pytest.approx(0.2)
        assert rates[f"{model}layers.0.output.weight"] == pytest.approx(0.02)
        assert rates[f"{model}embedding.weight"] == pytest.approx(0.002)

    def test_precision_is_that_of_training(self) -> None:
        batch = collate(Reader(tiny.ner().vocabulary).read(["李明在北京"], Lexicon()))
        settings = {"mode": "tuned", "body_dropout": 0.0, "bigrams": False}
        exact, fast = (blank(own(**settings, precision=kind)).embedding for kind in PRECISIONS)
        assert torch.equal(exact.eval()(batch), fast.eval()(batch))
        assert 0 < (exact.train()(batch) - fast.train()(batch)).abs().max() < 0.05

    def test_a_held_body_does_not_learn(self) -> None:
        chosen = own(mode="tuned").with_settings({"training": {"pretrained_from": 2}})
        tagger = blank(chosen)
        freeze_pretrained(tagger, chosen.training, 1)
        batch = collate(Reader(tiny.ner().vocabulary).read(["李明在北京"], Lexicon()))
        tagger.loss(batch, [[]]).backward()
        assert all(p.grad is None for p in tagger.embedding.language_model.parameters())

    def test_a_long_text_is_read_in_windows(self) -> None:
        tagger = blank(own(bigrams=False)).eval()
        embedding = tagger.embedding
        assert isinstance(embedding, Own)
        text = "李明在北京工作昨天去了上海"
        assert len(text) > embedding.language_model.shape.window
        encoded = Reader(tiny.ner().vocabulary).read([text, text[:8]], Lexicon())
        x = embedding(collate(encoded))
        assert x.shape == (2, len(text), 8)
        assert not x[1, 8:].any()
        torch.testing.assert_close(x[0, :4], x[1, :4])

    @pytest.mark.parametrize(
        ("embedding", "message"),
        [
            ({"path": ""}, "set path to the folder of a pretrained body"),
            ({"path": "nowhere"}, "nowhere: no such folder"),
            ({"mode": "thawed"}, "must be one of 'frozen', 'tuned'"),
            ({"precision": "float16"}, "must be one of 'float32', 'bfloat16'"),
        ],
    )
    def test_a_setting_that_does_not_fit(self, embedding: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            blank(own(**embedding))

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            (WEIGHTS, None, "finish the run with"),
            (WEIGHTS, "nothing", "broken"),
            ("vocabulary.json", None, "missing"),
            ("vocabulary.json", '{"characters": "李李"}', "not the vocabulary"),
            ("vocabulary.json", '{"characters": "李"}', "does not fit"),
            ("config.toml", "", "the table 'body'"),
        ],
    )
    def test_a_broken_folder(self, tmp_path: Path, name: str, content: str | None, message: str) -> None:
        folder = shutil.copytree(tiny.body(), tmp_path / "body")
        (folder / name).unlink()
        if content is not None:
            (folder / name).write_text(content, encoding="utf-8")
        with pytest.raises(ConfigError, match=message) as caught:
            blank(own(path=str(folder)))
        assert "\n" not in str(caught.value)


def blank(config: Config) -> Any:
    vocabulary = tiny.ner().vocabulary
    tables = Tables.from_vectors(vocabulary, tiny.vectors(), normalise=True, seed=0)
    return build(config, tables, vocabulary.labels)


class TestCommand:
    SMALL = ("--layers", 1, "--width", 8, "--heads", 1, "--window", 16, "--epochs", 1, "--warmup", 2)

    def call(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(["pretrain", *map(str, arguments)])
        found = capsys.readouterr()
        assert found.out == ""
        return int(left.value.code or 0), found.err

    def test_a_run_and_what_may_change_when_it_is_resumed(
        self, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = tmp_path / "run"
        code, said = self.call(capsys, text, "--output", folder, *self.SMALL)
        assert code == 0
        assert "characters/s" in said
        assert f"--embedding.path {folder}" in said
        files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        for arguments, message in (
            (("--resume",), "is finished; resume it with more --epochs"),
            (("--resume", "--seed", 3), "the run in this folder has --seed 1, not 3"),
            (("--resume", "--width", 16), "the run in this folder has --width 8, not 16"),
            ((tmp_path / "other.txt", "--resume"), "the run in this folder has other texts"),
            ((text,), "already holds a run"),
            (("--finish", 2), "share of steps"),
        ):
            code, said = self.call(capsys, "--output", folder, *arguments)
            assert code == 1
            assert said.startswith("error: ")
            assert message in said
            assert said.count("\n") == 1
            assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files
        for others, named in ((("--epochs", 9, "--hours", 1), "--epochs, --hours"), (("--resume",), "--resume")):
            code, said = self.call(capsys, "--output", folder, "--finish", 0.1, *others)
            assert code == 2
            assert f"with --finish, leave out {named}" in " ".join(said.replace("│", "").split())
            assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == files
        assert self.call(capsys, "--output", folder, "--resume", "--epochs", 2, "--quiet") == (0, "")

    def test_a_checkpoint_that_cannot_be_written_is_shown_by_a_quiet_run(
        self, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: Any) -> None:
            raise DataError("cannot be written: No space left on device", "checkpoint")

        monkeypatch.setattr(loop_module, "save_checkpoint", fail)
        code, said = self.call(capsys, text, "--output", tmp_path / "run", *self.SMALL, "--quiet")
        assert code == 0
        first = (
            "note: no checkpoint: checkpoint: cannot be written: No space left on device; the run continues without"
        )
        assert said.splitlines()[0] == f"{first} it"

    @pytest.mark.parametrize("at", ["start", "resume"])
    def test_a_resumed_run_is_stored_in_16_bits_too(
        self, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], at: str
    ) -> None:
        folder = tmp_path / "run"
        half = {"start": [], "resume": [], at: ["--half"]}
        assert self.call(capsys, text, "--output", folder, *self.SMALL, *half["start"])[0] == 0
        assert self.call(capsys, "--output", folder, "--resume", "--epochs", 2, *half["resume"])[0] == 0
        assert Settings.load(folder).half
        with safe_open(folder / WEIGHTS, "pt") as file:
            assert {file.get_slice(name).get_dtype() for name in file.keys()} == {"F16"}  # noqa: SIM118

    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (("missing.txt",), 1, "missing.txt: no such file"),
            ((), 2, "name text files"),
            (("--resume",), 1, "holds no run to resume"),
            (("--finish", 0.1), 1, "holds no run to resume"),
            (("README.md", "--heads", 5), 1, "must be a multiple of twice the heads"),
            (("README.md", "--learning-rate", 3), 1, "learning_rate must be between"),
        ],
    )
    def test_errors(
        self,
        tmp_path: Path,
        capsys: pytest.CaptureFixture[str],
        arguments: tuple[object, ...],
        code: int,
        message: str,
    ) -> None:
        found, said = self.call(capsys, "--output", tmp_path / "run", *arguments)
        assert found == code
        assert message in said

    def test_held_out_files_without_a_class(
        self, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        (tmp_path / "held.py").write_text("x = 1\n", encoding="utf-8")
        options = ("--output", tmp_path / "run", "--held-out", tmp_path / "held.py")
        code, said = self.call(capsys, text, *self.SMALL, *options)
        assert code == 1
        assert "gives no object of a class HeldOut" in said
