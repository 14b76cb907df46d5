"""Language models in the Hugging Face format: read from a local folder and written to one."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from hanlattice.errors import ConfigError, WriteError

# If a folder has none of these files, transformers returns an empty tokenizer without an error.
VOCABULARIES = ("tokenizer.json", "vocab.txt", "vocab.json", "*.model")
PICKLES = ("pytorch_model*.bin", "*.pt", "*.pth", "*.ckpt")


def open_language_model(folder: Path, *, weights: bool = True) -> tuple[nn.Module, Any]:
    """Read the encoder and the tokenizer from a folder.

    Nothing is downloaded, no code from the folder is run, and no pickle is read.

    Args:
        folder: The folder of a model in the Hugging Face format.
        weights: Whether to read the weights. Otherwise the encoder has the same shape, with random weights.

    Raises:
        ConfigError: The folder, its configuration, its weights or its tokenizer are missing or invalid, or
            transformers is not installed.
    """
    _check_files(folder, weights)
    try:
        import transformers
    except ImportError:
        raise ConfigError("a language model needs: pip install 'hanlattice[pretrained]'") from None
    with _quiet(transformers):
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
            config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
            model, missing = _encoder(transformers, folder, config, weights)
        except Exception as error:  # the type depends on the file and the defect
            reason = str(error).strip().partition("\n")[0]
            raise ConfigError(f"{folder}: cannot be read as a language model ({reason}); get it again") from None
    if missing:
        raise ConfigError(
            f"{folder}: its weights lack {len(missing)} arrays that its config.json requires, such as"
            f" {min(missing)}; do they belong to another model?"
        )
    if config.is_encoder_decoder:
        raise ConfigError(
            f"{folder}: {config.model_type} is not an encoder-only model; use one such as BERT or ELECTRA"
        )
    rows = model.get_input_embeddings().num_embeddings
    if not len(tokenizer.all_special_ids) < len(tokenizer) <= rows:
        raise ConfigError(
            f"{folder}: its tokenizer has {len(tokenizer)} tokens and its weights have vectors for {rows};"
            " do they belong to different models?"
        )
    return model, tokenizer


def _check_files(folder: Path, weights: bool) -> None:
    """Raise a ConfigError if the configuration, the vocabulary, or the weights that are to be read are missing."""
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


def save_language_model(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write the configuration and the tokenizer, but no weights; each file is written completely or not at all.

    Raises:
        DataError: The folder is not writable, or the disk is full.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".") as beside:
            model.config.save_pretrained(beside)
            tokenizer.save_pretrained(beside)
            for file in sorted(Path(beside).iterdir()):
                os.replace(file, folder / file.name)
    except OSError as error:
        raise WriteError(f"cannot be written: {error.strerror or error}", folder) from error


def _encoder(transformers: Any, folder: Path, config: Any, weights: bool) -> tuple[Any, list[str]]:
    """The model in float32, and the names of the weights that are missing in the folder."""
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
            "holds weights as a pickle only, which is never read; convert them to model.safetensors once, with:"
            f' python -c "from transformers import AutoModel as M;'
            f" M.from_pretrained('{folder}').save_pretrained('{folder}')\""
        )
    return "holds no weights; add the model.safetensors of this model"


@contextmanager
def _quiet(transformers: Any) -> Iterator[None]:
    """Suppress progress bars and warnings of transformers on stderr."""
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
