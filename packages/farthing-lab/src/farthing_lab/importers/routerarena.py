"""RouterArena's files: what a router chose and what came of it, or what one model said to all.

`router_inference/predictions/ROUTER.json` has one entry a question, with the model that the router
chose. `cached_results/MODEL.jsonl` has one line a question, of one model; those of several models
are a pool. A cost of 0 had no price and is unknown; a call that did not succeed has no grade.

Source: Lu and others 2025, arXiv:2510.00202; `router_inference/generate_prediction_file.py`,
`llm_inference/run.py` and `llm_evaluation/run.py` of `RouteWorks/RouterArena`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from farthing.traces.importers.base import ImportedCall, ImportEvent, LeftOut, Options
from farthing.traces.importers.row import FileRow, call_error
from farthing.traces.importers.source import Source

ID = ("global_index", "global index")
CACHED = frozenset({"global_index", "llm_selected", "generated_answer"})
CHOSEN = frozenset({"prompt", "prediction", "generated_result"})


@dataclass(frozen=True)
class RouterArena:
    """Reads one call an entry or line."""

    name: str = "routerarena"
    meaning: str = "RouterArena's predictions of a router, or cached results of a model"

    def sniff(self, source: Source) -> bool:
        fields = source.fields
        return fields >= CACHED or (fields >= CHOSEN and bool(fields & set(ID)))

    def read(self, source: Source, options: Options) -> Iterator[ImportEvent]:
        for row in source.rows():
            if "llm_selected" in row.values:
                found = row.part("evaluation_result")
                score, cost = found.score("score"), found.paid("inference_cost")
                yield _call(row, row, found, (score, cost), options)
            else:
                reply = row.part("generated_result")
                judged = row.score("accuracy"), row.paid("cost")
                yield _call(row, reply, FileRow({}, row.place), judged, options)


ROUTERARENA = RouterArena()


def _call(
    row: FileRow,
    reply: FileRow,
    evaluated: FileRow,
    judged: tuple[float | None, float | None],
    options: Options,
) -> ImportedCall | LeftOut:
    """Return a call.

    Args:
        row: the entry, with the question and the model.
        reply: what the model said, and whether it did.
        evaluated: the answer that was read off the reply, and the accepted one, where kept.
        judged: the score and the cost.
        options: what counts as right.
    """
    name, model = row.text(*ID), row.text("llm_selected", "prediction")
    question = row.text("question", "prompt")
    if model is None:
        return LeftOut("an entry without the model that was chosen")
    if question is None and name is None:
        return LeftOut("an entry without question and index")
    if not reply.values:
        return LeftOut("an entry whose model was not asked yet")
    failed = reply.flag("success") is False
    tokens = FileRow({}, reply.place) if failed else reply.part("token_usage")
    score, cost = judged
    score = None if failed else score
    text, answer = reply.text("generated_answer"), evaluated.text("extracted_answer")
    gold = evaluated.find("ground_truth")[1]
    return ImportedCall(
        place=row.place,
        model=model,
        id=name,
        question=question or "",
        group=name.rpartition("_")[0] or None if name else None,
        gold=(gold.strip(),) if isinstance(gold, str) else (),
        text=text,
        answer=answer if answer != text else None,
        correct=options.grade(score),
        score=score,
        cost_usd=cost,
        input_tokens=tokens.count("input_tokens"),
        output_tokens=tokens.count("output_tokens"),
        error=call_error(reply.text("error")) if failed else None,
        provider=reply.text("provider"),
    )
