"""Pictures of texts as SVG and HTML.

The functions here take plain marks (:mod:`hanlattice.drawing.marks`) and return text. They know nothing of
documents, lattices or models, and import no other package of hanlattice.
"""
