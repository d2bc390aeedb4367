"""LLMRouterBench's results as JSON: one file is one model on one data set.

Import the files of several models together. What a file counts as a cost of 0 had no price, as that
of a model that ran at home, and is unknown. Its `split` is that of the data set, and divides
nothing here.

Source: Li and others 2026, arXiv:2601.07206; `BenchmarkResult` and `RecordResult` in
`data_collector/storage.py` of `ynulihao/LLMRouterBench`, and failures in `runner.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from farthing.traces.importers.base import ImportedCall, ImportEvent, ImportNote, LeftOut, Options
from farthing.traces.importers.row import FileRow, RowPlace, call_error
from farthing.traces.importers.source import Source

FIELDS = frozenset({"records", "performance"})
_FAILED = ("Processing failed:", "Unexpected error:")
"""How a reply begins that the collector wrote itself, since it had none."""


@dataclass(frozen=True)
class LLMRouterBench:
    """Reads one call a record."""

    name: str = "llmrouterbench"
    meaning: str = "LLMRouterBench's results of one model on one data set, as JSON"

    def sniff(self, source: Source) -> bool:
        return source.fields >= FIELDS

    def read(self, source: Source, options: Options) -> Iterator[ImportEvent]:
        about = source.first or FileRow({}, RowPlace(source.name))
        model, dataset = about.text("model_name"), about.text("dataset_name")
        if model is None:
            raise about.place.refusal("model_name", "is missing; this is no result of a model")
        named = "-".join(part for part in (dataset, about.text("split")) if part)
        if about.flag("demo"):
            yield ImportNote(f"{source.name} is of a trial run (demo) on some of the questions")
        for record in source.elements(about.values.get("records"), "records"):
            yield _found(record, model, dataset, named, options)


LLMROUTERBENCH = LLMRouterBench()


def _found(
    record: FileRow, model: str, dataset: str | None, named: str, options: Options
) -> ImportedCall | LeftOut:
    question = record.text("prompt", "origin_query")
    if question is None:
        return LeftOut("a record without its prompt")
    index, score = record.count("index"), record.score("score")
    reply = record.find("raw_output")[1]
    text = reply if isinstance(reply, str) else None
    failed = score is None and text is not None and text.startswith(_FAILED)
    return ImportedCall(
        place=record.place,
        model=model,
        id=f"{named}-{index}" if named and index is not None else None,
        also=record.text("origin_query"),
        question=question,
        group=dataset,
        gold=_accepted(record),
        text=None if failed else text,
        answer=_written(record, "prediction"),
        correct=options.grade(score),
        score=score,
        cost_usd=record.paid("cost"),
        input_tokens=None if failed else record.count("prompt_tokens"),
        output_tokens=None if failed else record.count("completion_tokens"),
        error=call_error(text) if failed else None,
    )


def _accepted(record: FileRow) -> tuple[str, ...]:
    """Return the accepted answer where it is one text or number; tests of programs are none."""
    written = _written(record, "ground_truth")
    return () if written is None else (written,)


def _written(record: FileRow, field: str) -> str | None:
    """Return a text or number as text; what else stands there says no answer."""
    value = record.find(field)[1]
    return None if value is None or isinstance(value, list | dict) else record.text(field)
