"""Algorithms of decoding and losses on score tensors, without parameters."""
