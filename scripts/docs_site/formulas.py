"""Formulas as MathML, made when the site is built: browsers draw it, so the site loads no script for them."""

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

_LOG = logging.getLogger(__name__)


def inline(translator: nodes.NodeVisitor, node: nodes.math) -> None:
    """Write a formula inside a line."""
    _write(translator, node, as_block=False)


def block(translator: nodes.NodeVisitor, node: nodes.math_block) -> None:
    """Write a formula between paragraphs."""
    _write(translator, node, as_block=True)


def _write(translator: nodes.NodeVisitor, node: nodes.Element, *, as_block: bool) -> None:
    try:
        formula = tex2mathml(node.astext(), as_block=as_block)
    except MathError as error:
        _LOG.warning("the formula %r cannot be drawn: %s", node.astext(), error, location=node)
        formula = ""
    translator.body.append(formula)
    raise nodes.SkipNode
