"""Some of the requests of the long test, which has fifty thousand of them."""

from contextlib import ExitStack

import httpx2
import numpy as np

import tiny
from long.right_requests import Session
from served import serving


def test_right_requests_are_answered_as_they_must_be() -> None:
    """Among them lexicons that are stored, replaced, used and removed, with two workers."""
    with ExitStack() as stack:
        served = stack.enter_context(serving("--workers", 2, model=tiny.two_conventions()))
        clients = [stack.enter_context(httpx2.Client(base_url=served.url, timeout=30)) for _ in range(4)]
        session = Session(clients, served.client.get("/openapi.json").json())
        draw = np.random.default_rng(7)
        outcomes = {session.send(draw) for _ in range(150)}
    assert outcomes >= {"read", "read with a stored lexicon", "lexicon stored", "lexicon returned", "explained"}
