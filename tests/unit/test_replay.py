"""Replays of logged data, compared with the policy stepped by hand; and log files."""

import math
import random
from pathlib import Path
from typing import Any

import pytest

import dbcare
from dbcare.errors import InvalidValueError

RATES = {"A": 0.10, "B": 0.16, "C": 0.12}
MONEY: dict[str, Any] = {"price": 0.5, "value": 20_000}


def make_log(trials: int, seed: int = 5) -> list[tuple[str, float]]:
    """Return a log of trials of random arms."""
    chance = random.Random(seed)
    names = [chance.choice("ABC") for _ in range(trials)]
    return [(name, float(chance.random() < RATES[name])) for name in names]


def step_by_hand(log: list[tuple[str, float]], policy: dbcare.Policy, sign: float = 1.0) -> tuple[list[int], int, bool]:
    """Return the number of rewards used per arm, the choice, and whether the policy stopped; arms as in the log."""
    names = list(dict.fromkeys(name for name, _ in log))
    queues = [[sign * reward for name, reward in log if name == wanted] for wanted in names]
    used = [0] * len(names)
    run = policy.start(seed=0)
    while (arm := run.ask()) is not None and used[arm] < len(queues[arm]):
        run.tell(queues[arm][used[arm]])
        used[arm] += 1
    return used, run.recommendation(), arm is None


@pytest.mark.parametrize("name", ["breakeven", "breakeven-racing", "dbcare"])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_a_replay_does_what_the_policy_does(name: str, direction: str) -> None:
    log = make_log(6_000)
    risk = dbcare.Risk.simple_regret(**MONEY)
    policy: dbcare.Policy = {
        "breakeven": dbcare.Breakeven(risk, 3, 0.5, bound=1.0, largest_sigma=0.5),
        "breakeven-racing": dbcare.BreakevenRacing(risk, 3, 0.5),
        "dbcare": dbcare.DBCARE(risk, 3, 0.5, bound=1.0),
    }[name]
    used, chosen, stopped = step_by_hand(log, policy, 1.0 if direction == "maximize" else -1.0)
    assert stopped
    replay = dbcare.replay_log(log, **MONEY, binary=True, policy=name, direction=direction)
    assert [arm.used for arm in replay.arms] == used
    assert replay.recommendation.arm == replay.arms[chosen].name
    assert replay.stopped
    assert replay.recommendation.final
    assert replay.logged == 6_000
    assert replay.spent == pytest.approx(0.5 * sum(used))
    assert replay.saved == pytest.approx(0.5 * (6_000 - sum(used)))
    assert replay.best == ("B" if direction == "maximize" else "A")
    means = {arm: sum(r for name, r in log if name == arm) / sum(name == arm for name, _ in log) for arm in RATES}
    assert {arm.name: arm.mean for arm in replay.arms} == pytest.approx(means)
    apart = abs(means[replay.best] - means[replay.recommendation.arm])
    assert replay.forgone == pytest.approx(apart * 20_000)


def test_a_log_that_is_too_short() -> None:
    log = make_log(300)
    policy = dbcare.Breakeven(dbcare.Risk.simple_regret(price=0.5, value=1e6), 3, 0.5, bound=1.0, largest_sigma=0.5)
    used, chosen, stopped = step_by_hand(log, policy)
    assert not stopped
    replay = dbcare.replay_log(log, price=0.5, value=1e6, binary=True)
    assert [arm.used for arm in replay.arms] == used
    wanted = next(arm for arm in replay.arms if arm.name == replay.wanted)
    assert wanted.used == wanted.logged
    assert replay.recommendation.arm == replay.arms[chosen].name
    assert not replay.recommendation.final
    text = str(replay)
    assert text.startswith(
        f"It would still be running: it wanted more of {wanted.name} than the {wanted.logged} trials logged."
    )
    assert "saved" not in text


@pytest.mark.parametrize(
    ("stated", "sigma", "limits"),
    [
        ({"baseline": 0.1, "sigma_pulls": 3.0}, 0.3, {"sigma_pulls": 3.0, "bound": 1.0, "largest_sigma": 0.5}),
        ({"sigma": 0.3, "sigma_pulls": math.inf}, 0.3, {"sigma_pulls": math.inf}),
        ({}, None, {}),
    ],
)
def test_the_spread_is_stated_as_for_a_study(stated: Any, sigma: float | None, limits: dict[str, float]) -> None:
    """Or not at all: it is then learned. Prices go by the names of the arms, which the log has in another order."""
    log = make_log(6_000)
    names = list(dict.fromkeys(name for name, _ in log))
    prices = {"A": 0.5, "B": 0.75, "C": 1.0}
    risk = dbcare.Risk.simple_regret(price=[prices[name] for name in names], value=20_000)
    used, chosen, _ = step_by_hand(log, dbcare.Breakeven(risk, 3, sigma, **limits))
    replay = dbcare.replay_log(log, price=prices, value=20_000, **stated)
    assert [arm.used for arm in replay.arms] == used
    assert replay.recommendation.arm == names[chosen]
    assert replay.spent == pytest.approx(sum(prices[arm.name] * arm.used for arm in replay.arms))
    assert ("so it was learned from them" in str(replay)) == (not stated)


def test_only_the_order_within_an_arm_matters() -> None:
    log = make_log(4_000)
    names = list(dict.fromkeys(name for name, _ in log))
    arm_by_arm = [(name, reward) for wanted in names for name, reward in log if name == wanted]
    backwards = [(name, reward) for wanted in names for name, reward in log[::-1] if name == wanted]

    def used(observations: list[tuple[str, float]]) -> list[int]:
        return [arm.used for arm in dbcare.replay_log(observations, **MONEY, binary=True).arms]

    assert used(arm_by_arm) == used(log)
    assert used(backwards) != used(log)


def test_a_wrong_choice_costs_the_same_whatever_its_gap() -> None:
    """The risk is misidentification: a wrong choice costs 7; B is chosen though A has the best mean."""
    log = [("A", 0.0), ("B", 1.0)] * 8 + [("A", 1.0)] * 200 + [("B", 0.0)] * 200
    replay = dbcare.replay_log(log, price=0.5, value=7, risk="misidentification", binary=True)
    assert (replay.recommendation.arm, replay.best) == ("B", "A")
    assert replay.forgone == 7.0


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ([], "A log must have rewards of 2 or more arms but got those of none."),
        ([("A", 1.0)] * 3, "A log must have rewards of 2 or more arms but got those of 'A'."),
        ([("A", 1.0), ("B", 0.0), ("B", 3.0)], "`reward 2 of B` must be 0 or 1 but got 3."),
    ],
)
def test_logs_that_cannot_be_replayed(log: list[tuple[str, float]], message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        dbcare.replay_log(log, **MONEY, binary=True)
    assert str(caught.value) == message


def test_a_log_is_read_in_its_order(tmp_path: Path) -> None:
    """It may have what spreadsheets write: a byte order mark, quoted names, line breaks, empty lines, spaces."""
    file = tmp_path / "log.csv"
    text = '\ufeffday,reward, arm\r\n1,0.5,"A, the first"\r\n\r\n2,-1e-3, B\u00e4r \r\n,,\r\n3, 2 ,"x\ny"\r\n'
    file.write_bytes(text.encode())
    assert dbcare.read_log(file) == [("A, the first", 0.5), ("B\u00e4r", -1e-3), ("x\ny", 2.0)]


@pytest.mark.parametrize(
    ("content", "ending"),
    [
        (b"", "has no observations below its header."),
        (b"\n\n", "has no observations below its header."),
        (b"arm,reward\n", "has no observations below its header."),
        (b"name,reward\nA,1\n", ", line 1, must be a header with exactly one column 'arm' but got 'name,reward'."),
        (b"\narm;reward\nA;1\n", ", line 2, must be a header with exactly one column 'arm' but got 'arm;reward'."),
        (b"arm,reward,reward\nA,1,2\n", "with exactly one column 'reward' but got 'arm,reward,reward'."),
        (b"arm,reward\nA,1\nB,much\n", ", line 3: `reward` must be a number but got 'much'."),
        (b"arm,reward\nA,1\nB,\n", ", line 3: `reward` must be a number but got ''."),
        (b"arm,reward\nA,nan\n", ", line 2: `reward` must be finite but got nan."),
        (b"arm,reward\nA,1\n\nB,-inf\n", ", line 4: `reward` must be finite but got -inf."),
        (b"arm,reward\nA\n", ", line 2, must have an arm and a reward but got 'A'."),
        (b"arm,reward\n ,1\n", ", line 2: `arm` must not be empty."),
        (b'arm,reward\n"A,1\n', ", line 2, is not valid CSV: unexpected end of data."),
        (b"arm,reward\nA,1\nB\xe4r,1\n", ", line 3, is not UTF-8: it has the byte 0xe4."),
        ("arm,reward\nA,1\n".encode("utf-16"), ", line 1, is not UTF-8: it has the byte 0xff."),
    ],
)
def test_files_that_are_not_logs(tmp_path: Path, content: bytes, ending: str) -> None:
    file = tmp_path / "log.csv"
    file.write_bytes(content)
    with pytest.raises(InvalidValueError) as caught:
        dbcare.read_log(file)
    assert str(caught.value).startswith(str(file))
    assert str(caught.value).endswith(ending)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"none\.csv cannot be read: No such file or directory"):
        dbcare.read_log(tmp_path / "none.csv")
    with pytest.raises(InvalidValueError, match="cannot be read: Is a directory"):
        dbcare.read_log(tmp_path)
