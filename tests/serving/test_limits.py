"""What one request, or many lexicons, may cost; and paths and ids that are none."""

import asyncio
import errno
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import httpx2
import pytest

import tiny
from hanlattice.atomic import atomic_write
from hanlattice.errors import HanlatticeError
from hanlattice.lexicon import Word
from hanlattice.pipeline import NER
from hanlattice.serving import handlers, lexicon_cache
from hanlattice.serving import lexicons as stored_lexicons
from hanlattice.serving.app import Service
from hanlattice.serving.handlers import (
    QUICK_WORDS,
    WORDS_BESIDES,
    WORDS_OF_A_CHARACTER,
    LexiconEdits,
    ReadingOptions,
    RequestHandler,
)
from hanlattice.serving.lexicons import LexiconFault, Lexicons, TooManyLexicons
from hanlattice.serving.schema import Edits, EntitiesRequest, ExplainRequest, ReadRequest
from hanlattice.serving.settings import Settings
from served import SENTENCE, Served, serving

NESTED = ["一" * n for n in range(2, 61)]


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with serving("--max-lexicons", 3, "--max-lexicon-body", 1000, "--answer-timeout", 20) as served:
        yield served


@pytest.fixture
def answers(tmp_path: Path) -> RequestHandler:
    return RequestHandler(tiny.ner(), Lexicons(tmp_path, 5))


@pytest.fixture(scope="module")
def ner() -> NER:
    return tiny.ner()


class TestRepeatedCharacters:
    """All stretches of one character as words: as many matches as the square of the text's length."""

    def test_are_refused_at_once_without_delaying_others(self, service: Served) -> None:
        assert service.entities(SENTENCE)
        begin = time.perf_counter()
        hostile = {"texts": ["一" * 10_000] * 64, "lexicon": NESTED}
        status: list[int] = []
        sender = threading.Thread(
            target=lambda: status.append(service.client.post("/v1/entities", json=hostile).status_code)
        )
        sender.start()
        assert service.entities(SENTENCE)
        sender.join()
        assert status == [422]
        assert time.perf_counter() - begin < 30  # on a busy machine; it took minutes

    def test_the_limit_of_matched_words_per_text(self, answers: RequestHandler) -> None:
        most = WORDS_BESIDES + 400 * WORDS_OF_A_CHARACTER
        below = next(n for n in range(2, 400) if _matches(400, n + 1) > most)
        for longest, is_answered in ((below, True), (below + 1, False)):
            asked = answers.options_of(
                EntitiesRequest(text="一", lexicon=["一" * n for n in range(2, longest + 1)])
            )
            if is_answered:
                assert answers(asked, ["一" * 400]) == [{"entities": []}] or answers(asked, ["一" * 400])
            else:
                with pytest.raises(HanlatticeError, match=rf"of 400 characters may have {most:,} words here, not"):
                    answers(asked, ["一" * 400])

    def test_the_response_suggests_a_fix(self, service: Served) -> None:
        answer = service.client.post("/v1/entities", json={"text": "一" * 400, "lexicon": NESTED})
        assert answer.status_code == 422
        assert "leave out words that are made of one another" in answer.json()["error"]

    def test_force_rules_are_limited_too(self, service: Served) -> None:
        force = {"一" * n: "PER" for n in range(1, 256)}
        answer = service.client.post("/v1/entities", json={"text": "一" * 10_000, "force": force})
        assert answer.status_code == 422
        assert "words of the lexicon occur" in answer.json()["error"]


class TestManyWords:
    @pytest.mark.parametrize("n", [3, 1500])
    def test_are_checked_while_others_are_answered(self, n: int, tmp_path: Path) -> None:
        """A thread of their own checks many words; few are checked at once."""
        threads: list[threading.Thread] = []

        async def request() -> httpx2.Response:
            service = Service(Settings(lexicons=tmp_path), tiny.ner())
            check = service._handler.options_of

            def options_of(body: ReadRequest) -> ReadingOptions:
                threads.append(threading.current_thread())
                return check(body)

            service._handler.options_of = options_of  # type: ignore[assignment, method-assign]
            async with service._lifespan(service.app):
                transport = httpx2.ASGITransport(service.asgi)
                async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                    words = [*["词"] * n, {"text": "词", "label": "NONE"}]
                    return await client.post("/v1/entities", json={"text": "一", "lexicon": {"words": words}})

        answer = asyncio.run(request())
        assert answer.json()["fields"][0]["field"] == f"lexicon.words[{n}].label"
        assert [thread is threading.main_thread() for thread in threads] == [n == 3]


def _matches(n: int, longest: int) -> int:
    """Of words of two and more equal characters in ``n`` of them."""
    return sum(n - length + 1 for length in range(2, longest + 1))


class TestExplain:
    def explained(self, answers: RequestHandler, n: int, by: Any) -> str:
        lexicon = Edits(words=[*NESTED[:14]], extends=False)
        asked = answers.options_of(ExplainRequest(text="一", by=by, lexicon=lexicon))
        (answer,) = answers(asked, ["一" * n])
        return str(answer["by"])

    def test_both_sides_of_the_limit(self, answers: RequestHandler, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(handlers, "reading", _without_attention)
        n = next(n for n in range(10, 120) if _matches(n + 1, 15) > QUICK_WORDS)
        assert self.explained(answers, n, "auto") == "influence"
        assert self.explained(answers, n, "influence") == "influence"
        assert self.explained(answers, n + 1, "auto") == "none"
        with pytest.raises(HanlatticeError, match=f"influence takes a text of at most {QUICK_WORDS} words, not"):
            self.explained(answers, n + 1, "influence")

    def test_responses_over_http_are_quick(self, service: Served) -> None:
        begin = time.perf_counter()
        for by in ("auto", "influence", "none"):
            answer = service.client.post("/v1/explain", json={"text": "一" * 50, "by": by, "lexicon": NESTED})
            assert answer.status_code == (422 if by == "influence" else 200)
        assert time.perf_counter() - begin < 30  # on a busy machine


def _without_attention(ner: NER, text: str, *, by: Any) -> object:
    from hanlattice.explain import reading

    if by == "attention":
        raise HanlatticeError("as by engines other than torch")
    return reading(ner, text, by=by)


class TestStoredLexicons:
    def test_too_many_lexicons_are_refused(self, service: Served) -> None:
        for name in ("a", "b", "c"):
            assert service.client.put(f"/v1/lexicons/{name}", json=["词"]).status_code == 201
        answer = service.client.put("/v1/lexicons/d", json=["词"])
        assert answer.status_code == 422
        assert "there are 3 lexicons already; delete one" in str(answer.json()["fields"])
        assert service.client.put("/v1/lexicons/a", json=["新词"]).status_code == 200  # replaced
        assert service.client.delete("/v1/lexicons/b").status_code == 204
        assert service.client.put("/v1/lexicons/d", json=["词"]).status_code == 201
        assert service.client.get("/v1/lexicons").json() == {"lexicons": ["a", "c", "d"]}

    def test_a_large_lexicon_is_refused(self, service: Served) -> None:
        within, beyond = (json.dumps(["a" * 60] * n) for n in (4, 16))
        for body, status in ((within, 200), (beyond, 413)):
            answer = service.client.put(
                "/v1/lexicons/a", content=body, headers={"content-type": "application/json"}
            )
            assert answer.status_code == status

    def test_weights_beyond_float32_are_refused(self, service: Served) -> None:
        for weight, status in ((3.4e38, 200), (1e39, 422)):
            words = [{"text": "词", "weight": weight}]
            assert service.client.put("/v1/lexicons/a", json=words).status_code == status
            assert service.client.post("/v1/entities", json={"text": "词", "lexicon": words}).status_code == status

    def test_a_lexicon_is_replaced_as_a_whole(self, tmp_path: Path) -> None:
        """A reader that has opened the old file reads the old words to the end."""
        lexicons = Lexicons(tmp_path, 1)
        lexicons.write("a", Edits(words=["一"]))
        (path,) = tmp_path.iterdir()
        with path.open(encoding="utf-8") as before:
            lexicons.write("a", Edits(words=["二"]))
            assert "一" in before.read()
        assert lexicons.read("a").words == ["二"]
        assert list(tmp_path.iterdir()) == [path]

    def test_the_limit_applies_to_the_folder(self, tmp_path: Path) -> None:
        lexicons = Lexicons(tmp_path, 1)
        assert lexicons.write("a", Edits(words=["一"]))
        assert not lexicons.write("a", Edits(words=["二"]))
        with pytest.raises(TooManyLexicons, match="there are 1 lexicons already"):
            lexicons.write("b", Edits(words=["一"]))

    def test_the_limit_holds_if_several_are_stored_at_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By several workers; of those that store the same lexicon, one creates it."""
        write = atomic_write

        @contextmanager
        def slow_write(path: Path) -> Iterator[IO[str]]:
            time.sleep(0.1)
            with write(path) as stream:
                yield stream

        def store(name: str) -> bool | None:
            try:
                return Lexicons(tmp_path, 2).write(name, Edits(words=["一"]))
            except TooManyLexicons:
                return None

        with monkeypatch.context() as patched, ThreadPoolExecutor(4) as threads:
            patched.setattr(stored_lexicons, "atomic_write", slow_write)
            same = list(threads.map(store, "aaaa"))
            others = list(threads.map(store, "bcde"))
        assert sorted(map(str, same)) == ["False", "False", "False", "True"]
        assert sorted(map(str, others)) == ["None", "None", "None", "True"]

    def test_a_lexicon_that_cannot_be_stored_is_a_fault_of_the_service(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def fail(*_: object, **__: object) -> Any:
            raise OSError(errno.ENOSPC, "No space left on device")

        folder = tmp_path / "lexicons"
        lexicons = Lexicons(folder, 2)
        advice = "; make space, or correct the folder and its permissions"
        monkeypatch.setattr("os.fsync", fail)
        with pytest.raises(LexiconFault, match="the lexicon a cannot be stored") as full:
            lexicons.write("a", Edits(words=["一"]))
        assert full.value.reason == f"cannot be written: No space left on device{advice}"
        assert list(folder.iterdir()) == []
        folder.rmdir()
        with pytest.raises(LexiconFault, match="ask the operator") as lost:
            lexicons.write("a", Edits(words=["一"]))
        assert (lost.value.path, lost.value.reason) == (folder / "a.json", f"No such file or directory{advice}")

    def test_the_least_recently_used_lexicons_are_dropped(
        self, answers: RequestHandler, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By number and by words; the least lately used goes first, and the one in use stays."""
        monkeypatch.setattr(lexicon_cache, "KEPT", 3)
        monkeypatch.setattr(lexicon_cache, "KEPT_WORDS", 20)
        kept = [LexiconEdits(tuple(map(_word, range(n))), (), False) for n in (1, 2, 3, 4)]
        for words in kept:
            answers(ReadingOptions(words), ["一"])
        assert list(answers._sent._kept) == kept[1:]
        answers(ReadingOptions(kept[1]), ["一"])
        large = LexiconEdits(tuple(map(_word, range(15))), (), False)
        answers(ReadingOptions(large), ["一"])
        assert list(answers._sent._kept) == [kept[1], large]
        larger = LexiconEdits(tuple(map(_word, range(50))), (), False)
        answers(ReadingOptions(larger), ["一"])
        assert list(answers._sent._kept) == [larger]
        without = LexiconEdits((), tuple("一二"), True)
        answers(ReadingOptions(without), ["一"])
        assert list(answers._sent._kept) == [without], "words that are left out count too"

    def test_lexicons_in_requests_do_not_displace_stored_ones(
        self, answers: RequestHandler, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(lexicon_cache, "KEPT", 2)
        answers._lexicons.write("a", Edits(words=["一"]))
        stored = answers.options_of(EntitiesRequest(text="一", lexicon="a"))
        answers(stored, ["一"])
        built = answers._lexicon(stored.lexicon)  # type: ignore[arg-type]
        for n in range(5):
            answers(ReadingOptions(LexiconEdits((_word(n),), (), False)), ["一"])
        assert answers._lexicon(stored.lexicon) is built  # type: ignore[arg-type]


def _word(number: int) -> Word:
    return Word(chr(0x4E00 + number))


class TestPaths:
    @pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
    @pytest.mark.parametrize("name", ["a%0a", "a%0d", "a%00", "%0a", "a%0ab", "a%7f", "a%0a%0a"])
    def test_ids_with_control_characters_are_refused(self, service: Served, method: str, name: str) -> None:
        before = service.client.get("/v1/lexicons").json()
        body: dict[str, Any] = {"json": ["词"]} if method == "PUT" else {}
        answer = service.client.request(method, f"/v1/lexicons/{name}", **body)
        assert answer.status_code == 422
        assert answer.json()["fields"] == [
            {"field": "id", "problem": "an id is made of A-Z, a-z, 0-9, _ and -, at least 1 and at most 64 of them"}
        ]
        assert service.client.get("/v1/lexicons").json() == before

    @pytest.mark.parametrize("path", ["/healthz%0a", "/v1/model%0a", "/%0a"])
    def test_unknown_routes_are_not_found(self, service: Served, path: str) -> None:
        assert service.client.get(path).status_code == 404


@pytest.mark.parametrize(
    ("given", "is_kept"), [("a", True), ("a" * 64, True), ("a" * 65, False), ("a" * 5000, False)]
)
def test_ids_of_requests_are_bounded(service: Served, given: str, is_kept: bool) -> None:
    answer = service.client.get("/healthz", headers={"x-request-id": given})
    assert (answer.headers["x-request-id"] == given) is is_kept
    assert len(answer.headers["x-request-id"]) <= 64
