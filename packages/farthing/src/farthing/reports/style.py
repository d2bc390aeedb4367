"""One look for every plot: a colour and a marker per policy, the same in all of them."""

from collections.abc import Iterable, Mapping
from string import ascii_lowercase, ascii_uppercase
from typing import Any

INK = "#1f2430"
MUTED = "#6b7280"
FAINT = "#d8dbe2"
TARGET = "#b42318"

WIDTH = 8.0
"""Inches; 800 pixels at the size they are meant to be read."""

Looks = Mapping[str, tuple[str, str]]
"""Policy to its colour and its marker."""

# Okabe and Ito's palette as far as it goes, which people with colour-blindness can tell apart.
_LOOKS = {
    "stopping": ("#009e73", "o"),
    "lookahead": ("#1b5e3f", "h"),
    "lookahead-lambda": ("#7fae8a", "H"),
    "lazy": ("#c51b7d", "P"),
    "ccpo": ("#0072b2", "D"),
    "ccpo-lambda": ("#56b4e9", "s"),
    "ccpo-published": ("#cc79a7", "v"),
    "ccpo-published-lambda-1e-4": ("#8f4a73", "d"),
    "ccpo-published-lambda-2e-4": ("#5f2d4c", "8"),
    "cpo": ("#8c6d46", ">"),
    "cpo-batch": ("#d55e00", "^"),
    "cpo-online": ("#e69f00", "X"),
    "uala": ("#6a4c93", "<"),
    "optimum": ("#7a8b00", "*"),
    "random": ("#7d8590", "p"),
}
_GREY = "#4b5563"
LETTERS = ascii_uppercase + ascii_lowercase
"""Markers of who is not known here."""

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

    A fixed depth is marked with its number, who is not known here with a letter.

    >>> looks(["cpo-batch", "fixed-2", "mine"])["cpo-batch"]
    ('#d55e00', '^')
    >>> looks(["fixed-2"])["fixed-2"][1], looks(["mine", "yours"])["yours"][1]
    ('$2$', '$B$')
    """
    found = dict(_LOOKS)
    strangers = 0
    for name in sorted(set(policies) - set(_LOOKS)):
        depth = name.removeprefix("fixed-")
        letter = depth if depth.isdecimal() else LETTERS[strangers % len(LETTERS)]
        found[name] = (_GREY, f"${letter}$")
        strangers += not depth.isdecimal()
    return found
