"""The tables of what is watched, in the gateway's database.

What happens to a reply under a promise is an event: a row that is written in the transaction that
records it, and deleted in the one that counts it. So nothing is counted twice and nothing is lost,
whoever counts and whenever a process ends.
"""

from farthing.gateway.monitoring import deployments

SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS watch_events (
    id TEXT NOT NULL,
    what TEXT NOT NULL,
    policy TEXT NOT NULL,
    mode TEXT NOT NULL,
    certificate TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (id, what)
)""",
    """
CREATE INDEX IF NOT EXISTS watch_events_in_order
ON watch_events (policy, mode, certificate, at_us, id, what)""",
    """
CREATE TABLE IF NOT EXISTS watch_states (
    policy TEXT NOT NULL,
    mode TEXT NOT NULL,
    certificate TEXT NOT NULL,
    part TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    version BIGINT NOT NULL,
    writer TEXT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (policy, mode, certificate, part)
)""",
    """
CREATE TABLE IF NOT EXISTS audits (
    id TEXT PRIMARY KEY,
    at_us BIGINT NOT NULL,
    policy TEXT NOT NULL,
    mode TEXT NOT NULL,
    certificate TEXT NOT NULL,
    purpose TEXT NOT NULL,
    probability DOUBLE PRECISION NOT NULL,
    graded_by TEXT NOT NULL,
    whole BIGINT NOT NULL,
    state TEXT NOT NULL,
    owner TEXT NOT NULL,
    until_us BIGINT NOT NULL,
    due_us BIGINT NOT NULL,
    tries BIGINT NOT NULL,
    value DOUBLE PRECISION,
    writer TEXT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS audits_waiting ON audits (until_us) WHERE state = 'waiting'",
    """
CREATE INDEX IF NOT EXISTS audits_owned ON audits (owner, due_us, at_us, id)
WHERE state = 'waiting'""",
    "CREATE INDEX IF NOT EXISTS audits_by_time ON audits (at_us)",
    """
CREATE INDEX IF NOT EXISTS audits_ungraded ON audits (at_us, id)
WHERE value IS NULL AND purpose = 'audit'""",
    """
CREATE TABLE IF NOT EXISTS feedback (
    id TEXT PRIMARY KEY,
    at_us BIGINT NOT NULL,
    key_id TEXT,
    grade DOUBLE PRECISION,
    gold TEXT,
    comment TEXT,
    revision BIGINT NOT NULL,
    writer TEXT NOT NULL
)""",
    "CREATE INDEX IF NOT EXISTS feedback_by_time ON feedback (at_us)",
    """
CREATE TABLE IF NOT EXISTS alarms (
    id TEXT PRIMARY KEY,
    policy TEXT NOT NULL,
    mode TEXT NOT NULL,
    certificate TEXT NOT NULL,
    signal TEXT NOT NULL,
    at_us BIGINT NOT NULL,
    says TEXT NOT NULL,
    evidence DOUBLE PRECISION NOT NULL,
    closed_at_us BIGINT,
    closed_by TEXT
)""",
    "CREATE INDEX IF NOT EXISTS alarms_open ON alarms (at_us) WHERE closed_at_us IS NULL",
    *deployments.SCHEMA,
)
"""`audits.state` is `waiting` until the models were asked, then `done` or `failed`; `whole` says
that the recorded texts are as they were, so that anybody can ask; `owner` asks until `until_us` and
not before `due_us`. A `writer` marks what one transaction changed, for its later statements.
`part` of a state is the whole of a certificate (``), or a group."""
