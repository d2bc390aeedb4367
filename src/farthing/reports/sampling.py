"""How many samples to take, as a table, money first, and as JSON."""

from math import isnan
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from farthing.methods.allocators.pets import FIRST, Bucket
from farthing.money import significant, usd_from_nano
from farthing.reports.counted import counted
from farthing.reports.plain_table import plain_table
from farthing.studies.self_consistency import Comparison, Sampled, interval


def screen(found: Comparison, source: str) -> Group:
    """Say what each way of sampling costs and brings, and what to do with a stream."""
    n = len(found.every.right)
    table = plain_table()
    table.add_column("Samples", overflow="fold")
    for heading in ("USD a question", "samples", "right, %", "vote of all, %"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in (*found.results, found.every):
        table.add_row(one.name, *_cells(one))
    each = counted(found.per_question, "sample")
    said: list[RenderableType] = [
        Text(f"{source}: {counted(n, 'question')}, {each} each", style="bold"),
        Text(""),
        table,
        Text(""),
    ]
    if found.plan is not None:
        said.append(Text(f"One by one: take {FIRST} samples; where of these"))
        said += [Text(f"  {_bucket(one)}") for one in reversed(found.plan.buckets)]
    note = f"Means over {counted(found.orders, 'order')}; ± half a 95 % interval over questions."
    return Group(*said, Text(note, style="dim"))


def to_json(found: Comparison) -> dict[str, Any]:
    """Return the table's figures, and the plan for a stream."""
    plan = found.plan.buckets if found.plan is not None else ()
    return {
        "questions": len(found.every.right),
        "per_question": found.per_question,
        "orders": found.orders,
        "rows": [_record(one) for one in (*found.results, found.every)],
        "plan": [
            {
                "agree": one.agree,
                "share": one.share,
                "samples": sum(one.samples) / len(one.samples),
                "slope": one.slope,
                "offset": one.offset,
            }
            for one in plan
        ],
    }


def _cells(one: Sampled) -> list[str]:
    (right, right_half), (same, same_half) = interval(one.right), interval(one.same)
    return [
        significant(usd_from_nano(float(one.cost_nano.mean()))),
        f"{one.samples.mean():.1f}",
        "not graded" if isnan(right) else f"{100 * right:.1f} ± {100 * right_half:.1f}",
        f"{100 * same:.1f} ± {100 * same_half:.1f}",
    ]


def _record(one: Sampled) -> dict[str, Any]:
    (right, right_half), (same, same_half) = interval(one.right), interval(one.same)
    return {
        "name": one.name,
        "samples": float(one.samples.mean()),
        "cost_usd": usd_from_nano(float(one.cost_nano.mean())),
        "right": right,
        "right_half_interval": right_half,
        "same_as_all": same,
        "same_as_all_half_interval": same_half,
    }


def _bucket(one: Bucket) -> str:
    mean = sum(one.samples) / len(one.samples)
    more = f"take {mean:.0f} in all" if round(mean) > FIRST else "stop"
    agree = {0: "none is an answer", 1: "no two agree"}.get(one.agree, f"{one.agree} agree")
    return f"{agree} ({one.share:.1%} of questions): {more}"
