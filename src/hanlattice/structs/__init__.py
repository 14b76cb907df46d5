"""Algorithms on score tensors, without parameters."""
