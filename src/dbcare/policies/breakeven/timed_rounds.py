"""BreakevenRounds where a block is a moment: all arms of a round are pulled now or never.

The notation is that of `policies.breakeven.rounds`, the state that of `policies.breakeven.rounds_state`, followed by
the comparisons of all pairs of arms: blocks, differences and squares. Each round starts with another arm, so that a
drift within rounds favors none.
"""

from dbcare.policies.breakeven.rounds_state import (
    DIFFERENCE,
    SHARED,
    RoundsTables,
    add_difference,
    count_answer,
    count_miss,
    find_better,
    first_leader,
    has_started,
    is_open,
    recommend,
    stop_if_even,
    weigh,
)
from dbcare.policies.breakeven.state import HEADER, LEADER, RIVAL, ROUND, SQUARES, STOPPED, section, start
from dbcare.policies.rule import STOP, BlockRule, State

STATUS, REWARD = 11, 12  # sections: whether an arm is in this round, and its reward
SECTIONS = 13
ABSENT, WANTED, TOLD, MISSED = range(4)  # values of STATUS


def state_size(arms: int) -> int:
    """Return the length of a state."""
    return HEADER + SECTIONS * arms + 3 * (arms * (arms - 1) // 2)


def init(state: State, tables: RoundsTables, tie: int) -> None:
    """Start a run whose first round has all arms."""
    start(state, tables.cost, tables.guess, tie)
    status = section(tables.cost, STATUS)
    for arm in range(len(tables.cost)):
        state[status + arm] = WANTED


def ask(state: State, tables: RoundsTables) -> int:
    """Return the next arm of the round."""
    if state[STOPPED]:
        return STOP
    arms, status = len(tables.cost), section(tables.cost, STATUS)
    for turn in range(arms):
        arm = (int(state[ROUND]) + turn) % arms
        if state[status + arm] == WANTED:
            return arm
    return STOP


def upcoming(state: State, tables: RoundsTables) -> list[int]:
    """Return the arms still to be pulled in this round, in order."""
    arms, status = len(tables.cost), section(tables.cost, STATUS)
    order = [(int(state[ROUND]) + turn) % arms for turn in range(arms)]
    return [] if state[STOPPED] else [arm for arm in order if state[status + arm] == WANTED]


def block(state: State, tables: RoundsTables, arm: int) -> int:
    """Return the number of the round."""
    return int(state[ROUND])


def tell_block(state: State, tables: RoundsTables, arm: int, block: int, reward: float, cost: float) -> None:
    """Count a reward in the round; nothing is decided before its end."""
    count_answer(state, tables, arm, reward, cost)
    state[section(tables.cost, STATUS) + arm] = TOLD
    state[section(tables.cost, REWARD) + arm] = reward


def miss(state: State, tables: RoundsTables, arm: int, block: int, cost: float) -> None:
    """Let the round do without an arm."""
    count_miss(state, tables, arm, cost)
    state[section(tables.cost, STATUS) + arm] = MISSED


def tell(state: State, tables: RoundsTables, arm: int, reward: float) -> None:
    """Count a reward, and end the round after its last one."""
    tell_block(state, tables, arm, 0, reward, tables.cost[arm])
    if ask(state, tables) == STOP:
        end_round(state, tables)


def end_round(state: State, tables: RoundsTables) -> None:
    """Compare all arms of the round with each other, and decide about the next."""
    compare_pairs(state, tables)
    arms, status = len(tables.cost), section(tables.cost, STATUS)
    state[ROUND] += 1
    if has_started(state, tables):
        find_leader(state, tables)
        weigh(state, tables)
        stop_if_even(state, tables)
    for arm in range(arms):
        wanted = not has_started(state, tables) or arm == state[LEADER] or arm == state[RIVAL]
        state[status + arm] = WANTED if wanted or is_open(state, tables, arm) else ABSENT


def compare_pairs(state: State, tables: RoundsTables) -> None:
    """Add the round to the comparison of each two arms that answered in it."""
    arms, status, reward = len(tables.cost), section(tables.cost, STATUS), section(tables.cost, REWARD)
    shared = section(tables.cost, SECTIONS)
    pairs = arms * (arms - 1) // 2
    pair = shared
    for one in range(arms - 1):
        if state[status + one] != TOLD:
            pair += arms - 1 - one
            continue
        for other in range(one + 1, arms):
            if state[status + other] == TOLD:
                difference = state[reward + one] - state[reward + other]
                add_difference(state, pair, pair + pairs, pair + 2 * pairs, difference)
            pair += 1


def find_leader(state: State, tables: RoundsTables) -> None:
    """Move to an arm that is ahead of the leader, as long as there is one; arms may be ahead of each other in turn."""
    if state[ROUND] == tables.first_blocks:
        state[LEADER] = first_leader(state, tables)
    read_column(state, tables)
    for _ in range(2 * len(tables.cost)):
        better = find_better(state, tables)
        if better == state[LEADER]:
            return
        state[LEADER] = better
        read_column(state, tables)


def read_column(state: State, tables: RoundsTables) -> None:
    """Copy the leader's comparisons to its column."""
    arms, leader, first = len(tables.cost), int(state[LEADER]), section(tables.cost, SECTIONS)
    pairs = arms * (arms - 1) // 2
    shared, difference, squares = (
        section(tables.cost, SHARED),
        section(tables.cost, DIFFERENCE),
        section(tables.cost, SQUARES),
    )
    for arm in range(arms):
        if arm == leader:
            state[shared + arm] = state[difference + arm] = state[squares + arm] = 0.0
        else:
            one, other = min(arm, leader), max(arm, leader)
            pair = first + one * (2 * arms - one - 1) // 2 + other - one - 1
            state[shared + arm] = state[pair]
            state[difference + arm] = state[pair + pairs] if leader == one else -state[pair + pairs]
            state[squares + arm] = state[pair + 2 * pairs]


RULE = BlockRule(init, ask, tell, recommend, block=block, tell_block=tell_block, miss=miss, end_round=end_round)
