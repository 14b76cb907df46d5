"""Errors for data that a decoder cannot learn: one line with the reason, the place and a suggested fix."""

from pathlib import Path

import pytest
import torch

import tiny
from hanlattice import corpus
from hanlattice.build import DECODERS
from hanlattice.build.settings import construct
from hanlattice.cli import main
from hanlattice.config.parts import Part
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, ModelError
from hanlattice.inputs.batch import collate
from hanlattice.spans import Span
from hanlattice.tagger import Tagger

TEXT = "李明在北京大学附属医院工作"
CROSSING = Document(TEXT, (Entity("北京大学", "ORG", 3, 7), Entity("大学附属医院", "ORG", 5, 11)))
FLAT = ["crf", "softmax", "biaffine", "global_pointer", "token_pairs", "cascade_pointer", "mrc", "enumeration"]


@pytest.fixture
def crossing(tmp_path: Path) -> Path:
    """A corpus whose second document has entities that cross."""
    path = tmp_path / "crossing.jsonl"
    corpus.write([tiny.documents()[0], CROSSING, *tiny.documents()[1:]], path, "jsonl")
    return path


def trained(crossing: Path, output: Path, *options: str) -> list[str]:
    """The command line that trains on the corpus, with a small encoder."""
    place = tiny.folder()
    sizes = ("--encoder.name", "none", "--training.epochs", "1", "--training.device", "cpu")
    files = ("--train", crossing, "--dev", place / "corpus.bmes", "--vectors", place / "vectors.safetensors")
    return ["train", *map(str, files), *sizes, *options, "--quiet", "--output", str(output)]


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The only line on stderr."""
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 1
    (line,) = capsys.readouterr().err.splitlines()
    return line


class TestCrossingSpans:
    @pytest.mark.parametrize("name", FLAT)
    def test_a_flat_decoder_refuses_them(
        self, name: str, crossing: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        flat = [] if name in ("crf", "softmax") else ["--decoder.nested", "false"]
        line = error_of(capsys, *trained(crossing, tmp_path / "run", "--decoder.name", name, *flat))
        assert line == (
            f"error: {crossing}:2: ORG '北京大学' and ORG '大学附属医院' overlap, which this decoder cannot learn;"
            " keep only the outermost of such entities with data.outermost = true"
        )
        assert not (tmp_path / "run").exists()

    def test_outermost_keeps_one_of_them(self, crossing: Path, tmp_path: Path) -> None:
        with pytest.raises(SystemExit) as left:
            main(trained(crossing, tmp_path / "run", "--decoder.name", "crf", "--data.outermost", "true"))
        assert not left.value.code

    def test_evaluation_counts_and_names_them(self, crossing: Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as left:
            main(["evaluate", str(tiny.trained()), str(crossing), "--quiet"])
        assert not left.value.code
        out = capsys.readouterr().out
        assert "ORG '大学附属医院' cannot be predicted together with the other gold entities" in out
        assert any(line.split()[0] == "reachable" for line in out.splitlines() if line.strip())


class TestUnknownTypes:
    def test_a_tagger_cannot_learn_them(self) -> None:
        ner = tiny.ner()
        batch = collate(ner.reader.read([TEXT], ner.lexicon))
        message = r"^the labels DIS, GENE cannot be learnt: this model was built for LOC, ORG, PER; rename"
        for name in DECODERS:
            # Labels are checked first. "joint_mrc" needs one part of the width for each label.
            decoder = DECODERS[name](len(ner.labels) * ner.tagger.encoder.d_out, ner.labels)
            tagger = Tagger(ner.tagger.embedding, ner.tagger.encoder, decoder)
            with pytest.raises(ModelError, match=message):
                tagger.loss(batch, [[Span(0, 2, "PER"), Span(3, 5, "GENE"), Span(5, 6, "DIS")]])

    def test_a_query_of_one(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        corpus_path = tiny.folder() / "corpus.bmes"
        for query, message in (("GENE=基因", "there is no label 'GENE' to query"), ("PER=", "is empty")):
            label, _, text = query.partition("=")
            options = ("--decoder.name", "mrc", f"--decoder.queries.{label}", f'"{text}"')
            line = error_of(capsys, *trained(corpus_path, tmp_path / "run", *options))
            assert line.startswith("error: decoder 'mrc': ")
            assert message in line
            assert not (tmp_path / "run").exists()


class TestTooManyTypes:
    TYPES = tuple(f"T{i}" for i in range(70_000))

    @pytest.mark.parametrize("name", ["crf", "softmax", "biaffine", "global_pointer", "word_pairs"])
    def test_of_weights(self, name: str) -> None:
        with pytest.raises(
            ConfigError, match=rf"^decoder '{name}': .*70,000 labels .* have fewer labels, .*"
        ) as told:
            construct("decoder", Part(name), DECODERS, 300, self.TYPES)
        assert "\n" not in str(told.value)

    @pytest.mark.parametrize("name", ["token_pairs", "efficient_global_pointer"])
    def test_of_cells(self, name: str) -> None:
        decoder = construct("decoder", Part(name), DECODERS, 2, self.TYPES)
        mask = torch.ones(1, 5000, dtype=torch.bool)
        with torch.inference_mode():
            scores = decoder.scores(torch.zeros(1, 1, 2)).expand(1, 5000, -1)
            with pytest.raises(
                ModelError, match=r"^a table of 5,000 characters with 70,000 labels .* have fewer labels$"
            ):
                decoder.decode(scores, mask)

    @pytest.mark.parametrize("name", ["multilabel", "cascade_pointer", "softmax_pointer", "mrc", "enumeration"])
    def test_others_grow_with_the_types_alone(self, name: str) -> None:
        labels = self.TYPES[:2000]
        decoder = construct("decoder", Part(name), DECODERS, 8, labels).eval()
        mask = torch.ones(1, 20, dtype=torch.bool)
        with torch.inference_mode():
            (spans,) = decoder.decode(decoder.scores(torch.randn(1, 20, 8)), mask)
        assert {span.label for span in spans} <= set(labels)
