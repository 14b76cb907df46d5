"""Save and load a model for torch: settings, weights, vocabulary, lexicon and model card. Pickle is never used."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from hanlattice.atomic import atomic_write
from hanlattice.build import build
from hanlattice.config.files import save_config
from hanlattice.config.settings import Config
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.embeddings.own import Own
from hanlattice.embeddings.pretrained import Pretrained
from hanlattice.encoders.augmented import Augmented
from hanlattice.errors import ConfigError, ModelError
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.model.digests import forget, record
from hanlattice.model.folder import (
    CARD,
    CONFIG,
    GRAPH,
    LEXICON,
    SCALE,
    VOCABULARY,
    WEIGHTS,
    ModelFolder,
    save_lexicon,
    stored_weights,
)
from hanlattice.pipeline import NER
from hanlattice.tagger import Tagger


def save_model(
    folder: str | Path,
    tagger: Tagger,
    vocabulary: Vocabulary,
    lexicon: Lexicon,
    config: Config,
    *,
    card: str = "",
    precision: str = "float32",
) -> None:
    """Write the folder of a model. Every file is written atomically; the weights and then the digests come last.

    ``card`` is the text of the model card; for ``precision`` see :func:`save_weights`.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / GRAPH).unlink(missing_ok=True)  # it belongs to other weights
    forget(folder)
    save_config(config, folder / CONFIG)
    vocabulary.save(folder / VOCABULARY)
    save_lexicon(lexicon, folder / LEXICON)
    if card:
        with atomic_write(folder / CARD) as stream:
            stream.write(card)
    save_files(tagger, folder)
    save_weights(tagger.state_dict(), folder / WEIGHTS, precision=precision)
    record(folder)


def save_files(tagger: Tagger, folder: Path) -> None:
    """Write the files that parts of the tagger need besides weights.

    The files of a part go into a subfolder with the part's path in the tagger: ``embedding.parts.x`` writes to
    ``embedding/parts/x``.
    """
    for name, part in tagger.named_modules():
        if isinstance(part, Pretrained | Own | Augmented):
            part.save_files(folder.joinpath(*name.split(".")))


def save_weights(state: Mapping[str, Tensor], path: Path, *, precision: str = "float32", epoch: int = 0) -> None:
    """Write weights as safetensors.

    ``precision``: ``float32`` loses nothing; ``float16`` halves the size; ``int8`` stores matrices with more than a
    thousand rows (the embedding tables) as int8 with one scale for each row, and the rest as float16. Integers
    stay as they are. ``epoch`` is that of a training run, for :func:`stored_epoch`.

    Raises:
        ConfigError: there is no such precision.
    """
    if precision not in ("float32", "float16", "int8"):
        raise ConfigError(f"precision must be 'float32', 'float16' or 'int8', not {precision!r}")
    stored: dict[str, Tensor] = {}
    for name, tensor in state.items():
        tensor = tensor.detach().cpu()
        if precision == "float32" or not tensor.is_floating_point():
            stored[name] = tensor.clone()  # safetensors rejects tensors that share memory
        elif precision == "int8" and tensor.dim() == 2 and len(tensor) > 1000:
            scale = (tensor.abs().amax(1, keepdim=True) / 127).half()
            divisor = scale.float().clamp_min(1e-12)
            stored[name] = (tensor / divisor).round().clamp(-127, 127).to(torch.int8)
            stored[name + SCALE] = scale
        else:
            stored[name] = tensor.half().clone()
    # One entry, because safetensors writes several in any order, and equal runs have equal files.
    meta = {"format": f"hanlattice model 1, epoch {epoch}" if epoch else "hanlattice model 1"}
    with atomic_write(path, "wb") as stream:
        stream.write(save_tensors(stored, meta))


def stored_epoch(path: Path) -> int:
    """The epoch of a training run whose weights a file has; 0 if it is not known."""
    with safe_open(path, framework="pt") as tensors:
        return int((tensors.metadata() or {}).get("format", "").partition(", epoch ")[2] or 0)


def stored_precision(path: Path) -> str:
    """The precision with which :func:`save_weights` wrote a file."""
    with safe_open(path, framework="pt") as tensors:
        names = tensors.keys()
        kinds = {tensors.get_slice(name).get_dtype() for name in names}
    return "int8" if any(name.endswith(SCALE) for name in names) else "float16" if "F16" in kinds else "float32"


def load_weights(path: Path) -> dict[str, Tensor]:
    """The weights of a file as float32; integers stay as they are.

    Raises:
        ModelError: the file is missing, truncated or not a safetensors file, has numbers that are not finite, or
            has scales that do not fit their tables.
    """
    stored = stored_weights(path, lambda file: load_tensors(file.read_bytes()))
    for name, tensor in stored.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise ModelError(f"{path}: broken ({name} has numbers that are not finite); copy the model again")
    try:
        return {
            name: tensor.float() * stored[name + SCALE].float() if name + SCALE in stored else _widened(tensor)
            for name, tensor in stored.items()
            if not name.endswith(SCALE)
        }
    except RuntimeError as error:
        raise ModelError(
            f"{path}: broken (scales do not fit their tables: {error}); copy the model again"
        ) from None


def _widened(tensor: Tensor) -> Tensor:
    return tensor.float() if tensor.is_floating_point() else tensor


def load_model(
    folder: str | Path | None = None, *, device: str = "cpu", convention: str = "", trust: bool = False
) -> NER:
    """Open a model with torch; for the arguments see :func:`hanlattice.load`.

    Raises:
        ModelError: the folder is missing, broken, or not a model of this library; or it names parts of other
            packages and is not trusted.
    """
    opened = ModelFolder.open(folder)
    path, vocabulary = opened.path, opened.vocabulary
    state = load_weights(path / WEIGHTS)
    try:
        tables = Tables.empty(vocabulary, _dimensions(state), path)
        tagger = build(opened.config, tables, vocabulary.labels, vocabulary.conventions, trust=trust)
        tagger.load_state_dict(state)
    except ConfigError as error:
        raise ModelError(f"{path}: {error}") from error
    except RuntimeError as error:
        reason = str(error).splitlines()[-1].strip()
        raise ModelError(f"{path}: weights do not fit the settings and vocabulary ({reason})") from None
    try:
        tagger = tagger.to(device)
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"{path}: the device {device!r} cannot be used here ({reason}); try 'cpu'") from None
    place = None if folder is None else path.resolve()
    reopen = partial(load_model, place, device=device, convention=convention, trust=trust)
    return opened.read_by(tagger, convention).opened_by(reopen, path)


def _dimensions(state: Mapping[str, Tensor]) -> dict[str, int]:
    """The widths of the three embedding tables, from the weights; 1 for a missing table."""
    ends = {"chars": ".chars.weight", "bigrams": ".bigrams.weight", "words": ".words.table.weight"}
    widths = {
        kind: [t.shape[1] for name, t in state.items() if name.endswith(end) and t.dim() == 2]
        for kind, end in ends.items()
    }
    return {kind: found[0] if found else 1 for kind, found in widths.items()}
