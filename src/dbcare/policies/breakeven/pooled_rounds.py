"""BreakevenRounds where blocks are a list in one order for all arms: an arm takes its next block whenever it is pulled.

The notation is that of `policies.breakeven.rounds`, the state that of `policies.breakeven.rounds_state`, followed by
the rewards of all arms, block by block: two arms may be compared on blocks that they answered at different times.
"""

from dbcare.policies.breakeven.rounds_state import (
    DIFFERENCE,
    SHARED,
    RoundsTables,
    compare,
    count_answer,
    count_miss,
    find_better,
    first_leader,
    has_started,
    is_open,
    price_of,
    recommend,
    stop_if_even,
    weigh,
)
from dbcare.policies.breakeven.state import (
    HEADER,
    LEADER,
    LOSS,
    MADE,
    PRIORITY,
    RIVAL,
    ROUND,
    SEEN,
    SQUARES,
    STOPPED,
    section,
    start,
)
from dbcare.policies.rule import STOP, BlockRule, State

REACH = SEEN  # blocks up to the last one with a reward
NEXT = MADE  # section: the first block that an arm has not been pulled in
SECTIONS = 11
UNSEEN, MISSED = -1.7e308, -1.6e308  # stand for rewards that are not there; no state holds anything but finite numbers


def state_size(arms: int, pool: int) -> int:
    """Return the length of a state."""
    return HEADER + SECTIONS * arms + pool * arms


def init(state: State, tables: RoundsTables, tie: int) -> None:
    """Start a run without rewards."""
    start(state, tables.cost, tables.guess, tie)
    for place in range(section(tables.cost, SECTIONS), len(state)):
        state[place] = UNSEEN


def place_of(tables: RoundsTables, arm: int, block: int) -> int:
    """Return the index of an arm's reward in a block."""
    return section(tables.cost, SECTIONS) + block * len(tables.cost) + arm


def is_answered(state: State, tables: RoundsTables, arm: int, block: int) -> bool:
    """Return whether an arm has a reward in a block."""
    return bool(state[place_of(tables, arm, block)] > MISSED)


def ask(state: State, tables: RoundsTables) -> int:
    """Return the arm whose next block removes the most loss per unit of cost; first, the arm with the fewest blocks."""
    if state[STOPPED]:
        return STOP
    if has_started(state, tables):
        return best_pull(state, tables)
    arm = least_advanced(state, tables)
    return arm if block(state, tables, arm) != STOP else STOP


def least_advanced(state: State, tables: RoundsTables) -> int:
    """Return the first arm with the fewest blocks behind it."""
    following = section(tables.cost, NEXT)
    chosen = 0
    for arm in range(1, len(tables.cost)):
        if state[following + arm] < state[following + chosen]:
            chosen = arm
    return chosen


def best_pull(state: State, tables: RoundsTables) -> int:
    """Return the arm with the best score, or STOP if no arm that matters has a block left.

    A rival with fewer blocks than the leader scores l_k/(n_k c_k), the leader the sum of l_k/n_k over all others, per
    cost of its own pull and of those with which the rivals that are level with it follow. Only open rivals matter; all
    do if none is open, as while a run may not stop yet.
    """
    following, shared, loss = section(tables.cost, NEXT), section(tables.cost, SHARED), section(tables.cost, LOSS)
    priority, leader = section(tables.cost, PRIORITY), int(state[LEADER])
    all_matter = not is_open(state, tables, int(state[RIVAL]))
    lead = state[following + leader]
    leads_some = False
    gain = 0.0
    price = price_of(state, tables, leader)
    best = -1.0
    chosen = STOP
    for arm in range(len(tables.cost)):
        if arm == leader or not (all_matter or is_open(state, tables, arm)):
            continue
        removed = state[loss + arm] / max(1.0, state[shared + arm])
        if state[following + arm] >= lead:
            leads_some = True
            gain += removed
            if state[following + arm] == lead:
                price += price_of(state, tables, arm)
        else:
            score = removed / price_of(state, tables, arm)
            if score > best or (score == best and state[priority + arm] > state[priority + chosen]):
                best = score
                chosen = arm
    if leads_some and lead < tables.pool:
        score = gain / price
        if score > best or (score == best and state[priority + leader] > state[priority + chosen]):
            return leader
    return chosen


def block(state: State, tables: RoundsTables, arm: int) -> int:
    """Return the arm's next block, or STOP if it has been pulled in all of them."""
    following = int(state[section(tables.cost, NEXT) + arm])
    return following if following < tables.pool else STOP


def pass_block(state: State, tables: RoundsTables, arm: int, block: int, reward: float) -> None:
    """Note an arm's reward in a block, or that it has none, and find its next block."""
    state[place_of(tables, arm, block)] = reward
    following = section(tables.cost, NEXT) + arm
    while state[following] < tables.pool and state[place_of(tables, arm, int(state[following]))] != UNSEEN:
        state[following] += 1


def tell_block(state: State, tables: RoundsTables, arm: int, block: int, reward: float, cost: float) -> None:
    """Count a reward, compare the arm with the leader, and decide."""
    take_reward(state, tables, arm, block, reward, cost)
    settle(state, tables)


def take_reward(state: State, tables: RoundsTables, arm: int, block: int, reward: float, cost: float) -> None:
    """Count a reward and compare the arm with the leader; where several arrive together, one decision serves them."""
    count_answer(state, tables, arm, reward, cost)
    state[REACH] = max(state[REACH], block + 1)
    pass_block(state, tables, arm, block, reward)
    if not has_started(state, tables):
        return
    leader = int(state[LEADER])
    if arm == leader:
        for other in range(len(tables.cost)):
            if other != leader and is_answered(state, tables, other, block):
                compare(state, tables, other, reward - state[place_of(tables, other, block)])
    elif is_answered(state, tables, leader, block):
        compare(state, tables, arm, state[place_of(tables, leader, block)] - reward)


def settle(state: State, tables: RoundsTables) -> None:
    """Decide, or see whether arms can be compared yet."""
    if has_started(state, tables):
        decide(state, tables)
    else:
        start_comparing(state, tables)


def miss(state: State, tables: RoundsTables, arm: int, block: int, cost: float) -> None:
    """Let a block do without an arm, and decide."""
    count_miss(state, tables, arm, cost)
    pass_block(state, tables, arm, block, MISSED)
    settle(state, tables)


def send_block(state: State, tables: RoundsTables, arm: int, block: int) -> None:
    """Count a pull whose reward is pending, so that the next arm is chosen as if it had arrived."""
    pass_block(state, tables, arm, block, MISSED)
    shared, following, leader = section(tables.cost, SHARED), section(tables.cost, NEXT), int(state[LEADER])
    for other in range(len(tables.cost)):
        if (arm == leader) != (other == leader) and state[following + other] > block:
            state[shared + (other if arm == leader else arm)] += 1


def tell(state: State, tables: RoundsTables, arm: int, reward: float) -> None:
    """Count a reward in the arm's next block."""
    tell_block(state, tables, arm, block(state, tables, arm), reward, tables.cost[arm])


def start_comparing(state: State, tables: RoundsTables) -> None:
    """Start to compare arms once all are through with their first blocks."""
    state[ROUND] = min(tables.first_blocks, state[section(tables.cost, NEXT) + least_advanced(state, tables)])
    if has_started(state, tables):
        state[LEADER] = first_leader(state, tables)
        read_column(state, tables)
        decide(state, tables)


def decide(state: State, tables: RoundsTables) -> None:
    """Find the leader, weigh the others against it, and stop if they break even or no arm that matters can go on.

    Arms may be ahead of each other in turn, since pairs share different blocks: then the search for the leader ends
    before it is back at a marked one, and marks are set after 1, 2, 4, ... moves (Brent 1980).
    """
    marked = int(state[LEADER])
    for moves in range(1, 2 * len(tables.cost) + 1):
        better = find_better(state, tables)
        if better == marked or better == state[LEADER]:
            break
        state[LEADER] = better
        read_column(state, tables)
        if moves & (moves - 1) == 0:
            marked = better
    weigh(state, tables)
    stop_if_even(state, tables)
    if best_pull(state, tables) == STOP:
        state[STOPPED] = 1


def read_column(state: State, tables: RoundsTables) -> None:
    """Compare the leader with all others on the blocks that both answered (Welford 1962)."""
    arms, leader, first = len(tables.cost), int(state[LEADER]), section(tables.cost, SECTIONS)
    shared, difference, squares = (
        section(tables.cost, SHARED),
        section(tables.cost, DIFFERENCE),
        section(tables.cost, SQUARES),
    )
    end = first + int(state[REACH]) * arms
    for arm in range(arms):
        blocks = 0
        total = 0.0
        within = 0.0
        # Indices are computed here, not by `place_of`: a study in plain Python reads columns often.
        for place in range(first, end if arm != leader else first, arms):
            if state[place + leader] > MISSED and state[place + arm] > MISSED:
                lead = state[place + leader] - state[place + arm]
                deviation = lead if blocks == 0 else lead - total / blocks
                blocks += 1
                total += lead
                if blocks > 1:
                    within += deviation * (lead - total / blocks)
        state[shared + arm] = blocks
        state[difference + arm] = total
        state[squares + arm] = within


RULE = BlockRule(
    init, ask, tell, recommend, seldom=(decide,), block=block, tell_block=tell_block, miss=miss, send_block=send_block
)
