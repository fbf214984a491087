"""The paper's drug data: secukinumab for rheumatoid arthritis, five treatments.

Source: Genovese et al. 2013, Table 2, week 16. Counts of patients who reached ACR20 / ACR50 / ACR70, out of all
treated. The ACR20 counts give the paper's binary means. They are of 236 patients; the paper says 237. The trial's
registry, NCT00928512, has one more on 25 mg: 54 started.

We have not seen the ACR50 and ACR70 columns themselves. Four tables of whole numbers fit all five leveled means of the
paper (0.230, 0.227, 0.200, 0.196, 0.102) and are listed in `LEVELED_TABLES`. The one other figure that we know, ACR50
of 9/43 for 150 mg, rules out the fourth. That SECUKINUMAB is the first is our choice: in all others, 10 patients on
75 mg reach ACR50 and none of them ACR70.
"""

from typing import NamedTuple

from dbcare import validation
from dbcare.rewards import Bernoulli, Categorical


class Treatment(NamedTuple):
    """One treatment of the trial: the number of patients, and how many reached each response level."""

    name: str
    patients: int
    acr20: int
    acr50: int
    acr70: int


SECUKINUMAB = (
    Treatment("300 mg", 41, 22, 7, 2),
    Treatment("75 mg", 49, 23, 9, 1),
    Treatment("150 mg", 43, 20, 9, 2),
    Treatment("placebo", 50, 18, 3, 0),
    Treatment("25 mg", 53, 18, 8, 4),
)

NAMES = tuple(treatment.name for treatment in SECUKINUMAB)
LEVELED_TABLES: tuple[dict[str, tuple[int, int]], ...] = (  # ACR50 and ACR70 where a table differs from SECUKINUMAB
    {},
    {"75 mg": (10, 0), "25 mg": (7, 5)},
    {"75 mg": (10, 0), "25 mg": (14, 0)},
    {"75 mg": (10, 0), "150 mg": (5, 3), "25 mg": (13, 3)},
)


def drug_binary() -> tuple[Bernoulli, ...]:
    """Return arms with reward 1 for a patient who reaches ACR20; sigma 1/2."""
    return tuple(Bernoulli(treatment.acr20 / treatment.patients) for treatment in SECUKINUMAB)


def drug_leveled(reading: str, table: int) -> tuple[Categorical, ...]:
    """Return arms with reward 0.2, 0.5 or 0.7 by response level, else 0; sigma 0.35 (half the range).

    `exclusive` is the paper's reading: the three rates are treated as mutually exclusive, so that
    P(0.2) = ACR20, P(0.5) = ACR50, P(0.7) = ACR70. `nested` counts each patient once, at the best level
    reached: 0.2*P20 + 0.3*P50 + 0.2*P70. The two have different means and different best arms.

    `table`, from 1 to 4, chooses among `LEVELED_TABLES`.
    """
    validation.one_of("reading", reading, ("exclusive", "nested"))
    changes = LEVELED_TABLES[validation.whole("table", table, at_least=1, at_most=len(LEVELED_TABLES)) - 1]
    arms = []
    for treatment in SECUKINUMAB:
        at20, (at50, at70) = treatment.acr20, changes.get(treatment.name, (treatment.acr50, treatment.acr70))
        if reading == "nested":
            at20, at50 = at20 - at50, at50 - at70
        none = treatment.patients - at20 - at50 - at70
        shares = tuple(count / treatment.patients for count in (none, at20, at50, at70))
        arms.append(Categorical((0.0, 0.2, 0.5, 0.7), shares))
    return tuple(arms)
