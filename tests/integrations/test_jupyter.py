"""Models, documents, lattices and reports in a notebook, run by a real kernel."""

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (scripts/integrations)")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (scripts/integrations)")
import nbformat  # noqa: E402

CELLS = [
    "import hanlattice; ner = hanlattice.load(); ner",
    "document = ner('雷军在北京发布小米14'); document",
    "document.lattice",
    "hanlattice.evaluate(ner, [document])",
]


def test_cells_show_html() -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in CELLS])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    model, text, lattice, report = ["".join(cell.outputs[-1].data["text/html"]) for cell in notebook.cells]
    assert " words</td>" in model
    assert "雷军<small>PER</small></mark>" in text
    assert "<svg" in lattice
    assert "<th>F1</th>" in report
    plain = notebook.cells[0].outputs[-1].data["text/plain"]
    assert plain.startswith("<NER model: ")
