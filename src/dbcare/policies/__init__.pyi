"""Public names of dbcare.policies, each listed once: `__init__.py` loads them when they are first used."""

from dbcare.base.look import Look as Look
from dbcare.base.look import PolicyKind as PolicyKind
from dbcare.policies.elimination.racing import Racing as Racing
from dbcare.policies.elimination.racing import TwoArmConfidence as TwoArmConfidence
from dbcare.policies.elimination.sprt import KnownGapSPRT as KnownGapSPRT
from dbcare.policies.literature.adaptive import Adaptive as Adaptive
from dbcare.policies.literature.chick_frazier import ChickFrazier as ChickFrazier
from dbcare.policies.literature.chick_frazier import TwoArmChickFrazier as TwoArmChickFrazier
from dbcare.policies.literature.eb_tci import EBTCI as EBTCI
from dbcare.policies.literature.kg_star import KGStar as KGStar
from dbcare.policies.literature.kl_lucb import KLLUCB as KLLUCB
from dbcare.policies.literature.kn import KN as KN
from dbcare.policies.literature.lil_ucb import LilUCB as LilUCB
from dbcare.policies.literature.lucb import LUCB as LUCB
from dbcare.policies.literature.ocba import OCBA as OCBA
from dbcare.policies.literature.track_and_stop import TrackAndStop as TrackAndStop
from dbcare.policies.literature.ugape import UGapE as UGapE
from dbcare.policies.literature.ugape import UGapEBudget as UGapEBudget
from dbcare.policies.planned import Guess as Guess
from dbcare.policies.planned import KnownGapOracle as KnownGapOracle
from dbcare.policies.planned import SequentialHalving as SequentialHalving
from dbcare.policies.planned import SuccessiveRejects as SuccessiveRejects
from dbcare.policies.planned import Uniform as Uniform
from dbcare.policies.policy import CustomPolicy as CustomPolicy
from dbcare.policies.registry import PolicyEntry as PolicyEntry
from dbcare.policies.rule import BlockRule as BlockRule
from dbcare.policies.rule import Rule as Rule
from dbcare.policies.run import Run as Run
from dbcare.policies.run import RunEvent as RunEvent
from dbcare.policies.run import Wording as Wording
from dbcare.policies.two_arm_likelihood import TwoArmLikelihood as TwoArmLikelihood

__all__: list[str]
