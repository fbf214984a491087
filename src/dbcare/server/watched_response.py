"""The status of a response, for middleware that reports it."""

from __future__ import annotations

from starlette.types import Message, Send


class WatchedResponse:
    """Passes messages on through `send`, and remembers the status; 500 if the application fails before it sends one."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 500

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        await self._send(message)
