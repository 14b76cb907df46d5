"""Adversarial training (FGM): a second pass on embeddings that are moved in the direction of a larger loss."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal

import torch
from torch import Tensor, nn

from hanlattice.decoders.base import Gold
from hanlattice.embeddings.table import Table
from hanlattice.errors import ConfigError
from hanlattice.inputs.batch import Batch
from hanlattice.tagger import Head, Tagger


class Adversarial:
    r"""The loss of a batch, then its loss with perturbed embeddings; the gradients of both are added.

    .. math:: r = \epsilon\, g / \|g\|_2, \quad g = \partial L / \partial x

    Miyato et al. 2017, https://arxiv.org/abs/1605.07725, equation 5, with their :math:`\lambda = 1`. The vectors x
    of each sentence are perturbed by an r of their own, so the result does not depend on which sentences are read
    together. The second pass draws its own dropout.

    Args:
        loss: The loss of a batch, ``[]``.
        sources: The modules whose outputs are perturbed. The first dimension of an output counts sentences.
        norm: :math:`\epsilon`, the L2 norm of the perturbation of each sentence in each output.
    """

    def __init__(
        self, loss: Callable[[Batch, Gold, Head | None], Tensor], sources: Sequence[nn.Module], norm: float
    ):
        self.loss, self.sources, self.norm = loss, sources, norm

    def __call__(self, batch: Batch, gold: Gold, head: Head | None) -> Iterator[Tensor]:
        gradients: list[Tensor | None] = []  # of the outputs, in the order of the calls
        with self._changed(lambda output: _recorded(output, gradients)):
            loss = self.loss(batch, gold, head)
        yield loss
        moves = iter([None if g is None else perturbation(g, self.norm) for g in gradients])
        with self._changed(lambda output: _moved(output, next(moves))):
            loss = self.loss(batch, gold, head)
        yield loss

    @contextmanager
    def _changed(self, change: Callable[[Tensor], Tensor]) -> Iterator[None]:
        """All outputs of the sources are replaced by what ``change`` returns for them."""
        with ExitStack() as hooks:
            for module in self.sources:
                hooks.enter_context(module.register_forward_hook(lambda _, __, output: change(output)))
            yield


def sources(tagger: Tagger, on: Literal["embedding", "tables"]) -> list[nn.Module]:
    """The modules that :class:`Adversarial` perturbs: the whole embedding, or all tables of the tagger.

    Raises:
        ConfigError: there are no tables.
    """
    if on == "embedding":
        return [tagger.embedding]
    tables: list[nn.Module] = [module for module in tagger.modules() if isinstance(module, Table)]
    if not tables:
        raise ConfigError('training.fgm_on = "tables": this model has no tables; use "embedding"')
    return tables


def perturbation(gradient: Tensor, norm: float) -> Tensor:
    """The gradient ``[B, …]``, scaled to an L2 norm for each of the B sentences; a zero gradient stays zero."""
    if not gradient.numel():  # of the words of sentences without words
        return gradient
    g = gradient.float().flatten(1)
    largest = g.abs().amax(1, keepdim=True)
    g = g / torch.where(largest > 0, largest, 1.0)  # the square of a small gradient would be 0
    length = torch.linalg.vector_norm(g, dim=1, keepdim=True)
    return (norm * g / torch.where(length > 0, length, 1.0)).view(gradient.shape).to(gradient.dtype)


def _recorded(output: Tensor, gradients: list[Tensor | None]) -> Tensor:
    """The output, whose gradient will be stored at the end of ``gradients``."""
    index = len(gradients)
    gradients.append(None)
    output = output if output.requires_grad else output.detach().requires_grad_()  # of a frozen embedding

    def store(gradient: Tensor) -> None:
        gradients[index] = gradient.detach()

    output.register_hook(store)
    return output


def _moved(output: Tensor, move: Tensor | None) -> Tensor:
    return output if move is None else output + move
