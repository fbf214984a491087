"""How much memory a process has, and had at most; on Linux."""

from pathlib import Path


def read_memory(process: int | str, field: str) -> float:
    """Return how many megabytes of memory a process has (VmRSS), or had at most (VmHWM)."""
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.partition(f"{field}:")[2].split()[0]) / 1024


def forget_peak(process: int | str) -> float:
    """Let the peak of a process begin anew; return how many megabytes it has now."""
    Path(f"/proc/{process}/clear_refs").write_text("5")
    return read_memory(process, "VmRSS")


def measure_growth(process: int | str, before: float) -> float:
    """Return how many megabytes the process has had at most, beyond those before."""
    return read_memory(process, "VmHWM") - before
