"""Right requests to the service, each checked against what its answer must be.

A session draws requests of all kinds: one text and batches, conventions, words of the request, lexicons that it has
stored, replaced and removed itself, forced and blocked texts, thresholds, explanations, annotation tools. It knows
what it has stored, so it also knows the status and much of the content of each answer.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import quote

import httpx2
import numpy as np
from jsonschema import Draft202012Validator

from long.texts import text as odd_text

IDS = tuple(f"lexicon-{i}" for i in range(6))
NUL_OR_HALF = re.compile("[\x00\ud800-\udfff]")  # what the service refuses in a text
CHINESE = re.compile("[一-龥]{2,}")
CONFIG = '<View><Labels name="l" toName="t">{}</Labels><Text name="t" value="$words"/></View>'
MOST_WORDS = 240  # of a text that is explained by influence
CLOSE = 1e-3  # scores of a text alone and in a batch


def clean(number: int) -> str:
    """A generated text without what the service refuses."""
    return NUL_OR_HALF.sub("", odd_text(number))


class Answers:
    """Checks answers against the description of the service."""

    def __init__(self, schema: dict[str, Any]):
        self.schema = schema
        self._validators: dict[tuple[str, str, int], Draft202012Validator | None] = {}

    def check(self, path: str, method: str, answer: httpx2.Response) -> Any:
        """The content of an answer.

        Args:
            path: as in the description.
            method: in small letters.

        Raises:
            AssertionError: its status is not described, is a failure, or its body is not what the status promises.
        """
        status = answer.status_code
        assert status not in (500, 504), f"{method} {path}: {status} {answer.text[:200]}"
        key = path, method, status
        if key not in self._validators:
            self._validators[key] = self._validator(*key)
        if (validator := self._validators[key]) is None:
            return answer.text
        content = answer.json()
        wrong = next(validator.iter_errors(content), None)
        assert wrong is None, f"{method} {path}: {status} with another body: {str(wrong.message)[:200]}"
        return content

    def _validator(self, path: str, method: str, status: int) -> Draft202012Validator | None:
        described = self.schema["paths"][path][method]["responses"]
        assert str(status) in described, f"{method} {path}: status {status} is not described"
        body = described[str(status)].get("content", {}).get("application/json")
        if body is None:
            return None
        return Draft202012Validator({**body["schema"], "components": self.schema["components"]})


@dataclass
class Session:
    """Sends right requests to a service.

    Attributes:
        clients: connections; each request takes one of them, so that several workers answer.
        schema: the OpenAPI description.
        prefix: of the ids of its lexicons, so that sessions do not change those of one another.
        stored: its stored lexicons, as the service has to return them.
    """

    clients: Sequence[httpx2.Client]
    schema: dict[str, Any]
    prefix: str = ""
    stored: dict[str, dict[str, Any]] = field(default_factory=dict)

    @cached_property
    def answers(self) -> Answers:
        return Answers(self.schema)

    @cached_property
    def model(self) -> dict[str, Any]:
        """What the service says about its model."""
        answer = self.clients[0].get("/v1/model")
        assert answer.status_code == 200
        found: dict[str, Any] = answer.json()
        return found

    def forget(self) -> None:
        """Remove all stored lexicons of the service."""
        for name in self.clients[0].get("/v1/lexicons").json()["lexicons"]:
            assert self.clients[0].delete(f"/v1/lexicons/{name}").status_code == 204
        self.stored.clear()

    def send(self, draw: np.random.Generator) -> str:
        """Send one request, and check its answer; the name of its outcome."""
        kind = draw.random()
        if kind < 0.55:
            return self._entities(draw)
        if kind < 0.7:
            return self._one_text(draw)
        if kind < 0.92:
            return self._lexicon(draw)
        return self._other(draw)

    def _ask(
        self, draw: np.random.Generator, method: str, path: str, body: Any = None, *, status: int, name: str = ""
    ) -> Any:
        client = self.clients[int(draw.integers(len(self.clients)))]
        raw = None if body is None else json.dumps(body, ensure_ascii=bool(draw.random() < 0.5)).encode()
        headers = {"Content-Type": "application/json"} if raw is not None else {}
        filled = path.replace("{id}", quote(name))
        try:
            answer = client.request(method.upper(), filled, content=raw, headers=headers)
        except httpx2.RemoteProtocolError:
            # The service closes idle connections. When that crosses with a request, clients send it again.
            answer = client.request(method.upper(), filled, content=raw, headers=headers)
        sent = f"{method} {filled} {json.dumps(body)[:300]}"
        assert answer.status_code == status, f"{sent}: {answer.status_code}, not {status}: {answer.text[:300]}"
        return self.answers.check(path, method, answer)

    def _entities(self, draw: np.random.Generator) -> str:
        n = int(draw.choice([1, 1, 1, 1, 2, 8, 64]))
        texts = [clean(int(draw.integers(1 << 30))) for _ in range(n)]
        options = self._options(draw, texts[0])
        is_batch = n > 1 or draw.random() < 0.1
        body = {**({"texts": texts} if is_batch else {"text": texts[0]}), **options}
        content = self._ask(draw, "post", "/v1/entities", body, status=200)["entities"]
        found = content if is_batch else [content]
        assert len(found) == len(texts), f"{len(found)} lists of entities for {len(texts)} texts"
        for text, entities in zip(texts, found, strict=True):
            self._check(text, entities, options)
        if isinstance(name := options.get("lexicon"), str):
            # The words of a stored lexicon have the effect that they have in a request.
            same = {**body, "lexicon": self.stored[name]}
            again = self._ask(draw, "post", "/v1/entities", same, status=200)["entities"]
            assert _close(found, again if is_batch else [again]), f"{body}: {found}; by its words {again}"
            return "read with a stored lexicon"
        return "read with words" if "lexicon" in options else "read"

    def _one_text(self, draw: np.random.Generator) -> str:
        text = clean(int(draw.integers(1 << 30)))
        options = self._options(draw, text)
        if draw.random() < 0.3:
            labels = self._ask(draw, "post", "/doccano", {"text": text, **options}, status=200)
            entities = [
                {"start": e["start_offset"], "end": e["end_offset"], "label": e["label"], "score": 1.0,
                 "text": text[e["start_offset"] : e["end_offset"]]}
                for e in labels
            ]  # fmt: skip
            self._check(text, entities, options)
            return "read for an annotation tool"
        by = str(draw.choice(["auto", "none", "influence"] if len(text) <= 120 else ["auto", "none"]))
        if by == "influence" and self._n_words(draw, text, options) > MOST_WORDS:
            self._ask(draw, "post", "/v1/explain", {"text": text, "by": by, **options}, status=422)
            return "too many words to be explained"
        content = self._ask(draw, "post", "/v1/explain", {"text": text, "by": by, **options}, status=200)
        assert content["text"] == text
        assert content["characters"] == list(text)
        assert by in ("auto", content["by"]), f"{text!r}: {content['by']} for {by}"
        for word in content["words"]:
            assert 0 <= word["start"] < word["end"] <= len(text), f"{word} does not lie in {text!r}"
            assert content["by"] == "none" or 0 <= word["strength"] <= 1, word
        self._check_words(text, content["words"], options)
        self._check(text, content["entities"], options)
        return "explained"

    def _n_words(self, draw: np.random.Generator, text: str, options: dict[str, Any]) -> int:
        """The number of words of a text's lattice."""
        body = {"text": text, "by": "none", **options}
        return len(self._ask(draw, "post", "/v1/explain", body, status=200)["words"])

    def _options(self, draw: np.random.Generator, text: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        names = sorted(self.model["conventions"])
        if draw.random() < 0.5:
            found["convention"] = names[int(draw.integers(len(names)))]
        labels = self.model["conventions"][found.get("convention", self.model["convention"])]
        if draw.random() < 0.6:
            found["lexicon"] = self._any_lexicon(draw, text)
        if draw.random() < 0.3:
            found["threshold"] = float(draw.choice([0.0, 0.5, 0.9, 1.0]))
        piece = _piece(draw, text)
        match int(draw.integers(6)):
            case 0 if piece:
                found["force"] = {piece: labels[int(draw.integers(len(labels)))]}
            case 1 if piece:
                found["block"] = {piece: [None, labels[0], list(labels)][int(draw.integers(3))]}
            case 2:
                found["patterns"] = [True, False, ["DATE", "MONEY"]][int(draw.integers(3))]
                found["today"] = "2024-03-15"
        return found

    def _any_lexicon(self, draw: np.random.Generator, text: str) -> Any:
        if self.stored and draw.random() < 0.6:
            names = sorted(self.stored)
            return names[int(draw.integers(len(names)))]
        return self._words(draw, text) if draw.random() < 0.5 else self._edits(draw, text)

    def _words(self, draw: np.random.Generator, text: str) -> list[Any]:
        labels = sorted({label for labels in self.model["conventions"].values() for label in labels})
        words: list[Any] = [word for _ in range(int(draw.integers(1, 8))) if (word := _piece(draw, text))]
        for i, word in enumerate(words):
            if draw.random() < 0.4:
                words[i] = {"text": word, "label": labels[int(draw.integers(len(labels)))]}
        return [*words, f"词{int(draw.integers(1000))}甲"]

    def _edits(self, draw: np.random.Generator, text: str) -> dict[str, Any]:
        removed = [piece] if draw.random() < 0.3 and (piece := _piece(draw, text)) else []
        return {"words": self._words(draw, text), "remove": removed, "extends": bool(draw.random() < 0.7)}

    def _lexicon(self, draw: np.random.Generator) -> str:
        path, name = "/v1/lexicons/{id}", self.prefix + IDS[int(draw.integers(len(IDS)))]
        kind = draw.random()
        if kind < 0.5:
            edits = self._edits(draw, clean(int(draw.integers(1 << 30))))
            is_plain = draw.random() < 0.3
            if is_plain:
                edits.update(remove=[], extends=True)
            status = 200 if name in self.stored else 201
            body = edits["words"] if is_plain else edits
            content = self._ask(draw, "put", path, body, status=status, name=name)
            assert (content["id"], content["words"]) == (name, len(edits["words"])), content
            self.stored[name] = edits
            return "lexicon stored"
        if kind < 0.75:
            content = self._ask(draw, "get", path, status=200 if name in self.stored else 404, name=name)
            if name in self.stored:
                assert _plain(content) == _plain(self.stored[name]), f"{content}, not {self.stored[name]}"
            return "lexicon returned"
        if kind < 0.85:
            known = self._ask(draw, "get", "/v1/lexicons", status=200)["lexicons"]
            ours = [k for k in known if k in {self.prefix + i for i in IDS}]
            assert ours == sorted(self.stored), f"{ours}, not {sorted(self.stored)}"
            return "lexicon returned"
        self._ask(draw, "delete", path, status=204 if name in self.stored else 404, name=name)
        self.stored.pop(name, None)
        return "lexicon removed"

    def _other(self, draw: np.random.Generator) -> str:
        labels = "".join(f'<Label value="{label}"/>' for label in self.model["labels"])
        config = CONFIG.format(labels)
        match int(draw.integers(5)):
            case 0:
                self._ask(draw, "post", "/label-studio/setup", {"schema": config, "project": "1"}, status=200)
            case 1:
                texts = [clean(int(draw.integers(1 << 30))) for _ in range(int(draw.integers(1, 4)))]
                tasks = [{"id": i, "data": {"words": text}} for i, text in enumerate(texts)]
                body = {"tasks": tasks, "label_config": config}
                results = self._ask(draw, "post", "/label-studio/predict", body, status=200)["results"]
                assert len(results) == len(texts)
                for text, result in zip(texts, results, strict=True):
                    values = [{**r["value"], "label": r["value"]["labels"][0], "score": r["score"]}
                              for r in result["result"]]  # fmt: skip
                    self._check(text, values, {})
            case 2:
                assert self._ask(draw, "get", "/v1/model", status=200) == self.model
            case 3:
                path = str(draw.choice(["/healthz", "/readyz", "/label-studio/health"]))
                self._ask(draw, "get", path, status=200)
            case _:
                assert "hanlattice_requests_total" in self._ask(draw, "get", "/metrics", status=200)
        return "other"

    def _check(self, text: str, entities: list[dict[str, Any]], options: dict[str, Any]) -> None:
        """
        Raises:
            AssertionError: an entity is not what the options of the request ask for.
        """
        labels = self.model["conventions"][options.get("convention", self.model["convention"])]
        regular = bool(options.get("patterns"))
        before = 0
        for e in entities:
            where = f"{e} of {text!r} with {options}"
            assert text[e["start"] : e["end"]] == e["text"], f"does not lie in its text: {where}"
            assert before <= e["start"] < e["end"], f"overlaps the one before it: {where}"
            assert e["label"] in labels or regular, f"another label: {where}"
            assert options.get("threshold", 0.0) <= e["score"] <= 1, f"another score: {where}"
            blocked = options.get("block", {}).get(e["text"], [])
            assert blocked is not None, f"blocked: {where}"
            assert e["label"] not in ([blocked] if isinstance(blocked, str) else blocked), f"blocked: {where}"
            before = e["end"]
        for forced, label in options.get("force", {}).items():
            found = any(e["text"] == forced and e["label"] == label for e in entities)
            assert found or forced not in text, f"{forced} is not forced in {text!r}: {entities}"

    def _check_words(self, text: str, words: list[dict[str, Any]], options: dict[str, Any]) -> None:
        """
        Raises:
            AssertionError: a word of the request or of its stored lexicon occurs, and the model has not read it.
        """
        given = options.get("lexicon", [])
        edits = self.stored[given] if isinstance(given, str) else given
        added = edits["words"] if isinstance(edits, dict) else edits
        read = {text[word["start"] : word["end"]] for word in words}  # the word itself is in simplified characters
        for word in added:
            name = word if isinstance(word, str) else word["text"]
            assert name in read or name not in text, f"{name} is no word of {text!r} with {edits}: {sorted(read)}"


def _piece(draw: np.random.Generator, text: str) -> str:
    """Some Chinese characters of a text; empty if it has none."""
    found = CHINESE.findall(text)
    if not found:
        return ""
    run = found[int(draw.integers(len(found)))]
    size = int(draw.integers(2, 5))
    start = int(draw.integers(max(1, len(run) - size + 1)))
    return str(run[start : start + size])


def _plain(edits: dict[str, Any]) -> dict[str, Any]:
    """Edits with every word as an object, without what is null."""
    words = [
        {"text": w} if isinstance(w, str) else {k: v for k, v in w.items() if v is not None} for w in edits["words"]
    ]
    return {**edits, "words": words}


def _close(some: list[Any], others: list[Any]) -> bool:
    """Whether entities of the same texts are the same, up to rounding of their scores."""
    names = ("start", "end", "label")
    plain = [[[tuple(e[n] for n in names) for e in entities] for entities in all_] for all_ in (some, others)]
    scores = [[e["score"] for entities in all_ for e in entities] for all_ in (some, others)]
    return plain[0] == plain[1] and all(abs(a - b) < CLOSE for a, b in zip(*scores, strict=True))
