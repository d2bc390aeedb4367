"""promptfoo's output: the JSON document of an evaluation, or its results one a line.

An answer is right where all assertions of its test passed; without assertions it is ungraded.
Source: `EvaluateSummaryV3` and `EvaluateResult` in promptfoo's `src/types/index.ts`.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from farthing.models.thinking import effort_of
from farthing.traces.base import CallError
from farthing.traces.importers.base import (
    ImportedCall,
    Importer,
    ImportEvent,
    LeftOut,
    Options,
    usages_of,
)
from farthing.traces.importers.chat import failure_of, read_prompt, read_reply
from farthing.traces.importers.row import FileRow, RowPlace, call_error
from farthing.traces.importers.source import Source
from farthing.traces.system import LIMIT, parameters_of

_RESULT = {"provider", "prompt", "testCase", "promptIdx", "vars", "gradingResult"}
_NO_SAY = "graderError"
"""Marks the result of an assertion whose grader failed: it says nothing of the answer."""
_OWN = ("prompt", "completion", "completionDetails")
"""The tokens of a reply; beside them stand those of promptfoo's cache and of its graders."""
_CRASHED = 2
"""`failureReason` of a result that is an error, not a wrong answer."""


def _sniff(source: Source) -> bool:
    if source.first is None:
        return False
    results = _results(source.first)
    if results is not None:
        first = results[1][0] if results[1] else None
        return first is None or (isinstance(first, dict) and len(_RESULT & first.keys()) > 2)
    return len(_RESULT & source.fields) > 2


def _read(source: Source, options: Options) -> Iterator[ImportEvent]:
    document = source.first or FileRow({}, RowPlace(source.name))
    found = _results(document)
    rows = source.rows if found is None else partial(source.elements, found[1], found[0])
    columns = _Columns(document, rows())
    for row in rows():
        yield _recorded(row, options, columns)


PROMPTFOO = Importer("promptfoo", "promptfoo's output JSON", _sniff, _read)


def _results(document: FileRow) -> tuple[str, list[object]] | None:
    outer = document.values.get("results")
    if isinstance(outer, list):
        return "results", outer
    inner = outer.get("results") if isinstance(outer, dict) else None
    return ("results.results", inner) if isinstance(inner, list) else None


class _Columns:
    """The columns of an evaluation, each a provider with a prompt; some are of one name."""

    def __init__(self, document: FileRow, rows: Iterable[FileRow]) -> None:
        # How the providers that a document names are configured, by label or else by id.
        self._configured: dict[str, list[FileRow]] = {}
        providers = document.part("config").inner("providers")
        for provider in providers if isinstance(providers, list) else []:
            values = provider if isinstance(provider, dict) else {"id": str(provider)}
            row = FileRow(values, document.place)
            name = row.text("label", "id") or ""
            self._configured.setdefault(name, []).append(row.part("config"))
        self.made_at = document.part("results").when("timestamp")
        listed = document.part("results").inner("prompts")
        prompts = [one for one in listed or () if isinstance(one, dict)]
        found = {
            at: (prompt.get("provider"), prompt.get("raw") or prompt.get("label"))
            for at, prompt in enumerate(prompts)
        }
        seen = {
            column: (
                _name(row),
                row.part("prompt").text("label", "id") or row.text("promptId"),
            )
            for row in rows
            if (column := row.count("promptIdx")) is not None
        }
        self._of = dict(sorted((found or seen).items()))

    def of(self, row: FileRow) -> tuple[FileRow | None, str]:
        """Return how the provider of a result is configured, and what tells its column apart.

        None is where nobody says how; the mark is empty where the efforts tell columns apart.
        """
        column = row.count("promptIdx")
        alike = [at for at, one in self._of.items() if one == self._of.get(column or 0)]
        place, n = (alike.index(column), len(alike)) if column in alike else (0, 1)
        configs = self._configured.get(_name(row) or "", [])
        efforts = {effort_of(parameters_of(config.values)) for config in configs}
        mark = f"#{place + 1}" if place and len(efforts) < n else ""
        if len(configs) == n:
            return configs[place], mark
        alone = configs and all(one == configs[0] for one in configs)
        return configs[0] if alone else None, mark


def _name(row: FileRow) -> str | None:
    provider = row.part("provider")
    return provider.text("label", "id") or (None if provider.values else row.text("provider"))


def _recorded(row: FileRow, options: Options, columns: _Columns) -> ImportedCall | LeftOut:
    provider, response = row.part("provider"), row.part("response")
    named = provider.text("id") or (row.text("provider") if not provider.values else None)
    model = _name(row)
    if model is None:
        raise row.place.refusal("provider", "is missing; every result has it")
    prompt = read_prompt(row.part("prompt").text("raw") or row.find("prompt")[1])
    if prompt is None:
        return LeftOut("a result without its prompt")
    counted = {k: v for k, v in response.part("tokenUsage").values.items() if k in _OWN}
    cost, error = row.paid("cost") or response.paid("cost"), _error(row, response)
    latency = None if response.values.get("cached") is True else row.seconds("latencyMs")
    graded, by_name = error is None and _asserts(row), options.score
    score = None
    if graded:
        score = row.score("score") if by_name is None else row.part("namedScores").score(by_name)
    passed = row.flag("success") if graded and by_name is None else None
    configured, mark = columns.of(row)
    return ImportedCall(
        place=row.place,
        model=model + mark,
        **vars(prompt),
        priced_at=columns.made_at,
        parameters=_parameters(row, configured),
        text=read_reply(response.find("output")[1]),
        correct=passed if by_name is None else options.grade(score),
        score=score,
        cost_usd=cost,
        usages=usages_of(counted),
        latency_s=latency,
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
    parts = row.part("gradingResult").parts("componentResults")
    if any(part.part("metadata").find(_NO_SAY)[1] for part in parts):
        return False
    return bool(
        row.part("gradingResult").inner("componentResults") or row.part("testCase").inner("assert")
    )


def _error(row: FileRow, response: FileRow) -> CallError | None:
    if row.count("failureReason") != _CRASHED and not response.text("error"):
        return failure_of({"finish_reason": response.find("finishReason")[1] or ""})
    return call_error(response.text("error") or row.text("error"))
