"""Connections that are made while the server shuts down, after it told all others."""

import asyncio
from multiprocessing import Pipe
from typing import cast

import pytest
import uvicorn
from starlette.responses import PlainTextResponse
from uvicorn.server import ServerState

from hanlattice.serving.app import Service
from hanlattice.serving.connection import LINGER, Connection
from hanlattice.serving.worker import Server

REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


async def response_of(*, draining: bool, request: bytes = REQUEST) -> tuple[bytes, bool]:
    """The response to a request, and whether the server closes the connection afterwards."""

    class Made(Connection):
        pass

    Made.draining = draining
    config = uvicorn.Config(PlainTextResponse("here"), log_config=None)
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Made(config, state, {}), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(request)
        response = b""
        closes = False
        try:
            async with asyncio.timeout(3 * LINGER):
                while chunk := await reader.read(65536):
                    response += chunk
                closes = True
        except TimeoutError:
            pass
        writer.close()
        await writer.wait_closed()
    return response, closes


@pytest.mark.parametrize("draining", [False, True])
def test_a_request_is_answered_and_the_connection_kept_unless_the_server_drains(draining: bool) -> None:
    response, closes = asyncio.run(response_of(draining=draining))
    assert response.startswith(b"HTTP/1.1 200")
    assert response.endswith(b"here")
    assert (b"connection: close" in response) == draining
    assert closes == draining


@pytest.mark.parametrize("draining", [False, True])
def test_a_silent_connection_is_closed_when_the_server_drains(draining: bool) -> None:
    assert asyncio.run(response_of(draining=draining, request=b"")) == (b"", draining)


def test_a_server_that_shuts_down_drains_the_connections_that_are_made_later() -> None:
    class Made(Connection):
        pass

    class Draining:
        def drain(self) -> None:
            pass

    async def shut_down() -> None:
        config = uvicorn.Config(PlainTextResponse("here"), lifespan="off", log_config=None)
        config.load()
        ours, theirs = Pipe()
        server = Server(config, Made, cast("Service", Draining()), theirs)
        server.lifespan = config.lifespan_class(config)
        server.servers = []
        await server.shutdown()
        ours.close()
        theirs.close()

    asyncio.run(shut_down())
    assert Made.draining
    assert not Connection.draining
