"""doccano's real server with the service behind its auto-labelling: a text goes in, annotated spans come out."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("auto_labeling_pipeline") is None:
    pytest.skip("doccano is not installed (scripts/integrations)", allow_module_level=True)
import requests

sys.path.insert(0, str(Path(__file__).parent))
from service import server, service

TEXT = "😀雷军在北京发布小米14"
PROGRAM = str(Path(sys.executable).with_name("doccano"))
ACCOUNT = {"username": "admin", "password": "secret-12"}


@pytest.fixture(scope="module")
def doccano(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of doccano with an empty database."""
    folder = tmp_path_factory.mktemp("doccano")
    port = 19_000 + os.getpid() % 1000
    environment = {**os.environ, "DOCCANO_HOME": str(folder)}
    user = [f"--{name}={value}" for name, value in {**ACCOUNT, "email": "a@example.com"}.items()]
    for command in (["init"], ["createuser", *user]):
        done = subprocess.run([PROGRAM, *command], env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    url = f"http://127.0.0.1:{port}"
    command = [PROGRAM, "webserver", "--port", str(port), "--workers", "1"]
    with server(command, environment, folder, f"{url}/v1/health", 300):
        yield url


def test_a_text_is_annotated(doccano: str, tmp_path: Path) -> None:
    login: dict[str, str] = {}  # without cookies, which would need a CSRF token

    def post(path: str, body: Any) -> dict[str, Any]:
        answer = requests.post(f"{doccano}/v1/{path}", json=body, headers=login, timeout=120)
        assert answer.ok, f"{path}: {answer.text[:2000]}"
        return answer.json()

    login["Authorization"] = f"Token {post('auth/login/', ACCOUNT)['key']}"
    kind = {"project_type": "SequenceLabeling", "resourcetype": "SequenceLabelingProject"}
    project = f"projects/{post('projects', {'name': 'names', 'description': 'names', **kind})['id']}"
    names = {post(f"{project}/span-types", {"text": label})["id"]: label for label in ("PER", "LOC")}
    example = post(f"{project}/examples", {"text": TEXT})["id"]
    with service(tmp_path, token="open-sesame") as url:
        attributes = {
            "url": f"{url}/doccano",
            "method": "POST",
            "params": {},
            "headers": {"Authorization": "Bearer open-sesame"},
            "body": {"text": "{{ text }}", "convention": "msra"},
        }
        config = {"model_name": "Custom REST Request", "model_attrs": attributes, "task_type": "Span"}
        post(
            f"{project}/auto-labeling/configs", {**config, "template": "{{ input | tojson }}", "label_mapping": {}}
        )
        post(f"{project}/auto-labeling?example={example}", {})
    spans = requests.get(f"{doccano}/v1/{project}/examples/{example}/spans", headers=login, timeout=60).json()
    found = [(names[span["label"]], span["start_offset"], span["end_offset"]) for span in spans]
    assert sorted(found) == [("LOC", 4, 6), ("PER", 1, 3)]
