"""Language models of Hugging Face: read from a local folder; errors in it are reported in one line."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hanlattice.errors import ConfigError, DataError

# Without any of these, the library makes up an empty tokenizer and says nothing.
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
PICKLES = ("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt")


def open_language_model(folder: Path, *, weights: bool = True) -> tuple[nn.Module, Any]:
    """The encoder and the tokenizer of a folder; without ``weights`` the encoder is a blank one of that shape.

    Nothing is fetched, no code of the folder is run and no pickle is read.

    Raises:
        ConfigError: the folder, its configuration, weights or tokenizer are missing or do not fit, or transformers
            is not installed.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; download a language model and name its folder as path")
    if not (folder / "config.json").is_file():
        raise ConfigError(
            f"{folder}: holds no config.json, so it is not the folder of a Hugging Face language model"
        )
    if weights and not any(folder.glob("*.safetensors")):
        raise ConfigError(f"{folder}: {_without_weights(folder)}")
    if not any(file for name in VOCABULARIES for file in folder.glob(name)):
        raise ConfigError(f"{folder}: holds no tokenizer; add the tokenizer.json or vocab.txt of this model")
    try:
        import transformers
    except ImportError:
        raise ConfigError("a language model needs: pip install 'hanlattice[pretrained]'") from None
    with _quiet(transformers):
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            model, missing = _encoder(transformers, folder, config, weights)
        except Exception as error:  # of many kinds, by what is wrong with which file
            reason = str(error).strip().partition("\n")[0]
            raise ConfigError(f"{folder}: cannot be read as a language model ({reason}); get it again") from None
    if missing:
        raise ConfigError(
            f"{folder}: its weights lack {len(missing)} that its config.json asks for, such as {min(missing)};"
            " are they of another model?"
        )
    if config.is_encoder_decoder:
        raise ConfigError(f"{folder}: {config.model_type} is no plain encoder; name one such as BERT or ELECTRA")
    rows = model.get_input_embeddings().num_embeddings
    if not len(tokenizer.all_special_ids) < len(tokenizer) <= rows:
        raise ConfigError(
            f"{folder}: its tokenizer has {len(tokenizer)} pieces and its weights have vectors for {rows};"
            " are they of different models?"
        )
    return model, tokenizer


def save_language_model(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write configuration and tokenizer, each file whole or not at all: all that a blank model needs.

    Raises:
        DataError: the folder is not writable, or the disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as beside:
            model.config.save_pretrained(beside)
            tokenizer.save_pretrained(beside)
            for file in sorted(Path(beside).iterdir()):
                os.replace(file, folder / file.name)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", folder) from error


def _encoder(transformers: Any, folder: Path, config: Any, weights: bool) -> tuple[Any, list[str]]:
    """The model in float32, and the names of weights that it wants and the folder lacks."""
    if not weights:
        return transformers.AutoModel.from_config(config, dtype=torch.float32), []
    model, found = transformers.AutoModel.from_pretrained(
        folder,
        config=config,
        local_files_only=True,
        use_safetensors=True,
        dtype=torch.float32,
        output_loading_info=True,
    )
    return model, [name for name in found["missing_keys"] if "pooler" not in name]


def _without_weights(folder: Path) -> str:
    if any(file for name in PICKLES for file in folder.glob(name)):
        return (
            "holds weights as a pickle only, which is never read here; write them as model.safetensors once, with:"
            f' python -c "from transformers import AutoModel as M;'
            f" M.from_pretrained('{folder}').save_pretrained('{folder}')\""
        )
    return "holds no weights; add the model.safetensors of this model"


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Without progress bars and notices on stderr, which is for ours."""
    logging = transformers.utils.logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
