"""Recursive positions: each position is computed from the one before, so any length works."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.encoders.positions.base import Position
from hanlattice.layers.recurrent import BidirectionalLSTM

# Prediction solves the equation for a multiple of this many positions.
SOLVED = 64


class Recurrence(Position):
    r"""A recurrence over positions: :math:`p_{k+1} = f(p_k)`, with a learned :math:`p_0` and a GRU cell as f.

    The vectors depend on the position only, so they are computed once for all sentences of a batch.
    """

    def __init__(self, d_model: int, heads: int, layers: int):
        super().__init__(d_model, heads, layers)
        self.first = nn.Parameter(torch.randn(d_model) * 0.02)
        self.step = nn.GRU(1, d_model)  # its input is a constant

    def encode(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        following, _ = self.step(x.new_ones(x.shape[1], 1), self.first[None])
        return x + torch.cat([self.first[None], following[:-1]])


class Flow(Position):
    r"""Positions as the solution of a differential equation, :math:`dp/dt = f(t, p(t))`.

    FLOATER, Liu et al. 2020, https://arxiv.org/abs/2003.09229, solved by the Runge-Kutta method of fourth order.
    Neighbouring positions are ``interval`` apart in time, and the solver takes ``solver_steps`` steps between them.

    Differences from the authors' code: the vectors are added to the input, not to the queries, keys and values of
    each layer; the equation is solved in every training step, not in every 400th; and sinusoids are not added.
    """

    def __init__(self, d_model: int, heads: int, layers: int, *, interval: float = 0.01, solver_steps: int = 1):
        super().__init__(d_model, heads, layers)
        if interval <= 0 or solver_steps < 1:
            raise ValueError(f"interval ({interval}) must be above 0 and solver_steps ({solver_steps}) at least 1")
        self.interval, self.solver_steps = interval, solver_steps
        self.first = nn.Parameter(torch.randn(d_model) * 0.02)
        self.inner, self.outer = nn.Linear(d_model + 1, d_model), nn.Linear(d_model + 1, d_model)
        self._solved: tuple[object, Tensor] | None = None

    def encode(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        n = x.shape[1]
        if self.training or torch.is_grad_enabled():
            return x + self.positions(n)
        weights = tuple((p.data_ptr(), p._version, p.dtype) for p in self.parameters())
        if self._solved is None or self._solved[0] != weights or len(self._solved[1]) < n:
            self._solved = weights, self.positions(-(-n // SOLVED) * SOLVED)
        return x + self._solved[1][:n]

    def positions(self, n: int) -> Float[Tensor, "N D"]:
        """The first ``n`` positions. Prediction keeps them until the weights change or a sentence is longer."""
        step = self.interval / self.solver_steps
        p: Tensor = self.first
        positions = [p]
        for k in range((n - 1) * self.solver_steps):
            p = self._step(step, k * step, p)
            if (k + 1) % self.solver_steps == 0:
                positions.append(p)
        return torch.stack(positions)

    def _step(self, step: float, t: float, p: Float[Tensor, "D"]) -> Float[Tensor, "D"]:
        """One Runge-Kutta step: the position at time ``t + step``."""
        a = self._slope(t, p)
        b = self._slope(t + step / 2, p + step / 2 * a)
        c = self._slope(t + step / 2, p + step / 2 * b)
        d = self._slope(t + step, p + step * c)
        return p + step / 6 * (a + 2 * b + 2 * c + d)

    def _slope(self, t: float, p: Float[Tensor, "D"]) -> Float[Tensor, "D"]:
        """f(t, p): a feed-forward network; both of its layers read the time."""
        time = p.new_full((1,), t)
        return self.outer(torch.cat([torch.relu(self.inner(torch.cat([p, time]))), time]))


class RecurrentFront(Position):
    """A bidirectional LSTM over the input. The Transformer reads its states and has no other positions."""

    def __init__(self, d_model: int, heads: int, layers: int):
        super().__init__(d_model, heads, layers)
        self.lstm = BidirectionalLSTM(d_model, d_model)

    def encode(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        return self.lstm(x, mask)
