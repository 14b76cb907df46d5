"""The library behind doccano's auto-labelling, with the service: request, mapping template and labels."""

import sys
from pathlib import Path

import pytest

pytest.importorskip(
    "auto_labeling_pipeline", reason="auto-labeling-pipeline is not installed (scripts/integrations)"
)
from auto_labeling_pipeline.labels import SequenceLabels
from auto_labeling_pipeline.mappings import MappingTemplate
from auto_labeling_pipeline.models import RequestModelFactory
from auto_labeling_pipeline.pipeline import pipeline
from auto_labeling_pipeline.postprocessing import PostProcessor

sys.path.insert(0, str(Path(__file__).parent))
from service import service


def test_a_text_gets_labels(tmp_path: Path) -> None:
    with service(tmp_path, token="open-sesame") as url:
        attributes = {
            "url": f"{url}/doccano",
            "method": "POST",
            "params": {},
            "headers": {"Authorization": "Bearer open-sesame"},
            "body": {"text": "{{ text }}", "convention": "msra"},
        }
        model = RequestModelFactory.create("Custom REST Request", attributes)
        template = MappingTemplate(label_collection=SequenceLabels, template="{{ input | tojson }}")
        labels = pipeline("😀雷军在北京发布小米14", model, template, PostProcessor({}))
    assert labels.dict() == [
        {"label": "PER", "start_offset": 1, "end_offset": 3},
        {"label": "LOC", "start_offset": 4, "end_offset": 6},
    ]
