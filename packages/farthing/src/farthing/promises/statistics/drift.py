"""Tests that a stream did not change, which may be looked at after every observation for ever.

Each is a fortune that begins at 1 and bets against "nothing changed". Where nothing changed it
cannot be expected to grow, so the probability that it *ever* reaches 1 / delta is at most delta
(Ville 1939): that is the false-alarm guarantee, over the whole life of the stream.

* `PromiseTest`: the share of failures is at most alpha, whatever came before.
* `ExchangeabilityTest`: a signal's values come in no particular order, as independent draws of one
  distribution do. It needs no grades.

**Late changes.** A gambler who bets from the first day on is ruined when the change comes. So the
stake is spread over starts: part of it bets at once; of the rest the share S / (S + n) still lies
untouched after n observations, and what leaves it bets from then on. Shares of all starts sum to 1,
so the whole is a mixture of fortunes and as valid as each. A change after n observations costs
about log((S + n)^2 / S) in evidence, for the smallness of the shares that start about then. All
that started bet alike, so one number for each size of bet is all that is kept of them.

Source: Ramdas, Grünwald, Vovk and Shafer 2023, "Game-theoretic statistics and safe anytime-valid
inference"; Vovk, Gammerman and Shafer 2022, "Algorithmic learning in a random world", part III. The
mixture over starts is their Sleeper/Stayer (algorithm 9.4), with starts that thin out slowly rather
than geometrically, so that no horizon need be known. The package `crepes` has p-values and
martingales of the same kind, over all values at once; what a server needs is a small state that can
be stored after each. Tests hold the p-values to it.
"""

import math

import msgspec
import numpy as np

from farthing.errors import CalibrationError
from farthing.promises.certificate import FloatArray, IntArray
from farthing.promises.statistics.confidence_sequence import checked

_SPREAD = 500
"""S: after so many observations half of what did not bet at once has begun to."""
_SHARES: FloatArray = np.geomspace(0.01, 0.8, 8)
"""Sizes of bets on failures: the share of the fortune that a reply that keeps the promise takes."""
_TILTS: FloatArray = np.array([-8.0, -4.0, -2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 4.0, 8.0])
"""Densities exp(tilt p) that conformal p-values may have: the whole signal moved up or down."""
_BREAKS: FloatArray = np.repeat([0.1, 0.25, 0.5, 0.75, 0.9], 4)
_RISES: FloatArray = np.exp(np.tile([-1.0, -0.35, 0.35, 1.0], 5))
"""Densities that rise so many times at a break: a signal of few values, or one that spread out."""
_STEPS = 128
"""Into how many parts each doubling of a signal is divided."""
_LEAST, _OCTAVES = 2.0**-30, 70
"""Smaller values count as 0; larger ones than so many doublings of it as that."""
_ENOUGH = 700.0
"""Logarithms of evidence beyond this are not told apart."""
_AT_ONCE = 256


class Fortune(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What bets came to, spread over sizes and starts; it goes through JSON unchanged."""

    n: int
    """Number of observations."""
    waiting: float
    """The share of the stake that did not bet at once."""
    logs: tuple[float, ...]
    """Logarithm of the fortune of each size of bet, over all who started."""
    last: float = 0.0
    """Logarithm of the whole fortune now."""
    most: float = 0.0
    """The largest that it ever was: the logarithm of the evidence."""

    @classmethod
    def begin(cls, sizes: int, waiting: float) -> "Fortune":
        """Return a stake of 1, what does not wait being spread evenly over sizes of bets."""
        return cls(0, waiting, (math.log((1 - waiting) / sizes),) * sizes)

    def after(self, factors: FloatArray) -> tuple["Fortune", FloatArray]:
        """Return the fortune after bets, and the logarithm of it after each, [k].

        Args:
            factors: [k, J] by which each observation multiplies the fortune of each size of bet.
        """
        k, sizes = factors.shape
        if not k:
            return self, np.zeros(0)
        later = _SPREAD + self.n + np.arange(k)
        starting = np.log(self.waiting * _SPREAD / (later * (later + 1.0)) / sizes)
        grown = np.log(factors).cumsum(axis=0)
        before = np.vstack([np.zeros(sizes), grown[:-1]])
        joined = np.vstack([self.logs, starting[:, None] - before])
        logs = grown + np.logaddexp.accumulate(joined, axis=0)[1:]
        untouched = self.waiting * _SPREAD / (later + 1)
        whole = np.logaddexp(np.logaddexp.reduce(logs, axis=1), np.log(untouched))
        most = max(self.most, float(whole.max()))
        kept = tuple(logs[-1].tolist())
        return Fortune(self.n + k, self.waiting, kept, float(whole[-1]), most), whole

    def evidence(self) -> float:
        """Return the largest that it ever was."""
        return math.exp(min(self.most, _ENOUGH))


class Bets:
    """What a test by betting says of its fortune."""

    __slots__ = ()
    fortune: Fortune

    def evidence(self) -> float:
        """Return the largest e-value so far: how many times the stake the bets had won."""
        return self.fortune.evidence()

    def alarms(self, delta: float) -> bool:
        """Return whether it has found something; ever wrongly so with probability <= delta."""
        return self.fortune.evidence() * delta >= 1


class PromiseTest(Bets, msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Evidence that more than a share alpha of replies fail, given all that came before."""

    alpha: float
    """The promised largest share of failures."""
    fortune: Fortune

    @classmethod
    def begin(cls, alpha: float) -> "PromiseTest":
        """Return the test before any observation; half of the stake bets at once.

        Raises:
            CalibrationError: alpha outside (0, 1).
        """
        if not 0 < alpha < 1:
            raise CalibrationError(f"alpha must be between 0 and 1, not {alpha}")
        return cls(alpha, Fortune.begin(len(_SHARES), waiting=0.5))

    def observe(self, failures: FloatArray, weights: FloatArray | None = None) -> "PromiseTest":
        """Take in graded audits, in the order in which their grades became known.

        A size b of bet multiplies its fortune by 1 + w (b / alpha) (f - alpha), whose expectation
        is at most 1 where that of f is at most alpha; weights are as in `confidence_sequence`.

        Args:
            failures: [k] in [0, 1]; 1 where a reply broke the promise.
            weights: [k] in (0, 1]: floor / p of each; None: all 1.

        Raises:
            CalibrationError: failures or weights outside their ranges.

        >>> test = PromiseTest.begin(0.1).observe(np.tile([1.0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 200))
        >>> test.alarms(0.05), test.observe(np.tile([1.0, 0, 0, 0], 40)).alarms(0.05)
        (False, True)
        """
        return self.followed(failures, weights)[0]

    def followed(
        self, failures: FloatArray, weights: FloatArray | None = None
    ) -> tuple["PromiseTest", FloatArray]:
        """Return the test after `observe`, and the logarithm of its fortune after each, [k]."""
        f, w = checked(failures, weights)
        stakes = w[:, None] * (f - self.alpha)[:, None] / self.alpha
        fortune, path = self.fortune.after(1 + stakes * _SHARES)
        return PromiseTest(self.alpha, fortune), path


class ExchangeabilityTest(Bets, msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Evidence that a signal's values shifted, up or down, or spread out.

    The conformal p-value of a value is its rank among itself and *all* earlier ones, from above,
    ties being broken by a uniform number. Where the order of values carries no information, these
    p-values are independent and uniform, so bets on thirty other densities, rising or falling or
    with a step, cannot be expected to win.

    So that memory is bounded, values are rounded (by 0.4 % at most) before they are ranked, and
    what is kept is how often each rounded value came. The rounding was fixed beforehand, so what is
    exchangeable stays so, and the test is exact. A signal takes at most 128 counts for each
    doubling that it spans: some hundred in practice, and never more than 18,000.
    """

    seen: tuple[int, ...]
    """Rounded values that came, as `rounded` numbers them, in ascending order."""
    counts: tuple[int, ...]
    """How often each did."""
    fortune: Fortune

    @classmethod
    def begin(cls) -> "ExchangeabilityTest":
        """Return the test before any observation; a tenth of the stake bets at once."""
        return cls((), (), begin_bets())

    def observe(self, values: FloatArray, uniforms: FloatArray) -> "ExchangeabilityTest":
        """Take in values, in the order in which they came.

        Args:
            values: [k] of the signal; finite, of any range.
            uniforms: [k] drawn evenly from [0, 1], one for each value and independent of all; a
                keyed hash of the request will do.

        Raises:
            CalibrationError: a value is not finite, or not one uniform number a value.

        >>> rng = np.random.default_rng(0)
        >>> quiet = ExchangeabilityTest.begin().observe(rng.normal(size=900), rng.random(900))
        >>> quiet.alarms(0.05), quiet.observe(rng.normal(1, 1, 60), rng.random(60)).alarms(0.05)
        (False, True)
        """
        return self.followed(values, uniforms)[0]

    def followed(
        self, values: FloatArray, uniforms: FloatArray
    ) -> tuple["ExchangeabilityTest", FloatArray]:
        """Return the test after `observe`, and the logarithm of its fortune after each, [k]."""
        x, u = np.asarray(values, dtype=np.float64), np.asarray(uniforms, dtype=np.float64)
        if x.ndim != 1 or x.shape != u.shape:
            raise CalibrationError("values are a row of numbers, with one uniform number each")
        if not np.isfinite(x).all():
            raise CalibrationError("a value must be a finite number")
        if not ((u >= 0) & (u <= 1)).all():
            raise CalibrationError("a uniform number must be between 0 and 1")
        test, paths = self, [np.zeros(0)]
        for start in range(0, len(x), _AT_ONCE):
            now = slice(start, start + _AT_ONCE)
            test, path = test._followed(rounded(x[now]), u[now])
            paths.append(path)
        return test, np.concatenate(paths)

    def _followed(self, x: IntArray, u: FloatArray) -> tuple["ExchangeabilityTest", FloatArray]:
        seen = np.array(self.seen, dtype=np.int64)
        counts = np.array(self.counts, dtype=np.int64)
        p = p_values(seen, counts, x, u)
        fortune, path = self.fortune.after(densities(p))
        kept, where = np.unique(np.concatenate([seen, x]), return_inverse=True)
        total = np.zeros(len(kept), dtype=np.int64)
        np.add.at(total, where, np.concatenate([counts, np.ones_like(x)]))
        return ExchangeabilityTest(tuple(kept.tolist()), tuple(total.tolist()), fortune), path


def begin_bets() -> Fortune:
    """Return the stake that is bet on `densities`; a tenth of it bets at once."""
    return Fortune.begin(len(_TILTS) + len(_BREAKS), waiting=0.9)


def rounded(values: FloatArray) -> IntArray:
    """Number values so that larger ones have larger numbers, 128 for each doubling.

    >>> rounded(np.array([-1.0, 0.0, 1e-12, 0.997, 0.999, 1.0, 2.0])).tolist()
    [-3841, 0, 0, 3840, 3841, 3841, 3969]
    """
    size = np.minimum(np.abs(values), _LEAST * 2.0**_OCTAVES)
    part, doublings = np.frexp(size / _LEAST)
    number = 1 + _STEPS * (doublings - 1) + np.rint((2 * part - 1) * _STEPS)
    return np.where(size < _LEAST, 0, np.sign(values) * number).astype(np.int64)


def unrounded(numbers: IntArray) -> FloatArray:
    """Return the values that `rounded` numbers so, within 0.4 % of what they were.

    >>> unrounded(rounded(np.array([-1.0, 0.0, 0.75, 2.0]))).tolist()
    [-1.0, 0.0, 0.75, 2.0]
    """
    doublings, part = np.divmod(np.abs(numbers) - 1, _STEPS)
    size = _LEAST * (1 + part / _STEPS) * 2.0**doublings
    return np.where(numbers == 0, 0.0, np.sign(numbers) * size)


def densities(p_values: FloatArray) -> FloatArray:
    """Return the density at p-values that each bet supposes, [k, J]; it integrates to 1.

    >>> at = (np.arange(10_000) + 0.5) / 10_000
    >>> bool(np.allclose(densities(at).mean(axis=0), 1))
    True
    """
    tilted = np.exp(p_values[:, None] * _TILTS) * (_TILTS / np.expm1(_TILTS))
    stepped = np.where(p_values[:, None] <= _BREAKS, 1, _RISES)
    return np.hstack([tilted, stepped / (_BREAKS + _RISES * (1 - _BREAKS))])


def p_values(seen: IntArray, counts: IntArray, x: IntArray, u: FloatArray) -> FloatArray:
    """Return the p-value of each value among itself and all before it, [k]."""
    below = np.concatenate([[0], np.cumsum(counts)])
    first, last = np.searchsorted(seen, x, "left"), np.searchsorted(seen, x, "right")
    before = np.tri(len(x), k=-1, dtype=bool)
    larger = below[-1] - below[last] + ((x > x[:, None]) & before).sum(axis=1)
    equal = below[last] - below[first] + ((x == x[:, None]) & before).sum(axis=1)
    ranked: FloatArray = (larger + u * (equal + 1)) / (below[-1] + np.arange(1, len(x) + 1))
    return ranked
