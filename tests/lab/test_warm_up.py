"""`dbcare warm-up` compiles kernels in advance; a second time, it finds them all."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dbcare.cli import app
from dbcare.lab import warm_up
from dbcare.policies.registry import POLICIES
from tests.helpers.terminal import run_at_terminal, strip_codes

COMMAND = Path(sys.executable).with_name("dbcare")


def test_every_shipped_policy_is_compiled_for_both_kinds_of_arms() -> None:
    names = warm_up.list_shipped()
    assert set(names) == {name for name, entry in POLICIES.items() if entry.source.__module__.startswith("dbcare.")}
    tasks = warm_up.plan_tasks(names)
    assert len(set(tasks)) == len(tasks)
    for use in warm_up.USES:
        for arms in ("Gaussian arms", "Bernoulli arms"):
            planned = [name for task in tasks if (task.arms, task.use) == (arms, use) for name in task.policies]
            assert sorted(planned) == sorted(names)
    in_blocks = {name for task in tasks if task.arms == "a score table" for name in task.policies}
    assert in_blocks == {"breakeven-rounds"}


def test_a_second_run_finds_what_the_first_has_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limited to one kernel: all take minutes."""
    monkeypatch.setattr(warm_up, "USES", {"skipping ahead": warm_up.USES["skipping ahead"]})
    monkeypatch.setattr(warm_up, "BANDITS", {"Gaussian arms": warm_up.BANDITS["Gaussian arms"]})
    runner = CliRunner(env={"DBCARE_CACHE": str(tmp_path / "new")})
    first, second = (runner.invoke(app, ["warm-up", "uniform", "--processes", "1"]) for _ in range(2))
    where = re.escape(f"All are in {tmp_path / 'new'}.")
    assert re.fullmatch(rf"Compiled 1 kernel in \d+ s; 0 were already there\. {where}\n", first.stdout)
    assert re.fullmatch(r"1 kernel for uniform: Gaussian arms, skipping ahead \(\d+ s\)\n", first.stderr)
    assert re.fullmatch(rf"Compiled 0 kernels in \d+ s; 1 was already there\. {where}\n", second.stdout)
    assert second.stderr == ""
    assert len(list((tmp_path / "new").glob("*.nbc"))) == 1  # next to the functions that kernels share


def test_the_bar_of_a_terminal(tmp_path: Path) -> None:
    """Without tasks, so that nothing is compiled."""
    environment = os.environ | {"DBCARE_CACHE": str(tmp_path)}
    script = "from dbcare.cli import main; from dbcare.lab import warm_up; warm_up.USES = {}; main()"
    code, output = run_at_terminal([sys.executable, "-c", script, "warm-up"], environment, columns=200)
    assert code == 0
    assert "0/0" in strip_codes(output)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["no-such-policy"], r"`policies` must be one of .*breakeven.* but got 'no-such-policy'"),
        (["uniform", "--processes", "0"], r"`--processes` must be at least 1 but got 0"),
    ],
)
def test_wrong_arguments(arguments: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner(env={"DBCARE_CACHE": str(tmp_path / "new")}).invoke(app, ["warm-up", *arguments])
    assert result.exit_code == 2
    assert re.search(message, " ".join(result.stderr.replace("│", " ").split()))
    assert not (tmp_path / "new").exists()


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    environment = os.environ | {"DBCARE_CACHE": str(tmp_path / "file" / "cache")}
    result = subprocess.run([COMMAND, "warm-up"], env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert f"cannot write {tmp_path / 'file' / 'cache'}" in result.stderr.replace("\n", "")
