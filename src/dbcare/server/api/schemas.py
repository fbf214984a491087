"""What requests and responses of the API hold; those with options are built from their definitions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, WrapValidator, create_model
from pydantic.json_schema import WithJsonSchema
from pydantic_core import PydanticKnownError

from dbcare.base.options import NamedOption, Option, OptionKind, named_options
from dbcare.planner.options import PlanOptions
from dbcare.planner.plan import plan
from dbcare.studies import stored
from dbcare.studies.api import create_study
from dbcare.studies.assignment import Assignment
from dbcare.studies.options import MAX_ARMS, MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH, MAX_PENDING, StudyOptions
from dbcare.studies.record.ask_and_tell import AskOutcome
from dbcare.studies.results.status import Recommendation, Status
from dbcare.studies.stores.base import StudyRecord
from dbcare.studies.trial import MAX_REASON_LENGTH, MAX_TAG_LENGTH, TaggedNumber

MAX_OUTCOMES_PER_REQUEST = 10_000  # more would keep other studies waiting for a second
MAX_TRIALS_PER_REQUEST = 1_000
STUDIES_PER_PAGE, MAX_STUDIES_PER_PAGE = 100, 1_000
MAX_KEY_LENGTH = 200  # of an idempotency key

Number = Annotated[float, Field(allow_inf_nan=False)]

Name = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH)]
Reason = Annotated[str, Field(min_length=1, max_length=MAX_REASON_LENGTH)]
Tag = Annotated[str, Field(min_length=1, max_length=MAX_TAG_LENGTH)]
TrialNumber = Annotated[int, Field(ge=1, lt=2**53)]


def strict(**example: Any) -> ConfigDict:
    """Return a configuration that rejects unknown fields and shows an example."""
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})


class Listed(BaseModel):
    """A study in one line."""

    name: str
    state: Literal["running", "paused", "stopped"]
    arms: int
    rewards: int  # counted
    spent: float
    currency: str | None  # null if amounts are in units of the loss
    recommended: str | None
    verdict: str

    created: float  # in seconds since 1970
    created_by: str | None  # name of the key

    @classmethod
    def from_record(cls, record: StudyRecord) -> Listed:
        """Summarize a study."""
        standing = record.standing
        return cls(
            name=record.name,
            state=standing.state,  # type: ignore[arg-type]  # one of these three
            arms=len(record.settings["arms"]),
            rewards=standing.rewards,
            spent=standing.spent,
            currency=record.currency,
            recommended=standing.recommended or None,
            verdict=standing.verdict,
            created=record.created,
            created_by=record.created_by,
        )


class StudyOut(BaseModel):
    """A study: its settings, its status, and its recommendation."""

    name: str
    settings: dict[str, Any]
    status: Status
    recommendation: Recommendation

    @classmethod
    def from_study(cls, study: stored.StoredStudy) -> StudyOut:
        """Describe a study."""
        status, recommendation = study.snapshot()
        return cls(name=study.name, settings=study.settings.to_dict(), status=status, recommendation=recommendation)


class Checked(BaseModel):
    """The stored summary agrees with a replay of this many events."""

    events: int


class Ask(BaseModel):
    """A request for trials, as in `Study.ask`. A lease is "90s", "30m", "2h", "1d", "2w", seconds, or null.

    Null means that the lease never ends. With a `unit`, a single trial is returned: the one that this unit has, if any.
    """

    model_config = strict(n=1, lease="30m", worker="shop-3")

    n: Annotated[int, Field(ge=1, le=MAX_TRIALS_PER_REQUEST)] = 1
    lease: str | Number | None = "30m"
    worker: Name | None = None
    timeout_reward: Number | None = None
    unit: Name | None = None


class Asked(BaseModel):
    """Trials to run: fewer than `n` while rewards are pending, none after the study stops."""

    trials: list[TrialOut]
    stopped: bool

    @classmethod
    def from_result(cls, result: AskOutcome) -> Asked:
        """Describe what an ask brought."""
        return cls(trials=[TrialOut(**vars(trial)) for trial in result.trials], stopped=result.stopped)


class TrialOut(BaseModel):
    """A trial to run: of `arm`, to be told by `expires` (seconds since 1970), unless it is `told` already.

    Send the `tag` with the outcome: it is refused if the study was restored from a backup since.
    """

    id: int
    arm: str
    expires: float | None
    unit: str | None
    told: bool
    block: str | None
    tag: str | None


class Answered(BaseModel):
    """The trial that an outcome is of, by its number, and by its tag if that is to be compared."""

    trial: TrialNumber
    tag: Tag | None = None

    def identify(self) -> TaggedNumber:
        """Return which trial it is."""
        return TaggedNumber(self.trial, self.tag)


class Answer(Answered):
    """A trial's reward, and what the trial cost, if that is not its arm's price; with the trial's tag, if known."""

    model_config = strict(trial=1, tag="8c5f1be3", reward=0.7)

    reward: Number
    price: Number | None = None


class Assign(BaseModel):
    """A request for an arm to show a unit, as in `Study.assign`.

    The server hands out no new trial later than `within` seconds after it received the request. A new trial gets the
    `tag`, a random text, by which it can be given back.
    """

    model_config = strict(unit="visitor-7", fallback="old", lease="2d", within=0.5)

    unit: Name
    fallback: Name | None = None
    within: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    lease: str | Number | None = "30m"
    worker: Name | None = None
    tag: Tag | None = None


class Assigned(BaseModel):
    """The arm to show: that of the unit's `trial`, if it has one, the winner, the fallback, or the control."""

    arm: str
    reason: Literal["own trial", "new trial", "winner", "fallback", "control"]
    trial: TrialOut | None

    @classmethod
    def from_assignment(cls, found: Assignment) -> Assigned:
        """Describe an assignment."""
        trial = None if found.trial is None else TrialOut(**vars(found.trial))
        return cls(arm=found.arm, reason=found.reason, trial=trial)  # type: ignore[arg-type]  # one of these five


class UnitOutcome(BaseModel):
    """The outcome of a unit's trial: its reward, or null if it failed; the rest is as for `tell` and `fail`."""

    model_config = strict(unit="visitor-7", reward=1.0)

    unit: Name
    reward: Number | None = None
    charged: bool = True
    price: Number | None = None
    reason: Reason | None = None


class GiveBack(BaseModel):
    """A unit whose trial is given back at no charge, if it has the `tag` of the request that was answered too late."""

    model_config = strict(unit="visitor-7", tag="8c5f1be39dbd4a1e")

    unit: Name
    tag: Tag


class Recorded(BaseModel):
    """Whether anything was recorded: false for a unit without such a trial."""

    recorded: bool


class Answers(BaseModel):
    """Many rewards: all are recorded, or none."""

    model_config = strict(answers=[{"trial": 1, "reward": 0.7}, {"trial": 2, "reward": 0.0}])

    answers: Annotated[list[Answer], Field(max_length=MAX_OUTCOMES_PER_REQUEST)]


class Failure(Answered):
    """A trial that gave no reward, and maybe why; with the trial's tag, if known.

    `charged` says whether it cost anything: `price`, or else its arm's price.
    """

    model_config = strict(trial=1, tag="8c5f1be3", charged=False)

    charged: bool = True
    price: Number | None = None
    reason: Reason | None = None


class GiveUp(BaseModel):
    """Pending trials to give up, as in `Study.give_up`: these, or all, of one worker or older than "10m" if stated."""

    model_config = strict(worker="shop-3", older_than="10m")

    trials: Annotated[list[TrialNumber], Field(max_length=MAX_OUTCOMES_PER_REQUEST)] | None = None
    worker: Name | None = None
    older_than: str | Number | None = None


class GivenUp(BaseModel):
    """How many trials were given up."""

    given_up: int


class Observed(BaseModel):
    """A reward of `arm` that was observed elsewhere, in a `block` if the study has blocks."""

    arm: Name
    reward: Number
    block: Name | None = None


class Observations(BaseModel):
    """Observations to add, as in `Study.add`: they count in this order, and are charged."""

    model_config = strict(observations=[{"arm": "A", "reward": 0.7}])

    observations: Annotated[list[Observed], Field(max_length=MAX_OUTCOMES_PER_REQUEST)]


class Stop(BaseModel):
    """Why to stop a study for good."""

    model_config = strict(reason="the campaign is over")

    reason: Reason = "stopped by hand"


class Describe(BaseModel):
    """A study's new description; null removes it."""

    model_config = strict(description="Which headline sells best this spring?")

    description: Annotated[str, Field(min_length=1, max_length=MAX_DESCRIPTION_LENGTH)] | None


class MaxAhead(BaseModel):
    """How many trials may be pending; null for the default."""

    model_config = strict(max_ahead=5_000)

    max_ahead: Annotated[int, Field(ge=1, le=MAX_PENDING)] | None


class Retire(BaseModel):
    """An arm to retire, and why."""

    model_config = strict(arm="C", reason="out of stock")

    arm: Name
    reason: Reason = "withdrawn"


class Health(BaseModel):
    """The service is alive, or ready."""

    status: str
    version: str


class Problem(BaseModel):
    """Problem details (RFC 9457); `error` names the library's exception, `request_id` the request in the log."""

    type: str
    title: str
    status: int
    detail: str
    error: str | None = None
    request_id: str | None = None


MAX_PLANNED_ARMS = 32
MAX_EXACT_INTEGER = 2**53  # in floating point
Weight = Annotated[
    Number,
    WrapValidator(lambda weight, check: math.inf if weight == "inf" else check(weight)),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string", "const": "inf"}]}),
]
# One number for all arms: of several, the library says what to do instead.
OneForAllArms = Annotated[
    Number, WrapValidator(lambda value, check: value if isinstance(value, list | dict) else check(value))
]
ONE_FOR_ALL_ARMS = ("value",)


def make_model(
    title: str, doc: str, options: list[NamedOption], config: ConfigDict, fields: dict[str, tuple[Any, Any]]
) -> type[BaseModel]:
    """Return a model with `fields`, and one field per option."""
    option_fields = {named.name: (_field_type(named), named.default) for named in options}
    return create_model(title, __config__=config, __doc__=doc, **fields, **option_fields)  # type: ignore[call-overload,no-any-return]  # the fields are known only here


def _field_type(named: NamedOption) -> Any:
    kind = OneForAllArms if named.name in ONE_FOR_ALL_ARMS else _base_type(named.option)
    return Annotated[kind | None if named.default is None else kind, Field(description=named.option.help)]


def _base_type(option: Option) -> Any:
    if option.choices is not None:
        return _choice_type(option.choices)
    types: dict[OptionKind, Any] = {
        OptionKind.NUMBER: Number,
        OptionKind.WHOLE: Annotated[int, Field(ge=option.minimum, **_upper_bound(option.maximum))],
        OptionKind.TEXT: Annotated[str, Field(min_length=1, max_length=option.longest)],
        OptionKind.FLAG: bool,
        OptionKind.PER_ARM: Number | list[Number] | dict[str, Number],
        OptionKind.WEIGHT: Weight,
        OptionKind.INTERVAL: Annotated[list[Number], Field(min_length=2, max_length=2)],
        OptionKind.NUMBERS: Annotated[list[Number], Field(min_length=1, max_length=option.longest)],
        OptionKind.TRIALS: Annotated[int, Field(ge=option.minimum, **_upper_bound(option.maximum))]
        | Annotated[str, Field(min_length=1, max_length=option.longest)],
        OptionKind.BLOCKS: Annotated[int, Field(ge=option.minimum, **_upper_bound(option.maximum))]
        | Annotated[list[Name], Field(min_length=option.minimum, max_length=option.longest)],
        OptionKind.NAMES: Annotated[list[Name], Field(min_length=1, max_length=option.longest)],
    }
    return types[option.kind]


def _upper_bound(maximum: int | None) -> dict[str, Any]:
    """Return a bound that stays exact in a JSON schema, whose numbers are read as floating point."""
    return {"le": maximum} if maximum is None or maximum <= MAX_EXACT_INTEGER else {"lt": maximum + 1}


def _choice_type(choices: Callable[[], Sequence[str]]) -> Any:
    """Return the type of a choice. Choices are listed for every request, since policies may be registered later."""

    def check(value: str) -> str:
        if value not in choices():
            raise PydanticKnownError("literal_error", {"expected": f"one of {', '.join(map(repr, choices()))}"})
        return value

    return Annotated[str, AfterValidator(check), WithJsonSchema({"type": "string", "enum": list(choices())})]


NewStudy = make_model(
    "NewStudy",
    "A new study, as in `dbcare.create_study`: a price and a value, or a cost; the spread of the rewards "
    "as sigma, baseline, bounds or binary, or nothing to learn it.",
    named_options(StudyOptions, create_study),
    strict(name="ads", arms=["A", "B", "C"], price=0.4, value=20000, sigma=0.5),
    {
        "name": (Name, ...),
        "arms": (Annotated[list[Name], Field(min_length=2, max_length=MAX_ARMS)], ...),
    },
)

PlanFor = make_model(
    "PlanFor",
    "An experiment to plan, as in `dbcare.plan`.",
    named_options(PlanOptions, plan),
    strict(arms=3, price=0.4, value=20000, sigma=0.5),
    {
        "arms": (
            Annotated[int, Field(ge=2, le=MAX_PLANNED_ARMS)]
            | Annotated[list[Name], Field(min_length=2, max_length=MAX_PLANNED_ARMS)],
            ...,
        )
    },
)
