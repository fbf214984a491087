"""The form that creates a study: every option has a field, and a new option needs no code of its own."""

import math
import re
from typing import Any

import pytest

from dbcare.base.options import NamedOption, Option, OptionKind
from dbcare.errors import InvalidValueError
from dbcare.server.access.gate import Visitor
from dbcare.server.access.roles import Role
from dbcare.server.api.schemas import NewStudy
from dbcare.server.pages.new import (
    LABELS,
    OPTIONS,
    OWN_FIELDS,
    SPREADS,
    WITHOUT_FIELD,
    StudyForm,
    parse_field,
    parse_form,
)
from dbcare.server.pages.rendering import templates

VALID = {"name": "ads", "arms": "A\nB", "price": "0.4", "value": "20000"}
RATE = {"rewards": "baseline", "baseline": "0.04"}


def render_form(typed: dict[str, str], more: list[NamedOption], wrong_field: str = "") -> str:
    """Render the page with the options that are not laid out by hand."""
    return templates.get_template("new.html").render(
        visitor=Visitor(Role.ADMIN, "me"),
        typed=typed,
        options=OPTIONS,
        required=("price", "value"),
        spreads=SPREADS.items(),
        labels=LABELS,
        more=more,
        plan_labels={"breakeven": "Breakeven"},
        plan_policy="breakeven",
        max_planned_arms=32,
        error=None,
        wrong_field=wrong_field,
    )


def test_the_defaults_are_those_of_create_study() -> None:
    options = parse_form(StudyForm(**VALID, rewards="unknown"))
    assert options == NewStudy(name="ads", arms=["A", "B"], price=0.4, value=20_000).model_dump()
    assert options["sigma_pulls"] == 6.0


def test_every_field_of_the_form_is_read() -> None:
    """Each option that has a field reaches `create_study`."""
    typed = {
        "direction": "minimize",
        "risk": "misidentification",
        "rewards": "sigma",
        "sigma": "2",
        "sigma_pulls": "inf",
        "cap": "5",
        "control": "A",
        "policy": "dbcare",
        "currency": "EUR",
        "seed": "7",
        "description": "Which page?",
        "max_spend": "500",
        "max_ahead": "9",
        "not_before": "14d",
        "timeout_reward": "-1.5",
        "missing": "at random",
        "rounds": "true",
        "blocks": "200",
        "only_these_blocks": "true",
    }
    assert VALID.keys() | typed.keys() | {"low", "high", "baseline"} == StudyForm.model_fields.keys()
    options = parse_form(StudyForm(**VALID, **typed))
    assert {name: options[name] for name in typed if name != "rewards"} == {
        "direction": "minimize",
        "risk": "misidentification",
        "sigma": 2.0,
        "sigma_pulls": math.inf,
        "cap": 5.0,
        "control": "A",
        "policy": "dbcare",
        "currency": "EUR",
        "seed": 7,
        "description": "Which page?",
        "max_spend": 500.0,
        "max_ahead": 9,
        "not_before": "14d",
        "timeout_reward": -1.5,
        "missing": "at random",
        "rounds": True,
        "blocks": 200,
        "only_these_blocks": True,
    }
    assert parse_form(StudyForm(**VALID, rewards="unknown", blocks="q1, q2,q3"))["blocks"] == ["q1", "q2", "q3"]


def test_the_page_has_a_field_for_every_option() -> None:
    typed = StudyForm().model_dump()
    laid_out = {name for name in typed if f'name="{name}"' in render_form(typed, [])}
    more = [named for name, named in OPTIONS.items() if name not in (*WITHOUT_FIELD, *laid_out)]
    page = render_form(typed, more)
    names = re.findall(r'<(?:input|select|textarea)[^>]*? name="(\w+)"', page)
    assert set(names) == OPTIONS.keys() - set(WITHOUT_FIELD) | OWN_FIELDS.keys()
    assert [name for name in names if name != "rewards"] == sorted(set(names) - {"rewards"}, key=names.index)
    for name in set(names) - {"rewards"}:  # messages call a field what its label says
        assert f'<label for="{name}">{LABELS[name]}' in page
    assert set(re.findall(r'name="(\w+)"[^>]* required', page)) == {"name", "arms", "price", "value"}


@pytest.mark.parametrize(
    ("option", "default", "typed", "value", "tag"),
    [
        (Option(OptionKind.NUMBER, "A number."), None, "0.5", 0.5, 'inputmode="decimal"'),
        (Option(OptionKind.WHOLE, "A whole number."), 3, "4", 4.0, 'inputmode="numeric"'),
        (Option(OptionKind.TEXT, "A text."), "a", "b", "b", 'inputmode="text"'),
        (Option(OptionKind.FLAG, "A flag."), True, "false", False, '<option value="false" selected>no</option>'),
        (Option(OptionKind.CHOICE, "A choice.", lambda: ["a", "b"]), "a", "b", "b", '<option value="b" selected>b<'),
        (Option(OptionKind.PER_ARM, "One or more."), None, "1;2", [1.0, 2.0], 'inputmode="text"'),
        (Option(OptionKind.PER_ARM, "One or more."), None, "1", 1.0, 'inputmode="text"'),
        (Option(OptionKind.PER_ARM, "One or more."), None, "A=1, B b=2", {"A": 1.0, "B b": 2.0}, 'inputmode="text"'),
        (Option(OptionKind.WEIGHT, "A weight."), 6.0, "inf", "inf", 'inputmode="text"'),
        (Option(OptionKind.WEIGHT, "A weight."), 6.0, "3", 3.0, 'inputmode="text"'),
        (Option(OptionKind.INTERVAL, "Two."), None, "-1 2", [-1.0, 2.0], 'inputmode="text"'),
        (Option(OptionKind.NUMBERS, "Some."), None, "1", [1.0], 'inputmode="text"'),
    ],
)
def test_an_option_of_any_kind_gets_a_field(option: Option, default: Any, typed: str, value: Any, tag: str) -> None:
    """Without a label, the field shows the option's name."""
    named = NamedOption("patience", option, default)
    page = render_form({**StudyForm().model_dump(), "patience": typed}, [named], wrong_field="patience")
    assert '<label for="patience">patience</label>' in page
    assert re.search(r'name="patience"[^>]*aria-invalid="true"', page)
    assert tag in page[page.index('for="patience"') :]
    assert parse_field(named, typed) == value


def test_an_empty_field_means_the_default() -> None:
    """An option without one is None; a required one must be filled in."""
    option = Option(OptionKind.NUMBER, "A number.")
    assert parse_field(NamedOption("patience", option, None), "") is None
    assert parse_field(NamedOption("patience", option, 0.5), "") == 0.5
    with pytest.raises(InvalidValueError, match="`price` is required here"):
        parse_field(NamedOption("price", option, None), "")
    with pytest.raises(InvalidValueError, match=r"`patience` must be a number but got 'x'\."):
        parse_field(NamedOption("patience", option, None), "x")


@pytest.mark.parametrize("typed", ["0,05", "60,000", "-1,5", "1.000,5", "1,234.5", ",5"])
def test_a_comma_is_no_decimal_point(typed: str) -> None:
    for kind in (OptionKind.NUMBER, OptionKind.PER_ARM):
        named = NamedOption("price", Option(kind, "A number."), None)
        with pytest.raises(InvalidValueError) as caught:
            parse_field(named, typed)
        assert str(caught.value) == (
            f"`price` must be a number but got {typed!r}; use a decimal point, and no commas between thousands."
        )


def test_rewards_decide_which_fields_count() -> None:
    """What was typed into a hidden field does not matter."""
    typed = {**VALID, "sigma": "?", "low": "?", "high": "2", "baseline": "?"}
    assert parse_form(StudyForm(**typed, rewards="binary"))["binary"]
    unknown = parse_form(StudyForm(**typed, rewards="unknown"))
    assert [unknown[name] for name in ("sigma", "baseline", "bounds", "binary")] == [None, None, None, False]
    assert parse_form(StudyForm(**typed | RATE))["baseline"] == 0.04
    for sigma, expected in (("", None), ("0.5", 0.5)):
        ranged = parse_form(StudyForm(**typed | {"rewards": "bounds", "low": "-1", "sigma": sigma}))
        assert (ranged["bounds"], ranged["sigma"]) == ([-1.0, 2.0], expected)
    for rewards, field in (("sigma", "sigma"), ("bounds", "sigma"), ("baseline", "baseline")):
        with pytest.raises(InvalidValueError, match=f"`{field}` must be a number"):
            parse_form(StudyForm(**typed, rewards=rewards))
