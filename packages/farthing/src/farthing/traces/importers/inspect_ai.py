"""Inspect AI's eval logs as JSON: one log is one model on one task.

Import the logs of several models together. `inspect log convert` writes a `.eval` log as JSON.
Source: `EvalLog`, `EvalSample` and `ModelUsage` in the reference of inspect_ai.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from farthing.models.base import Usage
from farthing.models.usage import read_usage
from farthing.traces.importers.base import (
    ImportedCall,
    Importer,
    ImportEvent,
    ImportNote,
    LeftOut,
    Options,
)
from farthing.traces.importers.chat import LoggedPrompt, failure_of, read_prompt, read_reply
from farthing.traces.importers.row import (
    FileRow,
    RowPlace,
    as_number,
    call_error,
    no_grade,
    shown,
)
from farthing.traces.importers.source import Source
from farthing.traces.system import LIMIT, parameters_of

_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
"""Correct, partly correct, incorrect, no answer."""
_SCORERS = {"scorers", "scorer"}
"""Types of the spans in which a sample is graded."""
_ATTACHED = "attachment://"


def _sniff(source: Source) -> bool:
    log = source.first.values if source.first else {}
    return isinstance(log.get("eval"), dict) and {"status", "samples"} & log.keys() != set()


def _read(source: Source, options: Options) -> Iterator[ImportEvent]:
    log = source.first or FileRow({}, RowPlace(source.name))
    about = log.part("eval")
    if about.text("model") is None:
        raise about.place.refusal("model", "is missing; this is no eval log")
    if not isinstance(log.values.get("samples"), list):
        raise log.place.refusal("samples", "are missing; import a log that was kept with them")
    # How the log says that replies were generated; Inspect has limits of its own.
    config = about.inner("model_generate_config"), log.part("plan").inner("config")
    known = [one for one in config if isinstance(one, dict)]
    merged = {name: value for one in known for name, value in one.items() if value is not None}
    parameters = parameters_of(merged, LIMIT) if known else None
    scorers: dict[str, None] = {}
    for sample in source.elements(log.values["samples"], "samples"):
        scores = sample.inner("scores")
        scorers |= dict.fromkeys(scores if isinstance(scores, dict) else ())
        scored = bool(scores or about.inner("scorers"))
        yield _found(sample, about, parameters, options, scored=scored)
    if len(scorers) > 1 and options.score is None:
        yield ImportNote(
            f"several scorers graded the answers ({', '.join(scorers)}); the first one of each "
            "sample is read; --score NAME reads another"
        )


INSPECT = Importer("inspect", "Inspect AI's eval log, as JSON", _sniff, _read, samples=True)
"""One call a sample: all that its model was asked for a sample."""


def _found(
    sample: FileRow,
    about: FileRow,
    parameters: Mapping[str, Any] | None,
    options: Options,
    *,
    scored: bool,
) -> ImportedCall | LeftOut:
    model, task = about.text("model") or "", about.text("task")
    prompt = _prompt(sample)
    if prompt is None:
        return LeftOut("a sample without its input")
    shown = _shown(sample, prompt)
    output, target = sample.part("output"), sample.find("target")[1]
    accepted = target if isinstance(target, list) else [target]
    usages, latency = _made(sample, model)
    score, said = _graded(sample, options.score)
    name, error = sample.text("id"), sample.part("error")
    return ImportedCall(
        place=sample.place,
        model=model,
        id=f"{task}-{name}" if task and name else None,
        also=name,
        question=prompt.question,
        key=prompt.key,
        system=shown.system,
        history=shown.history,
        priced_at=sample.when("started_at") or about.when("created"),
        parameters=parameters,
        group=task,
        gold=tuple(t.strip() for t in accepted if isinstance(t, str) and t.strip()),
        text=_attached(read_reply(dict(output.values)), sample),
        answer=said,
        correct=options.grade(score),
        score=score,
        unscored=score is None and scored,
        usages=usages,
        latency_s=latency,
        error=call_error(error.text("message")) if error.values else failure_of(output.values),
        provider=model.partition("/")[0] if "/" in model else None,
    )


def _made(sample: FileRow, model: str) -> tuple[tuple[Usage, ...], float | None]:
    """Return what the model's requests for a sample took, in failed tries too, and their time.

    What a judge took is not the model's, even where it is the same; without events the last reply
    tells them apart. Where a failed try shows no request, nobody knows what it took.
    """
    events = list(_model_events(sample))
    own = [event for event, judge in events if not judge and event.text("model") == model]
    output, used = sample.part("output"), sample.part("model_usage")
    judged = any(judge for _, judge in events) or _has_judge(sample)
    took = [read_usage(event.part("output").inner("usage")) for event in own]
    if not any(took):
        whole = used.inner(model) if not judged or len(used.values) > 1 else None
        took = [read_usage(whole or output.inner("usage"))]
    failed = _tries(sample)[1:]
    unseen = any(not one.inner("events") for one in failed)
    usages = () if unseen else tuple(one for one in took if one is not None)
    nobody = not used.values and "model_usage" in sample.values and any(took)
    if unseen or nobody or any(event.text("cache") == "read" for event in own):
        return usages, None
    times = [event.number("working_time") for event in own] if judged or failed else []
    if times and None not in times:
        return usages, sum(filter(None, times))
    whole_time = None if judged or failed else sample.number("working_time", "total_time")
    return usages, output.number("time") if whole_time is None else whole_time


def _model_events(sample: FileRow) -> Iterator[tuple[FileRow, bool]]:
    """Yield each request to a model, and whether it is a judge's: a scorer made it."""
    scorers: set[str] = set()
    for event in (event for one in _tries(sample) for event in one.parts("events")):
        said = event.values.get
        if said("event") == "span_begin" and (
            str(said("type")) in _SCORERS or str(said("parent_id")) in scorers
        ):
            scorers.add(str(said("id")))
        elif said("event") == "model":
            yield event, str(said("span_id")) in scorers or said("role") == "grader"


def _tries(sample: FileRow) -> list[FileRow]:
    return [sample, *sample.parts("error_retries")]


def _has_judge(sample: FileRow) -> bool:
    scores = sample.inner("scores")
    names = scores if isinstance(scores, dict) else ()
    graded = (sample.part("scores").part(name).part("metadata").inner("grading") for name in names)
    return "grader" in sample.part("role_usage").values or any(graded)


def _prompt(sample: FileRow) -> LoggedPrompt | None:
    value = sample.find("input")[1]
    prompt = read_prompt(_attached(value, sample) if isinstance(value, str) else value)
    choices = sample.inner("choices")
    if prompt is None or not isinstance(choices, list) or not choices:
        return prompt
    listed = "\n".join(f"{chr(ord('A') + i)}) {choice}" for i, choice in enumerate(choices[:26]))
    question, key = f"{prompt.question}\n{listed}", f"{prompt.key}\n{listed}"
    return replace(prompt, question=question, key=key)


def _shown(sample: FileRow, prompt: LoggedPrompt) -> LoggedPrompt:
    """Return the prompt with what the model was shown beside the input, as the messages tell.

    A solver may have written the input anew: then nobody knows what stands around it.
    """
    messages = sample.inner("messages")
    if not isinstance(messages, list) or not messages:
        return prompt
    opened = [
        {**one, "content": _attached(one["content"], sample)}
        if isinstance(one, dict) and isinstance(one.get("content"), str)
        else one
        for one in messages
    ]
    roles = [one.get("role") if isinstance(one, dict) else None for one in opened]
    last = max((at for at, role in enumerate(roles) if role == "user"), default=-1)
    whole, alone = read_prompt(opened[: last + 1]), read_prompt(opened[last : last + 1])
    if whole is None or alone is None:
        return prompt
    unchanged = prompt.question in {alone.question, whole.question}
    return replace(prompt, system=whole.system, history=whole.history if unchanged else None)


def _attached(text: str | None, sample: FileRow) -> str | None:
    if text is None or not text.startswith(_ATTACHED):
        return text
    return sample.part("attachments").text(text.removeprefix(_ATTACHED)) or text


def _graded(sample: FileRow, name: str | None) -> tuple[float | None, str | None]:
    scores = sample.inner("scores")
    if not isinstance(scores, dict) or not scores:
        return None, None
    chosen = name or next(iter(scores))
    if chosen not in scores:
        problem = f"have no '{chosen}'; there are {', '.join(map(str, scores))}"
        raise sample.place.refusal("scores", problem)
    score = sample.part("scores").part(chosen)
    answer = score.values.get("answer")
    return _value(score), answer.strip() or None if isinstance(answer, str) else None


def _value(score: FileRow) -> float | None:
    value: Any = score.find("value")[1]
    if no_grade(value):
        return None
    if value in _VALUES:
        return _VALUES[value]
    said = isinstance(value, bool) or str(value).lower() in {"yes", "no", "true", "false"}
    if not said and as_number(value) is None:
        raise score.place.refusal("value", f"is {shown(value)}; it must be C, P, I, N or a number")
    return score.score("value")
