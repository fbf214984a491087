"""A real PostgreSQL server for tests, from a wheel that contains one; it can be killed and started again."""

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # comes with pgserver

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # about the folders it falls back to
    from pgserver._commands import POSTGRES_BIN_PATH
    from pgserver.utils import ensure_prefix_permissions, ensure_user_exists

USER = "pgserver"  # PostgreSQL refuses to run as root
GUARDED = "guarded"  # a role that needs a password
PASSWORD = "correct-horse"


class Server:
    """A server that listens on a Unix socket; creating one starts it."""

    def __init__(self) -> None:
        # Not in pytest's folder: the path of a socket must be short, and open to the server's user.
        self.socket = tempfile.mkdtemp(prefix="pg")
        self.data = Path(self.socket) / "data"
        self.log = Path(self.socket) / "log"
        self.numbers = itertools.count()
        self.user = USER if os.geteuid() == 0 else None
        if self.user is not None:
            ensure_user_exists(self.user)
            ensure_prefix_permissions(POSTGRES_BIN_PATH)
            user = pwd.getpwnam(self.user)
            os.chown(self.socket, user.pw_uid, user.pw_gid)
        self._run("initdb", "-A", "trust", "-E", "utf8", "-U", "postgres", "--no-sync")
        rules = self.data / "pg_hba.conf"
        rules.write_text(f"local all {GUARDED} scram-sha-256\n{rules.read_text()}")
        self.start()

    def address(self, database: str = "postgres", user: str = "postgres", socket: str | None = None) -> str:
        """Return the address of a database, for a role, through a socket in another folder if one is named."""
        return f"postgresql://{user}@/{database}?host={socket or self.socket}"

    def create_database(self) -> str:
        """Create an empty database and return its address."""
        name = f"database{next(self.numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return self.address(name)

    def execute(self, command: str) -> None:
        """Run an SQL command as the superuser."""
        self._run("psql", "-q", "-U", "postgres", "-h", self.socket, "-c", command, data=False)

    def start(self) -> None:
        """Start the server; return once it accepts connections."""
        with self.log.open("ab") as log:
            command = [str(POSTGRES_BIN_PATH / "postgres"), "-D", str(self.data), "-k", self.socket, "-h", ""]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, user=self.user, cwd="/")
        while self._read_state()[::7] != [str(self.process.pid), "ready"]:
            assert self.process.poll() is None, self.log.read_text()[-2000:]
            time.sleep(0.005)

    def _read_state(self) -> list[str]:
        """Return the words of the server's state file; none while it is missing, as when a new server replaces it."""
        try:
            return (self.data / "postmaster.pid").read_text().split()
        except FileNotFoundError:
            return []

    def kill(self) -> None:
        """Kill the server and all its children at once, as if the machine had lost power."""
        children = psutil.Process(self.process.pid).children(recursive=True)
        self.process.kill()
        for child in children:
            with suppress(psutil.NoSuchProcess):
                child.kill()
        self.process.wait()
        while any(map(_is_alive, children)):
            time.sleep(0.001)

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let the server and all its children hang (SIGSTOP); the first of them, so that it starts no others."""
        postmaster = psutil.Process(self.process.pid)
        postmaster.suspend()
        processes = [*postmaster.children(recursive=True), postmaster]
        try:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.suspend()
            yield
        finally:
            for process in processes:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

    def stop(self) -> None:
        """Shut the server down and remove its files."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        shutil.rmtree(self.socket)

    def _run(self, program: str, *arguments: str, data: bool = True) -> None:
        command = [str(POSTGRES_BIN_PATH / program), *(["-D", str(self.data)] if data else []), *arguments]
        result = subprocess.run(command, capture_output=True, text=True, user=self.user, cwd="/", check=False)
        assert result.returncode == 0, result.stderr


def _is_alive(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


@contextmanager
def run_server() -> Iterator[Server]:
    """Run a server, and stop it in the end."""
    running = Server()
    try:
        yield running
    finally:
        running.stop()
