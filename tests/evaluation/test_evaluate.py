"""Evaluation of a model: its report, spans at a threshold, confidences, and what it cannot predict."""

import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace

import hanlattice
import tiny
from hanlattice import training
from hanlattice.document import Document, Entity
from hanlattice.evaluation.evaluate import Evaluation, evaluate
from hanlattice.evaluation.scores import Recall, evaluate_spans
from hanlattice.patterns import Patterns
from hanlattice.spans import Span


def test_report_equals_scores_of_predicted_spans() -> None:
    ner, documents = tiny.ner(), tiny.documents()
    predicted = [document.spans for document in ner.pipe(document.text for document in documents)]
    expected = evaluate_spans([document.spans for document in documents], predicted)
    assert evaluate(ner, documents) == expected
    assert evaluate(ner, documents, upper_bound=False) == expected
    assert hanlattice.evaluate(ner, documents) == expected
    assert training.evaluate(ner, documents) == expected


def test_other_gold_spans_and_threshold() -> None:
    ner, documents = tiny.ner(), tiny.documents()
    gold = [[span._replace(label="XYZ") for span in document.spans] for document in documents]
    evaluation = Evaluation.run(ner, documents, gold=gold)
    assert evaluation.report().micro.correct == 0
    assert sum(map(len, evaluation.unreachable)) == sum(map(len, gold))
    assert evaluation.report(threshold=1.0).micro.predicted == sum(map(len, evaluation.spans(1.0)))
    scores = [score for document in evaluation.predicted for score in tiny.scores(document)]
    limit = max(scores)  # a score that equals the threshold is enough
    assert sum(len(spans) for spans in evaluation.spans(limit)) == scores.count(limit)
    assert evaluation.confidences().p == scores
    assert evaluation.confidences(limit).p == [limit] * scores.count(limit)
    assert not any(evaluation.confidences().correct)


def test_entities_with_a_score_equal_to_the_threshold_are_in_the_error_page() -> None:
    """As in the scores: both come from the same entities."""
    ner, documents = tiny.ner(), tiny.documents()
    evaluation = Evaluation.run(ner, documents)
    limit = sorted(score for document in evaluation.predicted for score in tiny.scores(document))[5]
    kept = evaluation.entities(limit)
    assert [[e.span for e in entities] for entities in kept] == evaluation.spans(limit)
    assert limit in [entity.score for entities in kept for entity in entities]


def test_lattices_are_kept_on_request_only() -> None:
    ner, documents = tiny.ner(), tiny.documents()[:3]
    assert all(d.lattice is None and d.words is None for d in Evaluation.run(ner, documents).predicted)
    assert all(d.lattice is not None for d in Evaluation.run(ner, documents, keep_lattices=True).predicted)


def test_progress_sees_every_predicted_document() -> None:
    seen: list[list[Span]] = []

    def progress(found: Iterable[Document]) -> Iterator[Document]:
        for document in found:
            seen.append(document.spans)
            yield document

    evaluation = Evaluation.run(tiny.ner(), tiny.documents(), progress=progress)
    assert seen == evaluation.spans()


def test_command_runs_without_torch() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from hanlattice.cli import main\n"
        "main(['evaluate', 'default', sys.argv[1], '--quiet'])"
    )
    corpus = str(tiny.folder() / "corpus.bmes")
    done = subprocess.run([sys.executable, "-c", code, corpus], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "expected calibration error" in done.stdout


def test_without_an_upper_bound_nothing_is_searched() -> None:
    ner, documents = tiny.ner(), tiny.documents()[:2]
    gold = [[Span(0, 1, "XYZ")], [Span(0, 2, "XYZ")]]
    assert Evaluation.run(ner, documents, gold=gold).unreachable == gold
    assert Evaluation.run(ner, documents, gold=gold, upper_bound=False).unreachable == []
    unknown = [Document(d.text, (Entity(d.text[:1], "XYZ", 0, 1),)) for d in documents]
    assert evaluate(ner, unknown).forms["reachable"] == Recall(2, 0)
    assert evaluate(ner, unknown, upper_bound=False).forms == {}


def test_what_patterns_find_is_within_reach() -> None:
    """A label that the model does not have, found by a pattern at one place and not at another."""
    text = "李明2024年3月5日去了北京，还有一天"
    found = Patterns().find(text)[0]
    gold = [[found.span, found.span._replace(start=0, end=1)], []]
    documents = [Document(text, ()), Document("无", ())]
    ner = tiny.ner()
    assert Evaluation.run(ner, documents, gold=gold).unreachable == [gold[0], []]
    with ner.using(patterns=Patterns()):
        assert Evaluation.run(ner, documents, gold=gold).unreachable == [gold[0][1:], []]


def test_entities_without_a_score_count_as_0() -> None:
    scored = Entity("明", "PER", 1, 2, 0.5)
    evaluation = Evaluation([[]], [Document("李明", (Entity("李", "PER", 0, 1), scored))])
    assert evaluation.spans() == [[Span(0, 1, "PER"), Span(1, 2, "PER")]]
    for threshold, n in ((0.0, 2), (0.1, 1), (0.5, 1), (0.6, 0)):
        assert len(evaluation.spans(threshold)[0]) == evaluation.report(threshold=threshold).micro.predicted == n


def test_partial_scores_of_a_model() -> None:
    near = Evaluation([[Span(0, 1, "PER")]], [Document("李明", (Entity("李明", "PER", 0, 2),))])
    assert near.report(partial=True).micro.correct == 1
    assert near.report().micro.correct == 0
    ner, documents = tiny.ner(), tiny.documents()
    shifted = [
        replace(d, entities=tuple(Entity(e.text[1:], e.label, e.start + 1, e.end) for e in d.entities))
        for d in documents
    ]
    exact, partial = (evaluate(ner, shifted, partial=chosen, upper_bound=False) for chosen in (False, True))
    assert exact.micro.correct < partial.micro.correct
    assert (exact.partial, partial.partial) == (False, True)
