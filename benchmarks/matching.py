"""Speed of building, opening and matching a lexicon, compared with a dict trie and two Aho-Corasick packages.

    python benchmarks/matching.py [--lexicon WORDS.txt] [--text TEXT.txt] [--characters 1000000]

Without ``--lexicon`` the words are generated. Without ``--text`` the text is generated from words of the list and
other characters. Each figure is the best of several rounds, in one process with one thread.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from hanlattice.lexicon import Lexicon, count_matches, segment

SENTENCE = 50  # characters
Match = tuple[int, int, int]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lexicon", type=Path, help="word list, one word per line")
    parser.add_argument("--text", type=Path, help="UTF-8 text to match")
    parser.add_argument("--characters", type=int, default=1_000_000, help="characters to match")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        path = options.lexicon or invented_lexicon(Path(folder))
        build, lexicon = timed(lambda: Lexicon.from_files(path), rounds=3)
        compiled = Path(folder) / "lexicon.bin"
        lexicon.save(compiled)
        megabytes = compiled.stat().st_size / 1e6
        opening, lexicon = timed(lambda: Lexicon.open(compiled))
        words = list(lexicon)
        text = options.text.read_text("utf-8").replace("\n", "") if options.text else invented_text(words)
        text = text[: options.characters]
        found = len(lexicon.match(text).start)
        print(f"{len(words):,} words; {len(text):,} characters, in which {found:,} words match\n")
        print(f"build from the text file   {build:10.2f} s")
        print(f"compiled file              {megabytes:10.1f} MB")
        print(f"open the compiled file     {opening * 1e3:10.2f} ms\n")
        report_edits(lexicon)
        report_speed(lexicon, words, text)


def report_edits(lexicon: Lexicon) -> None:
    """Print the times of adding words. Each time includes the first match after the edit, which applies it."""
    numbers = iter(range(10**9))

    def milliseconds(change: Callable[[Lexicon, int], None]) -> float:
        copy = lexicon.copy()

        def change_and_match() -> None:
            change(copy, next(numbers))
            copy.match("一")

        return timed(change_and_match)[0] * 1e3

    adding = milliseconds(lambda copy, number: copy.add(f"新词{number}"))
    many = milliseconds(lambda copy, number: copy.update(f"新词{number}之{i}" for i in range(100_000)))
    print(f"add a word                 {adding:10.2f} ms")
    print(f"add 100,000 words          {many:10.0f} ms\n")


def report_speed(lexicon: Lexicon, words: Sequence[str], text: str) -> None:
    """Print the table of matching speeds, and check that all searches find the same number of words."""
    sentences = [text[start : start + SENTENCE] for start in range(0, len(text), SENTENCE)]
    print(f"{'':27}{'characters/s':>14}{'us/sentence':>13}{'ratio':>8}")
    seconds, _ = timed(lambda: lexicon.match(text))
    whole = len(text) / seconds
    print(f"{'hanlattice, one text':27}{whole:14,.0f}")
    seconds, counts = timed(lambda: count_matches(lexicon, sentences))
    print(f"{'count_matches':27}{len(text) / seconds:14,.0f}")
    scores = np.log((counts + 0.5) / (counts.sum() + 1))
    seconds, _ = timed(lambda: list(segment(lexicon, sentences, scores, float(scores.min()))), rounds=3)
    print(f"{'segment, to lists of words':27}{len(text) / seconds:14,.0f}")
    rates: dict[str, float] = {}
    for size in (2048, 64, 1):
        batches = [sentences[start : start + size] for start in range(0, len(sentences), size)]
        batches = batches[: max(1, 4096 // size)]
        rates[f"hanlattice, batches of {size}"] = rate(lexicon.match_batch, batches)
    rates["hanlattice, single match"] = rate(lexicon.match, sentences[:4096])
    expected = len(lexicon.match_batch(sentences[:200]).start)
    for name, make in competitors():
        seconds, search = timed(partial(make, words), rounds=1)
        assert sum(len(search(sentence)) for sentence in sentences[:200]) == expected, name
        rates[f"{name}, lists of tuples"] = rate(search, sentences[:4096])
        rates[f"{name}, as arrays"] = rate(as_array(search), sentences[:4096])
        rates[f"{name}, built in {seconds:.1f} s"] = 0.0
    base = rates["dict trie, as arrays"]
    for name, characters in rates.items():
        if characters:
            print(f"{name:27}{characters:14,.0f}{SENTENCE / characters * 1e6:13.1f}{characters / base:8.2f}")
        else:
            print(f"  {name}")
    print("ratio: to the dict trie with its result as arrays, which is what a model needs")


def as_array(search: Callable[[str], list[Match]]) -> Callable[[str], np.ndarray]:
    """A search with its result as an array."""
    return lambda text: np.array(search(text))


def rate(search: Callable[[Any], object], inputs: Sequence[Any]) -> float:
    """Characters per second of a search over sentences, or over batches of sentences."""
    characters = sum(len(item) if isinstance(item, str) else sum(map(len, item)) for item in inputs)
    seconds, _ = timed(lambda: [search(item) for item in inputs])
    return characters / seconds


def competitors() -> Iterator[tuple[str, Callable[[Sequence[str]], Callable[[str], list[Match]]]]]:
    """Names of the installed competitors, and functions that build a search from words."""
    yield "dict trie", dict_trie
    if find_spec("daachorse"):
        yield "daachorse", daachorse_search
    if find_spec("ahocorasick"):
        yield "pyahocorasick", pyahocorasick_search


def dict_trie(words: Sequence[str]) -> Callable[[str], list[Match]]:
    """A trie of nested dictionaries; the key None has the number of the word that ends at a node."""
    root: dict[Any, Any] = {}
    for number, word in enumerate(words):
        node = root
        for character in word:
            node = node.setdefault(character, {})
        node[None] = number

    def search(text: str) -> list[Match]:
        found = []
        for start in range(len(text)):
            node: dict[Any, Any] | None = root
            for end in range(start, len(text)):
                if (node := node.get(text[end])) is None:  # type: ignore[union-attr]
                    break
                if None in node:
                    found.append((start, end + 1, node[None]))
        return found

    return search


def daachorse_search(words: Sequence[str]) -> Callable[[str], list[Match]]:
    """Aho-Corasick on a double array of characters, in Rust."""
    import daachorse

    return daachorse.CharwiseDoubleArrayAhoCorasick(list(words)).find_overlapping


def pyahocorasick_search(words: Sequence[str]) -> Callable[[str], list[Match]]:
    """Aho-Corasick in C."""
    import ahocorasick

    automaton = ahocorasick.Automaton()
    for number, word in enumerate(words):
        automaton.add_word(word, (len(word), number))
    automaton.make_automaton()
    return lambda text: [(last + 1 - size, last + 1, number) for last, (size, number) in automaton.iter(text)]


def timed(run: Callable[[], Any], rounds: int = 5) -> tuple[float, Any]:
    """The shortest time of several rounds, in seconds, and the last result."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        result = run()
        best = min(best, time.perf_counter() - start)
    return best, result


def invented_lexicon(folder: Path, count: int = 300_000) -> Path:
    """Write a list of words of two to four characters, with character frequencies similar to Chinese."""
    rng = np.random.default_rng(1)
    characters = (0x4E00 + (rng.pareto(0.9, (count, 4)) * 40).clip(0, 20_000)).astype(np.uint32)
    sizes = rng.choice([2, 3, 4], count, p=[0.5, 0.3, 0.2])
    words = {row[:size].tobytes().decode("utf-32-le") for row, size in zip(characters, sizes, strict=True)}
    path = folder / "words.txt"
    path.write_text("\n".join(sorted(words)), "utf-8")
    return path


def invented_text(words: Sequence[str], count: int = 1_000_000) -> str:
    """Random words of up to three characters; after a third of them, one common character."""
    rng = np.random.default_rng(2)
    short = [word for word in words if len(word) <= 3] or list(words)
    picked = [short[number] for number in rng.integers(0, len(short), count)]
    others = rng.choice(list("的了是在，。有和不人"), count)
    return "".join(
        word + other if third else word
        for word, other, third in zip(picked, others, rng.random(count) < 0.33, strict=True)
    )


if __name__ == "__main__":
    main()
