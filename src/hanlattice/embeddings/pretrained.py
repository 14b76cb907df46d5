"""A pretrained language model in the Hugging Face format, whose subword vectors are pooled to characters."""

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from hanlattice.embeddings.base import Embedding
from hanlattice.embeddings.language_model import save_language_model
from hanlattice.embeddings.low_rank import adapt
from hanlattice.embeddings.subwords import SubwordReader, rows_of
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout

# Maximum number of subwords in a window, special tokens included, as in the training of BERT and its variants.
LONGEST = 512


@dataclass(frozen=True)
class FineTuning:
    """What is trained of a language model.

    Attributes:
        trainable: Whether the model is fine-tuned. Otherwise its own dropout is off as well.
        trainable_embeddings: Whether its input embeddings are fine-tuned.
        frozen_layers: The number of first layers that are not fine-tuned. If it is not 0, the input embeddings are
            not fine-tuned either.
    """

    trainable: bool = True
    trainable_embeddings: bool = True
    frozen_layers: int = 0


@dataclass(frozen=True)
class LoRA:
    """Low-rank matrices that are trained instead of the model, see :mod:`.low_rank`.

    Attributes:
        rank: Rank of the matrices.
        alpha: Scale of their update.
        targets: Names of the linear layers that have them.
    """

    rank: int
    alpha: float = 16.0
    targets: tuple[str, ...] = ("query", "value")


class Concatenated(nn.Module):
    """The vectors of C layers, concatenated from the lowest to the last one."""

    def forward(self, layers: Float[Tensor, "C R S D"]) -> Float[Tensor, "R S E"]:
        return layers.movedim(0, -2).flatten(-2)


class MeanPooling(nn.Module):
    """The mean of the K subwords of a character."""

    def forward(self, vectors: Float[Tensor, "B N K D"], weight: Float[Tensor, "B N K"]) -> Float[Tensor, "B N D"]:
        """``weight`` is 0 for padding; the weights of a character are equal, and their sum is 1."""
        return (vectors * weight.unsqueeze(-1).to(vectors.dtype)).sum(2)


class FirstPooling(nn.Module):
    """The first subword of a character."""

    def forward(self, vectors: Float[Tensor, "B N K D"], weight: Float[Tensor, "B N K"]) -> Float[Tensor, "B N D"]:
        """See :meth:`MeanPooling.forward`."""
        return vectors[:, :, 0] * (weight[:, :, :1] > 0)


class MaxPooling(nn.Module):
    """The largest value of each feature over the subwords of a character; zeros where there are none."""

    def forward(self, vectors: Float[Tensor, "B N K D"], weight: Float[Tensor, "B N K"]) -> Float[Tensor, "B N D"]:
        """See :meth:`MeanPooling.forward`."""
        real = (weight > 0).unsqueeze(-1)
        largest = vectors.masked_fill(~real, torch.finfo(vectors.dtype).min).amax(2)
        return largest * real.any(2)


Layers = Literal["last", "mix", "last_four", "mix_last_four"]
Pooling = Literal["mean", "first", "max"]
POOLINGS: dict[Pooling, type[nn.Module]] = {"mean": MeanPooling, "first": FirstPooling, "max": MaxPooling}
LAST_FOUR = 4


class Mix(nn.Module):
    r"""A learned weighted mean of C layers, :math:`\gamma \sum_l \mathrm{softmax}(w)_l h_l`.

    Peters et al. 2018, https://aclanthology.org/N18-1202, equation 1.
    """

    def __init__(self, layers: int):
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.zeros(layers)), nn.Parameter(torch.ones(1))

    def forward(self, layers: Float[Tensor, "C R S D"]) -> Float[Tensor, "R S D"]:
        return self.scale * torch.einsum("l,lrsd->rsd", self.weight.softmax(0), layers)


class Pretrained(Embedding):
    """The contextual vectors of the characters of ``batch.texts``, from a language model.

    A character's vector is pooled from its subwords: see :class:`SubwordReader`. Texts beyond the model's window
    are read in windows that overlap by half, and each subword is taken from the window whose edges are farthest.

    Args:
        language_model: The encoder.
        tokenizer: Its tokenizer.
        layers: The ``last`` layer, or a learned ``mix`` of all; the ``last_four`` layers, concatenated, or a mix of
            them.
        pooling: From the subwords of a character to its vector.
        by_character: Whether every character is tokenized by itself.
        dropout: Applied to the result.
        fine_tuning: What is trained of the model.
        lora: The low-rank matrices that are trained instead, or None.

    Attributes:
        held: Set by the training loop while the model is temporarily frozen.

    Raises:
        ValueError: The model has fewer layers than are to be frozen or read, or no layer to adapt.
        ModelError: The subwords cannot be aligned with characters.
    """

    def __init__(
        self,
        language_model: nn.Module,
        tokenizer: Any,
        *,
        layers: Layers = "last",
        pooling: nn.Module | None = None,
        by_character: bool = False,
        dropout: float = 0.1,
        fine_tuning: FineTuning = FineTuning(),  # immutable
        lora: LoRA | None = None,
    ):
        super().__init__()
        config: Any = language_model.config
        self.d_out: int = config.hidden_size * (LAST_FOUR if layers == "last_four" else 1)
        self.language_model, self.tokenizer = language_model, tokenizer
        self.subwords = SubwordReader(tokenizer, by_character=by_character)
        self.marks = _marks(tokenizer)
        self.window = _longest(language_model, tokenizer) - sum(map(len, self.marks))
        self.n_read = LAST_FOUR if layers.endswith("last_four") else config.num_hidden_layers + 1
        if self.n_read == LAST_FOUR > config.num_hidden_layers:
            raise ValueError(f"layers = {layers!r} needs four layers; this model has {config.num_hidden_layers}")
        mixes = {"last": None, "last_four": Concatenated()}
        self.mix = mixes[layers] if layers in mixes else Mix(self.n_read)
        self.pooling = MeanPooling() if pooling is None else pooling
        self.dropout = Dropout(dropout)
        self.held = False
        self._freeze(fine_tuning)
        if lora is not None:
            if fine_tuning != FineTuning():
                raise ValueError("lora_rank freezes the whole model: set it to 0, or leave out what else freezes")
            adapt(language_model, lora.targets, lora.rank, lora.alpha)

    def _freeze(self, fine_tuning: FineTuning) -> None:
        n, frozen_layers = len(_layers(self.language_model)), fine_tuning.frozen_layers
        if not 0 <= frozen_layers <= n:
            raise ValueError(f"frozen_layers must be from 0 to {n}, the layers of this model, not {frozen_layers}")
        for parameter, level in self._levels():
            below = level == 0 and not fine_tuning.trainable_embeddings
            if not fine_tuning.trainable or below or (frozen_layers and level <= frozen_layers):
                parameter.requires_grad_(False)
        for name, parameter in self.language_model.named_parameters():
            if "pooler" in name:  # its output is not used
                parameter.requires_grad_(False)

    def _levels(self) -> list[tuple[nn.Parameter, int]]:
        """The parameters of the model, each with its layer: 0 below the first layer, then 1, 2, … to the last."""
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
        """The trained parameters of the model, each with the number of layers above it: 0 in the last layer."""
        n = len(_layers(self.language_model))
        return [(parameter, n - level) for parameter, level in self._levels() if parameter.requires_grad]

    def train(self, mode: bool = True) -> "Pretrained":
        """Set the training mode. A frozen language model stays in evaluation mode, without dropout."""
        super().train(mode)
        self.language_model.train(mode and self._learns())
        return self

    def _learns(self) -> bool:
        return not self.held and any(p.requires_grad for p in self.language_model.parameters())

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        before, after = self.marks
        return self.read(batch, before, after)

    def read(
        self, batch: Batch, before: Sequence[int], after: Sequence[int], *, second: bool = False
    ) -> Float[Tensor, "B N D"]:
        """The vectors of the characters, read after the tokens ``before`` and before the tokens ``after``.

        With ``second`` the text is a second segment after the first one, ``before``.
        """
        if len(batch.texts) != len(batch.chars):
            raise ValueError("a language model reads batch.texts: give the texts of the sentences")
        padding = self.tokenizer.pad_token_id or 0
        window = self.window + sum(map(len, self.marks)) - len(before) - len(after)
        rows = rows_of(self.subwords(batch.texts), batch.chars.shape[1], window, before, after, padding)
        device = batch.chars.device
        ids, lengths, index, weight = (
            torch.from_numpy(array).to(device) for array in (rows.ids, rows.lengths, rows.index, rows.weight)
        )
        with nullcontext() if self._learns() else torch.no_grad():
            states = self._states(ids, lengths, len(before) if second else 0)
        mixed = states if self.mix is None else self.mix(states.float())
        vectors = mixed.flatten(0, 1)[index]  # [B N K D]
        return self.dropout(self.pooling(vectors, weight))

    def _states(self, ids: Int[Tensor, "R S"], lengths: Int[Tensor, "R"], n_first: int) -> Tensor:
        """The vectors of the last layer, ``[R, S, D]``, or of all C layers that are read, ``[C, R, S, D]``.

        The first ``n_first`` tokens are the first of two segments; there is one segment if it is 0.
        """
        column = torch.arange(ids.shape[1], device=ids.device)
        mask = column < lengths[:, None]
        n_segments = getattr(self.language_model.config, "type_vocab_size", 1)
        segments = {"token_type_ids": ((column >= n_first) & mask).long()} if n_first and n_segments > 1 else {}
        output = self.language_model(
            input_ids=ids, attention_mask=mask.long(), output_hidden_states=self.mix is not None, **segments
        )
        return output.last_hidden_state if self.mix is None else torch.stack(output.hidden_states[-self.n_read :])

    def save_files(self, folder: Path) -> None:
        """Write the configuration and the tokenizer, without weights: see :func:`save_language_model`."""
        save_language_model(folder, self.language_model, self.tokenizer)


def _layers(model: Any) -> nn.ModuleList:
    """The layers of an encoder; shared layers are listed once."""
    lists = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    own = [m for m in lists if len(m) == model.config.num_hidden_layers]
    return (own or lists or [nn.ModuleList()])[0]


def _marks(tokenizer: Any) -> tuple[list[int], list[int]]:
    """The special tokens that the tokenizer puts before and after a text, such as ``[CLS]`` and ``[SEP]``."""
    probe = "中"
    plain, marked = (tokenizer.encode(probe, add_special_tokens=special) for special in (False, True))
    at = next(i for i in range(len(marked)) if marked[i : i + len(plain)] == plain)
    return marked[:at], marked[at + len(plain) :]


def _longest(model: nn.Module, tokenizer: Any) -> int:
    """The maximum number of subwords of a window. RoBERTa's positions start after the padding position."""
    tables = (m for name, m in model.named_modules() if name.endswith("position_embeddings"))
    sizes = [
        table.num_embeddings - (0 if table.padding_idx is None else table.padding_idx + 1)
        for table in tables
        if isinstance(table, nn.Embedding)
    ]
    return min(LONGEST, tokenizer.model_max_length, *sizes)


def build_pretrained(
    language_model: nn.Module,
    tokenizer: Any,
    *,
    layers: Layers = "last",
    pooling: Pooling = "mean",
    by_character: bool = False,
    dropout: float = 0.1,
    trainable: bool = True,
    trainable_embeddings: bool = True,
    frozen_layers: int = 0,
    lora_rank: int = 0,
    lora_alpha: float = 16.0,
    lora_targets: tuple[str, ...] = ("query", "value"),
) -> Pretrained:
    """A :class:`Pretrained` by its settings, which include those of :class:`FineTuning` and :class:`LoRA`.

    A ``lora_rank`` of 0 means no low-rank matrices.
    """
    return Pretrained(
        language_model,
        tokenizer,
        layers=layers,
        pooling=POOLINGS[pooling](),
        by_character=by_character,
        dropout=dropout,
        fine_tuning=FineTuning(trainable, trainable_embeddings, frozen_layers),
        lora=LoRA(lora_rank, lora_alpha, lora_targets) if lora_rank else None,
    )
