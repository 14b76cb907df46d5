"""A lexicon that is edited while the model is in use.

Run: python examples/live_lexicon.py
"""

import hanlattice
from hanlattice import Document, Lexicon


def show(title: str, document: Document) -> None:
    found = " ".join(f"{e.text}/{e.label}({e.score:.2f})" for e in document.entities)
    words = " ".join(word for _, _, word, _ in document.lattice or ())
    print(f"{title}\n  entities  {found or '-'}\n  lattice   {words or '-'}")


def main() -> None:
    ner = hanlattice.load()
    text = "鹅厂的老王说,重庆人和药店在渝中区开业了。"

    ner.lexicon.remove("人和药店")
    show("without the word", ner(text))

    ner.lexicon.add("人和药店")  # takes effect at the next call, without training
    show("with 人和药店 in the lexicon", ner(text))

    with ner.using(force={"鹅厂": "ORG"}, block={"老王": None}):
        show("鹅厂 is always an organisation, 老王 never anything", ner(text))

    with ner.using(lexicon=Lexicon(["重庆", "渝中区"])):
        show("with another lexicon of two words, in this block only", ner(text))

    with ner.using(threshold=0.9):
        show("only entities with a score of at least 0.9", ner(text))


if __name__ == "__main__":
    main()
