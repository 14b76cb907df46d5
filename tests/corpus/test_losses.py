"""What formats cannot hold of a document."""

import io
import re

from hypothesis import given
from hypothesis import strategies as st

from corpus_examples import (
    document,
    documents,
    found,
)
from hanlattice import corpus
from hanlattice.corpus import losses
from hanlattice.document import Document, Entity


@given(documents(), st.sampled_from([*corpus.FORMATS, *corpus.PATHS]))
def test_a_reduced_document_can_be_written_and_read_back(given_document: Document, name: str) -> None:
    labels = (Entity(e.text, re.sub(r"\s", "", e.label), e.start, e.end) for e in given_document.entities)
    kept, lost = losses.carried(Document(given_document.text, tuple(labels), id="1"), corpus.carries(name))
    writer = corpus.FORMATS[name].write if name in corpus.FORMATS else None
    if kept is None or writer is None:
        return
    stream = io.StringIO()
    writer([kept], stream)
    [again] = corpus.FORMATS[name].read(stream.getvalue().split("\n"))
    assert again.text == kept.text
    assert sorted(again.spans) == sorted(kept.spans)
    assert bool(lost) == (
        (kept.text, kept.entities, kept.id) != (given_document.text, tuple(kept.entities), "1")
        or len(kept.entities) != len(given_document.entities)
    )


def test_losses_are_counted_by_name() -> None:
    whole = Document(
        "我\n和你",
        (
            Entity("我\n和你", "A", 0, 4, 0.5),
            Entity("和", "B", 2, 3),
            Entity("和你", "C", 2, 4, None, ((2, 3), (3, 4))),
        ),
        id="x",
        tokens=((0, 1), (2, 4)),
        meta={"source": 1, "@line": 3},
    )
    kept, lost = losses.carried(whole, corpus.carries("bmes"))
    assert kept is not None
    assert kept.text == "我 和你"
    assert found(kept) == [("我 和你", "A")]
    assert dict(lost) == {
        "discontinuous entities": 1, "overlapping entities": 1, "scores": 1, "ids": 1, "column 'source'": 1,
        "token boundaries that leave gaps or cut entities": 1, "line breaks in texts": 1,
    }  # fmt: skip
    assert losses.carried(whole, corpus.carries("jsonl")) == (whole, {})
    assert losses.carried(document(""), corpus.carries("bmes")) == (None, {"empty texts": 1})
