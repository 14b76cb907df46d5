"""Generated texts through the packaged model: offsets, edges, order, one text alone as in a batch.

    python tests/long/texts.py [--cases 1000000] [--engine native]

Texts mix Chinese sentences with names, random characters of all of Unicode, white space, emoji, combining marks,
surrogates, brackets, and repeated characters; each follows from its number. About 10 CPU minutes for a million.
"""

import sys
from functools import cache
from pathlib import Path

import numpy as np

from hanlattice.api import EngineName

sys.path.insert(0, str(Path(__file__).parents[1]))

import hanlattice
from hanlattice.document import Document
from hanlattice.text.edges import SEPARATORS
from long.progress import arguments, numbers

BATCH = 500
SENTENCES = (
    "雷军在北京发布小米14，央视直播。", "李明说：“我去了南京市长江大桥！”", "Tim Cook访问上海交通大学",
    "他在《流浪地球2》里演了一个角色", "中国人民银行与腾讯公司签订协议", "昨天下午3点，世界杯在卡塔尔开幕",
    "張偉和王小紅在臺北車站", "欧阳若曦@微博", "华为Mate 60 Pro有货吗？", "人和药店(重庆渝中区)开业了",
)  # fmt: skip
SPACES = " \t\n\r\u3000\u00a0\u2028\u2029\x0b\x0c\u200b\ufeff\x85"
ODD = "😀👨‍👩‍👧🇨🇳️\u0301\u20dd㍿①Ⅷﬁ½…《》（）「」“”‘’[]{}<>@#&%·—～○〇ｘ１"
ALONE = 20  # one text in so many is read by itself too


def text(number: int) -> str:
    """The text of a case."""
    draw = np.random.default_rng([2026, number])
    parts = []
    for _ in range(int(draw.integers(1, 7))):
        kind, size = int(draw.integers(8)), int(draw.integers(1, 12))
        sentence = SENTENCES[int(draw.integers(len(SENTENCES)))]
        if kind <= 2:
            parts.append(sentence)
        elif kind == 3:
            start = int(draw.integers(len(sentence)))
            parts.append(sentence[start : start + size])
        elif kind == 4:
            parts.append("".join(SPACES[i] for i in draw.integers(len(SPACES), size=size)))
        elif kind == 5:
            parts.append("".join(ODD[i] for i in draw.integers(len(ODD), size=size)))
        elif kind == 6:
            parts.append("".join(map(chr, draw.integers(0x110000, size=size).tolist())))
        else:
            parts.append(sentence[int(draw.integers(len(sentence)))] * size * int(draw.choice([1, 1, 1, 20])))
    return "".join(parts)


@cache
def ner(engine: EngineName) -> hanlattice.NER:
    return hanlattice.load(engine=engine)


def fault(given: str, document: Document, labels: tuple[str, ...]) -> str | None:
    """What is wrong with an answer, or None."""
    if document.text != given:
        return "the text was changed"
    before = (-1, -1)
    for e in document.entities:
        if given[e.start : e.end] != e.text or not e.text:
            return f"{e} does not lie in its text"
        if (e.start, e.end) <= before or e.start < before[1]:
            return f"{e} overlaps the one before it, or comes before it"
        if e.label not in labels or e.score is None or not 0 <= e.score <= 1:
            return f"{e} has another label or no confidence"
        if any(_is_edge(c) for c in (e.text[0], e.text[-1])):
            return f"{e} begins or ends with white space, a symbol or a separator"
        before = (e.start, e.end)
    return None


def _is_edge(character: str) -> bool:
    return character.isspace() or character in SEPARATORS - set(".·/\\^=*_~-…—～|") or character in "😀👨👩👧"


def main() -> int:
    parser = arguments(__doc__, "texts", 1_000_000)
    parser.add_argument("--engine", default="native", help="what reads the model")
    options = parser.parse_args()
    model = ner(options.engine)
    if options.case is not None:
        print(ascii(text(options.case)), model(text(options.case)).entities)
        return 0
    failed = 0
    for progress, some in numbers(options, BATCH):
        texts = [text(number) for number in some]
        for number, given, document in zip(some, texts, model.pipe(texts), strict=True):
            wrong = fault(given, document, model.labels)
            if wrong is None and number % ALONE == 0:
                alone = model(given)
                same = [(e.start, e.end, e.label) for e in alone.entities]
                if same != [(e.start, e.end, e.label) for e in document.entities]:
                    wrong = f"alone {alone.entities}, in a batch {document.entities}"
            if wrong:
                progress.failures.append((number, wrong[:500]))
            kind = "with entities" if document.entities else "without entities"
            progress.outcomes[kind] = progress.outcomes.get(kind, 0) + 1
        failed = len(progress.failures)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
