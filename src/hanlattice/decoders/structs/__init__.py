"""Decoding algorithms on score tensors, without parameters."""
