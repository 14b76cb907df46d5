"""doccano's auto-labelling: entities in the form that a sequence labelling project takes.

The mapping template of doccano for this form is ``{{ input | tojson }}``.
"""

from collections.abc import Iterable, Mapping
from typing import Any


def labels_of(entities: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One ``{"label", "start_offset", "end_offset"}`` for each entity, as ``Entity.to_dict`` gives it.

    A discontinuous entity is one label from its start to its end.
    """
    return [{"label": e["label"], "start_offset": e["start"], "end_offset": e["end"]} for e in entities]
