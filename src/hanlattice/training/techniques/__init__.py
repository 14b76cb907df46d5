"""Optional training techniques, each of which one setting turns on; all are off by default and can be combined.

`objective` composes the techniques that change the loss: `multi_sample_dropout` (the vectors that the decoder
reads), `r_drop` (two forward passes) and `adversarial` (a second pass on perturbed embeddings). `replaced_names`
and `joined_sentences` change the training texts; :class:`hanlattice.training.augmentation.Variation` calls them.
The order of corpora and sentences is that of :mod:`hanlattice.training.tasks`.
"""
