"""Faults of the service are not the client's: they have status 500, and their reason is in the log only."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

import tiny
from hanlattice.cli.serve import _token
from hanlattice.errors import EngineError, HanlatticeError, ModelError
from hanlattice.serving.app import Service
from hanlattice.serving.settings import Settings
from served import SENTENCE


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ModelError("/srv/model.onnx gives numbers that are not finite"), 500),
        (EngineError("this encoder has no attention"), 422),
        (HanlatticeError("the text is too long for this"), 422),
    ],
)
def test_the_status_of_an_error(error: HanlatticeError, status: int, tmp_path: Path) -> None:
    def fail(*_: Any) -> Any:
        raise error

    async def request() -> httpx2.Response:
        service = Service(Settings(lexicons=tmp_path), tiny.ner())
        async with service._lifespan(service.app):
            service._handler.options_of = fail  # type: ignore[assignment, method-assign]
            transport = httpx2.ASGITransport(service.asgi, raise_app_exceptions=False)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.post("/v1/entities", json={"text": SENTENCE})

    answer = asyncio.run(request())
    assert answer.status_code == status
    assert (str(error) in answer.text) == (status == 422)


def test_the_log_says_why_the_first_prediction_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(*_: Any) -> Any:
        raise ModelError("/srv/model.onnx gives numbers that are not finite")

    async def start() -> None:
        service = Service(Settings(lexicons=tmp_path), tiny.ner())
        service._handler = fail  # type: ignore[assignment]
        async with service._lifespan(service.app):
            pass

    with pytest.raises(ModelError):
        asyncio.run(start())
    (line,) = capsys.readouterr().err.splitlines()
    row = json.loads(line)
    assert (row["event"], row["level"], row["error"]) == ("warm-up failed", "error", "ModelError")
    assert row["reason"] == "/srv/model.onnx gives numbers that are not finite"


@pytest.mark.parametrize("value", ["", "short"])
def test_a_token_that_is_set_but_wrong_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable is often a secret that was not found; without a token anyone could ask."""
    monkeypatch.setenv("HANLATTICE_TOKEN", value)
    with pytest.raises(HanlatticeError, match="a token has at least 8 characters"):
        Settings(token=_token(None))
    monkeypatch.delenv("HANLATTICE_TOKEN")
    assert Settings(token=_token(None)).token is None


@pytest.mark.parametrize("content", ["", "\nopen-sesame\n", "short\n", "open sesame\n"])
def test_a_file_without_a_token_is_named_with_its_line(content: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(content)
    with pytest.raises(HanlatticeError, match=r"token:1: the first line is not a token; a token has at least 8"):
        _token(path)
    path.write_text("open-sesame\n")
    assert _token(path) == "open-sesame"
