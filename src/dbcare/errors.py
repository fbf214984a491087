"""Everything that dbcare raises or warns about.

DbcareError
├── InvalidValueError (ValueError)     an argument that cannot be meant
│   └── InvalidRewardError             a reward that is no finite number
├── ProtocolError                      a run used out of turn
│   ├── NotAskedError                  told an arm other than the one asked for
│   ├── StoppedError                   told after the policy had stopped
│   └── AlreadyToldError               a trial of a study told again, with another outcome
├── EngineError                        an engine asked for what it cannot do
└── StudyError                         a live study that cannot be had
    ├── StudyExistsError               created twice
    ├── StudyNotFoundError             no such study, or no such trial in it
    ├── StudyMismatchError             loaded with other settings than it was made with
    ├── AccessError                    its server does not let this key do this
    └── StorageError                   the place where it is kept does not do its part
        └── AnswerLostError            nobody knows whether it was done

DbcareWarning (UserWarning)
├── GuessingIsBestWarning              a cost so high that no pull can pay for itself
├── NotCompiledWarning                 a policy that runs interpreted, and so slowly
└── PrecisionWarning                   a simulation that ended before its precision was reached

Messages say what must hold and what was given: "`cost` must be positive but got -1.0."
"""


class DbcareError(Exception):
    """Root of all exceptions of dbcare."""


class InvalidValueError(DbcareError, ValueError):
    """An argument that cannot be meant; nothing was changed."""


class InvalidRewardError(InvalidValueError):
    """A reward that is NaN, infinite or no number; the run still waits for it."""


class ProtocolError(DbcareError):
    """A run used out of turn; nothing was changed."""


class NotAskedError(ProtocolError):
    """A reward told for another arm than the one asked for."""


class StoppedError(ProtocolError):
    """A reward told after the policy had stopped."""


class AlreadyToldError(ProtocolError):
    """A trial of a study that was told or failed before, now with another outcome; the first one stands."""


class StudyError(DbcareError):
    """A live study that cannot be had; nothing was changed."""


class StudyExistsError(StudyError):
    """A study of that name is stored already."""


class StudyNotFoundError(StudyError):
    """No study of that name is stored, or it has no such trial."""


class StudyMismatchError(StudyError):
    """The stored study was made with other settings; the message lists what differs."""


class StorageError(StudyError):
    """The database cannot be opened, read or written; the message says why. Nothing half-written is left behind."""


class AnswerLostError(StorageError):
    """A server was asked for what must not be done twice, and did not answer: it may have been done or not."""


class AccessError(StudyError):
    """A server that wants a key, or one that may do more; the message says which role it needs."""


class EngineError(DbcareError):
    """An engine asked for what it cannot do; the message says which one can."""


class DbcareWarning(UserWarning):
    """Root of all warnings of dbcare."""


class GuessingIsBestWarning(DbcareWarning):
    """A legal cost, but so high that choosing without data is at least as good."""


class NotCompiledWarning(DbcareWarning):
    """A policy of the user's that numba cannot compile: it runs, some hundred times slower."""


class PrecisionWarning(DbcareWarning):
    """The precision asked for would take more runs than the engine makes; the result says what was reached."""
