"""A real nginx with the configuration that we ship, for tests of the service behind a proxy."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.service_process import find_free_port

SHIPPED = Path(__file__).parents[2] / "deploy" / "nginx.conf"
MAIN = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/dbcare.conf;
}}
"""
MAX_START_SECONDS = 30.0


def find_program(name: str) -> str:
    """Return the path of a program; skip the test if it is not installed."""
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin") or shutil.which(name)
    if found is None:
        pytest.skip(f"No {name}, so the service is not tested behind nginx; apt-get install nginx-light openssl")
    return found


@contextmanager
def run_nginx(folder: Path, *upstreams: int, changes: dict[str, str] | None = None) -> Iterator[int]:
    """Run nginx in front of one or two ports, with some lines of its configuration changed; yield its HTTPS port."""
    nginx, openssl, port = find_program("nginx"), find_program("openssl"), find_free_port()
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    make = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=studies.example.com"]
    subprocess.run([openssl, *make, "-out", certificate, "-keyout", key], check=True, capture_output=True)
    text = SHIPPED.read_text()
    for before, after in {
        "server 127.0.0.1:8080 ": f"server 127.0.0.1:{upstreams[0]} ",
        "server 127.0.0.1:8081 ": f"server 127.0.0.1:{upstreams[-1]} ",
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl;",
        "/etc/ssl/certs/studies.example.com.pem": str(certificate),
        "/etc/ssl/private/studies.example.com.key": str(key),
        **(changes or {}),
    }.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    (folder / "dbcare.conf").write_text(text)
    (folder / "nginx.conf").write_text(MAIN.format(folder=folder))
    with subprocess.Popen([nginx, "-p", folder, "-c", folder / "nginx.conf"], stderr=subprocess.PIPE) as process:
        try:
            _wait_until_ready(process, port)
            yield port
        finally:
            process.kill()


def _wait_until_ready(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + MAX_START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, process.stderr and process.stderr.read().decode()
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionError:
            time.sleep(0.05)
        else:
            return
    raise TimeoutError(f"nginx was not ready within {MAX_START_SECONDS:g} s.")
