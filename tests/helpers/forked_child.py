"""A child process made with `os.fork`, which cannot hang a test: it says where it hangs, and ends."""

import faulthandler
import math
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable

MAX_SECONDS = 30.0  # on a busy machine; a child that works needs a fraction of a second


class ForkedChild:
    """A child that calls `act` and reports the numbers that it returns."""

    def __init__(self, act: Callable[[], list[int]], seconds: float = MAX_SECONDS) -> None:
        self._report = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by `wait`
        self._until = time.monotonic() + seconds + 10.0
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                # Not `dump_traceback_later`: its thread does not survive a fork, and its lock does.
                signal.signal(signal.SIGALRM, signal.SIG_DFL)
                faulthandler.register(signal.SIGALRM, file=self._report, chain=True)
                signal.alarm(math.ceil(seconds))
                self._report.write(" ".join(map(str, act())))
                status = 0
            except BaseException:
                traceback.print_exc(file=self._report)
            finally:
                self._report.flush()
                os._exit(status)  # without anything that the parent does at its end

    def wait(self) -> list[int]:
        """Return what the child reported; its traceback fails the test if it raised or hung."""
        with self._report:
            while (ended := os.waitpid(self.pid, os.WNOHANG))[0] == 0:
                if time.monotonic() > self._until:
                    os.kill(self.pid, signal.SIGKILL)
                    os.waitpid(self.pid, 0)
                    raise TimeoutError("The child neither ended nor said where it hangs.")
                time.sleep(0.002)
            self._report.seek(0)
            text = self._report.read()
        assert ended[1] == 0, text
        return [int(number) for number in text.split()]
