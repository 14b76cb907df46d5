"""Connections that are not kept waiting for ever, and that are let go of politely."""

from asyncio import Transport
from asyncio.events import TimerHandle
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LONGEST_HEAD = 65_536  # bytes
MOST_AHEAD = 64  # requests of a client that does not wait for answers; uvicorn would remember any number
LINGER = 0.5  # seconds in which a request that is on its way to a service that stops still gets its answer


class Connection(HttpToolsProtocol):
    """Uvicorn's, and: slow or endless headers end it, and answers that nobody takes; at the end of the service it
    closes when it falls silent.

    ``patience``: seconds from connecting, or from the first byte of a later request, to the end of its headers; and
    seconds in which a client takes nothing of what is sent to it.
    """

    patience = 10.0

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._timer: TimerHandle | None = None
        self._stuck: TimerHandle | None = None
        self._head_bytes = 0
        self._leaving = False

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._expect_head()

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
        if self._leaving:
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
        self._leaving = True
        if self.cycle is None or self.cycle.response_complete:
            self.loop.call_later(LINGER, self._leave)
        else:
            self.cycle.keep_alive = False

    def _leave(self) -> None:
        if not self.transport.is_closing():
            super().shutdown()

    def _expect_head(self) -> None:
        self._head_bytes = 0
        self._timer = self.loop.call_later(self.patience, self.timeout_keep_alive_handler)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
