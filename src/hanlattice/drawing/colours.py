"""One colour a label, the same on every page and in every picture."""

import zlib

# Okabe and Ito 2008, which stay apart for colour-blind readers; the label stands beside every entity all the same.
FIXED = {
    "PER": "#56b4e9",
    "LOC": "#009e73",
    "ORG": "#e69f00",
    "WORK": "#cc79a7",
    "PRODUCT": "#d55e00",
    "EVENT": "#0072b2",
}
OTHERS = (
    "#332288", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499", "#f0e442",
    "#999999", "#8c510a", "#a6d854", "#8da0cb", "#f4a6c6", "#708090", "#b2182b", "#80cdc1",
)  # fmt: skip
_MIX = 8542  # by which no two labels of CLUENER, Weibo NER, Resume NER or CMeEE have one colour


def colour_of(label: str) -> str:
    """The colour of a label, which follows from its name alone; other labels may share it."""
    if label in FIXED:
        return FIXED[label]
    number = zlib.crc32(label.encode("utf-8", "surrogatepass")) * _MIX % 65521
    return OTHERS[number % len(OTHERS)]
