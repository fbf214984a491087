"""What people type for an option, and what messages call it."""

import pytest

from dbcare.base.options import find_name, parse_blocks, parse_per_arm, translate_names
from dbcare.errors import InvalidValueError

SHELL = {"sigma_pulls": "--sigma-pulls", "price": "--price", "value": "--value", "binary": "--binary", "free": "--free"}


@pytest.mark.parametrize(
    ("message", "translated", "first"),
    [
        ("`sigma_pulls` must be positive.", "`--sigma-pulls` must be positive.", "sigma_pulls"),
        ("`price[1]` must be positive.", "`--price` (entry 2) must be positive.", "price"),
        ("`price / value` must be at least 1.", "`--price / --value` must be at least 1.", "price"),
        ("Pass both but got price=None, value=2.0.", "Pass both but got no --price, --value 2.0.", "price"),
        ("One way but got binary=True and sigma=1.", "One way but got --binary and sigma=1.", "binary"),
        ("`--free` requires --failed.", "`--free` requires --failed.", None),  # spelled for a shell already
        ("`reward 1 of B` is no value, no price.", "`reward 1 of B` is no value, no price.", None),
    ],
)
def test_options_are_called_what_they_are_called_here(message: str, translated: str, first: str | None) -> None:
    assert translate_names(message, SHELL) == translated
    assert find_name(message, SHELL) == first


def test_a_label_stands_without_backticks() -> None:
    labels = {"price": "Price of a trial"}
    message = "`price[0]` must be positive, not `cost`, but got price=-1."
    assert (
        translate_names(message, labels, mark="")
        == "Price of a trial (entry 1) must be positive, not `cost`, but got Price of a trial -1."
    )


@pytest.mark.parametrize(
    ("text", "amounts"),
    [
        ("0.4", 0.4),
        ("0.4,2", [0.4, 2.0]),
        ("A=0.4,B=2", {"A": 0.4, "B": 2.0}),
        (" A = 0.4 ; B b=2e0 ", {"A": 0.4, "B b": 2.0}),
        ("A, the first=1, x:y=2", {"A, the first": 1.0, "x:y": 2.0}),
    ],
)
def test_amounts_for_all_arms_in_their_order_or_by_name(text: str, amounts: object) -> None:
    assert parse_per_arm("price", text, text.split(",")) == amounts


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x", "`price` must be a number but got 'x'."),
        ("1,,2", "`price` must be a number but got ''."),
        ("A=x", "`price` must be a number but got 'x'."),
        ("A=1,B", "`price` must have one entry for each arm, such as A=0.4, B=2, but got 'B'."),
        ("A=1,=2", "`price` must have one entry for each arm, such as A=0.4, B=2, but got '=2'."),
        ("A=1, A=2", "`price` must have one entry for each arm, such as A=0.4, B=2, but got 'A=2'."),
    ],
)
def test_amounts_that_mean_nothing(text: str, message: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        parse_per_arm("price", text, text.split(","))
    assert str(caught.value) == message


def test_blocks_are_a_number_or_names() -> None:
    assert parse_blocks("blocks", "200") == 200
    assert parse_blocks("blocks", "q1, q2,q 3") == ["q1", "q2", "q 3"]
    with pytest.raises(InvalidValueError, match="`blocks` must be a number but got 'q1'"):
        parse_blocks("blocks", "q1")
