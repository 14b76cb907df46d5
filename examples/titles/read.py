"""Read the annotated Parquet file with pandas or polars: check the offsets, and list the organisations.

Run: python read.py FILE --with pandas|polars
"""

import argparse
from typing import Any


def with_pandas(file: str) -> tuple[int, Any]:
    """The number of entities, and the most frequent organisations with the mean price of their titles."""
    import pandas as pd

    table = pd.read_parquet(file, columns=["title", "price", "entities"])
    pairs = table.explode("entities").dropna(subset="entities").reset_index(drop=True)
    found = pd.DataFrame(pairs["entities"].tolist()).assign(price=pairs["price"].astype(float))
    rows = zip(pairs["title"], found["start"], found["end"], found["text"], strict=True)
    assert all(title[start:end] == text for title, start, end, text in rows)
    counts = found[found["label"] == "ORG"].groupby("text")["price"].agg(titles="size", price="mean").reset_index()
    return len(found), counts.sort_values(["titles", "text"], ascending=[False, True]).head(5).round(2).to_string(
        index=False
    )


def with_polars(file: str) -> tuple[int, Any]:
    """The same with polars, which reads only the columns that it needs."""
    import polars as pl

    table = pl.scan_parquet(file).select("title", "price", "entities").explode("entities")
    found = table.drop_nulls("entities").unnest("entities").with_columns(pl.col("price").cast(pl.Float64))
    sliced = pl.col("title").str.slice(pl.col("start"), pl.col("end") - pl.col("start"))
    n, wrong = found.select(pl.len(), (sliced != pl.col("text")).sum()).collect().row(0)
    assert wrong == 0
    makers = found.filter(pl.col("label") == "ORG").group_by("text")
    counts = makers.agg(titles=pl.len(), price=pl.col("price").mean().round(2))
    return n, counts.sort("titles", "text", descending=[True, False]).head(5).collect()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--with", dest="library", choices=("pandas", "polars"), required=True)
    options = parser.parse_args()
    n, counts = (with_pandas if options.library == "pandas" else with_polars)(options.file)
    print(f"{n:,} entities; the text of each is the text of the title at its offsets")
    print(counts)


if __name__ == "__main__":
    main()
