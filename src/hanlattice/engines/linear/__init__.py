"""The linear tagger: tags from sums of weights of character n-grams and lexicon matches, run by C kernels."""
