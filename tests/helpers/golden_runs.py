"""Fixed runs of everything that decides or reports, as plain numbers, for tests/golden/runs.json and api.json.

`.venv/bin/python -m tests.helpers.golden_runs` writes both files again, after a change that is meant to
change numbers. Texts are left out: other tests state them.
"""

from __future__ import annotations

import json
import math
import random
import tempfile
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars

import dbcare
from dbcare import (
    DBCARE,
    Bandit,
    Breakeven,
    BreakevenRacing,
    BreakevenRounds,
    Policy,
    Risk,
    Study,
    evaluate,
    evaluate_grid,
    replay_blocks,
    replay_log,
)
from dbcare.policies import (
    LUCB,
    Guess,
    KnownGapOracle,
    Racing,
    SequentialHalving,
    SuccessiveRejects,
    TwoArmConfidence,
    Uniform,
)
from dbcare.problem import GaussianBlocks
from dbcare.server.app import make_app
from dbcare.studies.stores.memory import MemoryStore
from tests.helpers import comparisons
from tests.helpers.fold_searches import search_table
from tests.helpers.score_table import draw_table

FOLDER = Path(__file__).parents[1] / "golden"
# Times and texts: the former differ from run to run, the latter are stated elsewhere.
LEFT_OUT = {
    "sentences", "notes", "verdict", "reason", "activities", "created", "created_by", "description", "oldest", "name",
    "settings", "asked_at", "at", "moment", "time",
}  # fmt: skip


def plain(value: Any) -> Any:
    """Return numbers, short texts, lists and dictionaries."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items() if key not in LEFT_OUT}
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)


# ------------------------------------------------------------------------------------------------------ live studies


def draw(source: random.Random, mean: float) -> float:
    """Return a reward with six digits, so that it is the same on every processor."""
    return round(source.gauss(mean, 1.0), 6)


STUDIES: dict[str, dict[str, Any]] = {
    "stated sigma": {"price": 0.4, "value": 500, "sigma": 1.0},
    "DBCARE": {"cost": 1e-2, "sigma": 1.0, "policy": "dbcare"},
    "rates": {"price": 0.1, "value": 200, "baseline": 0.3, "control": "B"},
    "learned spread": {"price": [0.2, 0.4, 0.1], "value": 300, "direction": "minimize"},
    "a pool of blocks": {"cost": 2e-3, "blocks": 40, "sigma": 1.0},
    "rounds": {"cost": 2e-3, "rounds": True, "not_before": 12},
    "a cap and bounds": {"cost": 1e-3, "bounds": (-3.0, 5.0), "cap": 2.0, "max_spend": 0.08},
    "misidentification": {"cost": 2e-3, "sigma": 1.0, "policy": "breakeven-racing", "risk": "misidentification"},
    "LUCB": {"cost": 1e-3, "bounds": (-4.0, 4.0), "policy": "eb-tci"},
    "not before": {"cost": 1e-2, "sigma": 1.0, "not_before": 60, "timeout_reward": 0.0},
}


def play_study(place: int, settings: dict[str, Any]) -> Study:
    """Play one study from a fixed script: trials told out of order, some failed, some with a price, an arm retired."""
    study = dbcare.create_study(f"golden {uuid.uuid4()}", ["A", "B", "C"], seed=place, **settings)
    source = random.Random(place)
    means = {"A": 0.0, "B": 0.4, "C": 0.1}
    for turn in range(60):
        trials = study.ask(3) or []
        for trial in sorted(trials, key=lambda each: source.random()):
            if "baseline" in settings:
                reward = float(source.random() < 0.3 + 0.2 * means[trial.arm])
            else:
                reward = max(-2.9, min(3.9, draw(source, means[trial.arm])))
            if turn % 7 == 3:
                study.tell(trial, failed=True, charged=turn % 2 == 0)
            elif turn % 5 == 2:
                study.tell(trial, reward, price=round(0.1 + source.random(), 3))
            else:
                study.tell(trial, reward)
        if turn == 12 and place % 3 == 0:
            study.retire("C")
        if turn == 8 and "blocks" not in settings and "rounds" not in settings:
            study.add([("A", 0.0), ("B", 1.0)])
    return study


def run_studies() -> dict[str, Any]:
    """Return what ten studies say in the end, and which arms they tried."""
    found = {}
    for place, (name, settings) in enumerate(STUDIES.items()):
        study = play_study(place, settings)
        rows = list(study.trials())
        found[name] = {
            "arms": "".join(row.arm for row in rows),
            "counted": "".join(str(int(row.counted)) for row in rows),
            "recommendation": plain(study.recommendation()),
            "status": plain(study.status()),
            "history": [plain(point) for point in study.history()][::8],
        }
    return found


# ---------------------------------------------------------------------------------- searches, comparisons and replays

SEARCHES: tuple[tuple[tuple[int, int, int], dict[str, Any]], ...] = (
    ((6, 12, 1), {"value": 1e4, "price": 1.0}),
    ((4, 20, 2), {"value": 1e3}),
    ((8, 10, 3), {"value": 1e5, "price": 2.0, "refit": True}),
    ((3, 6, 4), {"value": math.inf}),
    ((10, 15, 5), {"value": 3e3, "price": 0.5, "min_folds": 3}),
)


def run_searches() -> dict[str, Any]:
    """Return the results of five searches, which are the same with storage."""
    found = {}
    for place, (shape, options) in enumerate(SEARCHES):
        table = np.round(draw_table(*shape), 6)
        for storage in (False, True) if math.isfinite(options["value"]) else (False,):
            with tempfile.TemporaryDirectory() as folder:
                stored: dict[str, Any] = (
                    {"storage": f"sqlite:///{folder}/searches.db", "study_name": "search"} if storage else {}
                )
                search = search_table(table, **options, **stored)
            results = {
                key: plain(np.ma.filled(np.ma.asarray(column, dtype=float), np.nan))
                for key, column in search.cv_results_.items()
                if not key.startswith(("param", "split")) and not key.endswith("_time") and column.dtype != object
            }
            found[f"{place}{' with storage' * storage}"] = {
                **results,
                "fits": int(search.n_fits_),
                "spent": float(search.spent_),
                "best": int(search.best_index_),
                "expected loss": plain(search.expected_loss_),
            }
    return found


COMPARISONS: tuple[dict[str, Any], ...] = (
    {},
    {"repeats": 2, "value": 300},
    {"price": {"short": 0.01, "long": 0.04, "odd": 0.02}, "control": "short"},
    {"only_these_questions": True, "max_spend": 0.9},
    {"direction": "minimize", "risk": "misidentification", "value": 20, "seed": 3},
)


def run_comparisons() -> dict[str, Any]:
    """Return what five comparisons found, and what they spent."""
    found = {}
    for place, options in enumerate(COMPARISONS):
        comparison = comparisons.run(comparisons.make_arms(place), at_once=1, **options)
        found[str(place)] = {
            "spent": comparison.spent,
            "full cost": comparison.full_cost,
            "recommendation": plain(comparison.recommendation),
            "arms": [plain(arm) for arm in comparison.arms],
        }
    return found


LOGS: tuple[dict[str, Any], ...] = (
    {"cost": 1e-2, "sigma": 1.0},
    {"price": 0.2, "value": 100},
    {"cost": 1e-2, "sigma": 1.0, "policy": "dbcare"},
    {"cost": [1e-2, 2e-2, 5e-3], "direction": "minimize", "sigma": 1.0},
    {"cost": 3e-3, "sigma": 1.0, "risk": "misidentification", "control": "A"},
)


def run_replays() -> dict[str, Any]:
    """Return five replays of a plain log, and five of one in blocks."""
    source = random.Random(11)
    means = {"A": 0.0, "B": 0.5, "C": 0.2}
    rows = [(arm, draw(source, mean)) for _ in range(80) for arm, mean in means.items()]
    blocks = tuple(f"q{number}" for number in range(60))
    shifts = [draw(source, 0.0) for _ in blocks]
    rewards = {arm: [round(shift + 0.3 * draw(source, mean), 6) for shift in shifts] for arm, mean in means.items()}
    table = [
        {"arm": arm, "question": block, "score": rewards[arm][place]}
        for place, block in enumerate(blocks)
        for arm in means
    ]
    log = dbcare.read_block_log(polars.DataFrame(table))
    found = {}
    for place, options in enumerate(LOGS):
        for kind, replay in (
            ("log", lambda options=options: replay_log(rows, orders=5, **options)),
            ("blocks", lambda options=options: replay_blocks(log, orders=5, **_without_policy(options))),
        ):
            replayed = replay()  # type: ignore[no-untyped-call]  # a lambda with a default
            found[f"{kind} {place}"] = plain(replayed) | {
                each: plain(getattr(replayed, each)) for each in ("used", "spent", "forgone", "saved", "over_orders")
            }
    return found


def _without_policy(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "policy"}


# -------------------------------------------------------------------------------------------------------- evaluations

ERROR, REGRET = Risk.misidentification, Risk.simple_regret
TWO, THREE, SPARSE = Bandit.two_arm(0.5), Bandit.gaussian([0.5, 0.2, 0.0]), Bandit.one_sparse(8, 0.6)
FEW = Bandit.bernoulli([0.6, 0.4])
Case = tuple[Policy, Bandit, Risk]
DRAWN: tuple[Case, ...] = (
    (DBCARE(ERROR(1e-3), 2), TWO, ERROR(1e-3)),
    (DBCARE(REGRET(1e-3), 8), SPARSE, REGRET(1e-3)),
    (Breakeven(REGRET(1e-3), 3, 1.0), THREE, REGRET(1e-3)),
    (Breakeven(ERROR(2e-3), 2), FEW, ERROR(2e-3)),
    (BreakevenRacing(REGRET(1e-3), 3), THREE, REGRET(1e-3)),
    (Racing(3, 0.1, max_pulls=3_000), THREE, ERROR(1e-3)),
    (SequentialHalving(8, 160), SPARSE, REGRET(1e-3)),
    (SuccessiveRejects(3, 60), THREE, ERROR(1e-3)),
    (LUCB(3, 0.1, max_pulls=3_000), THREE, ERROR(1e-3)),
    (BreakevenRounds(REGRET(2e-3), 3), GaussianBlocks.of([0.5, 0.0, 0.0], correlation=0.5), REGRET(2e-3)),
)
SKIPPED: tuple[Case, ...] = (
    (DBCARE(ERROR(1e-3), 2), TWO, ERROR(1e-3)),
    (DBCARE(REGRET(1e-3), 3), THREE, REGRET(1e-3)),
    (DBCARE(REGRET(1e-3), 2, sigma=0.5), FEW, REGRET(1e-3)),
    (BreakevenRacing(ERROR(1e-3), 2), TWO, ERROR(1e-3)),
    (BreakevenRacing(REGRET(1e-3), 8), SPARSE, REGRET(1e-3)),
    (Racing(8, 0.1, max_pulls=3_000), SPARSE, ERROR(1e-3)),
    (TwoArmConfidence(0.1, max_pulls=3_000), TWO, ERROR(1e-3)),
    (SequentialHalving(8, 160), SPARSE, REGRET(1e-3)),
    (SuccessiveRejects(3, 60), THREE, ERROR(1e-3)),
    (Uniform(3, 20), THREE, ERROR(1e-3)),
)
EXACT: tuple[Case, ...] = (
    (DBCARE(ERROR(1e-3), 2), TWO, ERROR(1e-3)),
    (DBCARE(REGRET(5e-3), 2, sigma=0.5), FEW, REGRET(5e-3)),
    (BreakevenRacing(ERROR(1e-3), 2), Bandit.two_arm(0.3), ERROR(1e-3)),
    (BreakevenRacing(REGRET(5e-3), 2, sigma=0.5), FEW, REGRET(5e-3)),
    (TwoArmConfidence(0.1, max_pulls=3_000), Bandit.two_arm(0.8), ERROR(1e-3)),
    (KnownGapOracle(ERROR(1e-3), 0.5), TWO, ERROR(1e-3)),
    (Uniform(2, 25), TWO, REGRET(1e-3)),
    (Uniform(2, 25), FEW, REGRET(1e-3)),
    (SequentialHalving(2, 40), TWO, ERROR(1e-3)),
    (Guess(2), TWO, ERROR(1e-3)),
)


def summarize(evaluation: Any) -> dict[str, Any]:
    """Return the numbers of an evaluation."""
    kept = evaluation.to_dict()
    return plain({name: kept[name] for name in ("risks", "losses", "pulls", "capped", "engine")})  # type: ignore[no-any-return]


def run_engines() -> dict[str, Any]:
    """Return ten evaluations by each engine; those left to choose average over labels, and so do grids."""
    found: dict[str, Any] = {}
    for engine, cases in (("direct", DRAWN), ("skip", SKIPPED), ("exact", EXACT), ("auto", DRAWN)):
        for place, (policy, bandit, risk) in enumerate(cases):
            evaluation = evaluate(policy, bandit, risk, runs=400, seed=place, engine=engine, threads=1)
            found[f"{engine} {place}"] = summarize(evaluation)
    for place, (policy, _, risk) in enumerate(EXACT):
        family = "bernoulli" if place in (1, 3, 7) else "gaussian"
        grid = evaluate_grid(policy, [0.1, 0.3, 0.6], family, sigma=0.5 if family == "bernoulli" else 1.0)
        found[f"grid {place}"] = {"risk": plain(grid.risk(risk))}
    return found


# ---------------------------------------------------------------------------------------------------------------- API

TEXTS = {"title", "description", "summary", "examples", "example", "operationId", "tags"}


def describe_api() -> Any:
    """Return the API's description without its texts: paths, fields and types."""
    return _strip(make_app(MemoryStore()).openapi())


def _strip(node: Any, *, names: bool = False) -> Any:
    """Remove texts; the keys of `names` are fields of somebody's data, whatever they are called."""
    if isinstance(node, dict):
        return {
            key: _strip(value, names=key in ("properties", "paths", "schemas", "responses") and not names)
            for key, value in sorted(node.items())
            if names or key not in TEXTS
        }
    return [_strip(item) for item in node] if isinstance(node, list) else node


RUNS: dict[str, Callable[[], dict[str, Any]]] = {
    "studies": run_studies,
    "searches": run_searches,
    "comparisons": run_comparisons,
    "replays": run_replays,
    "engines": run_engines,
}


def write(path: Path, rows: Mapping[str, Any]) -> None:
    """Write one line for each entry of two levels."""
    parts = [
        f'"{part}": {{\n'
        + ",\n".join(f"{json.dumps(name)}: {json.dumps(row)}" for name, row in entries.items())
        + "\n}"
        for part, entries in rows.items()
    ]
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main() -> None:
    """Write the files again."""
    write(FOLDER / "runs.json", {part: run() for part, run in RUNS.items()})
    api = describe_api()
    write(FOLDER / "api.json", {"paths": api["paths"], "schemas": api["components"]["schemas"]})


if __name__ == "__main__":
    main()
