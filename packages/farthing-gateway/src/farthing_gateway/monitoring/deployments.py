"""The log of which bundle decided since when, in the gateway's database."""

from datetime import UTC, datetime

from farthing.bundle.base import Bundle
from farthing.promises.certificate import Certificate
from farthing.traces.system import fingerprint
from farthing_gateway.monitoring.base import Change, Deployed
from farthing_gateway.storage.database import Database, Row, Step, microseconds, moment

UNPROVED = "Nothing is promised: nothing was proved of the bundle, so the strongest model answers."

_LAST = """
SELECT number, certificate, says, how FROM deployments WHERE policy = $1 AND mode = $2
ORDER BY number DESC LIMIT 1"""
_INSERT = """
INSERT INTO deployments (policy, mode, number, at_us, certificate, says, how, who)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT DO NOTHING"""
_NAME = """
UPDATE deployments SET how = $4, who = $5
WHERE policy = $1 AND mode = $2 AND number = $3 AND how = 'loaded'"""
_SELECT = """
SELECT policy, mode, at_us, certificate, says, how, who FROM deployments
WHERE CAST($1 AS TEXT) IS NULL OR policy = $1
ORDER BY at_us DESC, policy, mode, number DESC"""


def deployed(
    policy: str, mode: str, bundle: Bundle, how: Change = "loaded", by: str | None = None
) -> Deployed:
    """Return what is noted of a bundle that decides from now on.

    Args:
        policy: the name of the policy.
        mode: its mode; a single bundle's is `default`.
        bundle: what decides.
        how: how it came to decide.
        by: who did it; None: the gateway itself.
    """
    certificate = bundle.certificate
    says = certificate.sentence() if certificate else ""
    return Deployed(policy, mode, datetime.now(UTC), certificate_mark(certificate), says, how, by)


def undecided(policy: str, mode: str) -> Deployed:
    """Return what is noted where a bundle of which nothing was proved took a mode's place."""
    return Deployed(policy, mode, datetime.now(UTC), None, UNPROVED, "loaded", None)


async def note_deployment(database: Database, deployed: Deployed) -> None:
    """Write that a bundle began to decide; many processes may do so at once.

    What every worker finds is one deployment: a bundle that is `loaded` while the last one that was
    noted is the same changes nothing. Where a command says of one that workers found already how it
    came, that line says so from then on.

    Args:
        database: of a gateway.
        deployed: the bundle.
    """
    place = deployed.policy, deployed.mode
    while True:
        last = await database.read(_LAST, *place)
        number, *known = last[0] if last else (0, None, None, None)
        if last and known[:2] == [deployed.certificate, deployed.says]:
            if deployed.how == "loaded":
                return
            if known[2] == "loaded":
                found = Step(_NAME, [(*place, number, deployed.how, deployed.by)])
                if await database.write(found):
                    return
                continue
        if await database.write(Step(_INSERT, [_row(deployed, number + 1)])):
            return


async def deployments(database: Database, policy: str | None = None) -> list[Deployed]:
    """Return which bundles decided since when, the newest first."""
    rows = await database.read(_SELECT, policy)
    return [Deployed(name, mode, moment(at), *rest) for name, mode, at, *rest in rows]


def certificate_mark(certificate: Certificate | None) -> str | None:
    """Return the mark of a certificate, as replies name it; None where nothing is promised.

    >>> from farthing.promises.kinds import none
    >>> certificate_mark(none.certify(0.4, fingerprint="")) is None
    True
    """
    if certificate is None or not certificate.promises:
        return None
    return fingerprint(certificate.to_json()).removeprefix("sha256:")


def _row(deployed: Deployed, number: int) -> Row:
    return (
        deployed.policy,
        deployed.mode,
        number,
        microseconds(deployed.at),
        deployed.certificate,
        deployed.says,
        deployed.how,
        deployed.by,
    )
