"""What holds for all tests."""

import signal
import threading

# Where tests run in the background, the shell has Ctrl-C ignored, by children too; but some tests send it to a child.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
