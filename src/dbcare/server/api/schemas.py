"""What requests and answers of the API look like. Amounts are in money where a study has a value, times in UTC."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from dbcare.live.report import Recommendation, Status
from dbcare.live.stored_study import Study

Number = Annotated[float, Field(allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1, max_length=200)]
Reason = Annotated[str, Field(min_length=1, max_length=1000)]
MOST = 50_000  # answers at once


def _example(**example: Any) -> ConfigDict:
    return ConfigDict(extra="forbid", json_schema_extra={"examples": [example]})


class NewStudy(BaseModel):
    """As `dbcare.create_study`: a price and a value, or a cost; sigma, or bounds, or binary."""

    model_config = _example(name="ads", arms=["A", "B", "C"], price=0.4, value=20000, sigma=0.5)

    name: Name
    arms: Annotated[list[Name], Field(min_length=2, max_length=1000)]
    price: Number | list[Number] | None = None
    value: Number | None = None
    cost: Number | list[Number] | None = None
    direction: Literal["maximize", "minimize"] = "maximize"
    risk: Literal["simple_regret", "misidentification"] = "simple_regret"
    sigma: Number | None = None
    bounds: Annotated[list[Number], Field(min_length=2, max_length=2)] | None = None
    binary: bool = False
    policy: Literal["breakeven", "breakeven-racing", "dbcare"] = "breakeven"
    max_spend: Number | None = None
    max_ahead: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    timeout_reward: Number | None = None
    unit: Name = "USD"
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class Listed(BaseModel):
    """A study in one line."""

    name: str
    state: Literal["running", "paused", "stopped"]
    arms: int
    counted: int
    spent: float
    unit: str | None  # of money; null where amounts are in units of the loss
    recommended: str
    verdict: str

    @classmethod
    def of(cls, study: Study) -> Listed:
        """That line."""
        status, choice, settings = study.status(), study.recommendation(), study.settings
        return cls(
            name=study.name,
            state=status.state,  # type: ignore[arg-type]  # one of them
            arms=len(settings.arms),
            counted=status.counted,
            spent=status.spent,
            unit=None if settings.value is None else settings.unit,
            recommended=choice.arm,
            verdict=choice.verdict,
        )


class StudyOut(BaseModel):
    """A study: what it was made with, where it stands, what it recommends."""

    name: str
    settings: dict[str, Any]
    status: Status
    recommendation: Recommendation

    @classmethod
    def of(cls, study: Study) -> StudyOut:
        """All of that."""
        return cls(
            name=study.name,
            settings=study.settings.to_dict(),
            status=study.status(),
            recommendation=study.recommendation(),
        )


class Checked(BaseModel):
    """The stored summary agrees with a replay of so many events."""

    events: int


class Ask(BaseModel):
    """As `Study.ask`. A lease is such as "90s", "30m", "2h", "1d", a number of seconds, or null for ever."""

    model_config = _example(n=1, lease="30m", worker="shop-3")

    n: Annotated[int, Field(ge=1, le=1_000)] = 1
    lease: str | Number | None = "30m"
    worker: Name | None = None
    timeout_reward: Number | None = None


class Asked(BaseModel):
    """Trials to make: fewer than asked for, or none, while answers are awaited; none for good once it has stopped."""

    trials: list[TrialOut]
    stopped: bool


class TrialOut(BaseModel):
    """One observation to make: of `arm`, to be told until `expires` (seconds since 1970)."""

    id: int
    arm: str
    expires: float | None


class Answer(BaseModel):
    """What came of a trial."""

    model_config = _example(trial=1, reward=0.7)

    trial: Annotated[int, Field(ge=1, lt=2**53)]
    reward: Number


class Answers(BaseModel):
    """Many at once: all are taken, or none."""

    model_config = _example(answers=[{"trial": 1, "reward": 0.7}, {"trial": 2, "reward": 0.0}])

    answers: Annotated[list[Answer], Field(max_length=MOST)]


class Failure(BaseModel):
    """A trial that gave no reward; `charged` says whether it cost its price all the same."""

    model_config = _example(trial=1, charged=False)

    trial: Annotated[int, Field(ge=1, lt=2**53)]
    charged: bool = True


class Observation(BaseModel):
    """A reward of an arm, observed elsewhere."""

    arm: Name
    reward: Number


class Observations(BaseModel):
    """As `Study.add`: they count in this order, and are charged."""

    model_config = _example(observations=[{"arm": "A", "reward": 0.7}])

    observations: Annotated[list[Observation], Field(max_length=MOST)]


class Stop(BaseModel):
    """Why a study is ended for good."""

    model_config = _example(reason="the campaign is over")

    reason: Reason = "stopped by hand"


class Retire(BaseModel):
    """An arm that is withdrawn, and why."""

    model_config = _example(arm="C", reason="out of stock")

    arm: Name
    reason: Reason = "withdrawn"


class PlanFor(BaseModel):
    """As `dbcare.plan`: what experimenting would cost, before any data."""

    model_config = _example(arms=3, price=0.4, value=20000, sigma=0.5)

    arms: Annotated[int, Field(ge=2, le=32)]
    price: Number | list[Number] | None = None
    value: Number | None = None
    cost: Number | list[Number] | None = None
    sigma: Number | None = None
    baseline: Number | None = None
    risk: Literal["simple_regret", "misidentification"] = "simple_regret"
    bound: Number | None = None
    gaps: Annotated[list[Number], Field(min_length=1, max_length=12)] | None = None
    runs: Annotated[int, Field(ge=2, le=1_000)] | None = None
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0


class Health(BaseModel):
    """All is well."""

    status: str
    version: str


class Problem(BaseModel):
    """RFC 9457; `error` names the library's exception."""

    type: str
    title: str
    status: int
    detail: str
    error: str | None = None
