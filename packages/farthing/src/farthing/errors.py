"""Everything that can go wrong, in one tree.

    FarthingError
    ├── InputError                 what the user handed in is wrong; the command line exits with 2
    │   ├── TraceFormatError       a trace file: file, line, field, remedy
    │   ├── QuestionFormatError    a file of questions: file, row, field, remedy
    │   ├── StoreError             a store of traces or spending that cannot be opened or written
    │   ├── TooFewTracesError      a split too small for what was asked
    │   ├── UnknownNameError       a policy, preset, task ... that nothing has registered
    │   ├── MissingPackageError    another of the project's packages is not installed
    │   ├── MissingExtraError      an optional dependency is not installed
    │   ├── BundleError            a policy bundle that is foreign, damaged or tampered with
    │   ├── ConfigError            a configuration file: file, field, remedy
    │   ├── UnpricedModelError     a model without a price where a budget applies
    │   └── UnprovedError          nothing is proved, and nobody could answer instead; exit code 1
    ├── ModelError                 a call to a model failed; what it cost is in it
    │   ├── AuthenticationError    the key is missing, wrong or not allowed to do this
    │   ├── RateLimitError         too many requests; when to come back, where it was said
    │   ├── ContextTooLongError    the prompt does not fit the model
    │   ├── ContentRefusedError    the provider will not answer this prompt
    │   │   └── FilteredReplyError its filter took the reply away
    │   ├── BadRequestError        the provider does not understand what was asked
    │   ├── RedirectedError        the endpoint is elsewhere; a key goes nowhere else
    │   ├── ModelTimeoutError      no full reply in time
    │   ├── ModelConnectionError   no connection, or it broke, or the server failed
    │   │   └── UnreachableError   nobody took the connection
    │   ├── MalformedReplyError    a reply that is not what the interface promises
    │   └── IncompleteReplyError   a reply that its provider says is not whole
    ├── BudgetError                the money is spent, or what is left cannot pay for this
    └── CalibrationError           arrays that cannot be calibrated

Every message says what was wrong, where, and what to do about it.
"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches


class FarthingError(Exception):
    """The root of every error that Farthing raises on purpose."""


class InputError(FarthingError):
    """The user's input is wrong; one line says how to mend it."""


class TraceFormatError(InputError):
    """A trace file breaks the interchange form.

    >>> print(TraceFormatError("runs.jsonl", 3, "calls[0].cost_usd", "is -1; a cost must be >= 0"))
    runs.jsonl, line 3, calls[0].cost_usd: is -1; a cost must be >= 0
    >>> print(TraceFormatError("runs.jsonl", 1, "file", "is empty"))  # the file as a whole
    runs.jsonl: is empty
    """

    def __init__(self, file: str, line: int, field: str, problem: str) -> None:
        where = file if field == "file" else f"{file}, line {line}, {field}"
        super().__init__(f"{where}: {problem}")
        self.file, self.line, self.field, self.problem = file, line, field, problem


class QuestionFormatError(InputError):
    """A file of questions is not in its task's form.

    >>> print(QuestionFormatError("dev.json, row 3", "question", "is missing; give its text"))
    dev.json, row 3, question: is missing; give its text
    """

    def __init__(self, place: str, field: str, problem: str) -> None:
        super().__init__(f"{place}, {field}: {problem}")
        self.place, self.field, self.problem = place, field, problem


class StoreError(InputError):
    """A store of traces or of spending cannot be opened, read or written."""


class TooFewTracesError(InputError):
    """There are not enough traces for what was asked; the message gives the numbers."""


MANY = 12
"""More names than these are not all listed: the nearest three are."""


class UnknownNameError(InputError):
    """Nothing is registered under this name.

    >>> print(UnknownNameError("policy", "randm", ["random", "uala"]))
    unknown policy 'randm'; did you mean 'random'? Known: random, uala
    """

    def __init__(self, kind: str, name: str, known: Iterable[str], more: str = "") -> None:
        names = sorted(known)
        close = get_close_matches(name, names, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else "."
        known = f"Known: {', '.join(names)}"
        if len(names) > MANY:
            nearest = get_close_matches(name, names, n=3, cutoff=0.0)
            known = f"Nearest of {len(names)}: {', '.join(nearest)}"
        super().__init__(f"unknown {kind} '{name}'{hint} {known}{more}")


class MissingPackageError(InputError):
    """Something comes with another of the project's packages, which is not installed.

    >>> print(MissingPackageError("farthing serve", "farthing-gateway"))
    farthing serve needs farthing-gateway; in a clone: pip install ./packages/farthing-gateway
    """

    def __init__(self, what: str, package: str) -> None:
        super().__init__(f"{what} needs {package}; in a clone: pip install ./packages/{package}")


class MissingExtraError(InputError):
    """An optional dependency is needed and absent.

    >>> print(MissingExtraError("reading Parquet", "parquet"))
    reading Parquet needs an extra; in a clone: pip install "./packages/farthing[parquet]"
    """

    def __init__(self, purpose: str, extra: str, package: str = "farthing") -> None:
        install = f'pip install "./packages/{package}[{extra}]"'
        super().__init__(f"{purpose} needs an extra; in a clone: {install}")


class BundleError(InputError):
    """A policy bundle is foreign, damaged, tampered with, or from another version."""


class ConfigError(InputError):
    """A configuration file cannot be used.

    >>> print(ConfigError("job.toml", "models.base.url", "is missing; give the endpoint's address"))
    job.toml, models.base.url: is missing; give the endpoint's address
    >>> print(ConfigError("job.toml", "file", "is not TOML"))  # the file as a whole
    job.toml: is not TOML
    """

    def __init__(self, file: str, field: str, problem: str) -> None:
        where = file if field == "file" else f"{file}, {field}"
        super().__init__(f"{where}: {problem}")
        self.file, self.field, self.problem = file, field, problem


class UnpricedModelError(InputError):
    """A budget applies, and nothing says what this model costs."""


class UnprovedError(InputError):
    """These questions prove nothing, and there is no reference that could answer instead."""


class ModelError(FarthingError):
    """A call to a model failed; it may have cost money all the same."""

    kind = "failed"
    """What the trace calls it."""
    retriable = False
    """Whether the same call may succeed later."""

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float | None = None,
        cost_nano: int | None = 0,
    ) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        """Seconds that the provider asked to wait, where it did."""
        self.cost_nano = cost_nano
        """What the failed tries cost, in nano-dollars; None where that is not known.

        A try whose outcome is unknown counts as the largest that it can cost.
        """
        self.tries = 1
        """Calls that failed."""
        self.plain = ""
        """The message without what came over the wire; empty where the two cannot be told apart."""
        self.said = ""
        """What the provider said, in its own words, without secrets."""
        self.failed: Mapping[str, str] = {}
        """All models that were asked and failed, to the kind of that, where somebody noted it."""
        self.used: tuple[int, int] | None = None
        """Input and output tokens, where a reply says that it failed and what that took."""


class AuthenticationError(ModelError):
    """The key is missing, wrong, or not allowed to do this."""

    kind = "authentication"


class RateLimitError(ModelError):
    """Too many requests or tokens in too short a time."""

    kind = "rate_limit"
    retriable = True


class ContextTooLongError(ModelError):
    """The prompt does not fit the model's context."""

    kind = "context_too_long"


class ContentRefusedError(ModelError):
    """The provider will not answer this prompt."""

    kind = "refused"


class FilteredReplyError(ContentRefusedError):
    """A filter took the reply away; another model may answer."""

    kind = "filtered"


class BadRequestError(ModelError):
    """The provider does not understand or not allow what was asked."""

    kind = "bad_request"


class RedirectedError(ModelError):
    """The endpoint says that it is elsewhere; nobody follows, so that a key goes nowhere else."""

    kind = "redirected"


class ModelTimeoutError(ModelError):
    """No full reply came in time; the provider may have worked, and charged, all the same."""

    kind = "timeout"
    retriable = True


class ModelConnectionError(ModelError):
    """There was no connection, it broke, or the server failed."""

    kind = "connection"
    retriable = True


class UnreachableError(ModelConnectionError):
    """Nobody took the connection: nothing was sent."""


class MalformedReplyError(ModelError):
    """The reply is not what the interface promises; it may have been charged."""

    kind = "malformed"
    retriable = True


class IncompleteReplyError(ModelError):
    """The provider says that its reply is not whole, as where it was cut at a limit."""

    kind = "incomplete"


class BudgetError(FarthingError):
    """The budget is spent, or what is left cannot pay for the call."""


class CalibrationError(FarthingError):
    """Scores that no threshold can be computed from."""
