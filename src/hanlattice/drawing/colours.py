"""The colours of entity labels: one table for every page and every picture."""

import zlib

# The palette of Okabe and Ito (2008), which colour-blind readers can distinguish.
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
_FACTOR = 8542  # with this factor, no two labels within CLUENER, Weibo NER, Resume NER or CMeEE share a colour


def colour_of(label: str) -> str:
    """The colour of a label, as ``#rrggbb``.

    It depends on the label alone, so a label has the same colour everywhere. Labels outside ``FIXED`` may share
    a colour.
    """
    if label in FIXED:
        return FIXED[label]
    checksum = zlib.crc32(label.encode("utf-8", "surrogatepass"))
    return OTHERS[checksum * _FACTOR % 65521 % len(OTHERS)]
