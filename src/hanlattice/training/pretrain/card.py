"""The model card of a pretrained body, that is, a character Transformer without a head."""

from pathlib import Path

from hanlattice import __version__
from hanlattice.training.pretrain.checkpoint import State
from hanlattice.training.pretrain.prepare import Summary
from hanlattice.training.pretrain.settings import Settings

CARD = "README.md"


def card(settings: Settings, summary: Summary, state: State, held_out: float | None, *, ids: int, rows: int) -> str:
    """The card as Markdown: settings, text, steps, held-out loss, and how to use the body.

    Args:
        settings: the settings of the run.
        summary: what was read of the texts.
        state: how far the run is.
        held_out: loss on the held-out texts, None if it was not measured.
        ids: size of the vocabulary.
        rows: windows per step, which are fewer than ``settings.batch`` if the text has no more.
    """
    shape = settings.shape
    names = ", ".join(Path(text).name for text in settings.texts)
    loss = "not measured" if held_out is None else f"{held_out:.4f} nats per masked character"
    left_out = Path(settings.held_out).name if settings.held_out else "no file of held-out texts"
    characters = state.step * rows * shape.window
    return f"""# A character Transformer for hanlattice

Made by `hanlattice pretrain`, version {__version__}: self-supervised training on raw text. It has no labels.

| | |
|---|---|
| layers, width, heads, window | {shape.layers}, {shape.width}, {shape.heads}, {shape.window} |
| ids | {ids:,} |
| text | {names} |
| prepared | {summary} |
| held-out texts | {left_out} |
| masked | {settings.mask}, {settings.share:.0%} of the characters |
| steps | {state.step:,} of {rows} x {shape.window} characters, {characters:,} in all |
| rate falls to zero | from step {state.decay_from:,} |
| learning rate, seed, precision | {settings.learning_rate:g}, {settings.seed}, {settings.precision} |
| held-out loss | {loss} |

```toml
[embedding]
name = "own"
path = "…"
mode = "frozen"
```
"""
