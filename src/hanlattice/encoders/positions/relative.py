r"""Relative positions: the score of a query and a key depends on their distance.

Everything that depends on the distance is computed once for each of the ``2 N`` distances, and
:func:`~hanlattice.encoders.positions.base.by_pair` moves it to the pairs. No tensor of size ``B N N D`` is created.
Distances are written as in the papers, as :math:`i - j` or as :math:`j - i` for query i and key j.
"""

import math
from collections.abc import Sequence
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.encoders.positions.absolute import even, interleaved_sinusoid, sinusoid
from hanlattice.encoders.positions.base import Position, by_distance, by_pair, distances
from hanlattice.inputs.batch import Batch
from hanlattice.layers.rotary import rotated


def by_head(rows: Float[Tensor, "S D"], heads: int) -> Float[Tensor, "A d S"]:
    """From one row for each distance to keys (or queries) of each head."""
    return rows.view(len(rows), heads, -1).permute(1, 2, 0)


class Biases(nn.Module):
    """The learned biases ``u`` and ``v`` of each layer, which are added to all queries."""

    def __init__(self, d_model: int, heads: int, layers: int):
        super().__init__()
        self.u, self.v = (
            nn.ParameterList(nn.init.xavier_uniform_(torch.empty(heads, d_model // heads)) for _ in range(layers))
            for _ in "uv"
        )

    def add(
        self, q: Float[Tensor, "B A N d"], layer: int
    ) -> tuple[Float[Tensor, "B A N d"], Float[Tensor, "B A N d"]]:
        """Queries for content scores (``q + u``) and queries for position scores (``q + v``)."""
        return q + self.u[layer][:, None], q + self.v[layer][:, None]


class Shaw(Position):
    r"""Learned vectors of distances for keys and for values; distances beyond ``clip`` share the last vector.

    .. math:: e_{ij} = q_i \cdot (k_j + R^K_{j-i}), \quad z_i = \sum_j a_{ij} (v_j + R^V_{j-i})

    Shaw et al. 2018, https://aclanthology.org/N18-2074. The heads of a layer share its vectors.
    """

    def __init__(self, d_model: int, heads: int, layers: int, *, clip: int = 16):
        super().__init__(d_model, heads, layers)
        if clip < 1:
            raise ValueError(f"clip must be at least 1, not {clip}")
        self.clip = clip
        self.key_tables, self.value_tables = (
            nn.ParameterList(
                nn.init.xavier_uniform_(torch.empty(2 * clip + 1, d_model // heads)) for _ in range(layers)
            )
            for _ in "kv"
        )

    def _rows(self, table: Float[Tensor, "C d"], n: int) -> Float[Tensor, "S d"]:
        clipped = distances(n, table).clamp(-self.clip, self.clip) + self.clip
        return nn.functional.embedding(clipped, table)

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        return q @ k.mT + by_pair(q @ self._rows(self.key_tables[layer], q.shape[2]).mT)

    def read(
        self, weights: Float[Tensor, "B A N N"], v: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N d"]:
        return weights @ v + by_distance(weights) @ self._rows(self.value_tables[layer], v.shape[2])


class TransformerXL(Position):
    r"""Sinusoids of distances as additional keys, with a learned bias for content and one for position.

    .. math:: A_{ij} = (q_i + u) \cdot k_j + (q_i + v) \cdot W_R R_{i-j}

    Dai et al. 2019, https://aclanthology.org/P19-1285, without the memory of earlier segments.
    """

    def __init__(self, d_model: int, heads: int, layers: int):
        super().__init__(d_model, heads, layers)
        self.d_model, self.heads = even(d_model, "d_model"), heads
        self.biases = Biases(d_model, heads, layers)
        self.projections = nn.ModuleList(nn.Linear(d_model, d_model, bias=False) for _ in range(layers))

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        for_content, for_position = self.biases.add(q, layer)
        encoded = interleaved_sinusoid(-distances(q.shape[2], q), self.d_model).to(q.dtype)
        keys = by_head(self.projections[layer](encoded), self.heads)
        return for_content @ k.mT + by_pair(for_position @ keys)


class Directed(Position):
    r"""TENER's positions: sinusoids of distances without a projection, which distinguish left from right.

    .. math:: A_{ij} = (q_i + u) \cdot k_j + (q_i + v) \cdot R_{i-j} \; [+ \; k_j \cdot R_{j-i}]

    Yan et al. 2019, https://arxiv.org/abs/1911.04474. All heads share R. ``key_term`` adds the term in brackets,
    which is in the authors' code but not in the paper. The code counts distances from the key to the query. That
    is the same model with the sine half of queries, keys, u and v negated.
    """

    def __init__(self, d_model: int, heads: int, layers: int, *, key_term: bool = False):
        super().__init__(d_model, heads, layers)
        self.width, self.key_term = even(d_model // heads, "the width of a head"), key_term
        self.biases = Biases(d_model, heads, layers)

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        for_content, for_position = self.biases.add(q, layer)
        encoded = sinusoid(-distances(q.shape[2], q), self.width).to(q.dtype)
        scores = for_content @ k.mT + by_pair(for_position @ encoded.mT)
        return scores + by_pair(k @ encoded.mT).mT if self.key_term else scores


class Buckets(Position):
    r"""T5's positions: for each head a learned number for each bucket of distances, shared by all layers.

    .. math:: A_{ij} = q_i \cdot k_j + \beta_{b(j-i)}

    Raffel et al. 2020, https://jmlr.org/papers/v21/20-074.html. Half of the ``buckets`` are for keys after the
    query. Each small distance has its own bucket. Larger distances share buckets of logarithmic width, and all
    distances from ``max_distance`` on share one.
    """

    def __init__(self, d_model: int, heads: int, layers: int, *, buckets: int = 32, max_distance: int = 128):
        super().__init__(d_model, heads, layers)
        if buckets < 4 or buckets % 4:
            raise ValueError(f"buckets ({buckets}) must be a multiple of 4")
        if max_distance <= buckets // 4:
            raise ValueError(f"max_distance ({max_distance}) must be above a quarter of buckets ({buckets})")
        self.buckets, self.max_distance = buckets, max_distance
        self.table = nn.Parameter(torch.zeros(buckets, heads))

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        n = q.shape[2]
        bias = nn.functional.embedding(self.bucket(distances(n, q)), self.table)  # [S A]
        return q @ k.mT + by_pair(bias.mT[:, None].expand(-1, n, -1))

    def bucket(self, distance: Int[Tensor, "*S"]) -> Int[Tensor, "*S"]:
        """The bucket of a distance ``j - i``."""
        half = self.buckets // 2
        exact = half // 2
        apart = distance.abs()
        share = torch.log(apart.clamp(min=exact) / exact) / math.log(self.max_distance / exact)  # 1 at max_distance
        far = (exact + (share * (half - exact)).long()).clamp(max=half - 1)
        return torch.where(apart < exact, apart, far) + half * (distance > 0)


class Disentangled(Position):
    r"""DeBERTa's positions: scores of content to position and of position to content.

    .. math:: A_{ij} = q_i \cdot k_j + q_i \cdot W_k R_{\delta(i,j)} + k_j \cdot W_q R_{\delta(j,i)}

    He et al. 2021, https://openreview.net/forum?id=XPZIaotutsD; :math:`\delta(i,j)` is :math:`i - j`, from
    ``-span`` to ``span - 1``. All layers share the learned R. Scaled scores are divided by the square root of the
    width of a head times the number of terms. ``content_to_position`` is the second term and
    ``position_to_content`` the third. With a ``log_distance``, distances share buckets as in the second version of
    the authors' code: see :func:`log_bucket`. Difference from that code: its third term has :math:`\delta(i,j)`.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        layers: int,
        *,
        span: int = 512,
        log_distance: int = 0,
        content_to_position: bool = True,
        position_to_content: bool = True,
    ):
        super().__init__(d_model, heads, layers)
        if span < 1:
            raise ValueError(f"span must be at least 1, not {span}")
        if not (content_to_position or position_to_content):
            raise ValueError("one of content_to_position and position_to_content must be true; else take 'none'")
        if log_distance and not 2 <= span <= log_distance:
            raise ValueError(f"span ({span}) must be from 2 to log_distance ({log_distance})")
        self.heads, self.span = heads, span
        self.bucket = partial(log_bucket, buckets=span, longest=log_distance) if log_distance else _as_it_is
        self.terms = 1 + content_to_position + position_to_content
        self.table = nn.Parameter(nn.init.normal_(torch.empty(2 * span, d_model), std=0.02))
        self.keys, self.queries = (
            nn.ModuleList(nn.Linear(d_model, d_model, bias=False) for _ in range(layers if wanted else 0))
            for wanted in (content_to_position, position_to_content)
        )

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        rows = self.bucket(-distances(q.shape[2], q)).clamp(-self.span, self.span - 1) + self.span
        encoded = nn.functional.embedding(rows, self.table)
        scores = q @ k.mT
        if self.keys:
            scores = scores + by_pair(q @ by_head(self.keys[layer](encoded), self.heads))
        if self.queries:  # here rows are keys and columns are queries, so the result is transposed
            scores = scores + by_pair(k @ by_head(self.queries[layer](encoded), self.heads)).mT
        return scores


def log_bucket(distance: Int[Tensor, "*S"], buckets: int, longest: int) -> Int[Tensor, "*S"]:
    """Distances up to half of ``buckets`` as they are; greater ones share buckets of logarithmic width.

    Distance ``longest - 1`` has the bucket ``buckets - 1``, and greater distances have greater ones. Negative
    distances are the same with a minus.

    >>> log_bucket(torch.tensor([128, 129, 200, 300, 511, -200]), 256, 512).tolist()
    [128, 129, 169, 207, 255, -169]
    """
    half = buckets // 2
    apart = distance.abs().clamp(min=half).double()
    share = torch.log(apart / half) / math.log((longest - 1) / half)
    far = (torch.ceil(share * (half - 1) - 1e-9).long() + half) * distance.sign()
    return torch.where(distance.abs() <= half, distance, far)


def _as_it_is(distance: Int[Tensor, "*S"]) -> Int[Tensor, "*S"]:
    return distance


class XLNet(TransformerXL):
    r"""Transformer-XL's positions, and for each head a term for keys in the same segment and one for all others.

    .. math:: A_{ij} = (q_i + u) \cdot k_j + (q_i + v) \cdot W_R R_{i-j} + (q_i + b) \cdot s_{ij}

    Yang et al. 2019, https://arxiv.org/abs/1906.08237, section 2.5. Here the segments are the clauses of a text,
    each of which ends with a punctuation mark: see :func:`clauses`. Without a text there is one segment.
    """

    def __init__(self, d_model: int, heads: int, layers: int):
        super().__init__(d_model, heads, layers)
        shape = heads, d_model // heads
        self.segment_biases = nn.ParameterList(nn.init.xavier_uniform_(torch.empty(shape)) for _ in range(layers))
        self.segment_tables = nn.ParameterList(
            nn.init.normal_(torch.empty(2, *shape), std=0.02) for _ in range(layers)
        )

    def of(self, batch: Batch) -> "Position":
        return Segmented(self, clauses(batch.texts, batch.mask)) if batch.texts else self

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        n = q.shape[2]
        return self.score_segments(q, k, layer, torch.zeros(len(q), n, dtype=torch.long, device=q.device))

    def score_segments(
        self,
        q: Float[Tensor, "B A N d"],
        k: Float[Tensor, "B A N d"],
        layer: int,
        segments: Int[Tensor, "B N"],
    ) -> Float[Tensor, "B A N N"]:
        """The scores of sentences whose characters are in these segments."""
        query = q + self.segment_biases[layer][:, None]
        same, other = torch.einsum("band,sad->sban", query, self.segment_tables[layer]).unsqueeze(-1)
        is_same = (segments[:, :, None] == segments[:, None]).unsqueeze(1)
        return super().score(q, k, layer) + torch.where(is_same, same, other)


class Segmented(Position):
    """The encoding ``whole`` for sentences whose characters are in ``segments``."""

    def __init__(self, whole: XLNet, segments: Int[Tensor, "B N"]):
        nn.Module.__init__(self)
        self.whole, self.segments = whole, segments

    def encode(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        return self.whole.encode(x, mask)

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        return self.whole.score_segments(q, k, layer, self.segments)


# Marks that end a clause.
CLAUSE_ENDS = frozenset("，。；：！？…,.;:!?\n")


def clauses(texts: Sequence[str], mask: Bool[Tensor, "B N"]) -> Int[Tensor, "B N"]:
    """The clause of each character, counted from 0; a mark belongs to the clause that it ends."""
    rows = torch.zeros(mask.shape, dtype=torch.long)
    for row, text in zip(rows, texts, strict=True):
        ends = torch.tensor([character in CLAUSE_ENDS for character in text[:-1]], dtype=torch.long)
        row[1 : len(text)] = ends.cumsum(0)
    return rows.to(mask.device)


class Rotary(Position):
    r"""Queries and keys rotated by angles that grow with their position, so that scores depend on distance only.

    .. math:: A_{ij} = (\Theta_i q_i) \cdot (\Theta_j k_j)

    Su et al. 2021, https://arxiv.org/abs/2104.09864; the rotation :math:`\Theta_k` is
    :func:`~hanlattice.layers.rotary.rotated`.
    """

    def __init__(self, d_model: int, heads: int, layers: int):
        super().__init__(d_model, heads, layers)
        even(d_model // heads, "the width of a head")

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        return rotated(q) @ rotated(k).mT
