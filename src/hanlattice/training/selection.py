"""Which epoch's weights are kept: those with the best F1 on dev."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from torch import Tensor

from hanlattice.document import Document
from hanlattice.embeddings.initial_weights import state_with_all_rows
from hanlattice.evaluation.evaluate import evaluate
from hanlattice.model.weights import save_weights
from hanlattice.pipeline import NER
from hanlattice.training.examples import unpunctuated
from hanlattice.training.optimiser import MovingAverage
from hanlattice.training.progress import Progress


def criterion(*, read_unpunctuated: bool) -> str:
    """The name of the score that :class:`Selection` compares."""
    return "mean dev F1 with and without punctuation" if read_unpunctuated else "dev F1"


@dataclass
class Selection:
    """Scores the model ``ner`` on ``dev`` after an epoch, and keeps its weights for ``path`` if they are the best.

    With an ``average`` the averaged weights are scored and kept. With ``read_unpunctuated`` dev is also read
    without punctuation, and the mean of both F1 decides.
    """

    ner: NER
    dev: Sequence[Document]
    path: Path
    average: MovingAverage | None = None
    read_unpunctuated: bool = False
    _best: dict[str, Tensor] = field(default_factory=dict, init=False)  # not written yet
    _epoch: int = field(default=0, init=False)  # of these weights

    def after_epoch(self, progress: Progress) -> dict[str, float]:
        """The dev scores in percent, and the best epoch so far, which ``progress`` also gets."""
        tagger = self.ner.tagger
        if self.average is not None:
            self.average.swap(tagger)
        micro = evaluate(self.ner, self.dev, upper_bound=False).micro
        scores = {"dev_p": micro.precision, "dev_r": micro.recall, "dev_f1": micro.f1}
        f1 = micro.f1
        if self.read_unpunctuated:
            scores["unpunctuated_f1"] = evaluate(self.ner, unpunctuated(self.dev), upper_bound=False).micro.f1
            f1 = (micro.f1 + scores["unpunctuated_f1"]) / 2
        if f1 > progress.best_f1:
            progress.improved = progress.epoch
        if f1 >= progress.best_f1:  # of equal epochs the last one, which was trained longest
            progress.best_f1, progress.best_epoch = f1, progress.epoch
            self._best, self._epoch = state_with_all_rows(tagger), progress.epoch
        if self.average is not None:
            self.average.swap(tagger)
        return {name: round(100 * value, 2) for name, value in scores.items()} | {"best_epoch": progress.best_epoch}

    def write(self) -> None:
        """Write the best weights, unless they are written already."""
        if self._best:
            save_weights(self._best, self.path, epoch=self._epoch)
            self._best = {}
