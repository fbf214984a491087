"""Slow, plain second implementations of the adaptive rules: each returns the next arm from the whole history.

A history is the list of (arm, reward) so far; None means that the rule stops. Where arms are tied, such as two with the
same number of pulls, the set of them is returned. Rewards are drawn from continuous distributions, so means never are.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

History = list[tuple[int, float]]
Choice = int | set[int] | None
Plain = Callable[[History], Choice]


def rewards_by_arm(history: History, arms: int) -> list[np.ndarray[Any, Any]]:
    return [np.array([reward for pulled, reward in history if pulled == arm]) for arm in range(arms)]


def summarize(history: History, arms: int) -> tuple[Any, Any]:
    samples = rewards_by_arm(history, arms)
    return np.array([len(each) for each in samples]), np.array([each.mean() for each in samples])


def divergence(p: float, q: float) -> float:
    p, q = float(p), float(q)  # NumPy's numbers are slow one by one
    return sum(x * math.log1p((x - y) / y) for x, y in ((p, q), (1.0 - p, 1.0 - q)) if x > 0.0)


def after_first(arms: int, first: int, cap: int, rule: Plain) -> Plain:
    """Pull every arm `first` times in turn, then do as the rule says, but stop at the cap."""

    def next_arm(history: History) -> Choice:
        if len(history) < arms * first:
            return len(history) % arms
        return None if len(history) >= cap else rule(history)

    return next_arm


def make_pairs(arms: int, cap: int, bounds: Callable[[Any, Any, int, int], tuple[Any, Any]]) -> Plain:
    """Pull leader and challenger in rounds; bounds(counts, means, round, pulls) returns lower and upper ones."""

    def next_arm(history: History) -> Choice:
        if len(history) < arms:
            return len(history)
        done, odd = divmod(len(history) - arms, 2)
        begun = history[: arms + 2 * done]
        counts, means = summarize(begun, arms)
        lower, upper = bounds(counts, means, done + 1, len(begun))
        leader = int(np.argmax(means))
        rivals = upper.copy()
        rivals[leader] = -np.inf
        if odd:
            return find_best(rivals)
        if lower[leader] > max(rivals) or len(history) + 2 > cap:
            return None
        return leader

    return next_arm


def lucb(arms: int, delta: float, sigma: float, cap: int) -> Plain:
    def bounds(counts: Any, means: Any, turn: int, pulls: int) -> tuple[Any, Any]:
        radius = sigma * np.sqrt(2.0 * np.log(1.25 * arms * turn**4 / delta) / counts)
        return means - radius, means + radius

    return make_pairs(arms, cap, bounds)


def kl_lucb(arms: int, delta: float, heuristic: bool, cap: int) -> Plain:
    def bounds(counts: Any, means: Any, turn: int, pulls: int) -> tuple[Any, Any]:
        x = 405.5 * arms * turn**1.1 / delta
        level = math.log((math.log(pulls) + 1.0) / delta) if heuristic else math.log(x) + math.log(math.log(x))

        def solve(mean: float, count: int, end: float) -> float:
            if count * divergence(mean, end) <= level:
                return end
            return float(brentq(lambda q: count * divergence(mean, q) - level, mean, end, xtol=1e-14))

        lower = np.array([solve(mean, n, 1e-15) for mean, n in zip(means, counts, strict=True)])
        upper = np.array([solve(mean, n, 1.0 - 1e-15) for mean, n in zip(means, counts, strict=True)])
        return lower, upper

    return make_pairs(arms, cap, bounds)


def lil_ucb(arms: int, delta: float, sigma: float, cap: int) -> Plain:
    """With the numbers of the heuristic."""

    def rule(history: History) -> Choice:
        counts, means = summarize(history, arms)
        if any(n >= 1.0 + (1.0 + 10.0 / arms) * (counts.sum() - n) for n in counts):
            return None
        loglog = np.log(5.0 * np.maximum(np.log(counts), 1.0) / delta)
        return int(np.argmax(means + 1.5 * sigma * np.sqrt(2.0 * loglog / counts)))

    return after_first(arms, 1, cap, rule)


def find_best(values: Any) -> set[int]:
    """Return the arms whose values are the largest, up to rounding."""
    return {arm for arm, value in enumerate(values) if value >= max(values) - 1e-12}


def choose_by_gap_index(counts: Any, means: Any, radius: Any) -> set[int]:
    arms = len(means)
    index = [max(means[i] + radius[i] for i in range(arms) if i != k) - (means[k] - radius[k]) for k in range(arms)]
    best = int(np.argmin(index))
    rival = max((i for i in range(arms) if i != best), key=lambda i: means[i] + radius[i])
    return {arm for arm in (best, rival) if counts[arm] == min(counts[best], counts[rival])}


def ugape(arms: int, delta: float, sigma: float, cap: int) -> Plain:
    def rule(history: History) -> Choice:
        counts, means = summarize(history, arms)
        radius = sigma * np.sqrt(2.0 * np.log(4.0 * arms * len(history) ** 3 / delta) / counts)
        leader = int(np.argmax(means))
        if all(means[leader] - radius[leader] > means[k] + radius[k] for k in range(arms) if k != leader):
            return None
        return choose_by_gap_index(counts, means, radius)

    return after_first(arms, 1, cap, rule)


def ugape_budget(arms: int, budget: int, sigma: float) -> Plain:
    def rule(history: History) -> Choice:
        counts, means = summarize(history, arms)
        leader = int(np.argmax(means))
        gaps = means[leader] - means + sigma * np.sqrt(1.0 / counts + 1.0 / counts[leader])
        gaps[leader] = min(np.delete(gaps, leader))
        return choose_by_gap_index(counts, means, np.sqrt((budget - arms) / (16.0 * np.sum(gaps**-2.0) * counts)))

    return after_first(arms, 1, budget, rule)


def likelihood_ratio(bernoulli: bool, sigma: float, n: Any, m: Any, a: int, b: int) -> float:
    middle = (n[a] * m[a] + n[b] * m[b]) / (n[a] + n[b])
    if bernoulli:
        return float(n[a] * divergence(m[a], middle) + n[b] * divergence(m[b], middle))
    return float(n[a] * (m[a] - middle) ** 2 + n[b] * (m[b] - middle) ** 2) / (2.0 * sigma**2)


def proportions(means: Any, bernoulli: bool) -> Any:
    """Solve for the optimal proportions by two nested root finders, as Garivier and Kaufmann do."""
    best = int(np.argmax(means))
    means = [float(mean) for mean in means]
    others = [k for k in range(len(means)) if k != best]

    def d(p: float, q: float) -> float:
        return divergence(p, q) if bernoulli else (p - q) ** 2

    def middle(k: int, x: float) -> float:
        return float((means[best] + x * means[k]) / (1.0 + x))

    def gain(k: int, x: float) -> float:
        return d(means[best], middle(k, x)) + x * d(means[k], middle(k, x))

    def pulls(k: int, y: float) -> float:
        return float(brentq(lambda x: gain(k, x) - y, 0.0, 1e5, xtol=1e-13, rtol=1e-13))

    def excess(y: float) -> float:
        x = {k: pulls(k, y) for k in others}
        return sum(d(means[best], middle(k, x[k])) / d(means[k], middle(k, x[k])) for k in others) - 1.0

    most = min(d(means[best], means[k]) for k in others)
    y = float(brentq(excess, 1e-3 * most, 0.999 * most, xtol=1e-300, rtol=1e-13))
    shares = np.array([1.0 if k == best else pulls(k, y) for k in range(len(means))])
    return shares / shares.sum()


def track_and_stop(arms: int, delta: float, sigma: float, bernoulli: bool, cap: int) -> Plain:
    """With the heuristic rate."""

    def rule(history: History) -> Choice:
        counts, means = summarize(history, arms)
        if is_clear(history, arms, delta, sigma, bernoulli):
            return None
        if counts.min() < math.sqrt(len(history)) - arms / 2.0:
            return int(np.argmin(counts))
        return int(np.argmax(len(history) * proportions(means, bernoulli) - counts))

    return after_first(arms, 1, cap, rule)


def is_clear(history: History, arms: int, delta: float, sigma: float, bernoulli: bool) -> bool:
    counts, means = summarize(history, arms)
    leader = int(np.argmax(means))
    ratios = [likelihood_ratio(bernoulli, sigma, counts, means, leader, k) for k in range(arms) if k != leader]
    return min(ratios) > math.log((math.log(len(history)) + 1.0) / delta)


def choose_top_two(history: History, arms: int, sigma: float, bernoulli: bool) -> int:
    led, led_pulls = np.zeros(arms), np.zeros(arms)
    for made in range(arms, len(history)):
        leader = int(np.argmax(summarize(history[:made], arms)[1]))
        led[leader] += 1
        led_pulls[leader] += history[made][0] == leader
    counts, means = summarize(history, arms)
    leader = int(np.argmax(means))
    if led_pulls[leader] <= 0.5 * (led[leader] + 1):
        return leader
    return min(
        (k for k in range(arms) if k != leader),
        key=lambda k: likelihood_ratio(bernoulli, sigma, counts, means, leader, k) + math.log(counts[k]),
    )


def eb_tci(arms: int, delta: float, sigma: float, bernoulli: bool, cap: int) -> Plain:
    """With the heuristic rate."""

    def rule(history: History) -> Choice:
        if is_clear(history, arms, delta, sigma, bernoulli):
            return None
        return choose_top_two(history, arms, sigma, bernoulli)

    return after_first(arms, 1, cap, rule)


def ocba(arms: int, budget: int, first: int) -> Plain:
    def rule(history: History) -> Choice:
        samples = rewards_by_arm(history, arms)
        counts, means = summarize(history, arms)
        deviations = np.array([each.std(ddof=1) for each in samples])
        leader = int(np.argmax(means))
        others = np.arange(arms) != leader
        shares = np.zeros(arms)
        shares[others] = (deviations[others] / (means[leader] - means[others])) ** 2
        shares[leader] = deviations[leader] * np.sqrt(np.sum((shares[others] / deviations[others]) ** 2))
        return int(np.argmax((len(history) + 1) * shares / shares.sum() - counts))

    return after_first(arms, first, budget, rule)


def kn(arms: int, zone: float, alpha: float, first: int, cap: int) -> Plain:
    """Replay all stages from the start; survivors take turns in any order."""

    def next_arm(history: History) -> Choice:
        eta = 0.5 * ((2.0 * alpha / (arms - 1)) ** (-2.0 / (first - 1)) - 1.0)
        alive, used = list(range(arms)), 0
        stage = 0
        while True:
            turn = history[used : used + len(alive)]
            if len(turn) < len(alive):
                waiting = set(alive) - {arm for arm, _ in turn}
                return waiting if waiting != set(alive) or used + len(alive) <= cap else None
            used += len(alive)
            stage += 1
            if stage < first:
                continue
            samples = [each[:stage] for each in rewards_by_arm(history[:used], arms)]
            kept = []
            for i in alive:
                for j in alive:
                    if i == j:
                        continue
                    variance = np.var(samples[i][:first] - samples[j][:first], ddof=1)
                    width = max(0.0, zone / (2.0 * stage) * (2.0 * eta * (first - 1) * variance / zone**2 - stage))
                    if samples[i].mean() < samples[j].mean() - width:
                        break
                else:
                    kept.append(i)
            alive = kept
            if len(alive) == 1:
                return None

    return next_arm


def scaled_boundary(s: float) -> float:
    if s > 40.0:
        return float(0.642 * (s * (2.0 * math.log(s)) ** 1.4 - math.log(32.0 * math.pi)) ** 0.5)
    if s > 3.0:
        return float(0.705 * s**0.5 * math.log(s))
    if s > 1.0:
        return float(np.polyval([0.00537, -0.06906, 0.3167, -0.02326, 0.0], s))
    return 0.233 * s**2


def chick_frazier(arms: int, cost: float, sigma: float, cap: int) -> Plain:
    def rule(history: History) -> Choice:
        counts, means = summarize(history, arms)
        beta, gamma = (cost * sigma**2) ** (-1.0 / 3.0), cost ** (2.0 / 3.0) * sigma ** (-2.0 / 3.0)
        inside = [
            scaled_boundary(1.0 / (gamma * counts[k])) / beta - abs(means[k] - max(np.delete(means, k)))
            for k in range(arms)
        ]
        return find_best(inside) if max(inside) > 0.0 else None

    return after_first(arms, 1, cap, rule)


def kg_star(arms: int, cost: float, sigma: float, cap: int) -> Plain:
    more = np.arange(1, 2_001)

    def rule(history: History) -> Choice:
        counts, means = summarize(history, arms)
        rates = []
        for k in range(arms):
            width = sigma * np.sqrt(1.0 / counts[k] - 1.0 / (counts[k] + more))
            z = abs(means[k] - max(np.delete(means, k))) / width
            density = np.exp(-0.5 * z**2) / math.sqrt(2.0 * math.pi)
            rates.append(np.max(width * (density - z * ndtr(-z)) / more) / cost)
        return {k for k in range(arms) if rates[k] >= max(rates) * (1.0 - 1e-5)} if max(rates) > 1.0 else None

    return after_first(arms, 1, cap, rule)
