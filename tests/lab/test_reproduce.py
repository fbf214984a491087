"""`dbcare reproduce` and `dbcare sweep`: files, resuming, and no work done twice."""

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.image import imread
from typer.testing import CliRunner

import dbcare
from dbcare.cli import app
from dbcare.lab import paper, report, rivals
from dbcare.lab.figures import Plot, draw
from tests.helpers.sweep_results import read_results

COMMAND = Path(sys.executable).with_name("dbcare")
ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parents[1] / "golden" / "quick_reproduction"

SWEEP = """
title = "Eight arms"
runs = 4_000
cost = 1e-3
seed = 7
claims = ["never-dominated", "pulls-within-lemma"]
[[settings]]
bandit = "one-sparse"
arms = [8]
gap = { from = 0.2, to = 1.5, points = 25 }
[policies.DBCARE]
policy = "dbcare"
[policies."racing 0.1"]
policy = "racing"
delta = 0.1
[policies.Halving]
policy = "sequential-halving"
budget_per_arm = 40
"""


def run(*arguments: object, code: int = 0) -> str:
    """Run a command in this process, which is faster, and return its output."""
    result = CliRunner().invoke(app, [*map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.stdout or result.stderr


class Page(HTMLParser):
    """An HTML page's open tags, images, links and text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.images: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "img":
            self.images.append(dict(attrs)["src"] or "")
        if tag not in ("img", "meta", "br"):
            self.open.append(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """One thread: worker processes would take longer to start than they save, and have tests of their own."""
    folder = tmp_path_factory.mktemp("quick") / "out"
    return folder, run("reproduce", "--quick", "--out", folder, "--threads", 1)


@pytest.mark.parametrize("name", paper.NAMES)
def test_numbers_are_those_from_before(quick: tuple[Path, str], name: str) -> None:
    """Row by row; a relative difference of 1e-7 is allowed.

    Processors differ in the last bits, and control variates cancel leading digits: 1e-8 has been seen.
    """
    tables = []
    for folder in (quick[0], GOLDEN):
        with (folder / f"{name}.csv").open(newline="") as file:
            tables.append(list(csv.reader(file)))
    assert len(tables[0]) == len(tables[1])
    for row, expected in zip(*tables, strict=True):
        assert row[:3] == expected[:3]
        for cell, before in zip(row[3:], expected[3:], strict=True):
            if cell != before:
                assert float(cell) == pytest.approx(float(before), rel=1e-7)


def test_quick_writes_all_files(quick: tuple[Path, str]) -> None:
    folder, output = quick
    names = [*(f"{name}{part}" for name in paper.NAMES for part in ("", "_with_ours", "_ratio")), "bounds"]
    expected = {f"{name}.{kind}" for name in names for kind in ("svg", "png")}
    expected |= {f"{name}.csv" for name in (*paper.NAMES, *(f"{name}_sensitivity" for name in paper.NAMES), "bounds")}
    expected |= {"report.html", "results.jsonl", "manifest.json"}
    assert {path.name for path in folder.iterdir()} == expected
    assert f"{len(expected)} files in {folder}; start with {folder / 'report.html'}" in output.splitlines()[-1]
    for path in folder.glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    for path in folder.glob("*.png"):
        image = imread(path)
        assert image.shape[0] > 300
        assert np.ptp(image[..., :3]) > 0.5  # not blank
    for name in paper.NAMES:
        with (folder / f"{name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) > 50
        for row in rows:
            assert float(row["risk"]) > 0.0
            assert float(row["standard error"]) >= 0.0
            assert row["plain runs"] == "exact" or int(row["plain runs"]) >= 200
            assert (row["plain runs"] == "exact") == (name == "two_arm" and row["policy"] != "Breakeven")
        assert {row["loss"] for row in rows} == {"misidentification", "simple_regret"}


@pytest.mark.parametrize("name", paper.NAMES)
def test_bands_of_every_figure_are_those_of_the_numbers(
    quick: tuple[Path, str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, list[Plot]] = {}

    def note(stem: Path, title: str, plots: list[Plot], columns: int) -> list[Path]:
        drawn[stem.name] = plots
        return draw(stem, title, plots, columns)

    monkeypatch.setattr(report, "draw", note)
    shutil.copy(quick[0] / "results.jsonl", tmp_path)
    assert run("reproduce", name, "--quick", "--out", tmp_path).startswith("Computed 0 points.")
    stored = {}
    with (quick[0] / f"{name}.csv").open(newline="") as file:
        for setting, loss, policy, axis, *numbers in list(csv.reader(file))[1:]:
            measures = tuple(float(numbers[column]) for column in (0, 1, -1))
            stored[f"{setting}, {loss.replace('_', ' ')}", policy, float(axis)] = measures
    assert set(drawn) == {name, f"{name}_with_ours", f"{name}_ratio"}
    for stem, plots in drawn.items():
        wide = 0
        lines = [(plot, line) for plot in plots for line in plot.lines if line.label != "lower bound"]
        for panel, line in lines:
            for place, x in enumerate(panel.x.tolist()):
                risk, error, least = stored[panel.title, line.label, x]
                divisor = least if stem.endswith("_ratio") else 1.0
                assert line.low is not None
                assert line.high is not None
                assert line.y[place] == pytest.approx(risk / divisor, rel=1e-12)
                assert line.low[place] == pytest.approx((risk - 2.0 * error) / divisor, rel=1e-9)
                assert line.high[place] == pytest.approx((risk + 2.0 * error) / divisor, rel=1e-12)
                wide += error > 0.0
        assert wide > 10 or stem == "two_arm"  # the paper's policies are exact there


def test_quick_says_in_the_terminal_what_its_verdicts_rest_on(quick: tuple[Path, str]) -> None:
    assert "These verdicts rest on few points and runs; leave out --quick to judge the claims." in quick[1]


def test_make_reproduce_installs_what_it_needs_and_no_more() -> None:
    made = subprocess.run(["make", "-n", "-B", "reproduce"], capture_output=True, text=True, cwd=ROOT, check=True)
    installed = [line for line in made.stdout.splitlines() if "pip install" in line]
    assert [line.split(" -e ")[1] for line in installed] == ["'.[lab]'"]


def test_the_report_is_self_contained(quick: tuple[Path, str]) -> None:
    page = Page((quick[0] / "report.html").read_text())
    assert page.open == []
    assert len(page.images) == 3 * len(paper.NAMES) + 1
    assert all(link.startswith(("data:image/svg+xml;base64,", "#")) for link in page.links)  # no external resources
    for part in (
        "The paper's claims: ",
        "Our observations, not in the paper: ",
        "Our own policies, not in the paper: ",
        "necessarily have some region of gaps where they perform sub-optimally",
        "Section 4, Drug Discovery Experiment",
        "How uniformly good: the paper's policies",
        "What other choices would change",
        "Verdicts with ours are those at the same points",
        "Settings",
        "What was left open",
        "Numbers (",
        "pulls simulated",
        "Seed 1",
        "from pooled runs",
        "plain runs",
    ):
        assert part in page.text


def test_results_include_seed_version_and_engine(quick: tuple[Path, str]) -> None:
    stored = read_results(quick[0]).values()
    assert {line["seed"] for line in stored} == {1}
    assert {line["engine"] for line in stored} == {"exact", "pooled", "skip", "direct"}
    assert {line["versions"]["dbcare"] for line in stored} == {dbcare.__version__}


def test_a_finished_reproduction_is_not_repeated(quick: tuple[Path, str]) -> None:
    folder, _ = quick
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = run("reproduce", "--quick", "--out", folder)
    assert again.startswith("Nothing to do: everything is up to date.")
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


ODD = """
title = "Is $5_$ a <b>price</b> & more?"
runs = 50
cost = 0.01
claims = ["flat-below", "near-oracle", "within-guarantees", "never-dominated"]
[[settings]]
bandit = "one-sparse"
arms = 3
sigma = 0.01
gap = 0.01
[policies._first]
policy = "dbcare"
[policies."$5_$ & <i>"]
policy = "uniform"
pulls = 2
"""


@pytest.mark.filterwarnings("ignore::dbcare.errors.GuessingIsBestWarning")
def test_an_unusual_experiment_is_drawn_too(tmp_path: Path) -> None:
    """A single gap, a cost at which the guarantee is undefined, labels full of special characters."""
    file = tmp_path / "odd one.toml"
    file.write_text(ODD)
    out = tmp_path / "out"
    run("sweep", file, "--out", out)
    page = Page((out / "report.html").read_text())
    assert page.open == []
    assert "Is $5_$ a <b>price</b> & more?" in page.text
    assert page.text.count("does not apply") == 2 * 2  # in the list of all claims, and in the section
    assert ElementTree.parse(out / "odd one.svg").getroot().tag.endswith("svg")


def test_interrupted_figures_are_drawn_again(tmp_path: Path) -> None:
    file = tmp_path / "eight.toml"
    file.write_text(SWEEP)
    out = tmp_path / "out"
    run("sweep", file, "--quick", "--out", out)
    before = (out / "eight.csv").read_bytes()
    # As if a run with another seed had been killed while drawing: its numbers exist, its manifest does not.
    run("sweep", file, "--quick", "--out", out, "--seed", 8)
    assert (out / "eight.csv").read_bytes() != before
    (out / "manifest.json").write_text("{}")
    assert run("sweep", file, "--quick", "--out", out).startswith("Computed 0 points.")
    assert (out / "eight.csv").read_bytes() == before
    # A lost figure is drawn again from the results on disk.
    (out / "eight.png").unlink()
    assert run("sweep", file, "--quick", "--out", out).startswith("Computed 0 points.")
    assert (out / "eight.png").exists()


def test_a_folder_that_cannot_be_created_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    message = run("reproduce", "bounds", "--out", tmp_path / "file", code=2)
    assert message == f"Error: cannot write {tmp_path / 'file'}: File exists.\n"


def test_a_killed_sweep_resumes_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "eight.toml"
    file.write_text(SWEEP)
    whole = tmp_path / "whole"
    run("sweep", file, "--out", whole, "--threads", 1)
    cut = tmp_path / "cut"
    process = subprocess.Popen([COMMAND, "sweep", file, "--out", cut, "--threads", "2"])
    stored = cut / "results.jsonl"
    while not stored.exists() or not stored.read_bytes().count(b"\n"):  # the longest passes come first
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = stored.read_bytes().count(b"\n")
    kept = {json.loads(line)["key"] for line in stored.read_bytes().splitlines()[:done]}
    assert 1 <= done < len(read_results(whole))
    assert not (cut / "report.html").exists()
    output = run("sweep", file, "--out", cut)
    left = sum(len(line["results"]) for key, line in read_results(whole).items() if key not in kept)
    assert f"Computed {left} points." in output
    assert read_results(cut) == read_results(whole)
    for name in ("eight.csv", "eight.svg", "eight_ratio.svg"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()


def test_an_interrupted_sweep_says_how_to_resume(tmp_path: Path) -> None:
    file = tmp_path / "eight.toml"
    file.write_text(SWEEP.replace("4_000", "40_000"))
    process = subprocess.Popen(
        [COMMAND, "sweep", file, "--out", tmp_path / "out"], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not (tmp_path / "out" / "results.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, message = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command resumes from there" in message
    assert "Traceback" not in message


def test_reproduce_lists_and_refuses_unknown_names() -> None:
    listed = run("reproduce", "--list")
    assert [line.split()[0] for line in listed.splitlines()] == ["bounds", *paper.NAMES]
    assert run("reproduce", "two-arm", "--list") == run("reproduce", "two_arm", "--list") != listed  # as bandits' names
    message = run("reproduce", "drugs", code=2)
    assert "`names` must be one of bounds, two_arm, one_sparse, linear_decay, drug but got 'drugs'" in message


def test_reproduce_lists_rivals_and_says_which_experiments_are_whose() -> None:
    listed = run("reproduce", "--rivals", "--list")
    assert [line.split()[0] for line in listed.splitlines()] == [*rivals.NAMES]
    message = run("reproduce", "--rivals", "drug", code=2)
    assert message == "Error: drug is one of the paper's experiments; leave out --rivals to run it.\n"
    message = run("reproduce", "rivals_parts", code=2)
    assert message == "Error: rivals_parts is about rules from the literature; add --rivals to run it.\n"
    message = run("reproduce", "--rivals", "all", code=2)
    assert message == f"Error: `names` must be one of {', '.join(rivals.NAMES)} but got 'all'.\n"


GROUPS = """
title = "Groups"
runs = 50
cost = 1e-3
baselines = ["Ten each"]
[[settings]]
bandit = "one-sparse"
arms = [2, 3]
gap = [0.5, 1.0]
[policies."Ten each"]
policy = "uniform"
pulls = 10
[policies.Halving]
policy = "sequential-halving"
group = "halving arms"
budget = 30
only = { max_arms = 2 }
[policies."One each"]
policy = "uniform"
group = "without halving"
pulls = 1
only = { losses = ["simple_regret"] }
"""


def test_groups_and_baselines_have_figures_and_tables(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(GROUPS)
    out = tmp_path / "out"
    # Both losses from the same runs; two gaps of two policies with two arms, and of two with three.
    assert run("sweep", tmp_path / "mine.toml", "--out", out).startswith("Computed 10 points.")
    figures = [f"mine_{group}{more}" for group in ("halving_arms", "without_halving") for more in ("", "_ratio")]
    drawn = {f"{name}.{kind}" for name in (*figures, "mine_over_ten_each") for kind in ("svg", "png")}
    others = {"mine.csv", "mine_summary.csv", "report.html", "results.jsonl", "manifest.json"}
    assert {path.name for path in out.iterdir()} == drawn | others
    with (out / "mine.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    present = {(row["loss"], row["setting"], row["policy"]) for row in rows}
    losses, settings = ("misidentification", "simple_regret"), ("K = 2", "K = 3")
    assert present == {
        *((loss, setting, "Ten each") for loss in losses for setting in settings),
        *((loss, "K = 2", "Halving") for loss in losses),
        *(("simple_regret", setting, "One each") for setting in settings),
    }
    risks = {(row["loss"], row["setting"], row["policy"], row["gap"]): float(row["risk"]) for row in rows}
    with (out / "mine_summary.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            place = (row["loss"], row["setting"])
            ratios = [risks[*place, row["policy"], gap] / risks[*place, "Ten each", gap] for gap in ("0.5", "1.0")]
            assert float(row["over Ten each's"]) == pytest.approx(np.sqrt(ratios[0] * ratios[1]))
            assert float(row["worst over Ten each's"]) == pytest.approx(max(ratios))
    page = Page((out / "report.html").read_text())
    assert page.open == []
    assert len(page.images) == len(figures)
    for part in ("Risk over Ten each's, simple regret", "only up to 2 arms", "only for simple regret", "halving arms"):
        assert part in page.text
