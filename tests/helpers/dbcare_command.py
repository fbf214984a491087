"""`dbcare` in a process of its own that starts in a moment, for tests that run many commands."""

import sys
from pathlib import Path
from subprocess import CompletedProcess

from tests.helpers.prepared_process import run_script

COMMAND = Path(sys.executable).with_name("dbcare")


def run_dbcare(*arguments: str, **variables: str) -> CompletedProcess[str]:
    """Run a command with these variables in its environment; return what it printed."""
    return run_script(COMMAND, *arguments, **variables)
