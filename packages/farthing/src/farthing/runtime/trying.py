"""What a log says of trying cheaper models: who is paid, when answers are the same, the price."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from farthing import plugins
from farthing.errors import InputError, UnknownNameError
from farthing.models.config import ModelsConfig
from farthing.models.prices import Price, PriceTable, list_price
from farthing.models.providers import cheaper_models, missing_keys, models_named, settings_of
from farthing.models.thinking import split_name
from farthing.promises.statistics.binomial import trials_needed
from farthing.runtime.job import Job
from farthing.runtime.judged import JudgedReplay
from farthing.runtime.replay import OTHER_SYSTEM, Replay, system_of, unsendable
from farthing.tasks.base import Task
from farthing.tasks.text import TEXT
from farthing.traces.files import RequestLog, read_log

SAMPLE = 1_500
"""Requests that are drawn where nobody says how many."""
LOSSES = (Fraction(1, 200), Fraction(1, 100), Fraction(1, 50), Fraction(1, 20))
"""The losses whose savings are shown, proved together."""
FIRST_LOOK = Fraction(3, 5)
"""6 / pi^2, rounded down: what of delta the first proof on some questions spends."""
DELTA = Fraction(1, 10)
ALIKE = 0.95
"""Share of the answers that must be short, or JSON, for exact comparison; and of the requests that
must have one system prompt, for the others to be left out."""
LONGEST_LABEL = 60
"""Letters of an answer that is compared as it is."""
LOOKED_AT = 1_000
_NUMBER = re.compile(r"[-+]?[$€£]?\d[\d,]*(?:\.\d+)?%?\.?")


@dataclass(frozen=True)
class Sameness:
    """When two answers are the same."""

    task: str
    """Name of the task that compares them."""
    said: str
    """Why, in words."""


@dataclass(frozen=True)
class NextTry:
    """The command that asks cheaper models, and what it would cost."""

    command: str
    likely_usd: float | None
    """None: what a model costs is not known."""
    provable: tuple[tuple[float, int], ...]
    """Loss to the fewest questions that prove it, if hardly any answer differs."""
    keys: tuple[str, ...] = ()
    """Environment variables that it needs, and that hold no key yet."""

    def lines(self) -> list[str]:
        """Say its price, and from how many questions on something can be proved."""
        price = "what nobody knows yet (--price MODEL=IN,OUT)"
        if self.likely_usd is not None:
            price = f"likely ${self.likely_usd:,.2f}"
        asked = f"Cheaper models, asked a sample of it: {price}."
        most = "The next command says the most that it can cost, and asks before it pays."
        said = [f"{asked} {most}", enough(self.provable)]
        if self.keys:
            said.append(f"It needs a key in {' and '.join(self.keys)}, where there is none yet.")
        return said


def enough(provable: Iterable[tuple[float, int]]) -> str:
    """Say from how many questions on a loss can be proved."""
    proofs = ", ".join(f"{100 * loss:g} points from {n:,}" for loss, n in provable)
    return f"A sample is enough for a proof. A loss can be proved of about: {proofs} questions."


def provable(delta: Fraction = DELTA) -> tuple[tuple[float, int], ...]:
    """Return from how many questions on each loss is proved, half of them training.

    >>> provable()[-1]
    (0.05, 164)
    """
    share = delta * FIRST_LOOK / len(LOSSES)
    return tuple((float(loss), 2 * trials_needed(loss, share)) for loss in LOSSES)


def proposed(log: RequestLog, reference: str) -> Sameness:
    """Return when answers are the same, by what a log's answers look like.

    Raises:
        InputError: they are prose, whose sameness no comparison of texts can tell.
    """
    calls = [request.call(reference) for request in log.requests]
    answers = [call.answer for call in calls if call is not None and call.answer][:LOOKED_AT]
    if not answers:
        raise InputError(f"{reference} gave no answer in this log; name another with --reference")
    for task, fits, said in (
        ("json", _is_json, "the logged answers are JSON: compared by their values"),
        ("gsm8k", _is_number, "the logged answers are numbers: compared as numbers"),
        ("text", _is_short, "the logged answers are short: compared as texts, without case"),
    ):
        if sum(map(fits, answers)) >= ALIKE * len(answers):
            return Sameness(task, said)
    typical = sorted(map(len, answers))[len(answers) // 2]
    raise InputError(
        f"the logged answers are prose (half of them have {typical:,} letters and more), and two "
        "texts that say the same are seldom equal: name a model that says which are the same with "
        "--judge PROVIDER/MODEL, or compare as texts all the same with --task text"
    )


def _is_json(answer: str) -> bool:
    inside = answer.strip().removeprefix("```json").strip("`").strip()
    try:
        return isinstance(json.loads(inside), dict | list)
    except (ValueError, RecursionError):
        return False


def _is_number(answer: str) -> bool:
    return _NUMBER.fullmatch(answer.strip()) is not None


def _is_short(answer: str) -> bool:
    return len(answer) <= LONGEST_LABEL and "\n" not in answer.strip()


@dataclass(frozen=True)
class Wanted:
    """What is to be tried."""

    models: tuple[str, ...]
    """Names as `models.providers` reads them."""
    n: int | None = SAMPLE
    seed: int = 0
    reference: str | None = None
    """The logged model, or how it is reached; None: who is paid most."""
    task: str | None = None
    """How answers are compared; None: as the log proposes."""
    judge: str | None = None
    """The model that says which answers are the same; None: a comparison does."""


@dataclass(frozen=True)
class Trying:
    """A replay that is ready, and what is to be said of it."""

    replay: Replay
    sameness: Sameness
    asks_again: bool
    """Whether the reference can be reached, so that it is asked again."""
    judged: JudgedReplay | None = None
    """Who says what is the same; None: the task does."""
    notes: tuple[str, ...] = ()


def prepare(log: RequestLog, file: str, wanted: Wanted, prices: Mapping[str, Price]) -> Trying:
    """Return what asks cheaper models a sample of a log.

    Raises:
        InputError: a model is unknown or has no key, nothing can be asked again, or answers are
            prose.
    """
    reference = _reference(log, wanted.reference)
    sameness = _sameness(log, reference, wanted)
    task: Task = plugins.load("tasks", sameness.task)
    asked = models_named(wanted.models, prices)
    how = wanted.reference or reference
    notes: list[str] = []
    try:
        again = models_named([how], prices)
    except InputError as problem:
        again = ModelsConfig({}, {}, PriceTable(prices))
        notes.append(
            f"{reference} is not asked again, so how often it agrees with itself stays unknown, "
            f"and no gateway can be set up ({problem}); --reference PROVIDER/MODEL, or URL#MODEL, "
            "says how it is reached"
        )
    called = next(iter(again.sections), reference)
    if called in asked.sections:
        raise InputError(f"{called} is the model that is paid for today; name cheaper ones")
    models = ModelsConfig({**asked.sections, **again.sections}, {}, PriceTable(prices))
    names = tuple(asked.sections)
    replay = Replay(
        file,
        log,
        reference,
        models,
        names,
        task,
        wanted.n,
        wanted.seed,
        system_prompt=_system_prompt(log, reference),
        called=called,
    )
    notes += _left_out(replay)
    judged = None
    if wanted.judge is not None:
        judged = JudgedReplay.named(replay, wanted.judge, prices)
    return Trying(replay, sameness, bool(again.sections), judged, tuple(notes))


def _system_prompt(log: RequestLog, reference: str) -> str | None:
    """Return the system prompt that almost all requests have; None where there is none such.

    A gateway serves what is proved of one system prompt, so that a few others would be in the way.
    """
    fit = [one for one in log.requests if unsendable(one, reference) is None]
    found = Counter(map(system_of, fit)).most_common(1)
    return found[0][0] if found and found[0][1] >= ALIKE * len(fit) else None


def _left_out(replay: Replay) -> list[str]:
    why, of = dict(replay.left_out), len(replay.log.requests)
    other = why.pop(OTHER_SYSTEM, 0)
    notes = []
    if why:
        some = "; ".join(f"{n:,} since {reason}" for reason, n in why.items())
        lost = sum(why.values())
        share = f"{lost:,} of {of:,} requests ({lost / of:.1%})"
        notes.append(f"{share} are left out, as they cannot be asked again: {some}")
    if other:
        notes.append(
            f"{other:,} of {of:,} requests ({other / of:.1%}) are left out, as their system prompt "
            "is not that of the others: a gateway serves what is proved of one"
        )
    return notes


def _sameness(log: RequestLog, reference: str, wanted: Wanted) -> Sameness:
    """Return when answers are the same: as is asked for, else as the log proposes."""
    if wanted.judge is not None:
        return Sameness(wanted.task or "text", f"{wanted.judge} says which answers are the same")
    if wanted.task is not None:
        return Sameness(wanted.task, "as you said")
    return proposed(log, reference)


def replay_of(job: Job) -> Replay:
    """Return the replay that a job of the mode `replay` says: its questions are a log."""
    section, path = job.section, Path(job.section.questions)
    log = read_log([path])
    models = replace(
        job.models, sections={name: job.models.sections[name] for name in section.pool}
    )
    return Replay(
        job.file,
        log,
        _reference(log, section.reference),
        models,
        tuple(section.pool),
        plugins.load("tasks", section.task),
        section.limit,
        section.seed or 0,
        at_once=section.at_once,
    )


def _reference(log: RequestLog, named: str | None) -> str:
    models = list(log.models)
    if named is None or len(models) == 1:
        return models[0]
    bare = named.partition("#")[2] or named.partition("/")[2]
    for name in (named, bare):
        if name in models:
            return name
    raise UnknownNameError("model of the log", named, models)


def next_try(log: RequestLog, paths: Sequence[Path], named: str | None = None) -> NextTry:
    """Return the command that asks cheaper models a sample, with what it is likely to cost.

    Args:
        log: of one model a question.
        paths: its files.
        named: the model that is paid for today; None: the one that most was paid for.

    Raises:
        UnknownNameError: it has no such model.
    """
    if named is not None and named not in log.models:
        raise UnknownNameError("model of the log", named, log.models)
    reference = named or next(iter(log.models))
    calls = [request.call(reference) for request in log.requests]
    known = [c for c in calls if c and c.input_tokens is not None and c.output_tokens is not None]
    tokens = (300, 50)
    if known:
        tokens = (
            sum(c.input_tokens or 0 for c in known) // len(known),
            sum(c.output_tokens or 0 for c in known) // len(known),
        )
    names = cheaper_models(list_price(split_name(reference)[0]), tokens) or ["PROVIDER/MODEL"]
    n = min(SAMPLE, len(log.requests))
    likely = _likely(log, reference, names, n)
    cap = 1 if likely is None else max(1, round(2 * likely + 0.5))
    files = " ".join(shlex.quote(str(path)) for path in paths)
    held = "" if named is None or len(log.models) == 1 else f" --reference {shlex.quote(named)}"
    command = f"farthing try {files} --models {','.join(names)}{held} --sample {n} --max-cost {cap}"
    return NextTry(command, likely, provable(), missing_keys(names))


def _likely(log: RequestLog, reference: str, names: Sequence[str], n: int) -> float | None:
    try:
        settings = [settings_of(name) for name in names]
    except InputError:
        return None
    prices = [one.price(PriceTable()) for one in settings]
    replay = Replay("", log, reference, ModelsConfig({}, {}, PriceTable()), (), TEXT, n)
    try:
        usages = [replay.usage(one) for one in replay.sample.values()]
    except InputError:
        return None
    if any(price is None for price in prices):
        return None
    return sum(p.cost_nano(usage, 1.0) for p in prices if p for usage in usages) / 1e9
