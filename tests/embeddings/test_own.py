"""The embedding `own`: settings of the tables beside the body."""

import pytest
import torch

import tiny
from hanlattice.inputs.batch import collate
from hanlattice.training import Silent
from hanlattice.training.prepare import prepare


@pytest.mark.parametrize("sparse", [False, True])
def test_sparse_gradients_of_the_tables(sparse: bool) -> None:
    given = tiny.settings()
    given["embedding"] = {"name": "own", "path": str(tiny.body()), "sparse": sparse}
    ner = prepare(tiny.config().with_settings(given), "cpu", Silent()).ner
    sentences = ner.reader.read(["李明在北京"], ner.lexicon)
    torch.manual_seed(0)
    loss = ner.tagger.train()(collate(sentences)).square().sum()
    loss.backward()
    is_sparse = {
        name: parameter.grad.is_sparse
        for name, parameter in ner.tagger.embedding.named_parameters()
        if parameter.grad is not None
    }
    tables = {name for name, found in is_sparse.items() if found}
    assert tables == ({"beside.chars.weight", "beside.bigrams.weight"} if sparse else set())
    assert {"beside.chars.weight", "beside.bigrams.weight"} <= is_sparse.keys()
