"""One colour a label."""

from collections.abc import Iterable

# Okabe and Ito 2008, which stay apart for colour-blind readers; the label stands beside every entity all the same.
COLOURS = ("#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#999999")


def colours_of(labels: Iterable[str]) -> dict[str, str]:
    """Colours in the order in which labels come; with more labels than colours they begin again."""
    return {label: COLOURS[i % len(COLOURS)] for i, label in enumerate(dict.fromkeys(labels))}
