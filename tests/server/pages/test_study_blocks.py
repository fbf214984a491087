"""The picture of blocks: the right cells in the right places."""

from dbcare.server.pages.study import LEVELS, MAX_PICTURE_ARMS, MAX_PICTURE_BLOCKS, draw_blocks
from tests.helpers.memory_studies import create_memory_study

NAMES = ["A", "B", "C"]


def test_cells_are_colored_by_reward_and_show_what_is_missing() -> None:
    """Two rounds of three arms: one trial failed, one pending, and one not asked for yet."""
    study = create_memory_study(rounds=True, policy="breakeven-rounds", max_ahead=5)
    trials = {(trial.arm, trial.block): trial for trial in study.ask(3) + study.ask(2)}
    for arm, reward in (("A", 0.0), ("B", 10.0)):
        study.tell(trials[arm, "1"], reward)
    study.tell(trials["C", "1"], failed=True)
    study.tell(trials["B", "2"], 5.0)
    picture = draw_blocks(study, NAMES)
    assert picture.blocks == ["1", "2"]
    assert (picture.low, picture.high) == ("0", "10")
    looks = {arm: [cell.look for cell in cells] for arm, cells in picture.rows}
    assert looks == {
        "A": ["level-0", "absent"],
        "B": [f"level-{LEVELS - 1}", f"level-{LEVELS // 2}"],
        "C": ["missed", "open"],
    }
    assert [cell.text for _, cells in picture.rows for cell in cells] == [
        "A, 1: 0",
        "A, 2: not asked",
        "B, 1: 10",
        "B, 2: 5",
        "C, 1: failed, no reward",
        "C, 2: pending",
    ]


def test_the_latest_blocks_and_the_first_arms_are_shown() -> None:
    names = tuple(f"arm {number}" for number in range(MAX_PICTURE_ARMS + 2))
    study = create_memory_study(arms=names, blocks=100, policy="breakeven-rounds", cost=1e-12)
    order = [study.settings.name_block(number) for number in range(100)]
    study.add([("arm 0", 0.25, str(block)) for block in order[:70]])
    picture = draw_blocks(study, names)
    assert picture.blocks == order[70 - MAX_PICTURE_BLOCKS : 70]
    assert [arm for arm, _ in picture.rows] == list(names[:MAX_PICTURE_ARMS])
    assert {cell.look for cell in picture.rows[0][1]} == {f"level-{LEVELS // 2}"}
    assert {cell.look for cell in picture.rows[1][1]} == {"absent"}


def test_a_study_without_trials_has_no_cells() -> None:
    picture = draw_blocks(create_memory_study(blocks=10, policy="breakeven-rounds"), NAMES)
    assert (picture.blocks, picture.low) == ([], None)
