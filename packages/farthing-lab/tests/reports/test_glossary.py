from dataclasses import replace

from farthing.methods.cards import cards
from farthing.recommendation.base import Comparison
from farthing_lab.reports import glossary as words


def test_every_built_in_policy_is_explained(comparison: Comparison) -> None:
    row = comparison.rows[0]
    for name in (card.name for card in cards()):
        assert words.explained(replace(comparison, rows=[replace(row, policy=name)])), name


def test_only_who_takes_part_is_explained(comparison: Comparison) -> None:
    names = [name for name, _ in words.explained(comparison)]
    assert {"CPO", "CCPO", "UALA", "λ"} <= set(names)
    assert "Lazy" not in names
    plain = [replace(row, policy="mine", label="Mine") for row in comparison.rows[:1]]
    assert words.explained(replace(comparison, rows=plain)) == []


def test_a_method_of_no_known_family_is_explained_by_its_card(comparison: Comparison) -> None:
    rows = [replace(comparison.rows[0], policy="route-llm-factorisation", label="RouteLLM")]
    ((name, meaning),) = words.explained(replace(comparison, rows=rows))
    assert name == "RouteLLM (factorisation)"
    assert meaning == "one of two models is asked, by a linear score of the question's text"
