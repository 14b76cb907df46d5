"""Prepare the training corpora of the packaged model: remove held-out texts and write one file per convention.

    HANLATTICE_DATA=… python scripts/open_corpora.py --output FOLDER [--without NAME …]

Documents that share 13 consecutive characters with a held-out text are left out of all corpora;
``$HANLATTICE_DATA/held_out.py`` decides this with hashes. A fixed part of the corpus ``wild``, chosen by a hash of
each text, is written to ``aside.jsonl``. It is used for calibration and robustness tests, and no model is trained
on it. ``names.jsonl`` has the names of all corpora with the six labels of ``wild``, for the gazetteer only.
``annotated.jsonl`` has the sentences of raw text and of these corpora that annotations/open.tsv annotates with the
six labels.

Corpora named by ``--without`` are left out, and so are texts of ``wild`` that are also in one of them. A model made
without a corpus shows what fine-tuning on that corpus brings.
"""

import argparse
import hashlib
import os
import sys
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import annotations
from hanlattice import corpus
from hanlattice.document import Document
from hanlattice.training.distillation import raw_sentences
from hanlattice.training.held_out import IsHeldOut, load_held_out
from tag_words import tagged

ASIDE = 108  # in a thousand documents of wild

SOURCES = {
    "msra": "msra/train_data",
    "cluener": "cluener2020/train.json",
    "weibo": "weibo/weiboNER_2nd_conll.train",
    "resume": "resume/train.char.bmes",
    "medical": "cmeee/train_data.txt",
    "news1998": "people_daily_199801/derived/nested.jsonl",
    "products": "ecommerce_mdg/train.txt.bieos",
    "video": "youku_allanj/train.txt",
    "queries": "video_music_book/train.txt",
    "novel": "literature/brat/Training",
}
SIX_LABELS: dict[str, Mapping[str, str]] = {
    "msra": {"PER": "PER", "LOC": "LOC", "ORG": "ORG"},
    "news1998": {"PER": "PER", "LOC": "LOC", "ORG": "ORG"},
    "cluener": {
        "name": "PER", "address": "LOC", "scene": "LOC", "company": "ORG", "organization": "ORG",
        "government": "ORG", "game": "WORK", "movie": "WORK", "book": "WORK",
    },
    "weibo": {"PER.NAM": "PER", "LOC.NAM": "LOC", "GPE.NAM": "LOC", "ORG.NAM": "ORG"},
    "resume": {"NAME": "PER", "ORG": "ORG", "LOC": "LOC"},
    "video": {"PER": "PER", "TELEVISION": "WORK"},
    "queries": {"book": "WORK", "music": "WORK", "video": "WORK"},
    "novel": {"Person-Name": "PER", "Location-Name": "LOC", "Organization-Name": "ORG"},
}  # fmt: skip


def is_aside(text: str) -> bool:
    """Whether a text of wild belongs to ``aside.jsonl``."""
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") % 1000 < ASIDE


def relabelled(documents: Iterable[Document], labels: Mapping[str, str]) -> Iterator[Document]:
    """The documents with the entities whose labels are in ``labels``, under the new labels."""
    for d in documents:
        entities = tuple(
            replace(e, label=labels[e.label]) for e in d.entities if e.label in labels and len(e.fragments) == 1
        )
        yield replace(d, entities=entities, id=None)


def annotated(
    rawtext: Path, corpora: Mapping[str, Iterable[Document]], left_out: Container[str], is_held_out: IsHeldOut
) -> Iterator[Document]:
    """The sentences that annotations/open.tsv annotates.

    Args:
        rawtext: folder of the raw text
        corpora: the corpora of ``SOURCES``
        left_out: sources that are not used
        is_held_out: whether a sentence is left out

    Raises:
        DataError: a sentence is not in its source.
    """
    for source, wanted in annotations.read().items():
        if source in left_out:
            continue
        texts = (
            (d.text for d in corpora[source])
            if source in corpora
            else raw_sentences([rawtext / source], sys.maxsize)
        )
        for document in annotations.annotated(texts, wanted, source):
            if not is_held_out(document.text):
                yield document


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument(
        "--without", nargs="+", default=[], choices=SOURCES, metavar="NAME", help="corpora to leave out"
    )
    arguments = parser.parse_args()
    output: Path = arguments.output
    data = Path(os.environ["HANLATTICE_DATA"])
    output.mkdir(parents=True, exist_ok=True)
    is_held_out = load_held_out(data / "held_out.py")
    wild = [d for d in corpus.read(data / "labelled/wild/train.jsonl") if not is_held_out(d.text)]
    aside = [d for d in wild if is_aside(d.text)]
    wild = [d for d in wild if not is_aside(d.text)]
    kept: dict[str, list[Document]] = {"open": wild, "aside": aside}
    banned = {d.text for d in aside}  # other corpora contain some of these sentences
    for name, path in SOURCES.items():
        documents = list(corpus.read(data / "labelled" / path, on_defect=lambda defect: None))
        if name in arguments.without:
            in_wild = {d.text for d in documents}
            kept["open"] = [d for d in kept["open"] if d.text not in in_wild]
            continue
        kept[name] = [d for d in documents if not is_held_out(d.text) and d.text not in banned]
        print(f"{name}: {len(kept[name]):,} of {len(documents):,} documents")
    segmented = corpus.read(data / "labelled/people_daily_199801/199801.txt")
    kept["words"] = [tagged(d) for d in segmented if not is_held_out(d.text)]
    kept["names"] = [
        d for name, labels in SIX_LABELS.items() if name in kept for d in relabelled(kept[name], labels)
    ]
    kept["annotated"] = list(annotated(data / "rawtext", kept, arguments.without, is_held_out))
    for name, documents in kept.items():
        plain = (replace(d, meta={k: v for k, v in d.meta.items() if k == "genre"}) for d in documents)
        corpus.write(plain, output / f"{name}.jsonl", "jsonl")


if __name__ == "__main__":
    main()
