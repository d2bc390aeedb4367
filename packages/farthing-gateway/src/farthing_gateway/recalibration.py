"""Calibrate a gateway's bundle on its live traffic, and put versions of it back."""

import asyncio
import getpass
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from farthing.bundle import folder as bundles
from farthing.bundle.base import Bundle
from farthing.bundle.versions import (
    Change,
    History,
    How,
    deploy,
    digest_of,
    folder_of,
    put_back,
    read_history,
)
from farthing.errors import InputError, StoreError
from farthing.recommendation.recalibrate import Recalibrated, asked_again, recalibrate
from farthing.traces.assemble import assemble
from farthing_gateway.config import ServeConfig, read_config
from farthing_gateway.monitoring.base import Alarm
from farthing_gateway.monitoring.bundle_path import Place, place_of
from farthing_gateway.monitoring.deployments import certificate_mark, deployed, note_deployment
from farthing_gateway.monitoring.evidence import Audits, audited_traces
from farthing_gateway.monitoring.evidence_window import Period, period_of
from farthing_gateway.monitoring.status import open_watch
from farthing_gateway.storage.database import open_database


@dataclass(frozen=True)
class RecalibrationRequest:
    """What is to be calibrated anew, and how."""

    policy: str
    mode: str | None = None
    since: datetime | None = None
    seed: int = 0
    dry_run: bool = False
    """Whether nothing is written, whatever is proved."""


@dataclass(frozen=True)
class BundleRecalibration:
    """What came of it."""

    place: Place
    strongest: str
    """The model that savings are counted against."""
    period: Period
    audits: Audits
    before: Bundle
    found: Recalibrated
    history: History
    """The versions of the bundle, the new one among them if it was deployed."""
    deployed: bool
    notes: tuple[str, ...]


@dataclass(frozen=True)
class BundleVersion:
    """A version of a bundle, as a table shows it."""

    number: int
    present: bool
    change: Change | None
    """How it came to decide the last time."""
    bundle: Bundle | None
    """None where somebody deleted it."""
    certificate: str | None
    """The mark of its certificate, as replies name it."""
    alarms: tuple[Alarm, ...]
    """Those that rang under that certificate."""


@dataclass(frozen=True)
class Versions:
    """The versions of a policy's bundle."""

    place: Place
    history: History
    listed: tuple[BundleVersion, ...]
    """The newest first."""
    notes: tuple[str, ...] = ()

    def version(self, number: int) -> BundleVersion:
        """Return a version that there is."""
        return next(one for one in self.listed if one.number == number)


def recalibrated(file: str | Path, asked: RecalibrationRequest) -> BundleRecalibration:
    """Calibrate a policy's bundle on the audits of its live traffic, and deploy it.

    The policy, the kind of its promise and the level stay; the threshold and the certificate are
    new. Audits are fresh: chance drew them from traffic that came after the policy was made.

    Args:
        file: the configuration of the gateway.
        asked: what is asked for.

    Raises:
        InputError: there is no such policy, mode, bundle or database, the period has no audits, or
            the bundle is for other models.
    """
    config = read_config(Path(file))
    place = place_of(config, asked.policy, asked.mode)
    digest = digest_of(place.folder)
    before, history = bundles.load(place.folder), read_history(place.folder)
    again = asked_again(before.certificate)
    gold = again.needs_gold
    _check_sample(before)
    mark = certificate_mark(before.certificate)
    begin = _Begin(asked.since, history, mark)
    period, audits = asyncio.run(_audits(config, place, begin, gold=gold, seed=asked.seed))
    if not audits.pool.traces:
        raise InputError(_none(place, period, audits))
    found = recalibrate(
        place.folder,
        before,
        assemble(audits.pool.traces),
        system=audits.system,
        seed=asked.seed,
    )
    done = BundleRecalibration(
        place=place,
        strongest=config.serve.strongest,
        period=period,
        audits=audits,
        before=before,
        found=found,
        history=history,
        deployed=False,
        notes=(*period.notes, *audits.notes, *found.notes),
    )
    if asked.dry_run or not found.proved:
        return done
    change = _change("recalibrated", f"{found.proving} audits {period}")
    history = deploy(place.folder, found.bundle, change, instead_of=digest)
    note = asyncio.run(_noted(config, place, found.bundle, change))
    return replace(done, history=history, deployed=True, notes=(*done.notes, *note))


def versions(file: str | Path, policy: str, mode: str | None = None) -> Versions:
    """Return the versions of a policy's bundle.

    Raises:
        InputError: there is no such policy, mode or bundle.
    """
    config = read_config(Path(file))
    place = place_of(config, policy, mode)
    return _versions(config, place, read_history(place.folder))


def rolled_back(
    file: str | Path, policy: str, mode: str | None = None, to: int | None = None
) -> Versions:
    """Put a version of a policy's bundle back in its place.

    Args:
        file: the configuration of the gateway.
        policy: its name.
        mode: one of its modes; None: it has one bundle.
        to: the number of the version; None: the one before.

    Raises:
        InputError: there is no such policy, mode or version, or none before.
    """
    config = read_config(Path(file))
    place = place_of(config, policy, mode)
    history = read_history(place.folder)
    number = history.before if to is None else to
    if number is None:
        raise InputError(f"{place.folder}: there is no version before this one; see --list")
    change = _change("rolled back", f"instead of version {history.present}")
    history = put_back(place.folder, number, change)
    notes = asyncio.run(_noted(config, place, bundles.load(place.folder), change))
    return replace(_versions(config, place, history), notes=notes)


@dataclass(frozen=True)
class _Begin:
    """What says since when audits count."""

    given: datetime | None
    history: History
    certificate: str | None
    """The mark of the one that decides."""


async def _audits(
    config: ServeConfig, place: Place, begin: _Begin, *, gold: bool, seed: int
) -> tuple[Period, Audits]:
    watch = await open_watch(config.serve.database)
    try:
        rang = _about(place, begin.certificate, await watch.alarms())
        period = period_of(begin.given, rang, begin.history)
        found = await audited_traces(watch.database, place, period.since, gold=gold, seed=seed)
    finally:
        await watch.aclose()
    return period, found


def _about(place: Place, certificate: str | None, alarms: Sequence[Alarm]) -> list[Alarm]:
    of = (*place.names, certificate)
    return [one for one in alarms if (one.policy, one.mode, one.certificate) == of]


def _check_sample(bundle: Bundle) -> None:
    why = bundle.certificate.promise.not_audited if bundle.certificate else ""
    if not why:
        return
    raise InputError(
        f"the bundle cannot be calibrated on audits: {why}; use `farthing traffic export` and "
        "`farthing recommend`"
    )


async def _noted(
    config: ServeConfig, place: Place, bundle: Bundle, change: Change
) -> tuple[str, ...]:
    """Log in the database what decides now; say so where that cannot be written."""
    try:
        database = await open_database(config.serve.database)
        try:
            await note_deployment(database, deployed(*place.names, bundle, change.how, change.by))
        finally:
            await database.aclose()
    except StoreError as error:
        return (f"the bundle is in its place, and the log of deployments does not say it: {error}",)
    return ()


def _versions(config: ServeConfig, place: Place, history: History) -> Versions:
    try:
        alarms = asyncio.run(_alarms(config))
        notes: tuple[str, ...] = ()
    except StoreError as error:
        alarms, notes = [], (f"whether alarms rang is not known: {error}",)
    found = []
    for version in reversed(history.versions):
        folder = folder_of(place.folder, history, version.number)
        bundle = bundles.load(folder) if folder.is_dir() else None
        mark = certificate_mark(bundle.certificate) if bundle else None
        found.append(
            BundleVersion(
                number=version.number,
                present=version.number == history.present,
                change=history.last_change(version.number),
                bundle=bundle,
                certificate=mark,
                alarms=tuple(_about(place, mark, alarms)),
            )
        )
    return Versions(place, history, tuple(found), notes)


async def _alarms(config: ServeConfig) -> list[Alarm]:
    watch = await open_watch(config.serve.database)
    try:
        return await watch.alarms()
    finally:
        await watch.aclose()


def _none(place: Place, period: Period, audits: Audits) -> str:
    few = f"; {'; '.join(audits.notes)}" if audits.notes else ""
    return (
        f"the policy {place} has no complete audits {period} "
        f"({audits.requests:,} requests{few}); wait, or give an earlier --since"
    )


def _change(how: How, why: str) -> Change:
    return Change(at=datetime.now(UTC), how=how, by=_user(), why=why)


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may give its user no name
        return None
