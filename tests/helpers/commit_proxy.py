"""A proxy between workers and a PostgreSQL server that can lose the reply to a COMMIT."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class CommitProxy:
    """Forwards everything; once `lose_next` is set, the next COMMIT is executed but its reply is dropped."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.lose_next = threading.Event()
        self._server = str(server / SOCKET)
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / SOCKET))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Accept no more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):  # raised by `close`
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._forward_requests, args=(client,), daemon=True).start()

    def _forward_requests(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._server)
        losing = threading.Event()
        threading.Thread(target=self._forward_replies, args=(server, client, losing), daemon=True).start()
        with suppress(OSError):
            while request := client.recv(1 << 16):
                if b"COMMIT\0" in request and self.lose_next.is_set():
                    self.lose_next.clear()
                    losing.set()
                server.sendall(request)
            server.shutdown(socket.SHUT_RDWR)

    def _forward_replies(self, server: socket.socket, client: socket.socket, losing: threading.Event) -> None:
        with suppress(OSError), server, client:
            while (reply := server.recv(1 << 16)) and not losing.is_set():
                client.sendall(reply)
            client.shutdown(socket.SHUT_RDWR)


@contextmanager
def run_commit_proxy(folder: Path, server: str) -> Iterator[CommitProxy]:
    """Run a proxy whose socket is in `folder`, for the server whose socket is in `server`."""
    proxy = CommitProxy(folder, Path(server))
    try:
        yield proxy
    finally:
        proxy.close()
        os.unlink(folder / SOCKET)
