"""One look for every plot: a colour and a marker per policy, the same in all of them."""

from collections.abc import Iterable
from typing import Any

INK = "#1f2430"
MUTED = "#6b7280"
FAINT = "#d8dbe2"
TARGET = "#b42318"

# Okabe and Ito's palette, which people with colour-blindness can tell apart; policies that no
# promise comes with are greys, told apart by marker.
_COLOURS = {
    "stopping": "#009e73",
    "ccpo": "#0072b2",
    "ccpo-lambda": "#56b4e9",
    "ccpo-published": "#cc79a7",
    "ccpo-published-lambda": "#8f4a73",
    "cpo-batch": "#d55e00",
    "cpo-online": "#e69f00",
    "uala": "#6a4c93",
    "cpo": "#8c6d46",
    "random": "#7d8590",
}
_GREYS = ("#4b5563", "#8b93a1", "#5f6b7a", "#a0a7b4")
_MARKERS = "oDsvP^X<>ph*d"

STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "farthing",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.7,
    "lines.solid_capstyle": "round",
    "legend.frameon": False,
}
"""Matplotlib's settings; text stays text in the SVG, so that it can be read and searched."""


def looks(policies: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Give each policy a colour and a marker, whichever others are shown.

    >>> looks(["cpo-batch", "mine"])["cpo-batch"]
    ('#d55e00', '^')
    """
    known = list(_COLOURS)
    strangers = sorted(set(policies) - set(known))
    looks = {name: (_COLOURS[name], _MARKERS[i % len(_MARKERS)]) for i, name in enumerate(known)}
    for i, name in enumerate(strangers):
        looks[name] = (_GREYS[i % len(_GREYS)], _MARKERS[-1 - i % len(_MARKERS)])
    return looks
