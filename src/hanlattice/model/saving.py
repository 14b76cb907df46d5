"""Write the model behind an ``NER`` to a new folder, with the edits of its lexicon."""

from pathlib import Path

from hanlattice.atomic import atomic_folder
from hanlattice.errors import HanlatticeError
from hanlattice.lexicon.edits import save_edits
from hanlattice.model import digests
from hanlattice.model.copies import check_new, copy_files
from hanlattice.model.folder import CARD, EDITS
from hanlattice.pipeline import NER


def save(ner: NER, folder: str | Path, *, card: str | None = None) -> Path:
    """Save a model with the edits of its lexicon, as a folder that ``hanlattice.load`` opens; returns the folder.

    The files of the folder that the model was loaded from are copied. Patterns are not saved.

    Args:
        ner: a model that was loaded from a folder, or the packaged one.
        folder: the new folder, which must not exist.
        card: another text for the model card.

    Raises:
        HanlatticeError: the model was not loaded from a folder.
        DataError: a file cannot be copied.
        ModelError: ``folder`` exists, or is inside the folder of the model.
    """
    folder = Path(folder)
    if ner.folder is None:
        raise HanlatticeError(
            "this NER was not loaded from a folder; save its tagger with hanlattice.model.save_model"
        )
    check_new(folder, "the model")
    with atomic_folder(folder) as draft:
        copy_files(ner.folder, draft, digests.CHECKPOINT)
        save_edits(ner.lexicon, ner.base, draft / EDITS)
        if card is not None:
            (draft / CARD).write_text(card, encoding="utf-8", newline="\n")
        digests.record(draft)
    return folder
