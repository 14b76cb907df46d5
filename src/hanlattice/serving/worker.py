"""A worker process: runs the application on a socket that all workers share."""

import asyncio
import contextlib
import socket
from multiprocessing.connection import Connection as Pipe

import uvicorn

from hanlattice.errors import HanlatticeError
from hanlattice.kernels.allocator import return_freed_memory
from hanlattice.serving.app import Service, load_model
from hanlattice.serving.connection import Connection
from hanlattice.serving.logs import log_event, set_up
from hanlattice.serving.settings import READY, Settings


def work(settings: Settings, listener: socket.socket, parent: Pipe) -> None:
    """Serve until SIGTERM, or until the parent process has ended."""
    set_up()
    return_freed_memory()
    try:
        ner = load_model(settings)
        service = Service(settings, ner)
    except HanlatticeError as error:
        parent.send(str(error))
        raise SystemExit(1) from None

    class TimedConnection(Connection):
        patience = settings.client_timeout

    config = uvicorn.Config(
        service.asgi,
        http=TimedConnection,
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=max(1, round(settings.drain_timeout)),
    )
    with contextlib.suppress(KeyboardInterrupt):
        Server(config, TimedConnection, service, parent).run([listener])


class Server(uvicorn.Server):
    """Uvicorn's server. At shutdown it also serves waiting connections, and it ends with its parent process."""

    def __init__(self, config: uvicorn.Config, connection: type[Connection], service: Service, parent: Pipe):
        super().__init__(config)
        self._connection = connection
        self._service, self._parent = service, parent

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.should_exit:  # the application could not start
            return
        # The parent never writes to the pipe, so the pipe becomes readable when the parent ends.
        asyncio.get_running_loop().add_reader(self._parent.fileno(), self._parent_left)
        self._parent.send(READY)

    def _parent_left(self) -> None:
        asyncio.get_running_loop().remove_reader(self._parent.fileno())
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.drain()
        self._connection.draining = True
        for listener in sockets or []:
            await self._accept_the_rest(listener)
        log_event("draining", connections=len(self.server_state.connections), requests=len(self.server_state.tasks))
        await super().shutdown(sockets)

    async def _accept_the_rest(self, listener: socket.socket) -> None:
        """Accept the connections in the backlog, which would be dropped when the listener closes."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                client.setblocking(False)
                await loop.connect_accepted_socket(self._protocol, client)

    def _protocol(self) -> asyncio.Protocol:
        return self._connection(self.config, self.server_state, self.lifespan.state)
