"""Language models of a few thousand random weights, written to disk as Hugging Face's library writes them."""

from functools import cache
from pathlib import Path
from typing import Any

import torch

import tiny

MARKS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LATIN = ["hel", "##lo", "a", "##b", "##c", "h", "##e", "##l", "##o", "fi", "##i", "i", "1", "##2", "##3", "!"]
SHAPE: dict[str, Any] = {
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 12,
    "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
NAMES = ("bert", "ernie", "electra", "roberta", "albert")


def vocabulary() -> list[str]:
    """Marks, some Latin pieces, and the characters of the small world but one, which stays unknown."""
    met = sorted(set("".join(document.text for document in tiny.documents())) - {"气"})
    return [*MARKS, *LATIN, *met, "株", "式", "会", "社"]


def config(name: str, positions: int = 64, layers: int = 2) -> Any:
    import transformers

    shape = {
        **SHAPE,
        "num_hidden_layers": layers,
        "vocab_size": len(vocabulary()),
        "max_position_embeddings": positions,
        "pad_token_id": 0,
    }
    match name:
        case "bert":
            return transformers.BertConfig(**shape)
        case "ernie":
            return transformers.ErnieConfig(**shape, use_task_id=True)
        case "electra":
            return transformers.ElectraConfig(**shape, embedding_size=6)
        case "roberta":
            return transformers.RobertaConfig(**shape)
        case "albert":
            return transformers.AlbertConfig(**shape, embedding_size=6)
    raise ValueError(name)


@cache
def folder(name: str = "bert", positions: int = 64, layers: int = 2) -> Path:
    """The folder of a model: its configuration, its weights, and a WordPiece vocabulary that lower-cases."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    return tiny.shared(f"{name}-{positions}-{layers}", lambda place: _save(place, name, positions, layers))


def _save(place: Path, name: str, positions: int, layers: int) -> None:
    import transformers

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(len(name))
        model = transformers.AutoModel.from_config(config(name, positions, layers))
    for parameter_name, parameter in model.named_parameters():
        draw = torch.Generator().manual_seed(parameter.numel())
        if parameter.dim() > 1 or parameter_name.endswith("bias"):
            parameter.data.normal_(std=0.3, generator=draw)
    model.save_pretrained(place)
    (place / "vocab.txt").write_text("".join(f"{piece}\n" for piece in vocabulary()), encoding="utf-8")
    transformers.BertTokenizer(vocab=str(place / "vocab.txt")).save_pretrained(place)
