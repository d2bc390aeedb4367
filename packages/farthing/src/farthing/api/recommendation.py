"""What to use instead of the model that is paid for today."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from farthing.api.arguments import seconds_of, shown, text_of, whole_of
from farthing.api.policy import Policy
from farthing.api.questions import Traces, at_its_look, traces_of
from farthing.api.rendering import drawn
from farthing.api.wording import in_python, worded
from farthing.errors import InputError
from farthing.promises.base import Promise
from farthing.recommendation import recommend as rooms
from farthing.recommendation.plan import default
from farthing.recommendation.record import Recommendation as Found
from farthing.traces.pool import one_model_each

if TYPE_CHECKING:
    from farthing.promises.certificate import Certificate


@dataclass(frozen=True)
class Recommendation:
    """A method, its promise and what it saves; printed, it is what the terminal shows."""

    found: Found
    source: str
    counted: bool = False
    """Whether a store counts the proofs on these questions."""

    @property
    def policy(self) -> Policy:
        """The policy, proved, which can be evaluated, saved and asked."""
        return Policy(self.found.bundle, method=self.found.name)

    @property
    def certificate(self) -> "Certificate | None":
        """What is promised."""
        return self.found.certificate

    def save(self, folder: str | Path) -> None:
        """Write the bundle.

        Raises:
            BundleError: the folder holds another proved bundle, or something else.
        """
        self.policy.save(folder)

    def to_json(self) -> dict[str, Any]:
        """Return what `farthing recommend --json` prints."""
        return self.found.to_json()

    def __str__(self) -> str:
        """Return what `farthing recommend` prints."""
        from farthing.reports.recommend import screen  # noqa: PLC0415 - only where it is drawn

        following = "Next: `save` keeps the policy; `print(found.details())` says what was tried."
        if self.found.nothing_cheaper:
            following = "Next: record more questions, or promise less."
        return drawn(screen(self.found, self.source, None, None, following, counted=self.counted))

    def details(self) -> str:
        """Return what was tried on which questions, the exact promise and all notes."""
        from farthing.reports.recommend import in_detail  # noqa: PLC0415 - only where it is drawn

        return drawn(in_detail(self.found))


@worded
def recommend(
    traces: Traces,
    promise: Promise | None = None,
    *,
    reference: str | None = None,
    deadline_s: float | None = None,
    holdout: int | None = None,
    seed: int = 0,
) -> Recommendation:
    """Choose the method that keeps a promise for the least money, prove it, and measure it.

    A store counts the proofs made on its questions: each after the first is made at a smaller share
    of delta, and of a store that `farthing try` made the first as well.

    Args:
        traces: the questions; what each of them does is decided here.
        promise: Parity, Agreement, Coverage or Selective; None: parity with the reference of a
            pool, agreement where nobody graded answers, coverage for questions in rounds.
        reference: the model that is paid for today; None: the promise's, else a guess, the one
            that most was paid for: the screen and the notes then say so.
        deadline_s: what 19 of 20 questions may take, in seconds.
        holdout: questions that only measure; None: a tenth, at most 500, of 2,000 and more. With
            fewer, what is proved side by side is measured on the questions that prove.
        seed: of the division and of every training.

    Raises:
        InputError: nothing can be recommended for this promise, or no method can run here; or the
            promise names another reference; or one model was asked each question.
        TooFewTracesError: there are too few questions.
    """
    questions = traces_of(traces, "the questions")
    dataset = questions.dataset
    if promise is not None and not isinstance(promise, Promise):
        raise InputError(
            f"the promise is {shown(promise)}; give a record, such as ft.Parity('gpt-4o', 0.02)"
        )
    named = getattr(promise, "reference", None)
    if reference is not None and named is not None and reference != named:
        raise InputError(
            f"the promise is held against {named}, and the reference is {shown(reference)}; name "
            "one of them, or the same twice"
        )
    seed = whole_of(seed, "seed", 0)
    if one_model_each(questions.arrays):
        raise InputError(
            f"every question of {dataset.name} was answered by one model, so there is nothing to "
            "compare yet; `farthing try LOG --models PROVIDER/MODEL --max-cost 5` asks others a "
            "sample of a log"
        )
    said = ""
    if questions.tries:
        from farthing.runtime.tried import usual_promise  # noqa: PLC0415 - models, where needed

        asked = promise or usual_promise(questions.tries) or default(questions.arrays)
        look = at_its_look(questions, asked, [reference, deadline_s, holdout, seed])
        promise, said = look.promise, look.note
        dataset = replace(dataset, conditions=look.conditions)
    found = rooms.recommend(
        dataset,
        promise,
        reference=None if reference is None else text_of(reference, "the reference", "gpt-4o"),
        deadline_s=None if deadline_s is None else seconds_of(deadline_s, "deadline_s"),
        holdout=None if holdout is None else whole_of(holdout, "holdout", 0),
        seed=seed,
    )
    found = found.noted(said) if said else found
    found = replace(
        found,
        notes=tuple(map(in_python, found.notes)),
        caveats=tuple(map(in_python, found.caveats)),
        outlook=in_python(found.outlook),
    )
    return Recommendation(found, dataset.name, counted=bool(questions.tries))
