"""promptfoo's output: the JSON document of an evaluation, or its results one a line.

An answer is right where all assertions of its test passed; without assertions it is ungraded.
Source: `EvaluateSummaryV3` and `EvaluateResult` in promptfoo's `src/types/index.ts`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from farthing.models.thinking import effort_of
from farthing.models.usage import read_usage
from farthing.traces.base import CallError
from farthing.traces.importers.base import ImportedCall, ImportEvent, LeftOut, Options
from farthing.traces.importers.chat import failure_of, read_prompt, read_reply
from farthing.traces.importers.row import FileRow, RowPlace, call_error
from farthing.traces.importers.source import Source
from farthing.traces.parameters import LIMIT, parameters_of

_RESULT = {"provider", "prompt", "testCase", "promptIdx", "vars", "gradingResult"}
_NO_SAY = "graderError"
"""Marks the result of an assertion whose grader failed: it says nothing of the answer."""
_OWN = ("prompt", "completion", "completionDetails")
"""The tokens of a reply; beside them stand those of promptfoo's cache and of its graders."""
_CRASHED = 2
"""`failureReason` of a result that is an error, not a wrong answer."""


@dataclass(frozen=True)
class Promptfoo:
    """Reads one call a result."""

    name: str = "promptfoo"
    meaning: str = "promptfoo's output JSON"

    def sniff(self, source: Source) -> bool:
        """Return whether the document, or each line, has results of tests."""
        if source.first is None:
            return False
        results = _results(source.first)
        if results is not None:
            first = results[1][0] if results[1] else None
            return first is None or (isinstance(first, dict) and len(_RESULT & first.keys()) > 2)
        return len(_RESULT & source.fields) > 2

    def read(self, source: Source, options: Options) -> Iterator[ImportEvent]:
        """Yield the results, each a provider's reply to a rendered prompt."""
        found = _results(source.first or FileRow({}, RowPlace(source.name)))
        rows = source.rows if found is None else partial(source.elements, found[1], found[0])
        columns = _Columns(source.first or FileRow({}, RowPlace(source.name)), rows())
        for row in rows():
            yield _recorded(row, options, columns)


PROMPTFOO = Promptfoo()


def _results(document: FileRow) -> tuple[str, list[object]] | None:
    """Return where the list of results is in a document, and the list."""
    outer = document.values.get("results")
    if isinstance(outer, list):
        return "results", outer
    inner = outer.get("results") if isinstance(outer, dict) else None
    return ("results.results", inner) if isinstance(inner, list) else None


class _Columns:
    """The columns of an evaluation, each a provider with a prompt; some are of one name."""

    def __init__(self, document: FileRow, rows: Iterable[FileRow]) -> None:
        self._configured = _configured(document)
        self.made_at = document.part("results").when("timestamp")
        listed = document.part("results").inner("prompts")
        prompts = [one for one in listed or () if isinstance(one, dict)]
        found = {
            at: (prompt.get("provider"), prompt.get("raw") or prompt.get("label"))
            for at, prompt in enumerate(prompts)
        }
        seen = {
            column: _named(row) for row in rows if (column := row.count("promptIdx")) is not None
        }
        self._of = dict(sorted((found or seen).items()))

    def parameters(self, row: FileRow) -> FileRow | None:
        """Return how the provider of a result is configured; None where nobody says."""
        place, n = self._place(row)
        configs = self._configured.get(_name(row) or "", [])
        if len(configs) == n:
            return configs[place]
        return configs[0] if configs and all(one == configs[0] for one in configs) else None

    def mark(self, row: FileRow) -> str:
        place, n = self._place(row)
        configs = self._configured.get(_name(row) or "", [])
        efforts = {effort_of(parameters_of(config.values)) for config in configs}
        return f"#{place + 1}" if place and len(efforts) < n else ""

    def _place(self, row: FileRow) -> tuple[int, int]:
        """Return how many columns before a result's are of the same name, and how many in all."""
        column = row.count("promptIdx")
        alike = [at for at, one in self._of.items() if one == self._of.get(column or 0)]
        return (alike.index(column), len(alike)) if column in alike else (0, 1)


def _named(row: FileRow) -> tuple[str | None, str | None]:
    return _name(row), row.part("prompt").text("label", "id") or row.text("promptId")


def _name(row: FileRow) -> str | None:
    provider = row.part("provider")
    return provider.text("label", "id") or (None if provider.values else row.text("provider"))


def _configured(document: FileRow) -> Mapping[str, list[FileRow]]:
    """Return how the providers that a document names are configured, by label or else by id."""
    providers = document.part("config").inner("providers")
    found: dict[str, list[FileRow]] = {}
    for provider in providers if isinstance(providers, list) else []:
        row = FileRow(
            provider if isinstance(provider, dict) else {"id": str(provider)}, document.place
        )
        found.setdefault(row.text("label", "id") or "", []).append(row.part("config"))
    return found


def _recorded(row: FileRow, options: Options, columns: _Columns) -> ImportedCall | LeftOut:
    provider = row.part("provider")
    named = provider.text("id") or (row.text("provider") if not provider.values else None)
    model = _name(row)
    if model is None:
        raise row.place.refusal("provider", "is missing; every result has it")
    prompt = read_prompt(row.part("prompt").text("raw") or row.find("prompt")[1])
    if prompt is None:
        return LeftOut("a result without its prompt")
    response = row.part("response")
    usage = read_usage({k: v for k, v in response.part("tokenUsage").values.items() if k in _OWN})
    cost, error = row.paid("cost") or response.paid("cost"), _error(row, response)
    milliseconds = None if response.values.get("cached") is True else row.number("latencyMs")
    graded = error is None and _asserts(row)
    score = _score(row, options.score) if graded else None
    by_name = graded and options.score is not None
    passed = row.flag("success") if graded and not by_name else None
    return ImportedCall(
        place=row.place,
        model=model + columns.mark(row),
        **vars(prompt),
        priced_at=columns.made_at,
        parameters=_parameters(row, columns.parameters(row)),
        text=read_reply(response.find("output")[1]),
        correct=options.grade(score) if by_name else passed,
        score=score,
        cost_usd=cost,
        usages=() if usage is None else (usage,),
        latency_s=None if milliseconds is None else milliseconds / 1_000,
        error=error,
        provider=named.partition(":")[0] if named and ":" in named else None,
        priced_as=named.rpartition(":")[2] if named else None,
    )


def _parameters(row: FileRow, configured: FileRow | None) -> dict[str, Any] | None:
    """Return a provider's parameters; promptfoo has defaults of its own for those not named.

    A prompt's configuration, with the options of its test, goes before the provider's.
    """
    own = row.part("provider").part("config")
    provider = own if own.values else configured
    if provider is None:
        return None
    said = {**provider.values, **row.part("prompt").part("config").values}
    return parameters_of(said, "temperature", LIMIT) if said else None


def _asserts(row: FileRow) -> bool:
    """Return whether anything was asserted of the reply, and every grader could say."""
    parts = row.part("gradingResult").inner("componentResults")
    for part in parts if isinstance(parts, list) else []:
        if (
            FileRow(part if isinstance(part, dict) else {}, row.place)
            .part("metadata")
            .find(_NO_SAY)[1]
        ):
            return False
    return bool(parts or row.part("testCase").inner("assert"))


def _score(row: FileRow, name: str | None) -> float | None:
    if name is None:
        return row.score("score")
    return row.part("namedScores").score(name)


def _error(row: FileRow, response: FileRow) -> CallError | None:
    if row.count("failureReason") != _CRASHED and not response.text("error"):
        return failure_of({"finish_reason": response.find("finishReason")[1] or ""})
    return call_error(response.text("error") or row.text("error"))
