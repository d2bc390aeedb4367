"""`farthing recalibrate` and `rollback`: a gateway's bundle anew, and the one before again."""

from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.text import Text

from farthing.cli.console import interruptible, remark, show, show_json
from farthing.cli.options import Json, Seed, date_of
from farthing.reports.table import Table, counted

if TYPE_CHECKING:
    from farthing.bundle.base import Bundle
    from farthing_gateway.recalibration import BundleRecalibration, BundleVersion, Versions

ConfigFile = Annotated[
    Path, typer.Argument(metavar="CONFIG", help="The gateway's configuration, in TOML.")
]
PolicyName = Annotated[str, typer.Option("--policy", metavar="NAME", help="The policy.")]
Mode = Annotated[
    str | None, typer.Option(metavar="NAME", help="The mode, if the policy has several.")
]


def recalibrate(
    config: ConfigFile,
    policy: PolicyName,
    mode: Mode = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="DATE",
            help="Use audits from this time on (UTC).",
            show_default="the last alarm about the promise, else since the bundle decides",
        ),
    ] = None,
    seed: Seed = 0,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the result and write nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Set the threshold of a gateway's bundle anew on the audits of its live traffic.

    The policy, its promise and the level stay. The former bundle is kept (`farthing rollback`); a
    gateway with --watch goes on with the new one. Exit code 1: nothing is proved, and nothing is
    written.

    Example: farthing recalibrate serve.toml --policy support
    """
    from farthing_gateway.recalibration import RecalibrationRequest, recalibrated

    asked = RecalibrationRequest(policy, mode, date_of(since), seed, dry_run)
    with interruptible("the bundle is one or the other, and whole; see farthing rollback --list"):
        done = recalibrated(config, asked)
    for note in done.notes:
        remark(f"note: {note}")
    found = done.found
    if as_json:
        show_json(_anew(done))
    elif found.proved:
        show(Group(*map(Text, _lines(done))))
    if not found.proved:
        asked_of = f"{counted(found.proving, 'audit')} {done.period}"
        said = f"nothing is proved by {asked_of}, and nothing is written. {found.outlook}".strip()
        remark(f"{said} {_instead(done, config)}")
        raise typer.Exit(1)
    if dry_run:
        remark("dry run: nothing is written")
    else:
        kept = f"version {done.history.before} is kept: farthing rollback {config} --policy"
        remark(f"{done.place.folder} is version {done.history.present}; {kept} {policy}")


def rollback(
    config: ConfigFile,
    policy: PolicyName,
    mode: Mode = None,
    to: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="The version.", show_default="the one before"),
    ] = None,
    as_list: Annotated[
        bool, typer.Option("--list", help="List the versions and change nothing.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Put the version of a gateway's bundle that decided before back in its place.

    Twice goes one further back. Nothing is lost: --to returns to a later one.

    Example: farthing rollback serve.toml --policy support
    """
    from farthing.errors import InputError
    from farthing_gateway.recalibration import rolled_back, versions

    if as_list and to is not None:
        raise InputError("--list changes nothing, so --to means nothing to it; give one of them")
    if as_list:
        found = versions(config, policy, mode)
    else:
        with interruptible("the bundle is one or the other, and whole; see --list"):
            found = rolled_back(config, policy, mode, to)
    for note in found.notes:
        remark(f"note: {note}")
    if as_json:
        show_json([_version(one) for one in found.listed])
    elif as_list:
        show(_table(found))
    if not as_list:
        _say_back(found)


def _lines(done: "BundleRecalibration") -> list[str]:
    found = done.found
    audits = f"{counted(found.proving, 'audit')} {done.period},"
    kept = f"{found.new.good:.1%} keep the promise"
    laid = f"; {found.laid_out} others laid out what to test" if found.laid_out else ""
    return [
        _money(done),
        f"Of {audits} {kept}; {found.old.good:.1%} would under the threshold before{laid}.",
        "",
        found.certificate.sentence(),
        f"Threshold: {_threshold(found.bundle)}; it was {_threshold(done.before)}.",
    ]


def _instead(done: "BundleRecalibration", config: Path) -> str:
    of = f"--policy {done.place.policy}"
    if len(done.place.section.bundles) > 1:
        of += f" --mode {done.place.mode}"
    export = f"farthing traffic export --config {config} --policy {done.place.policy} --out day.db"
    other = f"The level stays. For another one: {export}, then farthing recommend day.db."
    if done.history.before is None:
        alone = f"the model asked for, or {done.strongest}, answers then"
        return f"{other} Or take `bundle` out of the policy's section: {alone}."
    return f"{other} Or put the version before back: farthing rollback {config} {of}."


def _money(done: "BundleRecalibration") -> str:
    """Say what a day costs now, what it cost before, and what the strongest model would cost."""
    from farthing.money import dollars

    found, a_day = done.found, done.audits.requests_a_day
    number = 1_000.0 if a_day is None else a_day
    new, old = (round(one.cost_nano * number) for one in (found.new, found.old))
    more = "more" if new > old else "less"
    beside = f"{dollars(abs(new - old))} {more} than" if new != old else "as much as"
    which = "1,000 requests cost" if a_day is None else "A day costs"
    said = f"{which} {dollars(new)}, {beside} under the threshold before"
    alone = found.alone_nano.get(done.strongest)
    if alone is not None:
        said += f"; {done.strongest} alone would cost {dollars(round(alone * number))}"
    return f"{said}." if a_day is None else f"{said} (at {a_day:,.0f} requests a day)."


def _threshold(bundle: "Bundle") -> str:
    return "none" if bundle.kappa is None else f"{bundle.kappa:.4g}"


def _anew(done: "BundleRecalibration") -> dict[str, Any]:
    found, audits = done.found, done.audits
    return {
        "policy": done.place.policy,
        "mode": done.place.mode,
        "proved": found.proved,
        "deployed": done.deployed,
        "version": done.history.present if done.deployed else None,
        "since": done.period.since.isoformat(),
        "because": done.period.why,
        "audits": {
            "drawn": audits.drawn,
            "complete": audits.pool.complete,
            "proved_by": found.proving,
            "laid_out": found.laid_out,
        },
        "requests": audits.requests,
        "requests_a_day": audits.requests_a_day,
        "new": {"threshold": found.bundle.kappa, **vars(found.new)},
        "old": {"threshold": done.before.kappa, **vars(found.old)},
        "alone_nano": found.alone_nano,
        "strongest": done.strongest,
        "certificate": found.certificate.to_json(),
        "says": found.certificate.sentence(),
        "outlook": found.outlook,
        "notes": done.notes,
    }


def _say_back(found: "Versions") -> None:
    present = found.version(found.history.present)
    remark(f"{found.place.folder} is version {present.number} again. {_says(present)}")
    for rang in present.alarms[:1]:
        remark(
            f"warning: an alarm about {rang.signal} rang under its certificate at "
            f"{rang.at:%Y-%m-%d %H:%M} UTC, so its promise may hold no more. {rang.says}"
        )


def _table(found: "Versions") -> Table:
    lines = []
    for version in found.listed:
        change = version.change
        when = "" if change is None else f"{change.at.astimezone(UTC):%Y-%m-%d %H:%M}"
        number = f"{version.number}{'*' if version.present else ''}"
        certificate = version.certificate or "none"
        value = None if version.bundle is None else version.bundle.value
        saves = "–" if value is None or value.saved is None else f"{value.saved:.1%}"
        lines.append((number, when, certificate, _promise(version), saves))
    headings = ("Version", "When (UTC)", "Certificate", "Promise", "Saves")
    return Table.of(headings, lines, layout=("word", "word", "word", "prose"))


def _promise(one: "BundleVersion") -> str:
    change = one.change
    by = f" by {change.by}" if change is not None and change.by else ""
    came = "" if change is None else f"{change.how}{by}. "
    alarm = f" An alarm about {one.alarms[0].signal} ended it." if one.alarms else ""
    return f"{came[:1].upper()}{came[1:]}{_says(one)}{alarm}"


def _says(one: "BundleVersion") -> str:
    if one.bundle is None:
        return "Somebody deleted it."
    certificate = one.bundle.certificate
    return "Nothing is promised." if certificate is None else certificate.sentence()


def _version(one: "BundleVersion") -> dict[str, Any]:
    from msgspec import to_builtins

    value = one.bundle.value if one.bundle is not None else None
    return {
        "version": one.number,
        "decides": one.present,
        "change": None if one.change is None else to_builtins(one.change),
        "certificate": one.certificate,
        "says": _says(one),
        "saved": None if value is None else value.saved,
        "alarms": to_builtins(one.alarms),
    }
