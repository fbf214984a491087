"""`dbcare reproduce` and `dbcare sweep` in processes of their own: files, resuming, nothing done twice."""

import csv
import os
import signal
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from helpers.sweep_results import read_results
from matplotlib.image import imread

import dbcare
from dbcare.lab import paper

COMMAND = Path(sys.executable).with_name("dbcare")

SWEEP = """
title = "Eight arms"
runs = 4_000
cost = 1e-3
seed = 7
claims = ["never-dominated", "pulls-within-lemma"]
[[settings]]
bandit = "one-sparse"
arms = [8]
gap = { from = 0.2, to = 1.5, points = 40 }
[policies.DBCARE]
policy = "dbcare"
[policies."racing 0.1"]
policy = "racing"
delta = 0.1
[policies.Halving]
policy = "sequential-halving"
budget_per_arm = 40
"""


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, *map(str, arguments)], capture_output=True, text=True, check=True)


class Page(HTMLParser):
    """Tags that are open, images, and text."""

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
    folder = tmp_path_factory.mktemp("quick") / "out"
    return folder, command("reproduce", "--quick", "--out", folder).stdout


def test_quick_writes_all_it_promises(quick: tuple[Path, str]) -> None:
    folder, said = quick
    names = [*paper.NAMES, *(f"{name}_ratio" for name in paper.NAMES), "bounds"]
    promised = {f"{name}.{kind}" for name in names for kind in ("svg", "png")}
    promised |= {f"{name}.csv" for name in (*paper.NAMES, "bounds")} | {"report.html", "results.jsonl"}
    assert {path.name for path in folder.iterdir()} == promised | {"manifest.json"}
    assert f"{len(promised)} files in {folder}, see {folder / 'report.html'}" in said.splitlines()[-1]
    for path in folder.glob("*.svg"):
        assert ElementTree.parse(path).getroot().tag.endswith("svg")
    for path in folder.glob("*.png"):
        image = imread(path)
        assert image.shape[0] > 300
        assert np.ptp(image[..., :3]) > 0.5  # not a blank sheet
    for name in paper.NAMES:
        with (folder / f"{name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert len(rows) > 50
        for row in rows:
            assert float(row["risk"]) > 0.0
            assert float(row["standard error"]) >= 0.0
        assert {row["loss"] for row in rows} == {"misidentification", "simple_regret"}


def test_the_report_holds_all_it_needs(quick: tuple[Path, str]) -> None:
    page = Page((quick[0] / "report.html").read_text())
    assert page.open == []
    assert len(page.images) == 2 * len(paper.NAMES) + 1
    assert all(link.startswith(("data:image/svg+xml;base64,", "#")) for link in page.links)  # nothing from elsewhere
    for words in ("Claims: ", "Settings", "What was left open", "Numbers (", "pulls simulated", "Seed 1"):
        assert words in page.text


def test_results_carry_seed_version_and_engine(quick: tuple[Path, str]) -> None:
    stored = read_results(quick[0]).values()
    assert {line["seed"] for line in stored} == {1}
    assert {line["engine"] for line in stored} <= {"exact", "skip", "direct"}
    assert {line["versions"]["dbcare"] for line in stored} == {dbcare.__version__}


def test_a_finished_run_is_not_run_again(quick: tuple[Path, str]) -> None:
    folder, _ = quick
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = command("reproduce", "--quick", "--out", folder)
    assert again.stdout.startswith("Nothing to do: all is up to date.")
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


ODD = """
title = "Is $5_$ a <b>price</b> & more?"
runs = 50
cost = 0.01
claims = ["flat-below", "near-oracle", "between-bounds", "never-dominated"]
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


def test_an_odd_experiment_is_drawn_all_the_same(tmp_path: Path) -> None:
    """One gap, a cost at which the guarantee means nothing, labels full of signs."""
    file = tmp_path / "odd one.toml"
    file.write_text(ODD)
    out = tmp_path / "out"
    command("sweep", file, "--out", out)
    page = Page((out / "report.html").read_text())
    assert page.open == []
    assert "Is $5_$ a <b>price</b> & more?" in page.text
    assert page.text.count("says nothing here") == 2 * 2  # in the list of all claims, and in the section
    assert ElementTree.parse(out / "odd one.svg").getroot().tag.endswith("svg")


def test_figures_cut_off_in_the_middle_are_drawn_again(tmp_path: Path) -> None:
    file = tmp_path / "eight.toml"
    file.write_text(SWEEP)
    out = tmp_path / "out"
    command("sweep", file, "--quick", "--out", out)
    before = (out / "eight.csv").read_bytes()
    # As if another seed's drawing had been killed: its numbers are there, its manifest is not.
    command("sweep", file, "--quick", "--out", out, "--seed", 8)
    assert (out / "eight.csv").read_bytes() != before
    (out / "manifest.json").write_text("{}")
    assert command("sweep", file, "--quick", "--out", out).stdout.startswith("Computed 0 points.")
    assert (out / "eight.csv").read_bytes() == before
    # So is a lost one, from the results on disk.
    (out / "eight.png").unlink()
    assert command("sweep", file, "--quick", "--out", out).stdout.startswith("Computed 0 points.")
    assert (out / "eight.png").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    answer = subprocess.run(
        [COMMAND, "reproduce", "bounds", "--out", tmp_path / "file"], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 2
    assert answer.stderr == f"Error: {tmp_path / 'file'} must be writable: File exists.\n"


def test_a_killed_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "eight.toml"
    file.write_text(SWEEP)
    whole = tmp_path / "whole"
    command("sweep", file, "--out", whole, "--threads", 1)
    cut = tmp_path / "cut"
    process = subprocess.Popen([COMMAND, "sweep", file, "--out", cut, "--threads", "2"])
    stored = cut / "results.jsonl"
    while not stored.exists() or stored.read_bytes().count(b"\n") < 20:
        assert process.poll() is None
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    done = len(stored.read_bytes().splitlines())
    assert 20 <= done < len(read_results(whole))
    assert not (cut / "report.html").exists()
    said = command("sweep", file, "--out", cut).stdout
    assert f"Computed {len(read_results(whole)) - done} points." in said
    assert read_results(cut) == read_results(whole)
    for name in ("eight.csv", "eight.svg", "eight_ratio.svg"):
        assert (cut / name).read_bytes() == (whole / name).read_bytes()


def test_interrupted_by_hand_it_says_how_to_go_on(tmp_path: Path) -> None:
    file = tmp_path / "eight.toml"
    file.write_text(SWEEP.replace("4_000", "400_000"))
    process = subprocess.Popen(
        [COMMAND, "sweep", file, "--out", tmp_path / "out"], stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    while not (tmp_path / "out" / "results.jsonl").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in said
    assert "Traceback" not in said


def test_reproduce_lists_and_refuses_unknown_names() -> None:
    listed = command("reproduce", "--list").stdout
    assert [line.split()[0] for line in listed.splitlines()] == ["bounds", *paper.NAMES]
    answer = subprocess.run([COMMAND, "reproduce", "drugs"], capture_output=True, text=True, check=False)
    assert answer.returncode == 2
    assert "`names` must be one of bounds, two_arm, one_sparse, linear_decay, drug but got 'drugs'" in answer.stderr
