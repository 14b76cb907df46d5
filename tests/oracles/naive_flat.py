"""FLAT by the formulas of its paper: every pair of nodes has its encoding, its projection and its scores.

Nothing is shared, looked up or left out, so the cost is the paper's: ``B L L 4D`` numbers in the concatenation.
The weights are those of the modules under test, read by name. Only the computation differs.
"""

from typing import Any

import torch
from torch import Tensor, nn

from hanlattice.encoders.flat import Flat, FlatLayer, LatticeAttention
from hanlattice.encoders.positions import Distant, FourDistances, SelfMatched, TrainedDistances, WeightedDistances
from hanlattice.inputs.batch import Words


def waves(positions: Tensor, d: int) -> Tensor:
    """Sines, then cosines; frequency k is 10000 to the power of minus k / (d/2 - 1)."""
    rates = 10000.0 ** -(torch.arange(d // 2) / max(d // 2 - 1, 1)).double()
    angles = positions[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], -1)


def encodings(distances: FourDistances | WeightedDistances, head: Tensor, tail: Tensor) -> Tensor:
    """R of every pair, [B L L D]: equations 4 to 8."""
    ends = {
        "hh": head[:, :, None] - head[:, None],
        "ht": head[:, :, None] - tail[:, None],
        "th": tail[:, :, None] - head[:, None],
        "tt": tail[:, :, None] - tail[:, None],
    }
    kept = {"four": ("hh", "ht", "th", "tt"), "ends": ("hh", "tt"), "heads": ("hh",)}
    farthest = int(tail.max())
    every = torch.arange(-farthest, farthest + 1)
    if isinstance(distances, WeightedDistances):
        p = waves(every, distances.fuse.in_features).to(distances.fuse.weight.dtype)
        parts = [p[ends[name] + farthest] for name in distances.names]
        layers: Any = distances.weigh
        inner, _, outer = layers
        scores = torch.relu(torch.cat(parts, -1) @ inner.weight.T + inner.bias) @ outer.weight.T + outer.bias
        shares = torch.stack([score.exp() for score in scores.chunk(len(parts), -1)])
        mixed = torch.stack([share * part for share, part in zip(shares, parts, strict=True)]).sum(0) / shares.sum(
            0
        )
        return mixed @ distances.fuse.weight.T + distances.fuse.bias
    weight = distances.fuse.weight
    if isinstance(distances.encode, TrainedDistances):
        limit = distances.encode.limit
        p = torch.stack([distances.encode.table[max(-limit, min(limit, d)) + limit] for d in every.tolist()])
    else:
        p = waves(every + distances.origin, distances.d_model).to(weight.dtype)
    pairs = torch.cat([p[ends[name] + farthest] for name in kept[distances.distances]], -1)  # [B L L 4D]
    linear = pairs @ weight.T + distances.fuse.bias
    return torch.relu(linear) if isinstance(distances.activation, nn.ReLU) else linear


def visible(a: LatticeAttention, head: Tensor, tail: Tensor, mask: Tensor, n: int) -> Tensor:
    """Which keys a query may see, pair by pair, [B L L]."""
    seen = mask[:, None].repeat(1, mask.shape[1], 1)
    for b, i, j in seen.nonzero().tolist():
        if not mask[b, i]:  # what padding sees is never read
            continue
        (hi, ti), (hj, tj) = ((int(head[b, k]), int(tail[b, k])) for k in (i, j))
        if isinstance(a.hidden, SelfMatched) and i < n <= j and hj <= hi <= tj:
            seen[b, i, j] = False
        if isinstance(a.hidden, Distant):
            apart = min(abs(one - other) for one in range(hi, ti + 1) for other in range(hj, tj + 1))
            seen[b, i, j] = apart <= a.hidden.limit
    return seen


def weights(a: LatticeAttention, x: Tensor, r: Tensor, seen: Tensor) -> Tensor:
    """All nodes are queries: equation 11, then softmax, [B A L L]; ``seen`` is [B L L] or a mask of keys [B L]."""
    seen = seen if seen.dim() == 3 else seen[:, None]
    b, n_nodes, d = x.shape
    q, k = (f(x).view(b, n_nodes, a.heads, d // a.heads) for f in (a.query, a.key))
    r = a.position(r).view(b, n_nodes, n_nodes, a.heads, d // a.heads)
    content = torch.einsum("biad,bjad->baij", q + a.u, k)
    position = torch.einsum("biad,bijad->baij", q + a.v, r)
    return ((content + position) * a.scale).masked_fill(~seen[:, None], -torch.inf).softmax(-1)


def attention(a: LatticeAttention, x: Tensor, r: Tensor, mask: Tensor) -> Tensor:
    """The weighted sum of values, [B L D]."""
    b, n_nodes, d = x.shape
    v = a.value(x).view(b, n_nodes, a.heads, d // a.heads)
    return a.output(torch.einsum("baij,bjad->biad", weights(a, x, r, mask), v).reshape(b, n_nodes, d))


def layer(
    f: FlatLayer, x: Tensor, head: Tensor, tail: Tensor, mask: Tensor, distances: FourDistances | WeightedDistances
) -> Tensor:
    """Attention and feed-forward with their residuals and norms, without dropout, [B L D]."""
    n = int(((head == tail) & (head == torch.arange(head.shape[1]))).sum(1).min())  # nodes from n on are words
    seen = mask if f.attention.hidden is None else visible(f.attention, head, tail, mask, n)
    attended = attention(f.attention, x, encodings(distances, head, tail), seen)
    h = f.attention_norm(attended + (x if f.residual == "input" else attended))
    fed = f.feed_forward.outer(nn.functional.relu(f.feed_forward.inner(h)))
    return f.feed_forward_norm(fed + (h if f.residual == "input" else fed))


def flat(encoder: Flat, x: Tensor, char_mask: Tensor, words: Words) -> Tensor:
    """The whole encoder: all layers for all nodes, then the characters' rows, [B N D]."""
    n = x.shape[1]
    chars = torch.arange(n, device=x.device).expand(len(x), -1)
    head, tail = torch.cat([chars, words.head], 1), torch.cat([chars, words.tail], 1)
    mask = torch.cat([char_mask, words.mask], 1)
    h = torch.cat([encoder.char_projection(x), encoder.word_projection(encoder.words(x, words).vectors)], 1)
    for each in encoder.layers:
        assert isinstance(each, FlatLayer)
        h = layer(each, h, head, tail, mask, encoder.distances)
    return h[:, :n]
