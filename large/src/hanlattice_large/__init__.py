"""The large model of hanlattice, in the folder ``model``: ``hanlattice.load("large")``."""
