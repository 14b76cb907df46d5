"""Write ``src/hanlattice/data/t2s.txt``: traditional characters on line one, simplified characters on line two.

OpenCC converts each character on its own with the configuration ``t2s`` (Apache-2.0,
https://github.com/BYVoid/OpenCC). Where the conversion depends on the context, the table has OpenCC's first choice.

    pip install opencc && python scripts/make_t2s.py
"""

from pathlib import Path

import opencc

from hanlattice.atomic import atomic_write

CJK = [
    (0x2E80, 0x2FDF),  # radicals
    (0x3400, 0x4DBF),  # extension A
    (0x4E00, 0x9FFF),  # unified ideographs
    (0xF900, 0xFAFF),  # compatibility ideographs
    (0x20000, 0x323AF),  # extensions B to H
]
TARGET = Path(__file__).parent.parent / "src" / "hanlattice" / "data" / "t2s.txt"


def main() -> None:
    convert = opencc.OpenCC("t2s").convert
    characters = [chr(code) for first, last in CJK for code in range(first, last + 1)]
    pairs = [(character, convert(convert(character))) for character in characters]  # some results are traditional
    changed = [(old, new) for old, new in pairs if new != old and len(new) == 1]
    with atomic_write(TARGET) as stream:
        for side in zip(*changed, strict=True):
            stream.write("".join(side) + "\n")
    print(f"{len(changed)} characters in {TARGET}")


if __name__ == "__main__":
    main()
