"""The formats of input files: each cuts files into chunks and parses the rows of a chunk."""

from collections.abc import Mapping

from hanlattice.annotation.input_formats.base import InputFormat, Limits, Rows
from hanlattice.annotation.input_formats.delimited import Delimited
from hanlattice.annotation.input_formats.jsonl import JsonLines
from hanlattice.annotation.input_formats.parquet import Parquet
from hanlattice.annotation.input_formats.text import Text

INPUT_FORMATS: Mapping[str, InputFormat] = {
    "text": Text(),
    "jsonl": JsonLines(),
    "csv": Delimited(","),
    "tsv": Delimited("\t"),
    "parquet": Parquet(),
}

__all__ = ["INPUT_FORMATS", "InputFormat", "Limits", "Rows"]
