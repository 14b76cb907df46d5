"""The service over HTTP, in real processes: right answers, and clear ones to whatever is wrong."""

import contextlib
import gzip
import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

import hanlattice
import tiny
from hanlattice.drawing.colours import colour_of
from hanlattice.pipeline import NER
from hanlattice.serving.errors import RequestError
from hanlattice.serving.validation import RequestValidator
from served import SENTENCE, Served, serving

TOKEN = b"Authorization: Bearer open-sesame\r\n"
CONFIG = (
    '<View><Labels name="label" toName="text"><Label value="PER"/></Labels><Text name="text" value="$text"/></View>'
)
LABEL_STUDIO: list[tuple[str, dict[str, Any]]] = [
    ("setup", {"project": "1", "schema": CONFIG}),
    ("setup", {"project": "1", "schema": "<View/>"}),
    ("predict", {"tasks": [{"id": 1, "data": {"text": "字"}}], "label_config": CONFIG}),
    ("predict", {"tasks": []}),
    ("webhook", {"action": "ANNOTATION_CREATED"}),
]
LABELS_IGNORED = "the model ignores labels of words: none of its training words had one"
SHORT_WORDS = (
    "words with fewer than 2 characters have no effect, because the model never matches them; for a rule with them"
    " use force"
)
TEXTS = [document.text for document in tiny.documents()]


@pytest.fixture(scope="module")
def ner() -> NER:
    return tiny.ner()


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with serving("--workers", 2, "--max-wait-ms", 20, "--engine", "torch") as served:
        yield served


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One with a token, and with limits that are soon reached."""
    token = tmp_path_factory.mktemp("strict") / "token"
    token.write_text("open-sesame\n")
    limits = ("--max-chars", 50, "--max-texts", 3, "--max-body", 2000, "--max-queue", 3, "--client-timeout", 1)
    with serving(*limits, "--max-wait-ms", 400, "--token-file", token) as served:
        served.client.headers["authorization"] = "Bearer open-sesame"
        yield served


def same(found: list[dict[str, Any]], expected: list[dict[str, Any]]) -> bool:
    plain = [[{k: v for k, v in e.items() if k != "score"} for e in entities] for entities in (found, expected)]
    close = all(abs(a["score"] - b["score"]) < 1e-3 for a, b in zip(found, expected, strict=False))
    return plain[0] == plain[1] and close


def offline(ner: NER, text: str) -> list[dict[str, Any]]:
    return ner(text).to_dict()["entities"]


class TestAnswers:
    def test_equal_those_of_the_library(self, service: Served, ner: NER) -> None:
        found = service.entities(SENTENCE)
        assert [(e["text"], e["label"]) for e in found] == [("李明", "PER"), ("北京", "LOC")]
        assert same(found, offline(ner, SENTENCE))

    def test_of_several_texts_keep_their_order(self, service: Served, ner: NER) -> None:
        texts = [*TEXTS, "", "😀李明\r\n在🇨🇳北京👨‍👩‍👧工作。"]
        answers = service.client.post("/v1/entities", json={"texts": texts}).json()["entities"]
        assert len(answers) == len(texts)
        for text, found in zip(texts, answers, strict=True):
            assert same(found, offline(ner, text))
            assert all(text[e["start"] : e["end"]] == e["text"] for e in found)
        assert service.client.post("/v1/entities", json={"texts": []}).json() == {"entities": []}

    def test_of_concurrent_clients_are_not_mixed(self, service: Served, ner: NER) -> None:
        """Different texts and rules at the same time: batches hold what belongs together, and only that."""
        rules: list[dict[str, Any]] = [
            {},
            {"threshold": 0.99},
            {"force": {"工作": "ORG"}},
            {"block": {"北京": None}},
        ]
        wrong: list[object] = []

        def ask(number: int) -> None:
            with httpx2.Client(base_url=service.url, timeout=30) as client:
                for i in range(12):
                    text, rule = TEXTS[(number * 5 + i) % len(TEXTS)], rules[(number + i) % len(rules)]
                    answer = client.post("/v1/entities", json={"text": text, **rule}).json()
                    if not same(answer["entities"], expected[text, str(rule)]):
                        wrong.append((text, rule, answer))

        expected: dict[tuple[str, str], list[Any]] = {}
        for rule in rules:
            with ner.using(**rule):
                expected |= {(text, str(rule)): offline(ner, text) for text in TEXTS}
        threads = [threading.Thread(target=ask, args=(i,)) for i in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong
        figures = service.client.get("/metrics").text
        batches, texts = (float(_figure(figures, f"hanlattice_batch_texts_{what}")) for what in ("count", "sum"))
        assert texts > 1.5 * batches

    def test_follow_the_rules_of_one_request_only(self, service: Served) -> None:
        before = service.entities(SENTENCE)
        assert service.entities(SENTENCE, block={"李明": ["PER"], "北京": None}) == []
        assert service.entities(SENTENCE, block={"李明": "ORG"}) == before
        forced = {"start": 2, "end": 4, "text": "工作", "label": "ORG", "score": 1.0}
        assert forced in service.entities("他去工作", force={"工作": "ORG"})
        assert service.entities(SENTENCE, threshold=1.0) == []
        assert same(service.entities(SENTENCE), before)

    def test_of_explain_list_the_matched_words(self, service: Served) -> None:
        def read(**question: Any) -> dict[str, Any]:
            return service.client.post("/v1/explain", json={"text": SENTENCE, **question}).json()

        auto = read()
        assert auto["by"] == "attention"
        assert [(w["text"], w["start"], w["end"]) for w in auto["words"]] == [
            ("李明", 0, 2),
            ("北京", 3, 5),
            ("工作", 5, 7),
        ]
        assert all(0 < w["strength"] <= 1 and w["text"] in w["reason"] for w in auto["words"])
        assert read(by="influence")["by"] == "influence"
        assert "strength" not in read(by="none")["words"][0]
        edited = read(lexicon={"words": ["明在北"], "remove": ["北京"]})
        assert [w["text"] for w in edited["words"]] == ["李明", "明在北", "工作"]
        long = service.client.post("/v1/explain", json={"text": SENTENCE * 30}).json()
        assert (long["by"], len(long["words"])) == ("none", 90)


class TestLexicons:
    def test_are_created_replaced_and_removed_in_all_workers(self, service: Served) -> None:
        def words(**question: Any) -> list[str]:
            answer = service.client.post("/v1/explain", json={"text": "长江药房", "by": "none", **question})
            return [word["text"] for word in answer.json()["words"]]

        put, url = service.client.put, "/v1/lexicons/my-words_1"
        assert words() == []
        created = put(url, json=["长江", {"text": "药房", "label": "ORG", "weight": 2}])
        assert created.status_code == 201
        assert created.json() == {"id": "my-words_1", "words": 2, "removed": 0, "extends": True}
        pids = set()
        for _ in range(20):  # connections go to either worker
            with httpx2.Client(base_url=service.url, timeout=30) as client:
                answer = client.post(
                    "/v1/explain", json={"text": "长江药房", "by": "none", "lexicon": "my-words_1"}
                )
                assert [w["text"] for w in answer.json()["words"]] == ["长江", "药房"]
            pids |= {row["pid"] for row in service.events("request")}
        assert len(pids) == 2
        for i in range(10):
            name = f"长江药房{i}"[:4] if i % 2 else "江药"
            assert put(url, json={"words": [name], "extends": bool(i % 3)}).status_code == 200
            assert words(lexicon="my-words_1") == [name]
        assert service.client.get(url).json() == {"words": ["长江药房"], "remove": [], "extends": False}
        assert service.client.get("/v1/lexicons").json() == {"lexicons": ["my-words_1"]}
        assert service.client.delete(url).status_code == 204
        assert [service.client.request(m, url).status_code for m in ("GET", "DELETE")] == [404, 404]
        gone = service.client.post("/v1/entities", json={"text": "长江", "lexicon": "my-words_1"})
        assert gone.status_code == 404
        assert gone.json()["fields"] == [{"field": "lexicon", "problem": "there is no lexicon my-words_1"}]

    @pytest.mark.parametrize("content", ["", '{"words": ["北', '["北京"]', '{"words": [1]}', "\udcff"])
    def test_a_damaged_file_is_reported_with_the_fix_and_stays(self, service: Served, content: str) -> None:
        url, file = "/v1/lexicons/broken", service.log.parent / "lexicons" / "broken.json"
        raw = content.encode(errors="surrogateescape")
        file.write_bytes(raw)
        problem = "the lexicon broken is damaged; store it again, or delete it"
        answer = service.client.get(url)
        assert (answer.status_code, answer.json()["fields"]) == (500, [{"field": "id", "problem": problem}])
        for path in ("/v1/entities", "/v1/explain", "/doccano"):
            answer = service.client.post(path, json={"text": SENTENCE, "lexicon": "broken"})
            assert (answer.status_code, answer.json()["error"]) == (500, problem)
        line = next(line for line in service.log.read_text().splitlines() if f'"path": "{file}"' in line)
        assert '"reason": "is not a lexicon of this service"' in line
        assert service.client.get("/v1/lexicons").json() == {"lexicons": ["broken"]}
        assert file.read_bytes() == raw
        assert service.client.put(url, json=["北京"]).status_code == 200
        assert service.client.get(url).json()["words"] == ["北京"]
        assert service.client.delete(url).status_code == 204

    def test_a_file_that_cannot_be_read_is_not_reported_as_missing(self, service: Served) -> None:
        folder = service.log.parent / "lexicons" / "folder.json"
        folder.mkdir()
        read, remove = (service.client.request(method, "/v1/lexicons/folder") for method in ("GET", "DELETE"))
        assert (read.status_code, remove.status_code) == (500, 500)
        assert read.json()["error"] == "the lexicon folder is damaged; store it again, or delete it"
        assert remove.json()["error"] == "the lexicon folder cannot be deleted; ask the operator of this service"
        log = service.log.read_text()
        assert '"reason": "cannot be read: ' in log
        assert '"reason": "cannot be removed: ' in log
        folder.rmdir()

    def test_a_lost_folder_is_named_in_the_log(self, service: Served) -> None:
        folder = service.log.parent / "lexicons"
        folder.rename(folder.with_name("moved"))
        answer = service.client.put("/v1/lexicons/new", json=["北京"])
        folder.with_name("moved").rename(folder)
        problem = "the lexicon new cannot be stored; ask the operator of this service"
        assert (answer.status_code, answer.json()["error"]) == (500, problem)
        assert answer.json()["fields"] == [{"field": "id", "problem": problem}]
        row = service.events("stored lexicon")[-1]
        assert row["path"] == str(folder / "new.json")
        assert row["reason"].startswith("No such file or directory; ")

    def test_replace_or_extend_the_words_of_the_model(self, service: Served) -> None:
        def words(lexicon: object) -> list[str]:
            question = {"text": SENTENCE, "by": "none", "lexicon": lexicon}
            return [word["text"] for word in service.client.post("/v1/explain", json=question).json()["words"]]

        assert words(["在北"]) == ["李明", "在北", "北京", "工作"]
        assert words({"remove": ["北京"]}) == ["李明", "工作"]
        assert words({"words": ["在北"], "extends": False}) == ["在北"]

    @pytest.mark.parametrize(
        "name", ["..%2F..%2Fetc", "%2e%2e%2fx", "a%2Fb", "%00", "a.json", "x" * 65, "名字", ""]
    )
    def test_with_ids_like_paths_are_refused(self, service: Served, name: str) -> None:
        for method in ("GET", "PUT", "DELETE"):
            answer = service.client.request(
                method, f"/v1/lexicons/{name}", json=["字"] if method == "PUT" else None
            )
            assert answer.status_code == 422, (method, answer.text)
            assert answer.json()["fields"][0]["field"] == "id"


MISTAKES: list[tuple[object, str, str]] = [
    ({}, "body", "either text or texts"),
    ({"text": "字", "texts": []}, "body", "either text or texts"),
    ([], "body", "an object"),
    ({"text": 1}, "text", "valid string"),
    ({"text": None}, "body", "either text or texts"),
    ({"texts": ["字", None]}, "texts[1]", "valid string"),
    ({"texts": "字"}, "texts", "valid array"),
    ({"text": "字", "txt": 1}, "txt", "no such field"),
    ({"text": "a\0b"}, "text", "NUL"),
    ({"text": "字", "threshold": "0.5"}, "threshold", "valid number"),
    ({"text": "字", "threshold": 1.5}, "threshold", "less than or equal to 1"),
    ({"text": "字", "threshold": True}, "threshold", "valid number"),
    ({"text": "字", "lexicon": 5}, "lexicon", "an object"),
    ({"text": "字", "lexicon": "../etc"}, "lexicon", "an id is made of"),
    ({"text": "字", "lexicon": ["词", ""]}, "lexicon[1]", "nothing at all"),
    ({"text": "字", "lexicon": ["a\0b"]}, "lexicon[0]", "NUL"),
    ({"text": "字", "lexicon": [{"text": "词", "labl": "X"}]}, "lexicon[0].labl", "no such field"),
    ({"text": "字", "lexicon": {"words": [1]}}, "lexicon.words[0]", "an object"),
    ({"text": "字", "lexicon": ["词" * 257]}, "lexicon[0]", "at most 256"),
    ({"text": "字", "force": ["字"]}, "force", "an object"),
    ({"text": "字", "force": {"字": None}}, "force.字", "valid string"),
    ({"text": "字", "force": {"": "X"}}, "force", "nothing at all"),
    ({"text": "字", "block": {"字": 1}}, "block.字", ""),
]


class TestMistakes:
    @pytest.mark.parametrize(("body", "field", "problem"), MISTAKES)
    def test_in_fields_are_named(self, service: Served, body: object, field: str, problem: str) -> None:
        answer = service.client.post("/v1/entities", json=body)
        assert answer.status_code == 422, answer.text
        fields = answer.json()["fields"]
        assert field in fields[0]["field"]
        assert problem in fields[0]["problem"]
        assert answer.json()["request_id"] == answer.headers["x-request-id"]

    @pytest.mark.parametrize(
        ("body", "says"),
        [
            (b"", "is not JSON"),
            (b"{", "line 1 column 1"),
            (b'{"text": "a"', "line 1 column 12"),
            (b"[" * 100_000, "is not JSON"),
            (b'{"text": "\xff\xfe"}', "invalid unicode code point at line 1 column 11"),
            ('{"text": "字"}'.encode("gb18030"), "invalid unicode code point"),
            (b'{"text": "\\ud83d"', "hex escape"),
            (b'{"text": "\\ud8"}', "invalid escape"),
            (b"{'text': 1}", "line 1"),
        ],
    )
    def test_in_json_are_named(self, service: Served, body: bytes, says: str) -> None:
        answer = service.client.post("/v1/entities", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, says in answer.json()["error"]) == (400, True), answer.text

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            (b'{"text": "\\ud83d"}', "text"),
            (b'{"texts": ["a", "\\ude00\\ud83d"]}', "texts[1]"),
            (b'{"text": "a", "lexicon": {"remove": ["\\ud83d"]}}', "lexicon.remove[0]"),
            (b'{"text": "a", "force": {"\\ud83d": "ORG"}}', "force.���"),
        ],
    )
    def test_in_surrogates_are_named(self, service: Served, body: bytes, field: str) -> None:
        for path in ("/v1/entities", "/doccano")[: 1 if b"texts" in body else 2]:
            answer = service.client.post(path, content=body, headers={"content-type": "application/json"})
            assert answer.status_code == 422, answer.text
            problem = "holds half a surrogate pair, which is not a character"
            assert answer.json()["fields"][0] == {"field": field, "problem": problem}

    def test_in_numbers_are_named(self, service: Served) -> None:
        for number in (b"NaN", b"Infinity", b"1e999"):
            content = b'{"text": "a", "threshold": %s}' % number
            answer = service.client.post(
                "/v1/entities", content=content, headers={"content-type": "application/json"}
            )
            assert (answer.status_code, answer.json()["fields"][0]["field"]) == (422, "threshold")

    def test_in_stored_lexicons_are_named(self, service: Served) -> None:
        """They come by another way, and are told alike."""
        for content, status in (
            (b"{", 400),
            (b"[1]", 422),
            (b'"a"', 422),
            (b'{"words": ["\xff"]}', 400),
            (b"", 400),
        ):
            headers = {"content-type": "application/json"}
            answer = service.client.put("/v1/lexicons/x", content=content, headers=headers)
            assert answer.status_code == status, answer.text
        assert service.client.put("/v1/lexicons/x", content=b"[]").status_code == 415

    def test_in_compressed_bodies_are_named(self, service: Served) -> None:
        for method, path in (("POST", "/v1/entities"), ("PUT", "/v1/lexicons/x")):
            for content in (gzip.compress(b'{"text": "a"}'), b'{"text": "a"}'):
                headers = {"content-type": "application/json", "content-encoding": "gzip"}
                answer = service.client.request(method, path, content=content, headers=headers)
                assert answer.status_code == 415, answer.text
                assert "without Content-Encoding: gzip" in answer.json()["error"]
        headers = {"content-type": "application/json", "content-encoding": "identity"}
        assert service.client.post("/v1/entities", content=b'{"text": "a"}', headers=headers).status_code == 200

    def test_in_words_are_named_before_a_lexicon_is_stored(self, service: Served) -> None:
        long = "长" * 65
        for body, field in ((["长江", long], "[1]"), ({"words": [long], "extends": False}, "words[0]")):
            answer = service.client.put("/v1/lexicons/x", json=body)
            assert answer.status_code == 422, answer.text
            assert answer.json()["fields"][0]["field"] == field
            assert "more than the 64 that the model reads" in answer.json()["fields"][0]["problem"]
        assert service.client.put("/v1/lexicons/x", json=[long[1:]]).status_code == 201
        assert service.client.delete("/v1/lexicons/x").status_code == 204

    @pytest.mark.parametrize("word", [" ", "\u3000", "\u200b"])
    def test_words_without_visible_characters(self, word: str) -> None:
        validator = RequestValidator(hanlattice.load("lite"))
        for before, after in ((1, 0), (0, 3), (4, 2), (5, 5)):
            with pytest.raises(RequestError) as error:
                validator.check_words(["长江"] * before + [word] + ["长江"] * (after - 1) + [word], "lexicon")
            (field,) = error.value.fields
            assert (error.value.status, field.field) == (422, f"lexicon[{before}]")
            assert "has only white space or invisible characters" in field.problem

    def test_in_content_type_method_and_path_have_their_status(self, service: Served) -> None:
        plain = service.client.post(
            "/v1/entities", content=b'{"text": "a"}', headers={"content-type": "text/plain"}
        )
        assert plain.status_code == 415
        for method, path, allowed in (
            ("GET", "/v1/entities", "POST"),
            ("OPTIONS", "/v1/lexicons/x", "DELETE, GET, PUT"),
            ("PATCH", "/v1/model", "GET"),
        ):
            refused = service.client.request(method, path)
            assert (refused.status_code, refused.headers["allow"]) == (405, allowed)
        assert service.client.get("/v1/../etc/passwd").status_code == 404
        assert service.client.get("/page/../app.py").status_code == 404

    @pytest.mark.parametrize(
        "body",
        [
            '{"texts": [' + "1," * 1_000_000 + "1]}",
            '{"text": "a", "lexicon": [' + "1," * 1_000_000 + "1]}",
            '{"text": "a", "lexicon": {' + ",".join(f'"{i}":0' for i in range(250_000)) + "}}",
            '{"text": "a", "force": {' + ",".join(f'"{i}":0' for i in range(250_000)) + "}}",
            "{" + ",".join(f'"{i}":0' for i in range(250_000)) + "}",
            '{"text": "a", "block": {"a": [' + "1," * 1_000_000 + "1]}}",
        ],
        ids=["texts", "words", "edits", "rules", "fields", "labels"],
    )
    def test_by_the_million_cost_no_more_than_one(self, service: Served, body: str) -> None:
        began = time.monotonic()
        answer = service.client.post("/v1/entities", content=body, headers={"content-type": "application/json"})
        assert (answer.status_code, len(answer.content) < 2000) == (422, True)
        assert time.monotonic() - began < 5

    def test_do_not_change_the_service(self, service: Served, ner: NER) -> None:
        assert same(service.entities(SENTENCE), offline(ner, SENTENCE))


class TestLimits:
    def test_of_text_and_body_sizes(self, strict: Served) -> None:
        post = strict.client.post
        long = post("/v1/entities", json={"texts": ["字", "字" * 51]})
        assert (long.status_code, long.json()["fields"][0]["field"]) == (422, "texts[1]")
        many = post("/v1/entities", json={"texts": ["字"] * 4})
        assert (many.status_code, many.json()["fields"][0]["field"]) == (422, "texts")
        for content in (b"x" * 2001, (b"x" * 1000 for _ in range(3000))):  # with its length told, and without
            huge = post("/v1/entities", content=content, headers={"content-type": "application/json"})
            assert (huge.status_code, huge.json()["error"]) == (413, "a body has at most 2,000 bytes here")
        assert strict.entities("字" * 50) is not None

    @pytest.mark.parametrize(("requests", "times"), [(25, 10), (5000, 1)])
    def test_of_clients_that_do_not_read_responses(self, strict: Served, requests: int, times: int) -> None:
        """Those that fill all buffers, and those that ask for far more than they wait for."""
        one = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
        size = len(strict.client.get("/openapi.json").content)
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(10)
            connection.connect(("127.0.0.1", strict.port))
            received = 0
            with contextlib.suppress(ConnectionError):
                for _ in range(times):
                    connection.sendall(one * requests)
                    time.sleep(0.1)
                time.sleep(2)
                while chunk := connection.recv(65536):
                    received += len(chunk)
        assert received < times * requests * size
        assert strict.entities(SENTENCE)

    def test_requests_without_the_token_are_unauthorized(self, strict: Served) -> None:
        with httpx2.Client(base_url=strict.url) as stranger:
            for headers in ({}, {"authorization": "Bearer wrong-one"}, {"authorization": "open-sesame"}):
                for path in ("/v1/model", "/v1/lexicons", "/metrics", "/v1/nothing"):
                    answer = stranger.get(path, headers=headers)
                    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            for path in ("/", "/docs", "/openapi.json", "/healthz", "/readyz"):
                assert stranger.get(path).status_code == 200
        assert strict.client.get("/v1/model").status_code == 200

    def test_of_a_full_queue(self, strict: Served) -> None:
        """The model waits 400 ms for more; three fit into the queue, and those beyond are told at once."""
        statuses: list[tuple[int, float]] = []

        def ask() -> None:
            began = time.monotonic()
            answer = httpx2.post(
                f"{strict.url}/v1/entities",
                json={"text": SENTENCE},
                headers=dict(strict.client.headers),
                timeout=30,
            )
            statuses.append((answer.status_code, time.monotonic() - began))
            if answer.status_code == 503:
                assert int(answer.headers["retry-after"]) >= 1
                assert "queue is full" in answer.json()["error"]

        threads = [threading.Thread(target=ask) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        kinds = [status for status, _ in statuses]
        assert set(kinds) == {200, 503}
        assert strict.entities(SENTENCE)

    @pytest.mark.parametrize(
        ("sent", "expected"),
        [
            (
                b"POST /v1/entities HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n" + TOKEN + b"\r\n{",
                b"HTTP/1.1 408",
            ),
            (b"GET / HTTP/1.1\r\nHost:", b""),
            (b"", b""),
            (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000, b"HTTP/1.1 400"),
            (b"\x16\x03\x01\x02\x00", b"HTTP/1.1 400"),
        ],
        ids=["body", "headers", "nothing", "endless", "tls"],
    )
    def test_of_slow_clients_and_other_protocols(self, strict: Served, sent: bytes, expected: bytes) -> None:
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", strict.port), timeout=15) as connection:
            connection.sendall(sent)
            answer = b""
            while chunk := connection.recv(65536):  # until the service hangs up
                answer += chunk
        assert (answer[:12], time.monotonic() - began < 5) == (expected, True)


class TestDescription:
    def test_lists_every_status(self, service: Served) -> None:
        """Each status that a route gives here stands in the description."""
        description = service.client.get("/openapi.json").json()["paths"]
        questions = [{"text": "字"}, {"text": 1}, {"text": "字", "lexicon": "none"}]
        asked: list[tuple[str, str, str, Any]] = [
            *(("POST", path, path, q) for path in ("/v1/entities", "/v1/explain") for q in questions),
            *(
                (m, "/v1/lexicons/{id}", f"/v1/lexicons/{i}", None)
                for m in ("GET", "DELETE")
                for i in ("no", "n.o")
            ),
            *(("PUT", "/v1/lexicons/{id}", "/v1/lexicons/described", body) for body in (["字"], ["词"], 1)),
            ("GET", "/v1/lexicons/{id}", "/v1/lexicons/described", None),
            *(("POST", "/doccano", "/doccano", q) for q in ({"text": "字"}, {"text": 1})),
            *(("POST", f"/label-studio/{name}", f"/label-studio/{name}", body) for name, body in LABEL_STUDIO),
            ("GET", "/label-studio/health", "/label-studio/health", None),
            ("DELETE", "/v1/lexicons/{id}", "/v1/lexicons/described", None),
            *(
                ("GET", path, path, None)
                for path in ("/v1/lexicons", "/v1/model", "/healthz", "/readyz", "/metrics")
            ),
        ]
        met = set()
        for method, route, path, body in asked:
            status = str(service.client.request(method, path, json=body).status_code)
            assert status in description[route][method.lower()]["responses"], (route, method, status)
            met.add((route, status))
        assert {status for _, status in met} == {"200", "201", "204", "404", "422"}
        assert {route for route, _ in met} == set(description)

    def test_includes_limits_and_token(self, strict: Served) -> None:
        description = strict.client.get("/openapi.json").json()
        texts = description["components"]["schemas"]["EntitiesRequest"]["properties"]["texts"]["anyOf"][0]
        assert (texts["maxItems"], texts["items"]["maxLength"]) == (3, 50)
        assert description["paths"]["/v1/entities"]["post"]["security"] == [{"token": []}]
        assert description["paths"]["/healthz"]["get"]["security"] == []

    def test_of_the_model_lists_labels_and_colours(self, service: Served, ner: NER) -> None:
        model = service.client.get("/v1/model").json()
        assert model["labels"] == list(ner.labels)
        assert (model["convention"], model["conventions"]) == ("default", {"default": list(ner.labels)})
        assert model["colours"] == {label: colour_of(label) for label in ner.labels}
        assert model["words"] == len(ner.lexicon)

    def test_pages_load_nothing_from_other_servers(self, service: Served) -> None:
        for path in ("/", "/docs"):
            page = service.client.get(path)
            assert page.headers["content-type"].startswith("text/html")
            assert "default-src 'none'" in page.headers["content-security-policy"]
            assert "//" not in page.text.replace("<!doctype html>", "")


class TestLog:
    def test_is_json_without_texts(self, service: Served) -> None:
        secret = "王小红的秘密"
        service.client.post("/v1/entities", json={"text": secret, "wrong": secret, "force": {secret: "X"}})
        service.client.get(f"/v1/lexicons/{secret}?q={secret}")
        service.client.get(f"/{secret}", headers={"x-request-id": "abc-1"})
        unknown = service.client.post("/v1/entities", json={"text": secret, "force": {secret: secret}})
        assert unknown.status_code == 422
        question = {"text": secret, "force": {secret: "ORG"}}
        assert service.client.post("/v1/entities", json=question, headers={"x-request-id": "counted"}).is_success
        log = service.log.read_text("utf-8")
        assert "秘密" not in log
        assert json.dumps("秘密")[1:-1] not in log
        assert "秘密" not in service.client.get("/metrics").text
        last = next(row for row in service.events("request") if row["id"] == "counted")
        assert {"time", "level", "event", "pid", "id", "method", "route", "status", "ms"} <= last.keys()
        assert (last["texts"], last["characters"], last["entities"]) == (1, 6, 1)
        loud = [row["event"] for row in service.events() if row["level"] in ("warning", "error")]
        assert set(loud) <= {LABELS_IGNORED, SHORT_WORDS, "stored lexicon"}

    def test_a_warning_of_the_library_is_one_line_per_worker(self, service: Served) -> None:
        """Also if each request causes it again."""
        for i in range(12):  # connections go to either worker
            question = {"text": SENTENCE, "lexicon": [{"text": f"工作{i}", "label": "ORG"}]}
            assert httpx2.post(f"{service.url}/v1/entities", json=question).is_success
        rows = service.events(LABELS_IGNORED)
        assert {row["level"] for row in rows} == {"warning"}
        pids = [row["pid"] for row in rows]
        assert len(pids) == len(set(pids))

    def test_and_responses_have_the_request_id_of_the_client(self, service: Served) -> None:
        given = service.client.get("/healthz", headers={"x-request-id": "trace-7.a"})
        assert given.headers["x-request-id"] == "trace-7.a"
        bad = service.client.get("/healthz", headers={"x-request-id": "a b\tc"})
        assert bad.headers["x-request-id"] != "a b\tc"
        assert "trace-7.a" in [row["id"] for row in service.events("request")]

    def test_metrics_are_summed_over_workers(self, service: Served) -> None:
        def answered() -> float:
            route = 'hanlattice_requests_total{method="GET",route="/readyz",status="200"}'
            return float(_figure(service.client.get("/metrics").text, route))

        service.client.get("/readyz")
        before = answered()
        for _ in range(12):
            httpx2.get(f"{service.url}/readyz")
        assert answered() == before + 12
        assert _figure(service.client.get("/metrics").text, "hanlattice_workers") == "2.0"


def _figure(exposition: str, name: str) -> str:
    return next(line.rpartition(" ")[2] for line in exposition.splitlines() if line.startswith(name + " "))
