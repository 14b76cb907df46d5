"""The model card that training writes: how the model was trained, and its scores."""

from pathlib import Path

from hanlattice.config.settings import Config
from hanlattice.evaluation.scores import Report
from hanlattice.pipeline import NER
from hanlattice.training.progress import Progress


def card(config: Config, ner: NER, progress: Progress, dev: Report, test: Report | None, by: str = "dev F1") -> str:
    """The card as Markdown; it has the names of files but not their folders. ``by`` is the criterion of the run."""
    data = config.data
    corpora = ", ".join(Path(path).name for path in data.train)
    dev_name = Path(data.dev).name if data.dev else f"{data.dev_share:.0%} of train, by seed {config.training.seed}"
    parts = f"{config.embedding.name} + {config.encoder.name} + {config.decoder.name}"
    lines = [
        f"# {parts}",
        "",
        f"Entities: {', '.join(ner.labels)}. Lexicon: {len(ner.lexicon):,} words.",
        "",
        f"Trained with hanlattice on {corpora}; dev: {dev_name}. Best epoch by {by}: {progress.best_epoch}"
        f" of {progress.epoch}, {progress.seconds / 60:.0f} minutes, seed {config.training.seed}."
        " All settings: `config.toml`.",
        "",
        "## Dev",
        "",
        dev.to_markdown(),
        *_lost(dev),
    ]
    if test is not None:
        lines += ["", "## Test", "", test.to_markdown(), *_lost(test)]
    return "\n".join(lines) + "\n"


def _lost(report: Report) -> list[str]:
    """How many gold entities the model can never find, such as nested ones with a flat decoder."""
    if "reachable" not in report.forms:
        return []
    gold, within = report.forms["reachable"]
    return ["", f"{gold - within:,} of the gold entities are of a form that this model can never find."]
