"""RouterBench's wide table: a row a question, and for each model its score, reply and cost.

Source: Hu et al. (2024), "RouterBench: A Benchmark for Multi-LLM Routing System"; the files of
`withmartian/routerbench`, which are pickles and are written as CSV or Parquet before.
"""

import ast
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from farthing.traces.importers.base import ImportedCall, ImportEvent, LeftOut, Options
from farthing.traces.importers.row import MOST_USD, FileRow
from farthing.traces.importers.source import Source

REPLY, COST = "|model_response", "|total_cost"


@dataclass(frozen=True)
class RouterBench:
    """Reads one row a question."""

    name: str = "routerbench"
    meaning: str = "RouterBench's wide table: MODEL, MODEL|model_response, MODEL|total_cost"

    def sniff(self, source: Source) -> bool:
        return bool(_of_models(source))

    def read(self, source: Source, options: Options) -> Iterator[ImportEvent]:
        named = (field.removesuffix(REPLY).removesuffix(COST) for field in _of_models(source))
        models = [model for model in dict.fromkeys(named) if model in source.fields]
        for row in source.rows():
            prompt = _plain(row, "prompt")
            name = row.text("sample_id")
            if prompt is None and name is None:
                raise row.place.refusal("sample_id", "is missing, and so is prompt; give one")
            calls = [call for m in models if (call := _recorded(row, m, prompt, options))]
            yield from calls
            if not calls:
                yield LeftOut("no model has a score or a reply")


ROUTERBENCH = RouterBench()


def _of_models(source: Source) -> list[str]:
    fields = list(source.first.values) if source.first else []
    return [field for field in fields if field.endswith((REPLY, COST))]


def _recorded(
    row: FileRow, model: str, prompt: str | None, options: Options
) -> ImportedCall | None:
    score, reply = row.score(model), _plain(row, model + REPLY)
    if score is None and reply is None:
        return None
    return ImportedCall(
        place=row.place,
        model=model,
        id=row.text("sample_id"),
        question=prompt or "",
        group=row.text("eval_name"),
        text=reply,
        correct=options.grade(score),
        score=score,
        cost_usd=row.number(model + COST, most=MOST_USD),
    )


def _plain(row: FileRow, field: str) -> str | None:
    r"""Return a text; the files have most of them as Python's lists of one or more.

    >>> from farthing.traces.importers.row import RowPlace
    >>> _plain(FileRow({"prompt": "['Be brief.', '2 + 2?']"}, RowPlace("x.csv", 2)), "prompt")
    'Be brief.\n2 + 2?'
    """
    _, value = row.find(field)
    if isinstance(value, str) and value.strip().startswith(("['", '["')):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                value = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return row.text(field)
    if isinstance(value, list):
        return "\n".join(map(str, value)).strip() or None
    return row.text(field)
