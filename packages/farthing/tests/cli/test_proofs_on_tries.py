"""Every door that proves counts the proofs made on the questions of a try."""

import json
from collections.abc import Callable
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from threading import Thread
from time import sleep
from typing import Any

import numpy as np
import pytest

import farthing as ft
from farthing.api.recommendation import Recommendation
from farthing.errors import InputError, StoreError
from farthing.promises.kinds.parity import ParityPromise
from farthing.promises.levels import exact_level
from farthing.runtime.tried import Tried, judged_whole, look, remember
from farthing.traces.jsonl import read_traces
from farthing.traces.store import Store

Farthing = Callable[..., Any]
TENTH = Fraction(1, 10)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Write the store of a try: 500 questions to two models, of which one is cheap and errs."""
    rng, lines = np.random.default_rng(0), []
    for k in range(500):
        right, cheap = str(k % 7), str(k % 7 if rng.random() < 0.97 else 9)
        calls = [
            {"round": 1, "role": "small", "answer": cheap, "cost_usd": 1e-5},
            {"round": 1, "role": "large", "answer": right, "cost_usd": 1e-3},
        ]
        lines.append(json.dumps({"id": f"q{k}", "calls": calls, "independent": True}))
    (tmp_path / "a.jsonl").write_text("\n".join(lines))
    path = tmp_path / "a.try.db"
    with Store.open(path) as opened:
        opened.add(read_traces(tmp_path / "a.jsonl"), "a.jsonl")
        remember(opened, Tried(reference="large", task="text", models={}, prices={}))
    return path


@pytest.fixture
def judged(store: Path) -> Path:
    """Write the same store in other words, with what a judge said of every answer."""
    with Store.open(store) as opened:
        opened.connection.execute(
            "UPDATE calls SET correct = (answer = (SELECT answer FROM calls AS them"
            " WHERE them.trace = calls.trace AND them.role = 'large'))"
        )
        opened.connection.execute(
            "UPDATE calls SET answer = answer || ', sir' WHERE role = 'small'"
        )
        remember(opened, Tried(reference="large", task="text", models={}, judge="mini"))
    return store


def unasked(store: Path, n: int) -> None:
    """Take what the judge said of some answers away."""
    with Store.open(store) as opened:
        opened.connection.execute(
            "UPDATE calls SET correct = NULL WHERE role = 'small' AND trace <= ?", (n,)
        )


def delta(found: Recommendation) -> Fraction:
    """Return what all candidates of a proof may spend together."""
    assert found.certificate is not None
    promise: Any = found.certificate.promise
    return exact_level(promise.delta)


@pytest.mark.slow
def test_python_counts_proofs_as_the_command_does(store: Path) -> None:
    """Proof k has 0.6 / k^2 of delta; the same again is no new one, a slice of the questions is."""
    traces = ft.read_traces(store)
    first, second = ft.Agreement("large", 0.1), ft.Agreement("large", 0.2)
    asked = [(traces, first), (traces, second), (traces, first), (traces[:450], first)]
    found = [ft.recommend(some, promise) for some, promise in asked]
    spent = [Fraction(6, 10) / k**2 * TENTH for k in (1, 2, 1, 3)]
    assert [delta(one) for one in found] == spent
    assert all("this is proof" in " ".join(one.found.notes) for one in found)


@pytest.mark.slow
def test_a_promise_of_another_kind_counts_as_well(store: Path, farthing: Farthing) -> None:
    ft.recommend(ft.read_traces(store), ft.Agreement("large", 0.1))
    said = farthing("recommend", store, "--promise", "agreement", "--epsilon", "0.1", "--json")
    assert json.loads(said.out)["proof"] == 2


@pytest.mark.slow
def test_a_calibration_counts_each_time(store: Path) -> None:
    traces = ft.read_traces(store)
    policy = ft.fit("pool-gain", traces[:200], 0.2, grade="same as large")
    for k in (1, 2):
        with pytest.warns(UserWarning, match=f"this is proof {k} on questions of a.try.db"):
            proved = policy.calibrate(traces[200:], ft.Agreement("large", 0.2))
        assert proved.certificate is not None
        promise: Any = proved.certificate.promise
        assert exact_level(promise.delta) == Fraction(6, 10) / k**2 * TENTH


@pytest.mark.slow
def test_questions_of_no_try_are_proved_at_all_of_delta(tmp_path: Path, store: Path) -> None:
    plain = ft.read_traces(tmp_path / "a.jsonl")
    assert delta(ft.recommend(plain, ft.Agreement("large", 0.1))) == TENTH


SAID = "Right is what mini calls the same as large's answer; its own error is not in the promise."
PARITY = ("--promise", "parity", "--epsilon", "0.2", "--delta", "0.1", "--reference", "large")


@pytest.mark.slow
def test_every_door_says_who_judged(judged: Path, farthing: Farthing, tmp_path: Path) -> None:
    traces = ft.read_traces(judged)
    found = ft.recommend(traces)
    policy = ft.fit("pool-gain", traces[:200], 0.2)
    with pytest.warns(UserWarning, match="this is proof 2"):
        proved = policy.calibrate(traces[200:], ft.Parity("large", 0.2))
    farthing("train", judged, "--policy", "pool-gain", "--out", tmp_path / "b")
    done = farthing("calibrate", judged, "--bundle", tmp_path / "b", *PARITY)
    assert done.code == 0, done.err
    farthing("recommend", judged, "--epsilon", "0.2", "--out", tmp_path / "c")
    bundles = [ft.load(tmp_path / name).certificate for name in "bc"]
    for certificate in (found.certificate, proved.certificate, *bundles):
        assert certificate is not None
        assert certificate.conditional_on[-1] == SAID
        assert isinstance(certificate.promise, ParityPromise)
    same = ft.recommend(traces, ft.Agreement("large", 0.1)).certificate
    assert same is not None
    assert SAID not in same.conditional_on, "the task says what is the same, and no judge"


@pytest.mark.slow
def test_no_door_proves_what_the_judge_was_not_asked(
    judged: Path, refused: Callable[..., str], farthing: Farthing, tmp_path: Path
) -> None:
    farthing("train", judged, "--policy", "pool-gain", "--out", tmp_path / "b")
    policy = ft.fit("pool-gain", ft.read_traces(judged)[:200], 0.2)
    unasked(judged, 40)
    traces = ft.read_traces(judged)
    said = "mini was not asked yet about 40 answers"
    assert said in refused("recommend", judged)
    assert said in refused("calibrate", judged, "--bundle", tmp_path / "b", *PARITY)
    with pytest.raises(InputError, match=said):
        ft.recommend(traces)
    with pytest.raises(InputError, match=said):
        policy.calibrate(traces[200:], ft.Parity("large", 0.2))


@pytest.mark.slow
def test_what_the_judge_could_not_say_counts_at_worst(judged: Path) -> None:
    unasked(judged, 40)
    with Store.open(judged) as opened:
        judged_whole(opened)
    found = ft.recommend(ft.read_traces(judged))
    assert found.certificate is not None
    assert isinstance(found.certificate.promise, ParityPromise)
    small = found.found.models["small"]
    assert small is not None
    assert small.accuracy < 0.93


def test_two_proofs_at_once_are_not_both_the_first(store: Path) -> None:
    arrays, numbers = ft.read_traces(store).arrays, []

    def second() -> None:
        with Store.open(store) as opened:
            numbers.append(look(opened, arrays, "second"))

    with Store.open(store) as opened:
        numbers.append(look(opened, arrays, "another"))
        opened.connection.execute("DELETE FROM proofs")
        opened.connection.execute("BEGIN IMMEDIATE")
        other = Thread(target=second)
        other.start()
        sleep(0.2)
        marks = b"".join(sha256(str(name).encode()).digest()[:8] for name in arrays.ids)
        opened.connection.execute(
            "INSERT INTO proofs (proof, questions) VALUES ('first', ?)", (marks,)
        )
        opened.connection.execute("COMMIT")
        other.join()
    assert numbers == [1, 2]


@pytest.fixture
def plain(tmp_path: Path, store: Path) -> Path:
    """Write the same questions to a store that no try made."""
    path = tmp_path / "log.db"
    with Store.open(path) as opened:
        opened.add(read_traces(tmp_path / "a.jsonl"), "a.jsonl")
    store.unlink()
    return path


LOOK = "It is look {} on these questions: each errs at its own risk, the best of them at the sum"


@pytest.mark.slow
def test_a_store_counts_what_is_recommended_of_it(
    plain: Path, tmp_path: Path, farthing: Farthing
) -> None:
    """The first proof spends all of delta, as of a file; proof k after it 0.6 / k^2."""

    def asked(path: Path, *more: str) -> tuple[Fraction, list[str], str]:
        done = farthing("recommend", path, "--promise", "agreement", *more, "--json")
        found = json.loads(done.out)
        certificate = found["certificate"]
        spent = Fraction(str(certificate["promise"]["delta"]))
        said = [one for one in certificate["conditional_on"] if one.startswith("It is look")]
        return spent, said, " ".join(found["notes"]) + done.err

    first, wide = ("--epsilon", "0.1"), ("--epsilon", "0.2")
    spent, said, notes = asked(tmp_path / "a.jsonl", *first)
    assert (spent, said) == (TENTH, [])
    assert "It assumes a first proof on these questions; only a store (.db) counts proofs." in notes
    spent, said, notes = asked(plain, *first)
    assert (spent, said) == (TENTH, [])
    assert "proof" not in notes
    for number, more in ((2, wide), (2, wide), (3, (*first, "--seed", "1"))):
        spent, said, notes = asked(plain, *more)
        assert spent == Fraction(6, 10) / number**2 * TENTH
        assert [one.startswith(LOOK.format(number)) for one in said] == [True]
        assert f"this is proof {number} on questions of log.db; all proofs on them have at" in notes
    assert asked(plain, *first)[:2] == (TENTH, []), "the same again is no new one"
    assert 1 + float(sum(Fraction(6, 10) / k**2 for k in range(2, 5_000))) < 1.39
    found = ft.recommend(ft.read_traces(plain), ft.Agreement("large", 0.15))
    assert delta(found) == Fraction(6, 10) / 16 * TENTH


@pytest.mark.slow
def test_the_log_read_again_under_other_ids_is_counted(plain: Path, tmp_path: Path) -> None:
    """Its texts are known; ids that are shared by chance are no other questions."""
    with Store.open(plain) as opened:
        opened.connection.execute("UPDATE traces SET question = 'What is it, ' || id || '?'")
    first, again = ft.Agreement("large", 0.1), ft.Agreement("large", 0.2)
    assert delta(ft.recommend(ft.read_traces(plain), first)) == TENTH
    with Store.open(plain) as opened:
        opened.connection.execute("UPDATE traces SET id = 'again-' || id")
    assert delta(ft.recommend(ft.read_traces(plain), again)) == Fraction(6, 10) / 4 * TENTH


@pytest.mark.slow
def test_a_store_that_cannot_be_written_says_that_nothing_is_counted(
    plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> int:
        raise StoreError("log.db: attempt to write a readonly database")

    monkeypatch.setattr("farthing.runtime.tried.look", refused)
    for level in (0.1, 0.2):
        found = ft.recommend(ft.read_traces(plain), ft.Agreement("large", level))
        assert delta(found) == TENTH
        assert "this proof is not counted, as a store cannot be written" in str(found.found.notes)
