"""A pretrained language model, its word pieces pooled to characters: nobody else knows of pieces."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from hanlattice.embeddings.language_model import save_language_model
from hanlattice.embeddings.low_rank import adapt
from hanlattice.embeddings.pieces import PieceReader, laid_out
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout

# Pieces that a window holds at most, marks included: what BERT and its kin were trained on.
LONGEST = 512


class Mix(nn.Module):
    r"""A learned mean of all layers, :math:`\gamma \sum_l \mathrm{softmax}(w)_l h_l` (Peters et al. 2018)."""

    def __init__(self, layers: int):
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.zeros(layers)), nn.Parameter(torch.ones(1))

    def forward(self, layers: Float[Tensor, "T R S D"]) -> Float[Tensor, "R S D"]:
        return self.scale * torch.einsum("l,lrsd->rsd", self.weight.softmax(0), layers)


class Pretrained(nn.Module):
    """``embedding(batch) -> x [B N D]``: what a language model makes of each character of ``batch.texts``.

    A character's vector is the mean over the pieces it is read from: see :class:`PieceReader`. Texts beyond the
    model's window are read in windows that share half, each piece where it is most inside.

    ``layers``: the ``last``, or a learned ``mix`` of all. Unless ``trainable`` the model stays as it is, dropout
    and all; ``trainable_embeddings`` and ``frozen_layers`` leave only its embeddings, or those and its first
    layers, as they are. A ``lora_rank`` above 0 trains matrices of that rank beside the linear layers
    ``lora_targets`` and nothing else of the model. ``held`` is for the training loop: the model does not learn
    for the time being.

    Raises:
        ValueError: the model has fewer layers than are to be frozen, or no layer to adapt.
        ModelError: the tokenizer cannot be aligned with texts.
    """

    def __init__(
        self,
        language_model: nn.Module,
        tokenizer: Any,
        *,
        layers: Literal["last", "mix"] = "last",
        by_character: bool = False,
        dropout: float = 0.1,
        trainable: bool = True,
        trainable_embeddings: bool = True,
        frozen_layers: int = 0,
        lora_rank: int = 0,
        lora_alpha: float = 16.0,
        lora_targets: tuple[str, ...] = ("query", "value"),
    ):
        super().__init__()
        config: Any = language_model.config
        self.d_out: int = config.hidden_size
        self.language_model, self.tokenizer = language_model, tokenizer
        self.pieces = PieceReader(tokenizer, by_character=by_character)
        self.marks = _marks(tokenizer)
        self.window = _longest(language_model, tokenizer) - sum(map(len, self.marks))
        self.mix = Mix(config.num_hidden_layers + 1) if layers == "mix" else None
        self.dropout = Dropout(dropout)
        self.held = False
        self._freeze(trainable, trainable_embeddings, frozen_layers)
        if lora_rank:
            if frozen_layers or not (trainable and trainable_embeddings):
                raise ValueError("lora_rank freezes the whole model: set it to 0, or leave out what else freezes")
            adapt(language_model, lora_targets, lora_rank, lora_alpha)

    def _freeze(self, trainable: bool, trainable_embeddings: bool, frozen_layers: int) -> None:
        n = len(_layers(self.language_model))
        if not 0 <= frozen_layers <= n:
            raise ValueError(f"frozen_layers must be from 0 to {n}, the layers of this model, not {frozen_layers}")
        for parameter, level in self._levels():
            below = level == 0 and not trainable_embeddings
            if not trainable or below or (frozen_layers and level <= frozen_layers):
                parameter.requires_grad_(False)
        for name, parameter in self.language_model.named_parameters():
            if "pooler" in name:  # reads the first mark only, and nothing here reads it
                parameter.requires_grad_(False)

    def _levels(self) -> list[tuple[nn.Parameter, int]]:
        """Parameters of the model with the layer they are of: 0 below the layers, then 1, 2, … up to the last."""
        layer_of = {
            id(parameter): i
            for i, layer in enumerate(_layers(self.language_model), 1)
            for parameter in layer.parameters()
        }
        level, found = 0, []
        for parameter in self.language_model.parameters():
            level = layer_of.get(id(parameter), level)
            found.append((parameter, level))
        return found

    def depths(self) -> list[tuple[nn.Parameter, int]]:
        """Trained parameters of the model, and how many of its layers lie above each: 0 in the last."""
        n = len(_layers(self.language_model))
        return [(parameter, n - level) for parameter, level in self._levels() if parameter.requires_grad]

    def train(self, mode: bool = True) -> "Pretrained":
        """As of every module, but a model that learns nothing also drops nothing out."""
        super().train(mode)
        self.language_model.train(mode and self._learns())
        return self

    def _learns(self) -> bool:
        return not self.held and any(p.requires_grad for p in self.language_model.parameters())

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        if len(batch.texts) != len(batch.chars):
            raise ValueError("a language model reads batch.texts: give the texts of the sentences")
        before, after = self.marks
        padding = self.tokenizer.pad_token_id or 0
        rows = laid_out(self.pieces(batch.texts), batch.chars.shape[1], self.window, before, after, padding)
        place = batch.chars.device
        ids, lengths, index, weight = (
            torch.from_numpy(array).to(place) for array in (rows.ids, rows.lengths, rows.index, rows.weight)
        )
        with nullcontext() if self._learns() else torch.no_grad():
            states = self._states(ids, lengths)
        read = states if self.mix is None else self.mix(states.float())
        vectors = read.flatten(0, 1)[index]  # [B N K D]
        return self.dropout((vectors * weight.unsqueeze(-1).to(vectors.dtype)).sum(2))

    def _states(self, ids: Int[Tensor, "R S"], lengths: Int[Tensor, "R"]) -> Tensor:
        """``[R S D]`` of the last layer, or ``[T R S D]`` of all that are to be mixed."""
        mask = torch.arange(ids.shape[1], device=ids.device) < lengths[:, None]
        read = self.language_model(
            input_ids=ids, attention_mask=mask.long(), output_hidden_states=self.mix is not None
        )
        return read.last_hidden_state if self.mix is None else torch.stack(read.hidden_states)

    def save_files(self, folder: Path) -> None:
        """Write what a blank model of this kind is built from: see :func:`save_language_model`."""
        save_language_model(folder, self.language_model, self.tokenizer)


def _layers(model: Any) -> nn.ModuleList:
    """The layers of an encoder, those that are shared once."""
    lists = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    own = [m for m in lists if len(m) == model.config.num_hidden_layers]
    return (own or lists or [nn.ModuleList()])[0]


def _marks(tokenizer: Any) -> tuple[list[int], list[int]]:
    """What the tokenizer puts before and after a text, such as ``[CLS]`` and ``[SEP]``."""
    probe = "中"
    plain, marked = (tokenizer.encode(probe, add_special_tokens=special) for special in (False, True))
    at = next(i for i in range(len(marked)) if marked[i : i + len(plain)] == plain)
    return marked[:at], marked[at + len(plain) :]


def _longest(model: nn.Module, tokenizer: Any) -> int:
    """Pieces that the model can place; RoBERTa counts its positions from behind that of padding."""
    tables = (m for name, m in model.named_modules() if name.endswith("position_embeddings"))
    places = [
        table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
        for table in tables
        if isinstance(table, nn.Embedding)
    ]
    return min(LONGEST, tokenizer.model_max_length, *places)
