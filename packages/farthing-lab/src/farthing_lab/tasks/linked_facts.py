"""Made-up documents whose facts are linked, and questions that take one, two or three of them.

A town's page says who holds its offices; a person's page says what the person does; a page of
bynames says which town is meant. So "What does the mayor of the town called Iron Quay play?" takes
three pages. Around each fact stand former holders of the office, other towns, and the same
sentences again in a digest. A generator is called a generator: these are no recordings.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from farthing.tasks.base import Question

OFFICES = ("mayor", "judge", "doctor", "teacher", "ferryman")
DOES = {
    "play": ("plays the", ("lute", "organ", "cello", "fiddle", "zither", "oboe", "harp")),
    "keep": ("keeps", ("goats", "bees", "falcons", "hares", "mules", "swans", "eels")),
    "collect": ("collects", ("stamps", "maps", "bells", "masks", "clocks", "coins", "shells")),
    "speak": ("speaks", ("Latin", "Welsh", "Basque", "Frisian", "Sorbian", "Manx", "Ladin")),
}
"""Verb of a question to how a page says it, and what may be said."""
_HEADS, _TAILS = ("Tor", "Bel", "Kar", "Mi", "Os", "Ve", "Lun", "Ha"), ("va", "dor", "wick", "nar")
_FIRST = ("Ada", "Bruno", "Clara", "Dario", "Edda", "Fedor", "Greta", "Hugo", "Ines", "Jonas")
_LAST = ("Marek", "Olsen", "Petri", "Quist", "Rossi", "Stahl", "Tamm", "Urban", "Vogel", "Winter")
_NICK = (("Iron", "Salt", "Amber", "Grey", "Copper"), ("Quay", "Gate", "Hill", "Ford", "Mill"))
_FILLER = (
    "The harvest of {year} was poor.",
    "A road to {other} was built in {year}.",
    "The market is held on the first Monday of the month.",
    "Travellers praise the bread and complain about the rain.",
    "The old bridge burned down in {year}.",
)
_WHO = re.compile(r"^Who is the (\w+) of (.+)\?$")
_WHAT = re.compile(r"^What does the (\w+) of (.+) (\w+)\?$")
_CALLED = "the town called "


@dataclass(frozen=True)
class LinkedFacts:
    """Documents, and questions about them."""

    documents: tuple[tuple[str, str], ...]
    """(title, text) of each, as `LocalSearch` takes them."""
    questions: tuple[Question, ...]
    """With their answer; the group says how many facts it takes: `1 fact`, `2 facts`, ..."""


def linked_facts(n: int, rng: np.random.Generator, *, towns: int = 24) -> LinkedFacts:
    """Make `n` questions about a world of so many towns, at most 25.

    >>> made = linked_facts(3, np.random.default_rng(0))
    >>> one = made.questions[2]
    >>> one.text, one.gold, one.group
    ('What does the mayor of Lunwick speak?', ('Basque',), '2 facts')
    >>> extract(one.text, " ".join(text for _, text in made.documents)) == one.gold[0]
    True
    """
    names = [head + tail for head in _HEADS for tail in _TAILS]
    places = [str(name) for name in rng.permutation(names)[:towns]]
    people = [f"{first} {last}" for first in _FIRST for last in _LAST]
    drawn = iter(str(name) for name in rng.permutation(people))
    nicks = [f"{one} {other}" for one in _NICK[0] for other in _NICK[1]]
    called = dict(zip(places, (str(nick) for nick in rng.permutation(nicks)), strict=False))
    offices = {
        place: {str(office): next(drawn) for office in rng.permutation(OFFICES)[:4]}
        for place in places
    }
    facts = {
        person: {verb: str(rng.choice(things)) for verb, (_, things) in DOES.items()}
        for held in offices.values()
        for person in held.values()
    }
    documents = [_town(place, offices[place], people, places, rng) for place in places]
    documents += [_digest(place, offices[place], rng) for place in places]
    documents += [_person(person, does, places, rng) for person, does in facts.items()]
    documents += [_byname(place, nick, places, rng) for place, nick in called.items()]
    order = rng.permutation(len(documents))
    asked = [_question(i, offices, facts, called, rng) for i in range(n)]
    return LinkedFacts(tuple(documents[i] for i in order), tuple(asked))


def extract(question: str, context: str) -> str | None:
    """Answer a question from a text that is read, and from nothing else; None where a fact lacks.

    >>> extract("Who is the mayor of Torva?", "The mayor of Torva is Ada Marek.")
    'Ada Marek'
    """
    if one := _WHO.match(question):
        return _holder(one[1], one[2], context)
    if one := _WHAT.match(question):
        person = _holder(one[1], one[2], context)
        said = DOES.get(one[3], ("", ()))[0]
        found = person and re.search(rf"\b{re.escape(person)} {said} (\w+)\.", context)
        return found[1] if found else None
    return None


def _holder(office: str, place: str, context: str) -> str | None:
    if place.startswith(_CALLED):
        nick = re.escape(place.removeprefix(_CALLED))
        meant = re.search(rf"\b{nick} is a byname of (\w+)\.", context)
        if meant is None:
            return None
        place = meant[1]
    found = re.search(rf"The {re.escape(office)} of {re.escape(place)} is (\w+ \w+)\.", context)
    return found[1] if found else None


def _town(
    place: str,
    held: dict[str, str],
    people: Sequence[str],
    places: Sequence[str],
    rng: np.random.Generator,
) -> tuple[str, str]:
    said = [f"The {office} of {place} is {person}." for office, person in held.items()]
    for office in held:
        year, former = rng.integers(1850, 1990), rng.choice(people)
        said.append(f"Until {year} the {office} of {place} was {former}.")
    return place, _mixed([*said, *_filler(4, places, rng)], rng)


def _digest(place: str, held: dict[str, str], rng: np.random.Generator) -> tuple[str, str]:
    said = [f"The {office} of {place} is {person}." for office, person in held.items()]
    return f"{place} in brief", _mixed([*said, *said[:2], f"{place} lies on a river."], rng)


def _person(
    person: str, does: dict[str, str], places: Sequence[str], rng: np.random.Generator
) -> tuple[str, str]:
    said = [f"{person} {DOES[verb][0]} {thing}." for verb, thing in does.items()]
    visits = [f"{person} once visited {rng.choice(places)}." for _ in range(2)]
    return person, _mixed([*said, *visits, *_filler(2, places, rng)], rng)


def _byname(
    place: str, nick: str, places: Sequence[str], rng: np.random.Generator
) -> tuple[str, str]:
    said = [f"{nick} is a byname of {place}.", "Nobody knows who first used the name."]
    return nick, _mixed([*said, *_filler(2, places, rng)], rng)


def _filler(n: int, places: Sequence[str], rng: np.random.Generator) -> list[str]:
    picked = rng.permutation(len(_FILLER))[:n]
    return [
        _FILLER[i].format(year=rng.integers(1700, 1990), other=rng.choice(places)) for i in picked
    ]


def _mixed(sentences: list[str], rng: np.random.Generator) -> str:
    return " ".join(sentences[i] for i in rng.permutation(len(sentences)))


def _question(
    number: int,
    offices: dict[str, dict[str, str]],
    facts: dict[str, dict[str, str]],
    called: dict[str, str],
    rng: np.random.Generator,
) -> Question:
    place = str(rng.choice(list(called)))
    office = str(rng.choice(list(offices[place])))
    person = offices[place][office]
    hops = int(rng.integers(1, 4))
    where = f"{_CALLED}{called[place]}" if hops == 3 else place
    if hops == 1:
        text, gold = f"Who is the {office} of {where}?", person
    else:
        verb = str(rng.choice(list(DOES)))
        text, gold = f"What does the {office} of {where} {verb}?", facts[person][verb]
    group = "1 fact" if hops == 1 else f"{hops} facts"
    return Question(f"linked-{number + 1}", text, (gold,), group)
