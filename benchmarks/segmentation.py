"""F1 of word segmentation and of parts of speech, beside jieba on the same text, and the cost of `document.words`.

    HANLATTICE_DATA=… python benchmarks/segmentation.py [--model MODEL] [--documents 2000]

The text is the held-out part of the People's Daily of January 1998: the documents that share 13 characters with a
held-out text, which no part of the packaged model was trained on. A word counts if both ends are right, and for the
tag also its part of speech, after the merging of `scripts/tag_words.py`. Punctuation is not scored.

The corpus splits names of several words (中国 人民 银行), and the convention `words` does not. So there are
two rows: all words of the corpus, and the words outside named entities. The dictionary of jieba and its
model of unknown words come in part from the same newspaper, so its scores are not those of unseen text.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import jieba.posseg

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document
from hanlattice.evaluation.scores import Score, percent
from hanlattice.words import PUNCTUATION

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))
from hanlattice.training.held_out import load_held_out
from tag_words import KEPT, SAME, part_of_speech

Word = tuple[int, int, str]
NAMES = {"nr": "PER", "ns": "LOC", "nt": "ORG"}


def gold(document: Document) -> list[Word]:
    """The words of the corpus with merged tags, without punctuation."""
    tags = map(part_of_speech, document.meta["pos"])
    pairs = zip(document.tokens or (), tags, strict=True)
    return [(start, end, NAMES.get(tag, tag)) for (start, end), tag in pairs if tag]


def jieba_tag(flag: str) -> str:
    """A tag of jieba as the corpus has it: finer tags, such as uj, vi or nrt, become the tag they begin with."""
    if flag in ("x", "eng"):
        return "w" if flag == "x" else "nx"
    known = (flag, flag[:2], flag[:1])
    return next((tag for tag in known if tag in KEPT or tag in SAME or tag in NAMES), flag)


def of_jieba(text: str) -> list[Word]:
    words, start = [], 0
    for pair in jieba.posseg.cut(text):
        end = start + len(pair.word)
        tag = part_of_speech(jieba_tag(pair.flag))
        if tag:
            words.append((start, end, NAMES.get(tag, tag)))
        start = end
    return words


def outside(words: Iterable[Word], document: Document) -> set[Word]:
    """The words that share no character with a named entity of the corpus."""
    inside = {i for entity in document.entities for i in range(entity.start, entity.end)}
    return {word for word in words if inside.isdisjoint(range(word[0], word[1]))}


def untagged(words: Iterable[Word]) -> set[Word]:
    return {(start, end, "") for start, end, _ in words}


def scored(documents: list[Document], predicted: list[list[Word]], which: Callable[..., set[Word]]) -> list[Score]:
    """The scores of segmentation and of tags over all documents."""
    scores = []
    for view in (untagged, set):
        counts = [0, 0, 0]
        for document, found in zip(documents, predicted, strict=True):
            a, b = view(which(gold(document), document)), view(which(found, document))
            for i, n in enumerate((len(a), len(b), len(a & b))):
                counts[i] += n
        scores.append(Score(*counts))
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model")
    parser.add_argument("--documents", type=int, default=2000, help="at most so many")
    a = parser.parse_args()
    data = Path(os.environ["HANLATTICE_DATA"])
    is_held_out = load_held_out(data / "held_out.py")
    read = corpus.read(data / "labelled/people_daily_199801/199801.txt")
    documents = [d for d in read if d.tokens and is_held_out(d.text)][: a.documents]
    texts = [d.text for d in documents]
    ner = hanlattice.load(a.model, threads=1)
    ner(texts[:100])
    start = time.process_time()
    found = list(ner(texts))
    entities_only = time.process_time() - start
    words = [[(w.start, w.end, w.pos) for w in d.words or () if w.pos != PUNCTUATION] for d in found]
    with_words = time.process_time() - start
    jieba.initialize()
    start = time.process_time()
    theirs = [of_jieba(text) for text in texts]
    seconds = time.process_time() - start
    print(f"{len(texts):,} documents, {sum(map(len, texts)):,} characters")
    print("| words | system | segmentation P | R | F1 | tags F1 |\n|---|---|---|---|---|---|")
    for title, which in (("all", lambda rows, _: set(rows)), ("outside names", outside)):
        for system, rows in (("hanlattice", words), ("jieba", theirs)):
            cut, tagged = scored(documents, rows, which)
            cells = [percent(value) for value in (cut.precision, cut.recall, cut.f1, tagged.f1)]
            print(f"| {title} | {system} | {' | '.join(cells)} |")
    print(
        f"processor time: entities alone {entities_only:.2f} s, entities and words {with_words:.2f} s,"
        f" jieba {seconds:.2f} s"
    )


if __name__ == "__main__":
    main()
