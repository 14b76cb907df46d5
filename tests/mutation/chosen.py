"""Faults chosen by hand: each is a mistake that someone could make."""

from typing import NamedTuple


class Fault(NamedTuple):
    """In ``file``, ``right`` is replaced by ``wrong``; ``test`` ought to notice."""

    file: str
    right: str
    wrong: str
    test: str


FLAT, CRF, READER = (f"tests/oracles/test_{name}.py" for name in ("flat", "linear_chain", "reader_oracle"))
CHARACTERS = "tests/inputs/test_characters.py"
LATTICE_LSTM = "tests/oracles/test_lattice_lstm.py"
LATTICE_ROWS, LATTICE_FORWARD, LATTICE_GRADIENT = (
    f"layers/lattice_{name}.py" for name in ("rows", "forward", "gradient")
)
TABLES, POINTERS = (f"tests/oracles/test_{name}.py" for name in ("tables", "pointers"))
BATCHING, SERVICE = (f"tests/serving/test_{name}.py" for name in ("batching", "service"))
TEMPERATURE = "tests/evaluation/test_temperature.py"
CALIBRATION, NATIVE = "tests/evaluation/test_calibration.py", "tests/engines/test_native.py"
BODY = "tests/engines/test_native_body.py"
WORD_PAIRS, SPANS = "tests/oracles/test_word_pairs.py", "tests/test_spans.py"
CHAIN, DECODING = "decoders/structs/linear_chain.py", "decoders/structs/decoding.py"
SOFT, SOFT_TEST = "embeddings/soft_lexicon.py", "tests/oracles/test_soft_lexicon.py"
AUGMENTED, AUGMENTED_TEST = "encoders/augmented.py", "tests/oracles/test_augmented.py"
PIECES = "tests/oracles/test_pretrained.py"
AUXILIARY, LEXICON = "tests/training/test_tasks.py", "tests/lexicon/test_lexicon.py"
POSITIONS, TENER = "tests/oracles/test_positions.py", "tests/parity/test_tener.py"
LATIN, EXPLAIN = "tests/oracles/test_latin.py", "tests/explain/test_attention.py"
RELATIVE, TRANSFORMER = "encoders/positions/relative.py", "encoders/transformer.py"
LR_CNN, CGN, LGN = (f"tests/oracles/test_{name}.py" for name in ("lr_cnn", "cgn", "lgn"))
BASELINES, IDCNN, SEGMENTATION = (
    f"tests/oracles/test_{name}.py" for name in ("recurrent_baselines", "idcnn", "segmentation")
)

FAULTS = {
    "a word ends one character late": Fault(
        "inputs/reader.py", "matches.end.astype(np.int64)", "matches.end.astype(np.int64) + 1", READER
    ),
    "padding marked as real": Fault("inputs/batch.py", "< lengths[:, None]", "<= lengths[:, None]", READER),
    "node lengths off by one": Fault("encoders/positions/lattice.py", "tail - head + 1", "tail - head", FLAT),
    "distances with the other sign": Fault(
        "encoders/positions/lattice.py", "torch.arange(-reach, reach + 1,", "-torch.arange(-reach, reach + 1,", FLAT
    ),
    "two of the four distances swapped": Fault(
        "encoders/positions/lattice.py", "hh, ht, th, tt = tables", "hh, th, ht, tt = tables", FLAT
    ),
    "sines and cosines swapped": Fault(
        "encoders/positions/absolute.py",
        "torch.cat([angles.sin(), angles.cos()]",
        "torch.cat([angles.cos(), angles.sin()]",
        FLAT,
    ),
    "rare lengths left unmended": Fault("encoders/flat.py", "if len(sentence):", "if False:", FLAT),
    "mask ignored in attention": Fault(
        "encoders/flat.py", "            ~mask,\n", "            ~mask & False,\n", FLAT
    ),
    "a later block takes the rare words of the first": Fault(
        "encoders/flat.py", "row = row_of_zero + first -", "row = row_of_zero -", FLAT
    ),
    "attention dropped again for the backward pass": Fault(
        "encoders/flat.py", "preserve_rng_state=self.dropout > 0", "preserve_rng_state=False", FLAT
    ),
    "keys and values swapped": Fault(
        "encoders/flat.py",
        "k, v = self._split_heads(self.key(x)), self._split_heads(self.value(x))",
        "v, k = self._split_heads(self.key(x)), self._split_heads(self.value(x))",
        FLAT,
    ),
    "biases u and v swapped": Fault("encoders/flat.py", "(q + self.u[", "(q + self.v[", FLAT),
    "residual forgotten": Fault(
        "encoders/flat.py",
        'attended + (queries if self.residual == "input" else attended)',
        "attended",
        FLAT,
    ),
    "Lattice LSTM: a word merged one step late": Fault(
        LATTICE_ROWS,
        "opening, closing = torch.stack([head, tail]), torch.stack([tail, head])",
        "opening, closing = torch.stack([head, (tail + 1) % n]), torch.stack([tail, head])",
        LATTICE_LSTM,
    ),
    "Lattice LSTM: a word starts from the state before its first character": Fault(
        LATTICE_ROWS, "start=in_slots(((start + 1) * 2", "start=in_slots((start * 2", LATTICE_LSTM
    ),
    "Lattice LSTM: padding first in the backward direction": Fault(
        LATTICE_ROWS,
        "torch.where(chars, last - step, step)",
        "len(step) - 1 - step.expand(chars.shape)",
        LATTICE_LSTM,
    ),
    "Lattice LSTM: both directions read ahead": Fault(
        LATTICE_ROWS, "torch.where(chars, last - step, step)", "step.expand(chars.shape)", LATTICE_LSTM
    ),
    "Lattice LSTM: input and output gates swapped": Fault(
        LATTICE_FORWARD, "o, i, *f, doubled = ", "i, o, *f, doubled = ", LATTICE_LSTM
    ),
    "Lattice LSTM: the cell before has a gradient where words end": Fault(
        LATTICE_GRADIENT,
        "kept = torch.where(merged, zero, ",
        "kept = torch.where(merged, 0.5, ",
        LATTICE_LSTM,
    ),
    "sentences turned round at the end of their padding": Fault(
        "layers/recurrent.py",
        "mask.sum(1, keepdim=True) - 1 - position, position)",
        "mask.shape[1] - 1 - position, position)",
        BASELINES,
    ),
    "a word's characters read to its first": Fault(
        "encoders/word_bilstm.py",
        "forward.take_along_dim(segments.tail.unsqueeze(-1), 1)",
        "forward.take_along_dim(segments.head.unsqueeze(-1), 1)",
        BASELINES,
    ),
    "an entity of words ends one character early": Fault(
        "tagger.py", "(words.tail + 1).tolist()", "words.tail.tolist()", BASELINES
    ),
    "dilated convolutions see padding": Fault("encoders/idcnn.py", "(x * mask.unsqueeze(-1)).mT", "x.mT", IDCNN),
    "one block for all repeats": Fault(
        "encoders/idcnn.py", "self.blocks[i % len(self.blocks)]", "self.blocks[0]", IDCNN
    ),
    "words of most alike lengths not preferred": Fault(
        "inputs/segmentation.py", "n * n + length * length", "n * n + length", SEGMENTATION
    ),
    "a word of one character ends nowhere": Fault(
        "embeddings/softword.py",
        "torch.where(starts, 3 * ends.long()",
        "torch.where(starts, 0 * ends.long()",
        SEGMENTATION,
    ),
    "LR-CNN: words on the layer above their length": Fault(
        "encoders/lr_cnn.py", "torch.where(read, (length - 2) * n", "torch.where(read, (length - 1) * n", LR_CNN
    ),
    "LR-CNN: looking back, words at their first character": Fault(
        "encoders/lr_cnn.py", "(batch.words.head, batch.words.tail)", "(batch.words.head, batch.words.head)", LR_CNN
    ),
    "LR-CNN: the third gate weighs the features": Fault(
        "encoders/lr_cnn.py", "[new.tanh(), features, top]", "[new.tanh(), top, features]", LR_CNN
    ),
    "LR-CNN: windows see padding": Fault("encoders/lr_cnn.py", " * mask.unsqueeze(-1)", "", LR_CNN),
    "CGN: a word joined to its last character twice over": Fault(
        "encoders/cgn.py", "((head_i == head_j) | (tail_i == tail_j))", "(tail_i == tail_j)", CGN
    ),
    "CGN: what follows a word begins inside it": Fault(
        "encoders/cgn.py", "precedes = tail_i + 1 == head_j", "precedes = tail_i == head_j", CGN
    ),
    "CGN: padding among the neighbours": Fault(
        "encoders/cgn.py", "((neighbours | neighbours.mT) & real)", "(neighbours | neighbours.mT)", CGN
    ),
    "LGN: edges of the transposed graph lead forward": Fault(
        "encoders/lgn.py", "(graph.tail, graph.head) if", "(graph.head, graph.tail) if", LGN
    ),
    "LGN: the last character of a word in its middle": Fault("encoders/lgn.py", ".masked_fill(last, END)", "", LGN),
    "LGN: gates of kept and new state swapped": Fault(
        "encoders/lgn.py", "torch.stack([new.tanh(), *kept])", "torch.stack([*kept, new.tanh()])", LGN
    ),
    "LGN: words see characters outside": Fault(
        "encoders/lgn.py", "graph.inside, self.places", "graph.inside | True, self.places", LGN
    ),
    "relative shift by one": Fault(
        "encoders/positions/base.py", "[..., n:].view", "[..., n - 1 : -1].view", POSITIONS
    ),
    "relative shift's way back one off": Fault(
        "encoders/positions/base.py", "pad(rows, (n, 0))", "pad(rows, (n - 1, 1))", POSITIONS
    ),
    "Transformer-XL's distances with the other sign": Fault(
        RELATIVE, "interleaved_sinusoid(-distances", "interleaved_sinusoid(distances", POSITIONS
    ),
    "TENER's distances with the other sign": Fault(RELATIVE, " sinusoid(-distances", " sinusoid(distances", TENER),
    "TENER's term of the key not transposed": Fault(
        RELATIVE, "by_pair(k @ encoded.mT).mT", "by_pair(k @ encoded.mT)", TENER
    ),
    "relative u and v swapped": Fault(
        RELATIVE,
        "q + self.u[layer][:, None], q + self.v[layer][:, None]",
        "q + self.v[layer][:, None], q + self.u[layer][:, None]",
        TENER,
    ),
    "Shaw's values read from the table of keys": Fault(
        RELATIVE, "self._rows(self.value_tables[layer]", "self._rows(self.key_tables[layer]", POSITIONS
    ),
    "T5's directions swapped": Fault(RELATIVE, "half * (distance > 0)", "half * (distance < 0)", POSITIONS),
    "DeBERTa's keys ask untransposed": Fault(
        RELATIVE,
        "by_pair(k @ by_head(self.queries[layer](encoded), self.heads)).mT",
        "by_pair(k @ by_head(self.queries[layer](encoded), self.heads))",
        POSITIONS,
    ),
    "rotary keys stand still": Fault(RELATIVE, "rotated(q) @ rotated(k).mT", "rotated(q) @ k.mT", POSITIONS),
    "scale forgets DeBERTa's terms": Fault(TRANSFORMER, "(q.shape[-1] * position.terms)", "q.shape[-1]", POSITIONS),
    "scale forgotten": Fault(TRANSFORMER, "if self.scaled:", "if False:", POSITIONS),
    "last passes ask without their places": Fault(
        TRANSFORMER, "queries = h if self.decoder_position is None else", "queries = h if True else", POSITIONS
    ),
    "Latin words begin late": Fault(
        "embeddings/latin.py", "match.start() : match.end()", "match.start() + 1 : match.end()", LATIN
    ),
    "SoftLexicon: middle and end swapped": Fault(
        SOFT, "(place > 0).long() + (place == of_length - 1).long()", "(place > 0).long() * (3 - place)", SOFT_TEST
    ),
    "SoftLexicon: each set weighed by its own words alone": Fault(
        SOFT, "total.view(-1, SETS).sum(-1)", "total.view(-1, SETS)[:, 0]", SOFT_TEST
    ),
    "SoftLexicon: words dropped in training are read": Fault(
        SOFT, "words.mask, x.shape", "batch.words.mask, x.shape", SOFT_TEST
    ),
    "SANER: a character is its own neighbour": Fault(
        AUGMENTED,
        "similarity[torch.arange(len(block)), block] = -torch.inf",
        "similarity[0, 0] = 1",
        AUGMENTED_TEST,
    ),
    "SANER: padding attended to": Fault(
        AUGMENTED, ".masked_fill(~real, torch.finfo(scores.dtype).min)", "", AUGMENTED_TEST
    ),
    "SANER: both sides through the same gate": Fault(AUGMENTED, "(1 - g) * v", "g * v", AUGMENTED_TEST),
    "transitions transposed in the score of gold": Fault(
        CHAIN,
        "chain.transitions[tags[:, :-1], tags[:, 1:]]",
        "chain.transitions[tags[:, 1:], tags[:, :-1]]",
        CRF,
    ),
    "transitions transposed in the partition": Fault(CHAIN, "(state @ a) * e[t]", "(state @ a.T) * e[t]", CRF),
    "transitions transposed in Viterbi": Fault(
        DECODING, "+ p.transitions[:, None, :]", "+ p.transitions.T[:, None, :]", CRF
    ),
    "gradient of transitions transposed": Fault(CHAIN, '"tbi,tbj->ij"', '"tbi,tbj->ji"', CRF),
    "Viterbi runs into padding": Fault(
        DECODING, "last[:b] = best[t, :b] = moved", "last[:] = best[t, :b] = moved", CRF
    ),
    "confidence includes longer entities": Fault(DECODING, "@ between.T", "@ m.transitions.T", CRF),
    "convolutions of word pairs see padding": Fault(
        "decoders/word_pairs.py", "x = gelu(convolution(x)) * real", "x = gelu(convolution(x))", WORD_PAIRS
    ),
    "blocks of word pairs without what lies around them": Fault(
        "decoders/word_pairs.py", "HALO = sum(DILATIONS)", "HALO = max(DILATIONS)", WORD_PAIRS
    ),
    "an entity in pieces closed at its first piece": Fault(
        "decoders/word_relations.py",
        "cells[characters[-1], characters[0]] =",
        "cells[span.fragments[0][1] - 1, characters[0]] =",
        WORD_PAIRS,
    ),
    "shift computed from the first of a pair": Fault(
        "decoders/word_pairs.py", "shift[:, columns].mT[:, :, None]", "shift[:, columns].mT[..., None]", WORD_PAIRS
    ),
    "most confident paths are the least confident": Fault(
        "decoders/structs/paths.py", "key=lambda path: path.score", "key=lambda path: -path.score", WORD_PAIRS
    ),
    "gaps lost on the way to original offsets": Fault(
        "spans.py",
        "if not self.gaps:\n            return Span(*place",
        "if True:\n            return Span(*place",
        SPANS,
    ),
    "crossing spans stay together": Fault(
        "decoders/structs/spans.py", " or latest_start[end] > start", "", "tests/oracles/test_select.py"
    ),
    "rotary positions turn the odd parts the other way": Fault(
        "layers/rotary.py", "odd * cos + even * sin", "odd * cos - even * sin", TABLES
    ),
    "gold cells held against the model": Fault(
        "decoders/structs/cell_losses.py",
        "cells.masked_fill(gold | ~real, lowest)",
        "cells.masked_fill(~real, lowest)",
        TABLES,
    ),
    "spans may end before they begin": Fault("decoders/table/base.py", ".triu()", ".tril()", TABLES),
    "blocks of a table put at its left": Fault(
        "decoders/table/base.py", "[0, rows.start, rows.start, 0]", "[0, rows.start, 0, 0]", TABLES
    ),
    "first and last characters swapped in biaffine scores": Fault(
        "decoders/table/biaffine.py", "first, last = (pad(", "last, first = (pad(", TABLES
    ),
    "biaffine spans ranked by probability": Fault(
        "decoders/table/rules.py", "best[positions], p)", "p, p)", TABLES
    ),
    "types computed from the wrong ends of spans": Fault(
        "decoders/table/global_pointer.py", "q, k, first, last = torch", "q, k, last, first = torch", TABLES
    ),
    "each start meets the nearest end before it": Fault(
        "decoders/structs/pairing.py",
        "positions.flip(-1).cummin(-1).values.flip(-1)",
        "positions.cummin(-1).values",
        POINTERS,
    ),
    "ends at their start are not listed": Fault(
        "decoders/structs/pairing.py", "group * n + start)", "group * n + start + 1)", POINTERS
    ),
    "starts and ends of a pointer swapped in training": Fault(
        "decoders/pointer.py",
        "targets[sentence, first, label, 0] = 1",
        "targets[sentence, first, label, 1] = 1",
        POINTERS,
    ),
    "an entity that holds another one's end is reachable": Fault(
        "decoders/pointer.py", "if span.start >= before:", "if span.start >= 0:", POINTERS
    ),
    "the end of a pointer reads the gold start as none": Fault(
        "decoders/pointer.py", "one_hot(start_classes, start", "one_hot(0 * start_classes, start", POINTERS
    ),
    "matches know only gold candidates": Fault(
        "decoders/mrc.py", "((ends > self.min_score) & mask[:, None]) | gold_ends", "gold_ends", POINTERS
    ),
    "queries counted with their padding": Fault(
        "decoders/mrc.py", "(x * real).sum(1) / real.sum(1)", "x.mean(1)", POINTERS
    ),
    "the match is not asked": Fault("decoders/mrc.py", "matches > self.min_score", "matches > -99.0", POINTERS),
    "attention sees characters after the span": Fault(
        "decoders/enumeration.py",
        "attention.mT.masked_fill(~inside, -torch.inf)",
        "attention.mT.masked_fill(~inside, 0.0)",
        POINTERS,
    ),
    "spans of no entity weigh as much as others": Fault(
        "decoders/enumeration.py", "= self.negative_weight * self", "= 1.0 * self", POINTERS
    ),
    "gold spans drawn as negatives": Fault(
        "decoders/enumeration.py",
        "sampled = sampled.view_as(negative) & negative",
        "sampled = sampled.view_as(negative)",
        POINTERS,
    ),
    "spans of tables without an entity weigh as much as others": Fault(
        "decoders/structs/cell_losses.py", "others + weight, chosen", "others, chosen", TABLES
    ),
    "softened labels of pointers keep half their bias": Fault(
        "decoders/table/global_pointer.py",
        "divide(divisor, self.kind.bias)",
        "divide(divisor**0.5, self.kind.bias)",
        TABLES,
    ),
    "a softened table keeps its threshold": Fault(
        "decoders/table/rules.py", "self.min_score /= temperature", "pass", TABLES
    ),
    "a temperature by the likelihood of the opposite": Fault(
        "evaluation/calibration.py",
        "np.where(self.correct, p, 1 - p)",
        "np.where(self.correct, 1 - p, p)",
        CALIBRATION,
    ),
    "a calibrated copy of old settings": Fault(
        "evaluation/temperature.py",
        "config.decoder.with_settings(settings)",
        "config.decoder.with_settings({})",
        TEMPERATURE,
    ),
    "types that a model was not built for are learnt as none": Fault(
        "tagger.py", "decoder.refuse_unknown(gold)", "pass", "tests/decoders/test_decoder_limits.py"
    ),
    "the match is not softened": Fault(
        "decoders/mrc.py", "*self.ends.parameters(), *self.match.parameters()", "*self.ends.parameters()", POINTERS
    ),
    "characters read the next character's piece": Fault(
        "embeddings/subwords.py",
        "np.cumsum(lengths) - lengths - start",
        "np.cumsum(lengths) - lengths - start + 1",
        PIECES,
    ),
    "pieces read where their window is cut": Fault("embeddings/subwords.py", ".argmax(0)", ".argmin(0)", PIECES),
    "unknown stretches read as one": Fault("embeddings/subwords.py", "end - start > 1", "end - start > 99", PIECES),
    "low rank without its scale": Fault("embeddings/low_rank.py", "self.scale * (x", "(x", PIECES),
    "the last frozen layer learns": Fault(
        "embeddings/pretrained.py",
        "level <= frozen_layers",
        "level < frozen_layers",
        "tests/embeddings/test_language_models.py",
    ),
    "layers' rates upside down": Fault(
        "embeddings/pretrained.py",
        "(parameter, n - level)",
        "(parameter, level)",
        "tests/embeddings/test_language_models.py",
    ),
    "offset map shifted": Fault(
        "text/normalise.py", "self.ends.item(end - 1)", "self.starts.item(end - 1)", "tests/text/test_text.py"
    ),
    "lexicon matches end early": Fault(
        "lexicon/trie.py",
        "found.append((start, end, word - 1))",
        "found.append((start, end - 1, word - 1))",
        "tests/lexicon/test_lexicon.py",
    ),
    "kernels: a key stands at its tail": Fault(
        "kernels/flat.c", "(m->window - start) * width", "(m->window - end + 1) * width", NATIVE
    ),
    "kernels: a composed word without its last character": Fault(
        "kernels/flat.c", "(end - 1) * stride + width", "(end - 2) * stride + width", NATIVE
    ),
    "kernels: u and v swapped": Fault("kernels/flat.c", "pack(x, m->u,", "pack(x, m->v,", NATIVE),
    "kernels: the zero point is added twice": Fault(
        "engines/native/layers.py", "-layout.zero_point *", "layout.zero_point *", "tests/kernels/test_products.py"
    ),
    "kernels: sums of int16 products overflow": Fault(
        "kernels/flat.c", "#define TOTAL 262144.0f", "#define TOTAL 4e6f", NATIVE
    ),
    "kernels: keys and encodings in int16 have different units": Fault(
        "kernels/flat.c", "INT16 ? key_unit / unit", "INT16 ? 1.0f / unit", NATIVE
    ),
    "kernels: keys of a body turn the other way": Fault(
        "kernels/body.c", "b * cosine[k] + a * sine[k]", "b * cosine[k] - a * sine[k]", BODY
    ),
    "kernels: a body attends to what pads its keys": Fault(
        "kernels/body.c", "scores[j] = -1e30f;", "scores[j] = 0;", BODY
    ),
    "kernels: the last queries of a text are not written": Fault(
        "kernels/body.c", "i < QUERIES && first + i < n", "i < QUERIES && first + i + 1 < n", BODY
    ),
    "kernels: characters of long texts from the nearest edge": Fault(
        "engines/native/body.py", "np.array(starts)[window])", "np.array(starts)[0])", BODY
    ),
    "kernels: values of a body count as queries": Fault(
        "engines/native/body.py", "scale[: len(bias) // 3]", "scale[: len(bias) // 2]", BODY
    ),
    "kernels: an entity may go on after its end": Fault(
        "kernels/chain.c", "step(next, c->between_back,", "step(next, c->moves_back,", NATIVE
    ),
    "kernels: transitions backward": Fault(
        "engines/native/chain.py", "(scores.pair, scores.pair.T)", "(scores.pair.T, scores.pair)", NATIVE
    ),
    "every line end is the end of a sentence": Fault(
        "text/windows.py", "u2028])\\s+", "u2028])\\s*", "tests/text/test_text.py"
    ),
    "hard characters of one text in the next": Fault(
        "text/normalise.py",
        "self._by_ranges(texts[i], target[starts[i] : ends[i]]",
        "self._by_ranges(texts[i], target[: ends[i] - starts[i]]",
        "tests/text/test_text.py",
    ),
    "the last bigram of a text with the next text": Fault(
        "inputs/characters.py", "codes[1:][is_character[:-1]]", "np.append(first[1:], np.uint32(0))", CHARACTERS
    ),
    "kernels: lower case of a bigram only where both characters have one": Fault(
        "kernels/characters.c", "lower == first && next == second", "lower == first || next == second", CHARACTERS
    ),
    "kernels: a word ends one character late": Fault(
        "kernels/trie.c",
        "unsorted->end[n_unsorted] = one.length;",
        "unsorted->end[n_unsorted] = one.length + 1;",
        "tests/lexicon/test_lexicon.py",
    ),
    "kernels: no second look where a line is full": Fault(
        "kernels/trie.c",
        "if (hit | free || ++one.lines == LINES) continue;",
        "if (hit | 1) continue;",
        "tests/lexicon/test_lexicon.py",
    ),
    "words whose characters are not said to go on": Fault(
        "lexicon/trie.py",
        "bits = characters & FOLLOWING",
        "bits = (characters + 1) & FOLLOWING",
        "tests/lexicon/test_lexicon.py",
    ),
    "rows of a stopped run done again": Fault(
        "annotation/run.py",
        "if rows is None:",
        "if rows is None or chunk.number == 0:",
        "tests/annotation/test_annotation_run.py",
    ),
    "parts joined as they came": Fault(
        "annotation/run_folder.py",
        "key=lambda marker: int(marker.stem)",
        "key=lambda marker: marker.stat().st_mtime_ns",
        "tests/annotation/test_annotation_run.py",
    ),
    "gradients of the other processes left out": Fault(
        "training/distributed.py", "        dist.all_reduce(flat)\n", "", "tests/training/test_distributed.py"
    ),
    "a step of the sentences of one process": Fault(
        "training/loop.py",
        "len(examples) / len(step.examples)",
        "len(examples) / len(own)",
        "tests/training/test_distributed.py",
    ),
    "tags of a span end early": Fault(
        "spans.py", "tags[span.end - 1] =", "tags[max(span.end - 2, 0)] =", "tests/test_spans.py"
    ),
    "attention reported unscaled": Fault(
        "encoders/flat.py",
        "self._weights(queries, k, self._char",
        "1.1 * self._weights(queries, k, self._char",
        EXPLAIN,
    ),
    "a word's strength from all characters": Fault(
        "explain/attention.py", "mean[head : tail + 1, n + i]", "mean[:, n + i]", EXPLAIN
    ),
    "influence of all other words": Fault(
        "explain/influence.py",
        "lexicon.remove(left_out)",
        "[lexicon.remove(word) for word in lattice.words if word != left_out]",
        "tests/explain/test_influence.py",
    ),
    "characters of pictures unescaped": Fault(
        "drawing/svg.py", "{escaped(glyphs)}", "{glyphs}", "tests/drawing/test_svg.py"
    ),
    "an arc one character short": Fault(
        "drawing/svg.py",
        "self.x[min(end, self.end) - self.start]",
        "self.x[min(end, self.end) - self.start - 1]",
        "tests/drawing/test_svg.py",
    ),
    "groups by length off by one": Fault(
        "explain/analysis.py", "_length(span))", "_length(span) + 1)", "tests/explain/test_analysis.py"
    ),
    "a batch of several keys": Fault("serving/batching.py", "job.key == taken[0].key and ", "", BATCHING),
    "a batch heavier than allowed": Fault(
        "serving/batching.py", "weight + job.weight <= self._max_weight", "weight <= self._max_weight", BATCHING
    ),
    "all fail with one": Fault(
        "serving/batching.py", "await self._answer([job])", "job.answer.set_exception(error)", BATCHING
    ),
    "worked for those who left": Fault(
        "serving/batching.py",
        "if job.answer.cancelled():\n                continue",
        "if False:\n                continue",
        BATCHING,
    ),
    "a queue without an end": Fault(
        "serving/batching.py",
        "if self._closing or len(self._jobs) + len(items) > self._max_queue:",
        "if self._closing:",
        BATCHING,
    ),
    "the queue is turned around": Fault(
        "serving/batching.py", "left.extend(self._jobs)", "left.extendleft(self._jobs)", BATCHING
    ),
    "a replaced lexicon is read as it was": Fault(
        "serving/lexicons.py", "(found.st_ino, found.st_mtime_ns, found.st_size)", "(0, 0, 0)", SERVICE
    ),
    "everybody is let in": Fault(
        "serving/limits.py", "if token is None or not needs_token", "if True or not needs_token", SERVICE
    ),
    "threshold of one request for all": Fault(
        "serving/handlers.py", "            request.threshold,\n", "            None,\n", SERVICE
    ),
    "an auxiliary corpus read an epoch too long": Fault(
        "training/tasks.py", "0 < self.epochs <= epoch + 1", "0 < self.epochs < epoch + 1", AUXILIARY
    ),
    "an auxiliary loss without its weight": Fault(
        "training/loop.py", "step.task.weight * len(examples)", "len(examples)", AUXILIARY
    ),
    "an auxiliary corpus may hold what dev holds": Fault(
        "training/corpora.py", "    if data.train[1:] or settings:\n", "    if data.train[1:]:\n", AUXILIARY
    ),
    "steps of one corpus after those of another": Fault(
        "training/tasks.py", "(found[i] for i in draw.permutation(len(found)))", "iter(found)", AUXILIARY
    ),
    "words that are listed twice are two": Fault(
        "lexicon/layers.py", "and layer.trie.n_words < len(listed.words):", "and not len(listed.words):", LEXICON
    ),
    "a label that begins with a space": Fault(
        "lexicon/wordlist.py", 'label[0] + label[-1] if label else " "', '""', LEXICON
    ),
    "a file's mark is a character": Fault(
        "files.py", "(*parts, before)).removeprefix(mark)", "(*parts, before))", "tests/test_files.py"
    ),
    "a line across two blocks is two": Fault(
        "files.py", 'b"".join((*parts, before))', 'b"\\n".join((*parts, before))', "tests/test_files.py"
    ),
}

BROKEN, HOSTILE = "tests/model/test_broken_models.py", "tests/lexicon/test_hostile_lexicons.py"
RANGES = "tests/config/test_ranges.py"
RESUMING, LIMITS = "tests/training/test_resume.py", "tests/serving/test_limits.py"
ANY_FILE = f"{HOSTILE}::test_no_file_crashes_a_search_or_keeps_it_for_ever"
FAULTS |= {
    "a model too large for the stack is read": Fault(
        "engines/native/flat.py",
        "or d_model > PARTS * lanes",
        "",
        f"{BROKEN}::test_the_largest_size_that_the_kernels_have_memory_for",
    ),
    "shapes of weights are not compared": Fault(
        "engines/checking.py",
        "if array.shape != shape:",
        "if False:",
        f"{BROKEN}::test_every_weight_is_checked",
    ),
    "numbers that are not finite are read natively": Fault(
        "engines/checking.py",
        "if kind is None and not is_finite(array):",
        "if False:",
        f"{BROKEN}::test_every_weight_is_checked",
    ),
    "numbers that are not finite are read by torch": Fault(
        "model/weights.py",
        "not bool(torch.isfinite(tensor).all())",
        "False",
        f"{BROKEN}::test_weights_that_are_not_finite_are_refused",
    ),
    "matrices in 8 bits without their scales": Fault(
        "engines/checking.py",
        "rows * scale.astype(np.float32)",
        "rows.astype(np.float32)",
        f"{BROKEN}::test_int8_matrices_other_than_tables_are_read",
    ),
    "what is broken is left to the next engine": Fault(
        "api.py",
        "        except EngineError as error:\n            passed_over",
        "        except ModelError as error:\n            passed_over",
        f"{BROKEN}::test_truncated_weights_are_named",
    ),
    "code of a folder is imported": Fault(
        "build/settings.py", "if not _TRUSTED.get():", "if False:", f"{BROKEN}::TestOwnParts"
    ),
    "a model to start from is always trusted": Fault(
        "training/fine_tuning.py", "and not trust:", "and False:", f"{BROKEN}::TestOwnParts"
    ),
    "a pool without its threads": Fault(
        "engines/native/tagger.py", "        renew_after_fork(self)\n", "", f"{BROKEN}::TestForks::test_native"
    ),
    "a lock that no thread holds any more": Fault(
        "kernels/forking.py", "        thing.renew()\n", "        pass\n", f"{BROKEN}::TestForks::test_native"
    ),
    "edits of a lexicon are left behind": Fault(
        "pipeline/ner.py", "self.lexicon if self.lexicon_is_edited else None", "None", f"{BROKEN}::TestCopies"
    ),
    "a changed file goes unseen": Fault(
        "model/digests.py", "elif digest(folder / name) != recorded[name]:", "elif False:", f"{BROKEN}::TestDigests"
    ),
    "states beyond the table are followed": Fault(
        "kernels/trie.c", "if (state >= 0 && state < slots)", "if (state >= 0)", ANY_FILE
    ),
    "words that are not there are found": Fault(
        "kernels/trie.c",
        "if (word < n_words && one.length >= shortest)",
        "if (word != UINT32_MAX && one.length >= shortest)",
        ANY_FILE,
    ),
    "a search in a full table never ends": Fault(
        "kernels/trie.c", "if (hit | free || ++one.lines == LINES)", "if (hit | free)", ANY_FILE
    ),
    "a search leaves the text": Fault("kernels/trie.c", "|| !next || one.length >= longest", "", ANY_FILE),
    "keys lie further away than a search goes": Fault(
        "lexicon/trie.py",
        "if probe == LINES * LINE and len(open_):",
        "if False:",
        f"{HOSTILE}::test_a_table_in_which_keys_crowd_is_built_larger",
    ),
    "layers have a limit each": Fault(
        "lexicon/layers.py",
        "if sum(len(part.start) for part in found) > most:",
        "if False:",
        f"{HOSTILE}::TestNestedWords",
    ),
    "weights beyond 32 bits": Fault(
        "lexicon/lexicon.py", " and abs(cast(float, weight)) <= LARGEST", "", f"{HOSTILE}::TestEntries"
    ),
    "edits are lost where memory is short": Fault(
        "lexicon/lexicon.py",
        "self._state = self._state.edited(self._pending)",
        "pending, self._pending = self._pending, {}; self._state = self._state.edited(pending)",
        f"{HOSTILE}::TestEntries",
    ),
    "numbers that are not finite as settings": Fault(
        "config/ranges.py", "return math.isfinite(value) and low and high", "return low and high", RANGES
    ),
    "a range without its end": Fault("config/ranges.py", "value < self.most if", "value <= self.most if", RANGES),
    "changed settings of a resumed run": Fault(
        "training/resume.py", "        _refuse_changes(output, config)\n", "", f"{RESUMING}::TestChangedSettings"
    ),
    "of equal epochs the first is kept": Fault(
        "training/selection.py", "if f1 >= progress.best_f1:", "if f1 > progress.best_f1:", f"{RESUMING}::TestTies"
    ),
    "a skipped step counts": Fault(
        "training/loop.py", "in counted and was_taken:", "in counted:", f"{RESUMING}::TestFloat16"
    ),
    "a request with any number of words": Fault(
        "serving/handlers.py",
        "            self._refuse_too_many_words(lexicon, texts)\n",
        "            pass\n",
        LIMITS,
    ),
    "an explanation of any number of words": Fault(
        "serving/handlers.py", "len(text) <= QUICK and n_words <= QUICK_WORDS", "len(text) <= QUICK", LIMITS
    ),
    "any number of stored lexicons": Fault(
        "serving/lexicons.py", "if is_new and sum(1 for _ in self._names()) >= self._most:", "if False:", LIMITS
    ),
    "a line break at the end of a path": Fault(
        "serving/limits.py", "            self._check_path(scope)\n", "", f"{LIMITS}::TestPaths"
    ),
    "ids of requests of any length": Fault("serving/access_log.py", "{1,64}", "+", LIMITS),
}
