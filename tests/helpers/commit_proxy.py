"""A middleman between workers and a PostgreSQL server that can lose the reply to a COMMIT."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SOCKET = ".s.PGSQL.5432"


class Middleman:
    """Passes everything on, until `lose_next` is set: then the next COMMIT is carried out and nobody hears of it."""

    def __init__(self, folder: Path, server: Path) -> None:
        self.lose_next = threading.Event()
        self._server = str(server / SOCKET)
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / SOCKET))
        self._door.listen()
        threading.Thread(target=self._welcome, daemon=True).start()

    def close(self) -> None:
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    def _welcome(self) -> None:
        with suppress(OSError):  # the door was closed
            while True:
                client, _ = self._door.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.socket(socket.AF_UNIX)
        server.connect(self._server)
        losing = threading.Event()
        threading.Thread(target=self._reply, args=(server, client, losing), daemon=True).start()
        with suppress(OSError):
            while said := client.recv(1 << 16):
                if b"COMMIT\0" in said and self.lose_next.is_set():
                    self.lose_next.clear()
                    losing.set()
                server.sendall(said)
            server.shutdown(socket.SHUT_RDWR)

    def _reply(self, server: socket.socket, client: socket.socket, losing: threading.Event) -> None:
        with suppress(OSError), server, client:
            while (said := server.recv(1 << 16)) and not losing.is_set():
                client.sendall(said)
            client.shutdown(socket.SHUT_RDWR)


@contextmanager
def middleman(folder: Path, server: str) -> Iterator[Middleman]:
    """One that listens in `folder`."""
    made = Middleman(folder, Path(server))
    try:
        yield made
    finally:
        made.close()
        os.unlink(folder / SOCKET)
