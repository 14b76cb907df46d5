"""Label Studio's real server with the service as its ML backend: a task goes in, a prediction comes out."""

import os
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("label_studio") is None:
    pytest.skip("label-studio is not installed (scripts/integrations)", allow_module_level=True)
import requests

sys.path.insert(0, str(Path(__file__).parent))
from service import server, service

TOKEN = "0123456789abcdef0123456789abcdef01234567"
CONFIG = """<View><Labels name="label" toName="text">
<Label value="人物" predicted_values="PER"/><Label value="LOC"/></Labels><Text name="text" value="$text"/></View>"""
TEXT = "😀雷军在北京发布小米14"


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of Label Studio with an empty database."""
    folder = tmp_path_factory.mktemp("studio")
    port = 18_000 + os.getpid() % 1000
    environment = {
        **os.environ,
        "LABEL_STUDIO_BASE_DATA_DIR": str(folder),
        "LABEL_STUDIO_ENABLE_LEGACY_API_TOKEN": "true",
        "COLLECT_ANALYTICS": "false",
        "ML_BLOCK_LOCAL_IP": "false",  # the service is on this machine, and Label Studio makes a webhook for it
        "SSRF_PROTECTION_ENABLED": "false",
        "DJANGO_DB": "sqlite",
    }
    program = str(Path(sys.executable).with_name("label-studio"))
    account = ["--username", "a@example.com", "--password", "secret-12", "--user-token", TOKEN]
    arguments = ["start", "--no-browser", "--port", str(port), "--data-dir", str(folder), *account]
    url = f"http://localhost:{port}"
    with server([program, *arguments], environment, folder, f"{url}/health", 1500):  # it writes its database first
        yield url


def test_a_task_gets_a_prediction(studio: str, tmp_path: Path) -> None:
    session = requests.Session()
    session.headers["Authorization"] = f"Token {TOKEN}"

    def post(path: str, body: Any) -> dict[str, Any]:
        answer = session.post(f"{studio}{path}", json=body, timeout=120)
        assert answer.ok, f"{path}: {answer.text[:2000]}"
        return answer.json()

    with service(tmp_path, token="open-sesame") as url:
        project = post("/api/projects", {"title": "names", "label_config": CONFIG})["id"]
        backend = {"url": f"{url}/label-studio", "project": project, "title": "hanlattice"}
        login = {"auth_method": "BASIC_AUTH", "basic_auth_user": "any", "basic_auth_pass": "open-sesame"}
        wrong = session.post(f"{studio}/api/ml", json={**backend, **login, "basic_auth_pass": "no"}, timeout=60)
        assert not wrong.ok
        post("/api/ml", {**backend, **login})
        post(f"/api/projects/{project}/import", [{"text": TEXT}])
        chosen = {"selectedItems": {"all": True, "excluded": []}, "project": project}
        post(f"/api/dm/actions?id=retrieve_tasks_predictions&project={project}", chosen)
        until = time.monotonic() + 60
        while not (predictions := session.get(f"{studio}/api/predictions?project={project}", timeout=60).json()):
            assert time.monotonic() < until
            time.sleep(1)
    (prediction,) = predictions
    regions = [(r["value"]["text"], r["value"]["labels"], r["value"]["start"]) for r in prediction["result"]]
    assert regions == [("雷军", ["人物"], 1), ("北京", ["LOC"], 4)]
    assert prediction["model_version"].startswith("hanlattice ")
    assert 0 < prediction["score"] <= 1
