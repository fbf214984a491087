"""Replays of logs by block, compared with the policy stepped by hand; and reading such logs."""

import json
import math
import random
from pathlib import Path
from typing import Any

import polars
import pytest

import dbcare
from dbcare.errors import InvalidValueError

LEVELS = {"A": 0.5, "B": 0.62, "C": 0.55}


def make_rows(blocks: int = 120, seed: int = 3) -> list[dict[str, Any]]:
    """Return scores of three arms on questions that differ in difficulty."""
    chance = random.Random(seed)
    rows = []
    for block in range(blocks):
        difficulty = chance.gauss(0.0, 0.3)
        rows += [
            {"model": arm, "id": f"q{block}", "score": level - difficulty + chance.gauss(0.0, 0.1), "cost": 0.01}
            for arm, level in LEVELS.items()
        ]
    return rows


def read(rows: Any, **options: Any) -> dbcare.replay.BlockLog:
    source = polars.DataFrame(rows) if isinstance(rows, list) else rows
    columns = {"arm_column": "model", "block_column": "id", "reward_column": "score"}
    return dbcare.read_block_log(source, **(columns | options))


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("only_these_blocks", [False, True])
def test_a_replay_does_what_the_policy_does(direction: str, only_these_blocks: bool) -> None:
    log = read(make_rows())
    replay = dbcare.replay_blocks(
        log, price=0.01, value=300, direction=direction, only_these_blocks=only_these_blocks, orders=5
    )
    risk = dbcare.Risk.simple_regret(price=0.01, value=300)
    run = dbcare.BreakevenRounds(risk, 3, pool=120, only_these_blocks=only_these_blocks).start(seed=0)
    sign, used = 1.0 if direction == "maximize" else -1.0, [0, 0, 0]
    while (arm := run.ask()) is not None:
        run.tell(sign * log.rewards[arm][used[arm]])
        used[arm] += 1
    assert replay.orders[0].used == tuple(used)
    assert replay.orders[0].arm == replay.recommendation.arm == log.arms[run.recommendation()]
    assert replay.spent == pytest.approx(0.01 * sum(used))
    assert replay.logged_cost == pytest.approx(0.01 * 360)
    means = {arm: math.fsum(rewards) / 120 for arm, rewards in zip(log.arms, log.rewards, strict=True)}
    assert {arm.name: arm.mean for arm in replay.arms} == pytest.approx(means)
    best = max(means, key=lambda arm: sign * means[arm])
    assert replay.best == best
    for order in replay.orders:
        assert order.loss == pytest.approx(300 * abs(means[best] - means[order.arm]))
        assert sum(order.used) * 0.01 == pytest.approx(order.spent)


def test_random_orders_use_the_same_blocks_for_all_arms() -> None:
    """With questions whose difficulty is all that varies, pairs differ by the same everywhere: no order errs.

    Negative control: if each arm had an order of its own, differences would vary with the questions, and stops would
    not come at the first possible moment.
    """
    chance = random.Random(1)
    rows: list[dict[str, Any]] = []
    for block in range(100):
        difficulty = chance.gauss(0.0, 1.0)
        for arm, level in LEVELS.items():
            rows.append({"model": arm, "id": block, "score": level - difficulty + chance.gauss(0.0, 1e-4)})
    replay = dbcare.replay_blocks(read(rows), price=0.01, value=100, orders=50)
    assert replay.over_orders.chosen == {"B": 50}
    assert {order.used for order in replay.orders} == {(6, 6, 6)}
    apart = [row | {"id": (row["id"] + 37 * "ABC".index(row["model"])) % 100} for row in rows]
    assert max(sum(order.used) for order in dbcare.replay_blocks(read(apart), price=0.01, value=100).orders) > 18


def test_a_log_that_is_too_short_is_said_to_be() -> None:
    rows = make_rows(10)
    short = dbcare.replay_blocks(read(rows), price=1e-6, value=1e6, orders=4)
    assert "In all 4 orders, it used every block: with a longer log, it might have gone on." in short.sentences()
    alone = dbcare.replay_blocks(read(rows), price=1e-6, value=1e6, orders=1)
    assert "In the log's own order, it used every block: with a longer log, it might have gone on." in alone.sentences()
    enough = dbcare.replay_blocks(read(make_rows(120)), price=0.01, value=300, orders=4)
    assert not any("every block" in sentence for sentence in enough.sentences())


def test_prices_of_the_log_are_charged() -> None:
    rows = make_rows()
    for row in rows:
        row["cost"] = 0.001 * (1 + int(row["id"][1:]) % 4) * (1 + "ABC".index(row["model"]))
    log = read(rows, price_column="cost")
    replay = dbcare.replay_blocks(log, value=300, orders=3)
    assert replay.logged_cost == pytest.approx(sum(row["cost"] for row in rows))
    assert log.prices is not None
    spent = math.fsum(
        price for row, used in zip(log.prices, replay.orders[0].used, strict=True) for price in row[:used]
    )
    assert replay.spent == pytest.approx(spent)
    stated = dbcare.replay_blocks(log, price=0.01, value=300, orders=3)
    assert stated.logged_cost == pytest.approx(0.01 * 360)
    with pytest.raises(InvalidValueError, match="`price` and `value`"):
        dbcare.replay_blocks(log)


def test_means_of_right_and_wrong_answers_are_within_0_and_1() -> None:
    rows = [
        {"model": arm, "id": f"q{number}", "score": float((number + repeat) % 3 > (arm == "B"))}
        for arm in "AB"
        for number in range(30)
        for repeat in range(2)
    ]
    log = read(rows, binary=True)
    assert log.averaged
    replay = dbcare.replay_blocks(log, binary=True, price=0.01, value=10, orders=2)
    assert replay.settings.bounds == (0.0, 1.0)
    assert replay.best == "A"


def test_repeats_are_averaged_and_their_prices_added() -> None:
    rows = [
        {"model": arm, "id": block, "score": score, "cost": 0.5}
        for arm in "AB"
        for block in (1, 2)
        for score in (0.0, 1.0, 1.0)
    ]
    log = read(rows, price_column="cost")
    assert log.rewards == ((2 / 3, 2 / 3), (2 / 3, 2 / 3))
    assert log.prices == ((1.5, 1.5), (1.5, 1.5))


def test_files_of_all_kinds_hold_the_same_log(tmp_path: Path) -> None:
    rows = make_rows(10)
    frame = polars.DataFrame(rows)
    frame.write_csv(tmp_path / "log.csv")
    frame.write_parquet(tmp_path / "log.parquet")
    (tmp_path / "log.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    expected = read(rows, price_column="cost")
    for kind in ("csv", "parquet", "jsonl"):
        assert read(tmp_path / f"log.{kind}", price_column="cost") == expected
    observations = dbcare.read_log(tmp_path / "log.jsonl", arm_column="model", reward_column="score")
    assert observations == [(row["model"], row["score"]) for row in rows]


def test_missing_questions_are_named_or_left_out() -> None:
    rows = [row for row in make_rows(10) if not (row["model"] == "B" and row["id"] in ("q3", "q7"))]
    with pytest.raises(
        InvalidValueError,
        match=r"^Arm 'B' has no reward in block 'q3', and 1 more are missing; pass `shared_only` to leave out blocks",
    ):
        read(rows)
    log = read(rows, shared_only=True)
    assert (len(log.blocks), log.left_out) == (8, 2)
    assert "q3" not in log.blocks


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"model": "A", "id": 1}\n', "has no column 'score'; pass `reward_column`"),
        ('{"model": "A", "id": 1, "score": "good"}\n', "line 1: column 'score' must be a finite number but got 'good'"),
        ('{"model": "A", "id": 1, "score": 1}\n{"model": "B"}', "line 2: column 'id' must name a unit but got None"),
        ('{"model": "A"\n', "line 1, is not valid JSON"),
        ("[1, 2]\n", r"line 1, must be a JSON object but got \[1, 2\]"),
        ('{"model": "A", "id": null, "score": 1}\n', "line 1: column 'id' must name a unit but got None"),
        ("", "has no observations"),
    ],
)
def test_bad_json_lines(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text(text)
    with pytest.raises(InvalidValueError, match=message):
        read(file)


def test_bad_logs(tmp_path: Path) -> None:
    rows = make_rows(4)
    with pytest.raises(InvalidValueError, match=r"row 0: column 'cost' must not be negative but got -1"):
        read([{**row, "cost": -1.0} for row in rows], price_column="cost")
    with pytest.raises(InvalidValueError, match="must have 2 or more arms and blocks but got 1 arms and 4 blocks"):
        dbcare.replay_blocks(read([row for row in rows if row["model"] == "A"]), price=1, value=1)
    with pytest.raises(InvalidValueError, match="`log` must be a BlockLog"):
        dbcare.replay_blocks([("A", 1.0)], price=1, value=1)  # type: ignore[arg-type]  # the point
    with pytest.raises(InvalidValueError, match="reward of A in block q0` must"):
        dbcare.replay_blocks(read([{**row, "score": 7.0} for row in rows]), price=1, value=1, bounds=(0, 1))
    for name, problem in (("missing.parquet", "cannot be read"), ("broken.parquet", "is not a valid Parquet file")):
        (tmp_path / "broken.parquet").write_bytes(b"PAR1 nonsense")
        with pytest.raises(InvalidValueError, match=problem):
            read(tmp_path / name)


def write_samples(path: Path, rights: list[int], filters: tuple[str, ...] = ("none",), document: str = "hash") -> Path:
    """Write a sample log with the fields that lm-evaluation-harness writes."""
    lines = [
        {
            "doc_id": place,
            "doc": {"question": f"question {place}"},
            "target": "42",
            "arguments": {"gen_args_0": {"arg_0": "Q:", "arg_1": {"until": ["\n"]}}},
            "resps": [["42"]],
            "filtered_resps": ["42"],
            "filter": name,
            "metrics": ["exact_match"],
            "doc_hash": f"{document} {place}",
            "prompt_hash": "p",
            "target_hash": "t",
            "exact_match": float(right if name != "strict-match" else 0),
        }
        for name in filters
        for place, right in enumerate(rights)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def test_sample_logs_of_the_harness(tmp_path: Path) -> None:
    small = write_samples(tmp_path / "small" / "samples_gsm8k_1.jsonl", [1, 0, 0], ("strict-match", "flexible-extract"))
    large = write_samples(tmp_path / "large" / "samples_gsm8k_2.jsonl", [1, 1, 0], ("strict-match", "flexible-extract"))
    files = {"small": small, "large": large}
    log = dbcare.read_harness_samples(files, metric="exact_match", filter_name="flexible-extract")
    assert log.arms == ("small", "large")
    assert log.rewards == ((1.0, 0.0, 0.0), (1.0, 1.0, 0.0))
    strict = dbcare.read_harness_samples(files, metric="exact_match", filter_name="strict-match")
    assert strict.rewards == ((0.0,) * 3,) * 2
    for options, message in (
        ({"metric": "exact_match"}, "has several filters; pass `filter_name` as one of them: strict-match, flexible"),
        ({"metric": "acc", "filter_name": "strict-match"}, "line 1, has no metric 'acc'; its metrics are exact_match"),
        ({"metric": "exact_match", "filter_name": "none"}, "has no filter 'none'; its filters are strict-match"),
    ):
        with pytest.raises(InvalidValueError, match=message):
            dbcare.read_harness_samples(files, **options)  # type: ignore[arg-type]  # options vary
    other = write_samples(tmp_path / "other" / "samples.jsonl", [1, 1, 1], document="another")
    alike = write_samples(tmp_path / "alike" / "samples.jsonl", [1, 1, 1])
    with pytest.raises(InvalidValueError, match="Document 0 is not the same for alike and other"):
        dbcare.read_harness_samples({"alike": alike, "other": other}, metric="exact_match")
