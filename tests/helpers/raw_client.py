"""Clients that speak to a server byte by byte, as no decent client would."""

import socket
from collections.abc import Iterable
from pathlib import Path

REQUEST = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def open_connection(port: int, source: str = "127.0.0.1", receive_bytes: int | None = None) -> socket.socket:
    """Connect from an address of this machine; `receive_bytes` is how much may wait to be read on our side."""
    connection = socket.socket()
    if receive_bytes is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.bind((source, 0))
    connection.settimeout(30.0)
    connection.connect(("127.0.0.1", port))
    return connection


def read_to_end(connection: socket.socket) -> bytes:
    """Return all that the server sends until it closes the connection."""
    parts: list[bytes] = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionError:
        pass
    return b"".join(parts)


def read_response(connection: socket.socket) -> bytes:
    """Return one response, which must announce its length."""
    head = b""
    while b"\r\n\r\n" not in head:
        part = connection.recv(65536)
        assert part, f"The connection was closed after {head!r}."
        head += part
    head, _, body = head.partition(b"\r\n\r\n")
    length = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-len"))
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def send_all(connection: socket.socket, parts: Iterable[bytes]) -> int:
    """Send everything, unless the server closes the connection before; return how many bytes were sent."""
    sent = 0
    try:
        for part in parts:
            connection.sendall(part)
            sent += len(part)
    except ConnectionError:
        pass
    return sent


def status_of(response: bytes) -> int:
    """Return the status of a response."""
    return int(response.split(b" ", 2)[1])


def memory_of(pid: int) -> int:
    """Return the resident memory of a process in bytes."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS:"))


def cpu_seconds_of(pid: int) -> float:
    """Return the processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100.0
