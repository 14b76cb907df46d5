"""The forms that texts come in: each cuts files into chunks and parses the rows of a chunk."""

from collections.abc import Mapping

from hanlattice.annotation.forms.base import Form, Limits, Rows
from hanlattice.annotation.forms.delimited import Delimited
from hanlattice.annotation.forms.jsonl import JsonLines
from hanlattice.annotation.forms.parquet import Parquet
from hanlattice.annotation.forms.text import Text

FORMS: Mapping[str, Form] = {
    "text": Text(),
    "jsonl": JsonLines(),
    "csv": Delimited(","),
    "tsv": Delimited("\t"),
    "parquet": Parquet(),
}

__all__ = ["FORMS", "Form", "Limits", "Rows"]
