"""Everything that dbcare raises or warns about.

DbcareError
├── InvalidValueError (ValueError)     an invalid argument
│   └── InvalidRewardError             a non-finite reward
├── ProtocolError                      a run used out of turn
│   ├── NotAskedError                  told an arm other than the one asked for
│   ├── StoppedError                   told after the policy had stopped
│   ├── AlreadyToldError               a trial told again, with a different outcome
│   └── StaleTrialError                a trial asked before the study was restored or copied
├── EngineError                        an engine cannot answer the question
├── WorkCancelledError                 work that nobody waits for any more
├── ComparisonError                    an arm of a comparison does not work
├── TrialsFailedError                  an arm of a study that is run does not work
└── StudyError                         a study that is unavailable
    ├── StudyExistsError               the name is taken
    ├── StudyNotFoundError             no such study
    │   └── TrialNotFoundError         no such trial in it
    ├── StudyMismatchError             loaded with settings other than those it was created with
    ├── UnknownPolicyError             its policy is not installed here
    ├── AccessError                    the server does not allow this key to do this
    └── StorageError                   the storage backend failed
        └── AnswerLostError            nobody knows whether the request took effect

DbcareWarning (UserWarning)
├── GuessingIsBestWarning              a cost so high that no pull can pay for itself
├── NotCompiledWarning                 a policy that runs interpreted, and therefore slowly
├── PolicyNotLoadedWarning             an installed package whose policy cannot be loaded
└── PrecisionWarning                   a simulation that ended before it reached the requested precision

Messages about invalid arguments say what must hold and what was given: "`cost` must be positive but got -1.0."
"""


class DbcareError(Exception):
    """Base class for dbcare exceptions.

    Examples
    --------
    >>> import dbcare
    >>> try:
    ...     dbcare.Risk.simple_regret(cost=-1.0)
    ... except dbcare.DbcareError as error:
    ...     print(error)
    `cost` must be positive but got -1.0.
    """


class InvalidValueError(DbcareError, ValueError):
    """Invalid argument; nothing was changed."""


class InvalidRewardError(InvalidValueError):
    """The reward is not a finite number, or not one that this study accepts; the trial still waits for its reward."""


class ProtocolError(DbcareError):
    """A run was used out of turn; nothing was changed."""


class NotAskedError(ProtocolError):
    """A reward was told for an arm other than the one asked for."""


class StoppedError(ProtocolError):
    """A reward was told after the policy had stopped."""


class AlreadyToldError(ProtocolError):
    """The trial was told or failed before with a different outcome; the first outcome stands."""


class StaleTrialError(ProtocolError):
    """The study was restored from a backup, or copied, since this trial was asked; nothing was recorded."""


class StudyError(DbcareError):
    """Base class for study errors; nothing was changed."""


class StudyExistsError(StudyError):
    """A study with that name already exists."""


class StudyNotFoundError(StudyError):
    """No study has that name, or the study has no such trial."""


class TrialNotFoundError(StudyNotFoundError):
    """No such trial was asked in the study."""


class StudyMismatchError(StudyError):
    """The stored study was created with different settings; the message lists the differences."""


class UnknownPolicyError(StudyError):
    """The study uses a policy that is not registered in this process; the message names it."""


class StorageError(StudyError):
    """The database cannot be opened, read or written; the message says why. Nothing half-written remains."""


class AnswerLostError(StorageError):
    """No response to a request that isn't safe to retry; it may have succeeded."""


class AccessError(StudyError):
    """The server requires a key, or one with more rights; the message says which role it needs."""


class EngineError(DbcareError):
    """The engine cannot answer this question; the message says which one can."""


class WorkCancelledError(DbcareError):
    """The work was cancelled, since nobody waits for its result any more."""


class ComparisonError(DbcareError):
    """A function that `compare` calls fails on every question; its last exception is the cause."""


class TrialsFailedError(DbcareError):
    """An arm failed several times in a row in `Study.run`; the last exception is the cause. The study can go on."""


class DbcareWarning(UserWarning):
    """Base class for dbcare warnings."""


class GuessingIsBestWarning(DbcareWarning):
    """The cost is legal, but so high that choosing without data is at least as good."""


class NotCompiledWarning(DbcareWarning):
    """Numba cannot compile the policy, so it runs interpreted, several hundred times slower."""


class PolicyNotLoadedWarning(DbcareWarning):
    """An installed package declares a policy that cannot be loaded; all other policies work."""


class PrecisionWarning(DbcareWarning):
    """The requested precision would take more runs than the engine makes; the result says what was reached."""
