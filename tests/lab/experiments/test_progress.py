"""Estimates of work: the longest passes start first, and progress counts work, not points."""

import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

import dbcare.lab.experiments.progress
from dbcare import Bandit, Breakeven, BreakevenRacing, Risk
from dbcare.lab import paper
from dbcare.lab.experiments import definition
from dbcare.lab.experiments.passes import Pass, Point, plan_passes
from dbcare.lab.experiments.progress import SweepProgress, WorkClock
from dbcare.lab.experiments.results import Record, ResultStore, compute
from dbcare.lab.experiments.sweep import Workers, list_missing, make_local_workers
from dbcare.lab.experiments.work_estimates import estimate_seconds, name_kernel
from dbcare.lab.reproduce import _keep_together
from dbcare.policies import Racing, SequentialHalving

RISK = Risk.misidentification(1e-4)


def make_pass(policy: Any, runs: int = 10_000, gaps: int = 40) -> Pass:
    arms = policy.arms
    (work,) = plan_passes(
        Point(policy, Bandit.one_sparse(arms, 0.1 + 0.05 * place), 1e-4, runs, 1) for place in range(gaps)
    )
    return work


@pytest.fixture(scope="module")
def missing(tmp_path_factory: pytest.TempPathFactory) -> list[Pass]:
    """All passes of the paper."""
    points = [point for name in paper.NAMES for point in definition.load(paper.find_definition(name)).points]
    return list_missing(plan_passes(points), ResultStore(tmp_path_factory.mktemp("store") / "results.jsonl"))


def test_the_longest_passes_start_first(missing: list[Pass]) -> None:
    estimates = [estimate_seconds(work) for work in missing]
    assert min(estimates) > 0.0
    kinds = len({name_kernel(work) for work in missing})
    assert len({name_kernel(work) for work in missing[:kinds]}) == kinds  # at first, one of each kind
    assert estimates[-1] < 0.001 * estimates[0]
    for part in (missing[:kinds], missing[kinds:]):
        for one, next_one in itertools.pairwise(part):
            assert estimate_seconds(one) > estimate_seconds(next_one) or one.key < next_one.key


def test_the_order_does_not_depend_on_how_passes_are_listed(missing: list[Pass], tmp_path: Path) -> None:
    store = ResultStore(tmp_path / "results.jsonl")
    assert list_missing(missing[::-1], store) == missing


def test_every_experiment_starts_with_different_kernels(missing: list[Pass]) -> None:
    """Two experiments that need the same kernels: every pass of one comes before those of the other."""
    names = {work.key: "one" if place % 2 else "other" for place, work in enumerate(missing)}
    ordered = _keep_together(missing, names)
    assert sorted(work.key for work in ordered) == sorted(names)
    groups = [list(group) for _, group in itertools.groupby(ordered, key=lambda work: names[work.key])]
    assert len(groups) == 2
    for group in groups:
        kinds = len({name_kernel(work) for work in group})
        assert kinds > 3
        assert len({name_kernel(work) for work in group[:kinds]}) == kinds
    # Negative control: without that, the second experiment would start with the kernels of its longest passes alone.
    second = [work for work in missing if names[work.key] == names[groups[1][0].key]]
    kinds = len({name_kernel(work) for work in second})
    assert len({name_kernel(work) for work in second[:kinds]}) < kinds


def test_estimates_grow_with_the_work() -> None:
    """More arms, runs or bandits take longer; so does a policy that draws every pull."""
    eight, more = Breakeven(RISK, 8), Breakeven(RISK, 32)
    assert estimate_seconds(make_pass(eight)) < estimate_seconds(make_pass(more))
    assert estimate_seconds(make_pass(eight, runs=1_000)) < 0.2 * estimate_seconds(make_pass(eight))
    assert estimate_seconds(make_pass(eight, gaps=2)) < 0.5 * estimate_seconds(make_pass(eight))
    assert estimate_seconds(make_pass(BreakevenRacing(RISK, 8))) < estimate_seconds(make_pass(eight))
    halving = make_pass(SequentialHalving(8, 80), gaps=1)
    assert estimate_seconds(halving) < estimate_seconds(make_pass(BreakevenRacing(RISK, 8), gaps=1))


def test_kinds_of_passes_differ_where_kernels_do() -> None:
    policies = (BreakevenRacing(RISK, 8), Racing(8, 0.1), Breakeven(RISK, 8, 1.0))
    kinds = {name_kernel(make_pass(policy)) for policy in policies}
    assert kinds == {"elimination Gaussian", "Breakeven Gaussian"}


def simulate_times(passes: list[Pass], slowness: float, workers: int, compiling: float) -> Iterator[tuple[float, str]]:
    """Yield when each pass finishes, if it takes `slowness` times its estimate; the first of a kind takes 1 s more.

    The first pass of each worker also takes the seconds of `compiling`: it compiles what other kernels share.
    """
    free, seen, ends = [compiling] * workers, set[str](), []
    for work in passes:
        free.sort()
        free[0] += slowness * estimate_seconds(work) + (name_kernel(work) not in seen)
        seen.add(name_kernel(work))
        ends.append((free[0], work.key))
    yield from sorted(ends)


@pytest.mark.parametrize(
    ("slowness", "workers", "compiling"),
    [(1.0, 1, 0.0), (1.0, 2, 0.0), (1.5, 2, 0.0), (0.7, 4, 0.0), (0.7, 2, 9.0), (1.3, 2, 15.0)],
)
def test_progress_never_falls_and_ends_at_1(
    missing: list[Pass], slowness: float, workers: int, compiling: float
) -> None:
    """The time remaining is right within a factor of 2 from the tenth second until most of the time is over."""
    times = list(simulate_times(missing, slowness, workers, compiling))
    end = times[-1][0]
    clock = WorkClock(missing)
    clock.assign(workers, 0.0)
    shares, tick = [clock.compute_share()], 1.0
    assert shares == pytest.approx([0.0], abs=1e-9)
    for finished, key in times:
        while tick < finished:
            shares.append(clock.compute_share())
            if 10.0 <= tick < 0.8 * end:
                remaining = clock.compute_remaining(tick)
                assert remaining is None or 0.5 < remaining / (end - tick) < 2.0, tick
                assert (remaining is None) == (tick < times[0][0])
            tick += 1.0
        clock.finish(key, finished)
        shares.append(clock.compute_share())
    assert shares == sorted(shares)
    assert shares[-2] < 1.0
    assert shares[-1] == 1.0
    assert clock.compute_remaining(end) == 0.0


def test_a_pass_that_takes_too_long_does_not_count_as_done() -> None:
    work = make_pass(BreakevenRacing(RISK, 8))
    clock = WorkClock([work])
    clock.assign(1, 0.0)
    assert clock.compute_share() == 0.0
    assert clock.compute_remaining(1e6) is None


def test_all_but_a_little_is_not_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short pass is left: less than half a percent of the work, but many points."""
    long, short = make_pass(BreakevenRacing(RISK, 32)), make_pass(SequentialHalving(4, 8), runs=50, gaps=1)
    estimates = {long.key: 1000.0, short.key: 1.0}
    monkeypatch.setattr(dbcare.lab.experiments.progress, "estimate_seconds", lambda work: estimates[work.key])
    out = io.StringIO()
    progress = SweepProgress(Console(file=out, width=160), [long, short], {}, make_local_workers(1))
    progress.clock.assign(1, 0.0)
    progress.clock.finish(long.key, 1000.0)
    progress.show()
    assert out.getvalue().startswith("99% done, starting, 0 of ")
    progress.clock.finish(short.key, 1001.0)
    progress.show()
    assert out.getvalue().splitlines()[1].startswith("100% done, ")


def test_passes_may_finish_in_another_order() -> None:
    """As on a cluster, where workers come and go."""
    passes = [make_pass(BreakevenRacing(RISK, arms)) for arms in (16, 8, 4)]
    clock = WorkClock(passes)
    clock.assign(1, 0.0)
    clock.finish(passes[2].key, 1.0)
    clock.assign(2, 1.0)
    clock.finish(passes[1].key, 2.0)
    assert 0.0 < clock.compute_share() < 1.0
    clock.finish(passes[0].key, 3.0)
    assert clock.compute_share() == 1.0


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_shown(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dbcare.lab.experiments.progress, "SECONDS_BETWEEN_LINES", 1e6)  # only the lines asked for
    works = [make_pass(SequentialHalving(4, 8), runs=50, gaps=1), make_pass(SequentialHalving(4, 40), runs=50, gaps=1)]
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=160, soft_wrap=True, highlight=False)
    with SweepProgress(console, works, {work.key: "mine" for work in works}, make_local_workers(2)) as progress:
        progress.show()
        progress.update(compute(works[0]))
        progress.show()
        progress.update(compute(works[1]))
        progress.show()
    text = out.getvalue()
    assert "mine" in text
    assert "2 of 2 points, skip, 2.4e+03 pulls" in text
    assert "about 0 s remaining" in text
    if not terminal:
        first, second, last = text.splitlines()
        assert first == "0% done, starting, 0 of 2 points"
        assert re.match(r"\d\d% done, mine, 1 of 2 points, skip, 4e\+02 pulls, about \d+ s remaining", second)
        assert last.startswith("100% done, mine, 2 of 2 points, ")


def test_nothing_to_do_shows_nothing() -> None:
    out = io.StringIO()
    with SweepProgress(Console(file=out), [], {}, make_local_workers(1)):
        pass
    assert out.getvalue() == ""


def test_the_number_of_workers_may_change() -> None:
    """A cluster tells how many workers it has once it is connected."""
    passes = [make_pass(BreakevenRacing(RISK, arms)) for arms in (16, 8)]
    workers = SimpleNamespace(count=0)
    out = io.StringIO()
    progress = SweepProgress(Console(file=out, width=160), passes, {}, cast(Workers, workers))
    progress.show()
    assert len(progress.clock.running) == 0
    assert out.getvalue() == "0% done, connecting, 0 of 80 points\n"
    workers.count = 4
    progress.show()
    assert len(progress.clock.running) == 2


def test_the_engine_of_the_latest_pass_is_named() -> None:
    work = make_pass(Racing(4, 0.1), runs=50, gaps=3)
    out = io.StringIO()
    progress = SweepProgress(Console(file=out, width=160), [work], {work.key: "mine"}, make_local_workers(1))
    record: Record = compute(work)
    progress.update(record)
    progress.show()
    assert "100% done, mine, 3 of 3 points, pooled, " in out.getvalue()
