"""The report of a study: one page to print and file away, without scripts or resources from elsewhere."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Iterable
from datetime import UTC, datetime
from html import escape
from importlib.metadata import version
from importlib.resources import files
from typing import Any, Protocol

from dbcare.base.checks import show
from dbcare.base.html import Html, make_code, make_list, make_paragraph
from dbcare.base.times import format_minute
from dbcare.errors import InvalidValueError
from dbcare.live.decision_numbers import ASSUMPTIONS, Number, list_counts, list_promises, list_results, list_settings
from dbcare.live.decision_pictures import draw_arms, draw_history
from dbcare.live.notebook import make_arms
from dbcare.live.settings import Settings
from dbcare.live.status import Status
from dbcare.live.study_reports import StudyReports

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
    style = (files("dbcare.live") / "decision_page.css").read_text(encoding="utf-8")
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
