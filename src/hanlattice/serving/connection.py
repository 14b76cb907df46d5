"""HTTP connections with time-outs for slow clients and a graceful shutdown."""

from asyncio import Transport
from asyncio.events import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD = 65_536  # bytes of the request line and headers
MOST_AHEAD = 64  # pipelined requests of one client; uvicorn itself has no limit
LINGER = 0.5  # seconds in which requests that are on their way are still answered at shutdown


class Connection(HttpToolsProtocol):
    """Uvicorn's connection with more limits.

    It closes when headers are too slow or too long, when the client does not read the response, and when the client
    pipelines too many requests. At shutdown it closes as soon as it is idle.

    ``patience``: seconds from connecting, or from the first byte of a later request, to the end of the headers;
    also seconds without progress in sending a response.
    ``draining``: whether the server is shutting down. A connection that is made then is shut down from the start.
    """

    patience = 10.0
    draining = False

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._timer: TimerHandle | None = None  # runs while headers are expected
        self._stuck: TimerHandle | None = None  # runs while the client does not read
        self._head_bytes = 0  # received since headers are expected

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()
        # It may have been accepted before the shutdown of all connections, and be made after it.
        if self.draining:
            self.shutdown()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self._stuck is not None:
            self._stuck.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if self._timer is not None and self._head_bytes > LONGEST_HEAD and not self.transport.is_closing():
            self.send_400_response(f"The headers have more than {LONGEST_HEAD} bytes.")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        if self._timer is None:
            self._expect_head()

    def on_headers_complete(self) -> None:
        self._stop_timer()
        super().on_headers_complete()
        if self.draining:
            self.cycle.keep_alive = False
        if len(self.pipeline) > MOST_AHEAD:
            self.transport.abort()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self.loop.call_later(self.patience, self.transport.abort)

    def resume_writing(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
        super().resume_writing()

    def shutdown(self) -> None:
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LINGER, self._leave)
        else:
            self.cycle.keep_alive = False

    def _leave(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

    def _expect_head(self) -> None:
        """Give the client ``patience`` seconds to send the headers of a request."""
        self._head_bytes = 0
        self._timer = self.loop.call_later(self.patience, self.timeout_keep_alive_handler)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
