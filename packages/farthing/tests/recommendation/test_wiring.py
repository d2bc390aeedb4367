"""What is known of questions reaches what needs it, and comes from where it may.

Each test is of one wire: cut it, or join it to the next one, and the test fails.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up_pool import asked_again, pool, questions
from told_pool import both, paid, records, traces

import farthing as ft
from farthing.errors import InputError
from farthing.methods.cards import card
from farthing.promises.base import Promise
from farthing.promises.certificate import Certificate
from farthing.promises.statistics.clusters import Clusters, clustered_p_values
from farthing.recommendation import candidates
from farthing.recommendation.evaluate import evaluate
from farthing.recommendation.splits import Roles, Split, split_four_ways
from farthing.traces.arrays import TraceArrays
from farthing.traces.eligibility import alike, only
from farthing.traces.fingerprint import question_hashes

TRAIN = traces(records("train", both(120, lost=12), sure=[0.5, 0.9] * 60))


def small() -> ft.Policy:
    return ft.fit("always-small", TRAIN)


def drawn(right: dict[str, list[bool]], chance: list[float]) -> ft.Traces:
    """Return questions of which each was put to large with its own probability."""
    found = records("held", right, sure=[0.9] * len(chance))
    for record, probability in zip(found, chance, strict=True):
        record["calls"][-1]["asked_probability"] = probability
    return traces(found)


# Questions that were drawn with different probabilities


def lossy(n: int, lost: int, often: float) -> ft.Traces:
    """Return n questions whose first ones are lost, and were drawn `often` times as likely."""
    chance = [0.1 * often if i < lost else 0.1 for i in range(n)]
    return drawn(both(n, lost=lost), chance)


@pytest.mark.parametrize("asked", [ft.Parity("large", 0.1), ft.Agreement("large", 0.1)], ids=str)
def test_a_question_counts_by_the_probability_of_its_draw(asked: Promise) -> None:
    """A tenth is lost of 600, and stands for far fewer where it was likelier to be drawn."""
    policy = small().calibrate(lossy(600, 70, 10.0), asked)
    assert policy.certificate is not None
    assert policy.certificate.promises
    with pytest.raises(InputError):
        small().calibrate(drawn(both(600, lost=70), [0.1] * 600), asked)


@pytest.mark.slow
@pytest.mark.parametrize("asked", [ft.Parity("large", 0.1), ft.Agreement("large", 0.1)], ids=str)
def test_losses_that_were_seldom_drawn_are_many(asked: Promise) -> None:
    """Thirty of 600 are lost; each stands for ten that were not drawn."""
    assert small().calibrate(drawn(both(600, lost=30), [0.1] * 600), asked).certificate
    with pytest.raises(InputError):
        small().calibrate(lossy(600, 30, 0.1), asked)


WEIGHING = "only a proof of parity or agreement can weigh"
OTHERS = {
    "coverage": ft.Coverage(0.5),
    "pac": ft.Coverage(0.5, 0.2),
    "selective": ft.Selective(0.5),
    "escalated": ft.Selective(0.5, 0.2, "large", 0.3),
    "budget": ft.Budget("0.1", "0.5"),
    "parity": ft.Parity("large", 0.3, per="request"),
    "agreement": ft.Agreement("large", 0.3, per="request"),
}


@pytest.mark.parametrize("asked", OTHERS.values(), ids=OTHERS)
def test_what_cannot_weigh_questions_refuses_those_that_were_not_drawn_alike(
    asked: Promise,
) -> None:
    with pytest.raises(InputError, match=WEIGHING):
        small().calibrate(lossy(200, 10, 5.0), asked)


# What proving questions may not decide


def test_who_is_paid_most_in_training_is_the_reference() -> None:
    """Whatever is paid for on the questions that prove."""
    right = dict.fromkeys(("small", "medium", "large"), [True] * 120)
    policy, held = ft.fit("always-small", traces(records("train", right))), records("held", right)
    for cost_usd in (0.0002, 0.1):
        found = policy.calibrate(traces(paid(held, {"medium": cost_usd})), ft.Parity(None, 0.1))
        assert found.certificate is not None
        assert found.certificate.promise.held_to == "large"


PER_REQUEST = pytest.mark.parametrize(
    "asked",
    [
        ft.Parity("large", 0.3, per="request"),
        ft.Agreement("large", 0.3, per="request"),
    ],
    ids=["parity", "agreement"],
)


def requests(seed: int, times: int) -> TraceArrays:
    """Return 150 questions that were asked so many times each, and others for another seed."""
    found = asked_again(pool(150, seed), times)
    ids = np.char.add(f"{seed}-", found.ids)
    return replace(found, ids=ids, content=found.content + np.uint64(1_000 * seed))


def by_request(asked: Promise) -> ft.Policy:
    """Return what is proved where a question was asked thrice in training, and then five times."""
    policy = ft.fit("always-small", questions(requests(1, 3)))
    return policy.calibrate(questions(requests(2, 5)), asked)


@PER_REQUEST
def test_the_bound_of_a_promise_per_request_is_of_training(asked: Promise) -> None:
    certificate = by_request(asked).certificate
    assert certificate is not None
    assert certificate.promise.per_request.most == 3  # type: ignore[attr-defined]
    assert (certificate.n, certificate.requests) == (150, 750)


@PER_REQUEST
def test_what_is_measured_by_request_errs_at_a_fortieth_at_either_end(asked: Promise) -> None:
    test = requests(3, 2)
    judged = by_request(asked).evaluate(questions(test)).found.judged
    assert judged is not None
    low, high = judged.interval
    small, large = test.correct[:, 0, 0].astype(float), test.correct[:, 0, 2].astype(float)
    same = (test.answer[:, 0, 0] == test.answer[:, 0, 2]).astype(float)
    of_parity = ((small - large, high), (large - small, -low))
    ends = of_parity if asked.kind == "parity" else ((same, high), (1 - same, 1 - low))
    _, first, which = np.unique(test.content, return_index=True, return_inverse=True)
    clusters = Clusters(first[which], 3)
    for values, end in ends:
        assert clustered_p_values(values[:, None], clusters, end)[0] == pytest.approx(
            0.025, rel=1e-4
        )


@pytest.mark.slow
def test_at_worst_no_question_with_an_unknown_call_trains() -> None:
    arrays = only(pool(600, 6), ("small", "large"))
    lacking = np.arange(600) % 4 == 0
    made = arrays.made.copy()
    made[lacking, 0, 0] = False
    log = replace(
        arrays,
        made=made,
        answer=np.where(made, arrays.answer, -1).astype(np.int16),
        correct=arrays.correct & made,
        cost_nano=np.where(made, arrays.cost_nano, 0),
        signals={name: np.where(made, x, np.nan) for name, x in arrays.signals.items()},
    )
    asked = ft.Traces(replace(questions(log).dataset, missing="worst"))
    found = ft.recommend(asked, ft.Parity("large", 0.4)).found
    trained = found.bundle.questions["train"]
    assert 100 < len(trained) <= found.sizes["train"]
    assert not trained & question_hashes(log.take(lacking))
    assert found.bundle.questions["calibrate"] & question_hashes(log.take(lacking))


# What is measured


def test_an_evaluation_counts_questions_as_if_they_were_drawn_alike() -> None:
    """Of 400 questions all that were seldom drawn stay, and a tenth of the others."""
    log = lossy(400, 200, 10.0)
    stay = alike(log.arrays, np.arange(400))
    lost = int((stay < 200).sum())
    assert 5 < lost < 40
    found = small().evaluate(log)
    assert found.value.yours.questions == len(stay) == 200 + lost
    assert found.metrics["accuracy"] == pytest.approx(200 / len(stay))


def test_a_folder_is_evaluated_as_if_all_were_drawn_alike(tmp_path: Path) -> None:
    """Of 200 lost ones, each of which was drawn for certain, a tenth is counted."""
    log = lossy(400, 200, 10.0)
    small().save(tmp_path / "bundle")
    sizes = {"train": 1, "calibrate": 1, "test": 398}
    found = evaluate(tmp_path / "bundle", log.arrays, split=Split(0, sizes))
    assert 195 < found.value.yours.questions < 250
    assert 0.85 < found.metrics["accuracy"] < 0.97


@pytest.mark.slow
def test_figures_of_questions_that_chose_allow_for_the_choice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their intervals are wider than those of the one point that was chosen would be."""
    monkeypatch.setattr(candidates, "cards", lambda: [card("pool-gain")])
    arrays = pool(500, 3)
    found = ft.recommend(questions(arrays), ft.Parity("large", 0.05)).found
    assert not found.held_out
    proving = split_four_ways(arrays, 0, Roles(choose=False, measure=False)).prove
    one, value = (
        found.found.value,
        ft.Policy(found.bundle).evaluate(questions(arrays.take(proving))).value,
    )
    assert (one.saved, one.gained) == (value.saved, value.gained)
    assert one.saved_interval is not None
    assert value.saved_interval is not None
    widths = [high - low for low, high in (one.saved_interval, value.saved_interval)]
    assert 1.1 < widths[0] / widths[1] < 2.2
    assert found.found.judged is None


def test_at_worst_an_unknown_call_would_have_been_right() -> None:
    """So a question that nobody is known to have right is not solved by asking nobody.

    Of a hundred questions both have ten wrong; of four of these small was not asked.
    """
    found = records("held", both(100, lost=20, neither=10))
    for record in found[20:24]:
        record["calls"] = record["calls"][1:]
    log = traces(found)
    worst = ft.Traces(replace(log.dataset, missing="worst"))
    metrics = small().evaluate(worst).metrics
    assert metrics["solvable"] == pytest.approx(0.94)
    assert metrics["coverage"] == pytest.approx(0.76)
    assert metrics["coverage_solvable"] == pytest.approx(70 / 94)


@pytest.mark.parametrize("marked", [1, 9, 10])
def test_one_mark_says_nothing_of_other_holes(marked: int) -> None:
    """Of ten questions that medium was not asked, so many say that chance left it out."""
    right = dict.fromkeys(("small", "medium", "large"), [True] * 100)
    found = records("q", right)
    for i, record in enumerate(found[:10]):
        record["calls"] = [call for call in record["calls"] if call["role"] != "medium"]
        record.update({"missing_because": "chance"} if i < marked else {})
    asked_of = small_of(traces(found)).asked_of
    assert asked_of is not None
    assert asked_of.missing == ("chance" if marked == 10 else "unknown")


@pytest.mark.parametrize("known", [1, 89, 90])
def test_one_probability_says_nothing_of_other_calls(known: int) -> None:
    """A lot decided whether medium was asked where each call of it says with which chance."""
    right = dict.fromkeys(("small", "medium", "large"), [True] * 100)
    found = records("q", right)
    for i, record in enumerate(found):
        medium = record["calls"].pop(1)
        if i >= 10:
            medium |= {"asked_probability": 0.9} if i < 10 + known else {}
            record["calls"].insert(1, medium)
    asked_of = small_of(traces(found)).asked_of
    assert asked_of is not None
    assert asked_of.missing == ("chance" if known == 90 else "unknown")


def small_of(log: ft.Traces) -> Certificate:
    """Return what is proved of the small model, trained beside medium and large."""
    right = dict.fromkeys(("small", "medium", "large"), [True] * 60)
    policy = ft.fit("agreement-cascade", traces(records("train", right)))
    certificate = policy.calibrate(log, ft.Agreement("large", 0.2)).certificate
    assert certificate is not None
    return certificate


@pytest.mark.parametrize("asked", [ft.Parity("large", 0.1), ft.Agreement("large", 0.1)], ids=str)
@pytest.mark.parametrize(("usd", "proved"), [(0.0009, True), (0.001, False), (0.002, False)])
def test_what_costs_as_much_as_the_reference_is_not_worth_a_proof(
    asked: Promise, usd: float, *, proved: bool
) -> None:
    held = traces(paid(records("held", both(200)), {"small": usd}))
    if proved:
        assert small().calibrate(held, asked).certificate
        return
    with pytest.raises(InputError, match="costs as much as the reference alone"):
        small().calibrate(held, asked)


@pytest.mark.slow
def test_a_model_that_wins_more_than_it_loses_dominates() -> None:
    """Of 600 questions small loses 5 and wins 25 beside large, which costs ten times as much."""
    dear = ft.fit("always-large", TRAIN)
    for lost, won, instead in ((5, 25, "small"), (25, 5, None)):
        assert (
            dear.evaluate(traces(records("q", both(600, lost=lost, won=won)))).value.instead
            == instead
        )


DOORS: dict[str, Callable[[ft.Traces], object]] = {
    "recommend": lambda log: ft.recommend(log, ft.Parity("large", 0.3)),
    "auto": lambda log: ft.fit("auto", log),
    "calibrate": lambda log: small().calibrate(log, ft.Parity("large", 0.3)),
    "evaluate": lambda log: small().evaluate(log),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("roles", "usd", "said"),
    [
        (("small", "large"), None, "no call of these traces has a cost"),
        (("large",), None, "no call of large has a cost"),
        (("small", "large"), 0.0, "every cost in these traces is 0"),
    ],
)
def test_where_nobody_knows_what_calls_cost_nothing_is_saved(
    door: str, roles: tuple[str, ...], usd: float | None, said: str
) -> None:
    found = records("held", both(100))
    for call in (call for record in found for call in record["calls"] if call["role"] in roles):
        call["cost_usd"] = usd
    with pytest.warns(UserWarning, match="cost"):
        log = traces(found)
    with pytest.raises(InputError, match=said):
        DOORS[door](log)
