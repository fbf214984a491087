"""The decision as one page to print and file away: its numbers, pictures and settings."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any, NamedTuple, Protocol

from dbcare.base.axis import Axis
from dbcare.base.checks import show
from dbcare.base.html import Html, make_code, make_list, make_paragraph
from dbcare.base.numbers import Money, format_chance, round_together
from dbcare.base.times import format_minute
from dbcare.errors import InvalidValueError
from dbcare.studies.results.status import ArmStatus, HistoryPoint, Lift, Recommendation, Status
from dbcare.studies.results.words import describe_settings, format_blocks
from dbcare.studies.settings import Settings
from dbcare.studies.show.notebook import make_arms
from dbcare.studies.study import StudyReports

WIDTH = 720.0
ROW, FOOT = 26.0, 26.0  # heights, of an arm and of the axis
LETTER, MAX_LABEL = 10.0, 20  # width of a character on a phone; characters of an arm's name
HEIGHT, LEFT, RIGHT, EDGE = 240.0, 100.0, 12.0, 8.0  # of the curves, with their margins
MAX_ARMS_DRAWN = 60

Placing = Callable[[float], str]  # where a reward is on the axis


def draw_arms(arms: Sequence[ArmStatus], chosen: str | None) -> Html:
    """Return the arms that have an estimate, each with its interval and its naive mean; nothing if there are none."""
    shown = [arm for arm in arms if arm.estimate is not None and arm.interval is not None][:MAX_ARMS_DRAWN]
    axis = Axis.over([end for arm in shown for end in (*(arm.interval or ()), arm.mean or 0.0)])
    if axis is None:
        return Html("")
    left = LETTER * min(MAX_LABEL, max(len(arm.name) for arm in shown)) + 16.0

    def place(value: float) -> str:
        return f"{left + (WIDTH - left - RIGHT) * (value - axis.low) / (axis.high - axis.low):.1f}"

    bottom = ROW * len(shown)
    parts = [
        f'<line class="grid" x1="{place(tick)}" x2="{place(tick)}" y1="0" y2="{bottom:g}"/>'
        f'<text class="quiet" x="{place(tick)}" y="{bottom + 16.0:g}" text-anchor="middle">{tick:g}</text>'
        for tick in axis.ticks
    ]
    for number, arm in enumerate(shown):
        parts.append(_draw_arm(arm, ROW * (number + 0.5), arm.name == chosen, place))
    title = "Means of the arms with 95% intervals"
    return _make_picture(WIDTH, bottom + FOOT, title, parts)


def _draw_arm(arm: ArmStatus, height: float, is_chosen: bool, place: Placing) -> str:
    low, high = arm.interval or (0.0, 0.0)
    look, weight = ("accent", ' font-weight="700"') if is_chosen else ("other", "")
    name = arm.name if len(arm.name) <= MAX_LABEL else f"{arm.name[: MAX_LABEL - 1]}\N{HORIZONTAL ELLIPSIS}"
    y = f"{height:g}"
    return (
        f'<text x="0" y="{height + 4.0:g}"{weight}>{escape(name)}</text>'
        f'<line class="line {look}" x1="{place(low)}" x2="{place(high)}" y1="{y}" y2="{y}"/>'
        f'<circle class="naive {look}" cx="{place(arm.mean or 0.0)}" cy="{y}" r="3"/>'
        f'<circle class="dot{" chosen" if is_chosen else ""}" cx="{place(arm.estimate or 0.0)}" cy="{y}" r="5"/>'
    )


def draw_history(history: Sequence[HistoryPoint]) -> Html:
    """Return the curves on a logarithmic scale; nothing before there are two points."""
    points = [point for point in history if point.spent > 0.0]
    if len(points) < 2:
        return Html("")
    curves: dict[str, list[tuple[int, float | None]]] = {
        "accent": [(point.rewards, point.spent) for point in points],
        "loss": [(point.rewards, point.policy_loss) for point in points],
        "loss dotted": [(point.rewards, point.expected_loss) for point in points],
    }
    known = {look: [(x, y) for x, y in curve if y is not None and y > 0.0] for look, curve in curves.items()}
    heights = [math.log10(y) for curve in known.values() for _, y in curve]
    low, high = math.floor(min(heights)), math.ceil(max(heights))
    high = max(high, low + 1)
    first, last = points[0].rewards, points[-1].rewards

    def place_x(rewards: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (rewards - first) / (last - first)

    def place_y(power: float) -> float:
        return EDGE + (HEIGHT - FOOT - EDGE) * (high - power) / (high - low)

    parts = []
    for power in range(low, high + 1, max(1, (high - low) // 5)):
        y = f"{place_y(power):.1f}"
        parts.append(
            f'<line class="grid" x1="{LEFT:g}" x2="{WIDTH - RIGHT:g}" y1="{y}" y2="{y}"/>'
            f'<text class="quiet" x="{LEFT - 8.0:g}" y="{place_y(power) + 4.0:.1f}" text-anchor="end">'
            f"{10.0**power:,.10g}</text>"
        )
    for look, curve in known.items():
        if len(curve) > 1:
            coordinates = " ".join(f"{place_x(x):.1f},{place_y(math.log10(y)):.1f}" for x, y in curve)
            dashes = ' stroke-dasharray="1.5 4" stroke-linecap="round"' if "dotted" in look else ""
            parts.append(f'<polyline class="line {look.split()[0]}" points="{coordinates}"{dashes}/>')
    for rewards, anchor in ((first, "start"), (last, "end")):
        noun = "reward" if rewards == 1 else "rewards"
        parts.append(
            f'<text class="quiet" x="{place_x(rewards):.1f}" y="{HEIGHT - 8.0:g}" text-anchor="{anchor}">'
            f"{rewards:,} {noun}</text>"
        )
    return _make_picture(WIDTH, HEIGHT, "Spending and expected loss by number of rewards", parts)


def _make_picture(width: float, height: float, title: str, parts: Sequence[str]) -> Html:
    size = f"{width:g} {height:g}"
    return Html(f'<svg viewBox="0 0 {size}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>')


ASSUMPTIONS = (
    "What a study assumes about prices, rewards, and missing answers, what happens where that fails, and what to do "
    'instead: the page "Assumptions and limitations" of dbcare\'s documentation, docs/explanation/assumptions.md.'
)


class Number(NamedTuple):
    """A number as people read it, and what it means."""

    name: str
    value: str
    meaning: str


def list_results(settings: Settings, status: Status, choice: Recommendation) -> Iterator[Number]:
    """Yield what is known of the recommended arm."""
    currency = settings.currency
    if choice.arm is None:
        return
    yield Number("Recommended arm", choice.arm, "The arm to choose." if choice.final else "The arm that leads so far.")
    yield Number("Verdict", choice.verdict, "The outcome in a few words.")
    if choice.probability_best is not None:
        yield Number(
            "Probability of being best",
            format_chance(choice.probability_best),
            "How likely this arm has the best mean of all, given the rewards. Above 90%, see its lead instead.",
        )
    if choice.expected_loss is not None:
        yield Number(
            "Expected loss",
            Money(choice.expected_loss, currency).rough(),
            "What choosing this arm is expected to lose against the unknown best, all rivals together.",
        )
    if status.policy_loss is not None:
        yield Number(
            "Weighed by the policy",
            Money(status.policy_loss, currency).rough(),
            "What choosing the leader is expected to lose to its strongest rival alone; the policy compares that with "
            "what was spent.",
        )
    if choice.estimate is not None and choice.interval is not None:
        yield Number(
            "Mean reward",
            _format_interval(choice.estimate, choice.interval),
            "The arm's mean, corrected for having been picked, with a 95% interval that allows for that too.",
        )
    if choice.mean is not None:
        yield Number(
            "Naive mean",
            f"{choice.mean:.4g}",
            "The mean of its counted rewards, which is too high on average: the arm was picked for it.",
        )
    if choice.lead is not None and choice.lead_interval is not None:
        yield Number(
            f"Lead over {choice.rival}",
            _format_interval(choice.lead, choice.lead_interval),
            "By how much its mean is better than that of the control or, without one, of the best other arm; corrected "
            "for selection, with a 95% interval.",
        )
    if choice.anytime_interval is not None:
        _, low, high = round_together(0.0, *choice.anytime_interval)
        yield Number(
            "Anytime interval",
            f"{low} to {high}",
            "A wider 95% interval of its mean, which holds however often one looked, for all arms together."
            if settings.spread.range is not None
            else "A wider, approximate 95% interval of its mean for those who look often, for all arms together, as if "
            "rewards were normal with the variance seen.",
        )
    if choice.lift is not None:
        yield from _list_lift(choice.lift, currency)


def _list_lift(lift: Lift, currency: str | None) -> Iterator[Number]:
    if lift.relative is not None and lift.relative_interval is not None:
        relative = _format_interval(*_in_percent(lift.relative, lift.relative_interval), unit="%")
        yield Number(f"Lift over {lift.control}", relative, "The lead over the control, as a share of its estimate.")
    if lift.money is not None and lift.money_interval is not None:
        low, high = (Money(end, currency).rough() for end in lift.money_interval)
        value = f"{Money(lift.money, currency).rough()} (95% interval {low} to {high})"
        yield Number("Lift in money", value, "The lead over the control, times what one unit of reward is worth.")
    if lift.probability is not None:
        yield Number(
            f"Probability of beating {lift.control}",
            format_chance(lift.probability),
            "How likely this arm is better than the control. It beats the control only if the whole interval of its "
            "lead is above 0.",
        )


COST_OF_TESTING = (
    "Cost of testing: all trials that were charged, at the stated prices unless others were told. It is an estimate if "
    "the stated price is one."
)


def list_counts(settings: Settings, status: Status) -> Iterator[Number]:
    """Yield what was asked, counted and paid."""

    def with_cost(count: int, cost: float) -> str:
        return f"{count:,}, for {Money(cost, settings.currency)}"

    yield Number("Spent", str(Money(status.spent, settings.currency)), COST_OF_TESTING)
    yield Number("Trials asked", f"{status.asked:,}", "Trials that were handed out, and observations made elsewhere.")
    yield Number("Rewards counted", f"{status.rewards:,}", "Rewards that the decision rests on.")
    if status.blocks_used is not None:
        yield Number("Blocks", format_blocks(status), "Blocks in which some arm has had a trial.")
    if status.waiting or status.held:
        yield Number(
            "Pending", f"{status.waiting:,} not told, {status.held:,} held", "Trials whose outcome is not counted yet."
        )
    if status.late:
        expired = f", {status.late_expired:,} of them expired" if status.late_expired else ""
        yield Number(
            "After the stop",
            with_cost(status.late, status.late_cost) + expired,
            "Rewards of trials that were under way at the stop: paid, without effect.",
        )
    if status.failed:
        yield Number(
            "Failed", with_cost(status.failed, status.failed_cost), "Trials without a reward that were charged anyway."
        )
    if status.surplus:
        yield Number(
            "After their lease",
            with_cost(status.surplus, status.surplus_cost),
            "Rewards that came after their trial had been replaced: paid, without effect.",
        )


# By the labels of `describe_settings`.
SETTING_MEANINGS = {
    "Price of a trial": "What one observation costs.",
    "One unit of reward is worth": "What a mean reward higher by 1 is worth over all future use.",
    "A wrong choice costs": "What choosing any arm but the best loses.",
    "A wrong choice loses": "The loss that is weighed against spending.",
    "Goal": "Whether large or small rewards are good.",
    "Control": "The arm in use today, with which the others are compared.",
    "Rewards": "What was stated about the spread of the rewards.",
    "Policy": "The rule that decides what to try next and when to stop.",
    "Does not stop before": "The earliest stop.",
    "Budget": "The study stops before it spends more.",
    "Max pending trials": "How many trials may be under way at the same time.",
    "Expired trials": "What happens to trials that are not told within their lease.",
    "Blocks": "What arms share, so that they are compared within it only.",
    "Seed": "Random seed for breaking ties.",
}


def list_settings(settings: Settings, status: Status) -> Iterator[Number]:
    """Yield what the study was asked to decide."""
    yield Number("Arms", ", ".join(settings.arms), f"The {len(settings.arms):,} options to choose from.")
    for label, text in describe_settings(settings, status.max_ahead):
        yield Number(label, text, SETTING_MEANINGS[label])


def list_promises(settings: Settings) -> Iterator[Number]:
    """Yield what was known before the first trial."""
    policy = settings.built_policy
    limit = min(policy.max_spend, math.inf if settings.max_spend is None else settings.max_spend)
    yield Number(
        "Most that can be spent",
        "no limit is known" if math.isinf(limit) else str(settings.money(limit)),
        "What the study never exceeds at the stated prices, whatever the truth; trials under way at the stop, and "
        "failed ones, come on top.",
    )
    yield Number("One trial of each arm", str(settings.money(math.fsum(settings.costs))), "What the first look costs.")


def _in_percent(value: float, interval: tuple[float, float]) -> tuple[float, tuple[float, float]]:
    return 100.0 * value, (100.0 * interval[0], 100.0 * interval[1])


def _format_interval(value: float, interval: tuple[float, float], unit: str = "") -> str:
    middle, low, high = round_together(value, *interval)
    return f"{middle}{unit} (95% interval {low}{unit} to {high}{unit})"


DIGEST_NAME = "SHA-256"
ARMS_LEGEND = (
    "Naive mean: the mean of the counted rewards. Estimate: the mean corrected for selection, with a 95% interval that "
    "allows for it. Best: the probability of being the best arm. Lift: the lead over the control; * if its interval is "
    "above 0. A dash: too few rewards to say."
)


class FiledPlan(Protocol):
    """A plan of `dbcare.plan`, to be filed with its study."""

    @property
    def setting(self) -> Any: ...

    def _repr_html_(self) -> str: ...


def make_page(study: StudyReports, plan: FiledPlan | None) -> str:
    """Return the page."""
    settings, (status, choice) = study.settings, study.snapshot()
    style = (files("dbcare.studies.show") / "decision_page.css").read_text(encoding="utf-8")
    now = format_minute(datetime.now(UTC).timestamp())
    state = "has stopped" if choice.final else f"is {status.state}: this is how it stands, not its result"
    parts = [
        f"<h1>{escape(study.name)}</h1>",
        *([] if status.description is None else [make_paragraph(status.description)]),
        f'<p class="faint">Report of {escape(now)}. The study {escape(state)}.</p>',
        f'<div class="verdict">{"".join(map(make_paragraph, choice.sentences))}</div>',
        _make_section("Result", _make_numbers(list_results(settings, status, choice))),
        _make_section("Arms", *_show_arms(status, choice.arm, settings.sign)),
        _make_section("What it cost", _make_numbers(list_counts(settings, status)), _show_history(study)),
        _make_section("What was asked", _make_numbers(list_settings(settings, status))),
        _make_section("Plan", _make_numbers(list_promises(settings)), _show_plan(settings, plan)),
        _make_section("When it stops", *_show_rule(settings, choice.reason, study.explain())),
        _make_section("Doubts", _show_notes(status), _make_faint(ASSUMPTIONS)),
        _make_section("What people did", make_list(_list_activities(status))),
        _make_section("For the record", *_show_record(settings)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(study.name)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(parts)
        + f'\n<footer class="faint">Made by dbcare {escape(version("dbcare"))}.</footer>\n</main>\n</body>\n</html>\n'
    )


def encode_settings(settings: Settings) -> str:
    """Return the settings as one line of JSON, without the description, which may be edited."""
    plain = settings.to_dict()
    del plain["description"]
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def compute_digest(settings: Settings) -> str:
    """Return the SHA-256 of what `encode_settings` returns, in UTF-8: equal for equal settings."""
    return hashlib.sha256(encode_settings(settings).encode()).hexdigest()


def _make_section(title: str, *parts: Html) -> str:
    body = "".join(parts)
    return f"<section><h2>{escape(title)}</h2>{body}</section>" if body else ""


def _make_numbers(numbers: Iterable[Number]) -> Html:
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td><td>{escape(meaning)}</td></tr>'
        for name, value, meaning in numbers
    )
    return Html(f'<table class="numbers"><tbody>{rows}</tbody></table>' if rows else "")


def _show_arms(status: Status, chosen: str | None, sign: float) -> list[Html]:
    ranked = sorted(status.arms, key=lambda arm: -sign * (arm.estimate or 0.0))
    picture = draw_arms(ranked, chosen)
    caption = "Means corrected for selection, with 95% intervals; circles: naive means."
    figure = Html(f"<figure>{picture}<figcaption>{caption}</figcaption></figure>" if picture else "")
    left = make_list(f"{arm.name} is no longer active: {arm.left}" for arm in status.arms if arm.left)
    return [figure, make_arms(status, chosen), _make_faint(ARMS_LEGEND), left]


def _show_history(study: StudyReports) -> Html:
    picture = draw_history(study.history())
    currency = study.settings.currency or "units of the loss"
    keys = (
        '<span class="key spent">spent</span><span class="key weighed">weighed by the policy</span>'
        '<span class="key expected">expected loss of stopping</span>'
    )
    caption = f"{keys}by the number of rewards, in {escape(currency)}."
    return Html(f"<figure>{picture}<figcaption>{caption}</figcaption></figure>" if picture else "")


def _show_plan(settings: Settings, plan: FiledPlan | None) -> Html:
    if plan is None:
        return Html("")
    if not hasattr(plan, "_repr_html_") or not hasattr(plan, "setting"):
        raise InvalidValueError(f"`plan` must be a Plan but got {show(plan)}.")
    planned = plan.setting
    given = (planned.arms, planned.risk.costs(planned.arms), planned.risk.value, str(planned.risk.loss))
    if given != (len(settings.arms), settings.costs, settings.value, settings.risk):
        raise InvalidValueError("`plan` must be for this study but has other arms, prices, or another value or risk.")
    return Html(plan._repr_html_())


def _show_rule(settings: Settings, reason: str, decisions: list[str]) -> list[Html]:
    policy = settings.built_policy
    rule = (inspect.getdoc(type(policy)) or "").partition("\nParameters\n---")[0].strip()
    sentences = decisions if reason in decisions else [*decisions, reason]
    return [
        make_paragraph(f"{settings.policy_entry.label}. {policy.stop_rule}".strip()),
        make_list(sentences),
        _make_faint("The rule in full, with pulls for trials:"),
        *_quote_docstring(rule),
    ]


def _quote_docstring(text: str) -> list[Html]:
    """Return the paragraphs of a docstring; those that are laid out, as formulas and lists are, stay as they are."""
    paragraphs = [paragraph.strip("\n") for paragraph in text.split("\n\n")]
    is_laid_out = [any(line.startswith((" ", "- ")) for line in paragraph.splitlines()) for paragraph in paragraphs]
    return [
        make_code([paragraph]) if laid_out else _make_faint(" ".join(paragraph.replace("`", "").split()))
        for paragraph, laid_out in zip(paragraphs, is_laid_out, strict=True)
    ]


def _show_notes(status: Status) -> Html:
    if status.notes:
        return make_list(status.notes)
    return make_paragraph("The rewards contradict none of the assumptions that are checked.")


def _list_activities(status: Status) -> list[str]:
    lines = []
    if status.created is not None:
        by = "" if status.created_by is None else f" by {status.created_by}"
        lines.append(f"{format_minute(status.created)}: created{by}")
    for activity in status.activities:
        about = "".join(f"{before}{text}" for before, text in ((" ", activity.arm), (": ", activity.note)) if text)
        by = "" if activity.by is None else f" (by {activity.by})"
        lines.append(f"{format_minute(activity.at)}: {activity.what}{about}{by}")
    return lines


def _show_record(settings: Settings) -> list[Html]:
    return [
        make_paragraph(
            f"{DIGEST_NAME} of the settings: {compute_digest(settings)}. It is that of the following line in UTF-8; "
            "studies with the same digest ask for the same trials, given the same rewards."
        ),
        make_code([encode_settings(settings)]),
        make_paragraph("The trials are not part of this page: export them with the study, and file them with it."),
    ]


def _make_faint(text: str) -> Html:
    return Html(f'<p class="faint">{escape(text)}</p>')
