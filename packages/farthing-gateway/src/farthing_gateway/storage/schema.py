"""The tables of a gateway's database as they are today, for SQLite and PostgreSQL alike.

The baseline of `migrations` makes them. Hot statements are written by hand beside what they serve,
`ledger_apply` in PostgreSQL itself.

Moments are microseconds since 1970 (`_us`), or text in UTC in the ledger; money is integer
nano-dollars (`_nano`); lists and objects are JSON.
"""

from functools import partial
from typing import Any

from sqlalchemy import (
    DOUBLE_PRECISION,
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY

METADATA = MetaData()
_needed = partial(Column[Any], nullable=False)
_key = partial(Column[Any], primary_key=True)
_one = partial(Column[Any], primary_key=True, autoincrement=False)


def _index(name: str, *columns: str, where: str | None = None, unique: bool = False) -> Index:
    only = None if where is None else text(where)
    return Index(name, *columns, unique=unique, sqlite_where=only, postgresql_where=only)


_PG = "postgresql"
_COMPARED = Text().with_variant(Text(collation="C"), _PG)
"""Text in the order of its bytes."""
_WHOLE = BigInteger().with_variant(Integer(), "sqlite")
"""Of 64 bits in both; a strict table of SQLite knows it by this name."""
_LIST = Text().with_variant(ARRAY(Text), _PG)
_sum = partial(Column[Any], type_=_WHOLE, nullable=False, server_default=text("0"))

Table(
    "gateway_keys",
    METADATA,
    _key("id", Text),
    _needed("digest", Text),
    _needed("name", Text),
    Column("team", Text),
    _needed("scopes", Text),
    _needed("limits", Text),
    _needed("models", Text),
    _needed("made_us", BigInteger),
    Column("revoked_us", BigInteger),
    Column("expires_us", BigInteger),
    _index("gateway_keys_name", "name", where="revoked_us IS NULL", unique=True),
)
Table(
    "sessions",
    METADATA,
    _key("digest", Text),
    _needed("key_id", Text),
    _needed("made_us", BigInteger),
    _needed("used_us", BigInteger),
)

# What passed. Later calls of a question are lines of JSON at the end of its row.
Table(
    "traffic_requests",
    METADATA,
    _key("id", Text),
    _needed("at_us", BigInteger),
    Column("key_id", Text),
    _needed("conversation", Text),
    Column("policy", Text),
    _needed("model", Text),
    Column("messages", Text),
    _needed("trace", Text),
    _needed("later", Text, server_default=""),
    _needed("promise", Text),
    _needed("cost_nano", BigInteger),
    _needed("later_nano", BigInteger, server_default=text("0")),
    Column("saved_nano", BigInteger),
    _needed("latency_s", DOUBLE_PRECISION),
    Column("system", Text),
    Column("certificate", Text),
    Column("mode", Text),
    Column("answered_by", Text),
    Column("group", Text),
    Column("audit", DOUBLE_PRECISION),
    _needed("audited", BigInteger),
    Column("decided", Text),
    _index("traffic_by_time", "at_us", "id"),
    _index("traffic_by_key", "key_id", "at_us", "id"),
    _index("traffic_by_talk", "conversation", "at_us"),
    _index("traffic_by_kind", "policy", "model", "promise", "at_us", "id"),
    _index(
        "traffic_under",
        *("policy", "certificate", "at_us", "promise", "cost_nano"),
        where="certificate IS NOT NULL",
    ),
)
Table("traffic_losses", METADATA, _key("what", Text), _needed("number", BigInteger))
Table(
    "traffic_outside",
    METADATA,
    _key("policy", Text),
    _key("reason", Text),
    _needed("number", BigInteger),
)
Table(
    "traffic_failures",
    METADATA,
    _key("id", Text),
    _needed("at_us", BigInteger),
    Column("key_id", Text),
    Column("model", Text),
    _needed("status", BigInteger),
    _needed("code", Text),
    _needed("said", Text),
    _needed("tries", Text),
    _needed("cost_nano", BigInteger),
    _needed("latency_s", DOUBLE_PRECISION),
    _index("traffic_failures_by_time", "at_us", "id"),
    _index("traffic_failures_by_key", "key_id", "at_us", "id"),
    _index("traffic_failures_by_status", "status", "at_us", "id"),
)

# `hour` counts from 1970, in UTC; a `policy` of '' is nobody's, a `model` of '' none that there is.
# `compared` are the requests of
# which it is known what the strongest model would have cost, `compared_nano` what they did cost.
Table(
    "traffic_hours",
    METADATA,
    _one("hour", BigInteger),
    _key("policy", Text),
    _key("model", Text),
    _key("promise", Text),
    _needed("requests", BigInteger),
    _needed("cost_nano", BigInteger),
    _needed("later_nano", BigInteger),
    _needed("saved_nano", BigInteger),
    _needed("compared", BigInteger),
    _needed("compared_nano", BigInteger),
)
Table(
    "traffic_hours_calls",
    METADATA,
    _one("hour", BigInteger),
    _key("policy", Text),
    _key("model", Text),
    _one("later", Integer),
    _needed("calls", BigInteger),
    _needed("failed", BigInteger),
    _needed("cost_nano", BigInteger),
)
Table(
    "traffic_hours_latency",
    METADATA,
    _one("hour", BigInteger),
    _key("policy", Text),
    _key("kind", Text),
    _key("model", Text),
    _one("bucket", Integer),
    _needed("number", BigInteger),
)
Table(
    "traffic_hours_failures",
    METADATA,
    _one("hour", BigInteger),
    _key("model", Text),
    _one("status", BigInteger),
    _key("code", Text),
    _needed("number", BigInteger),
    _needed("cost_nano", BigInteger),
)
Table("traffic_turn", METADATA, _one("one", Integer))

# What is watched. A row of `watch_events` is deleted in the transaction that counts it. A `writer`
# marks what one transaction changed, for its later statements. `part` of a state is the whole of a
# certificate (''), or a group.
Table(
    "watch_events",
    METADATA,
    _key("id", Text),
    _key("what", Text),
    _needed("policy", Text),
    _needed("mode", Text),
    _needed("certificate", Text),
    _needed("at_us", BigInteger),
    _needed("body", Text),
    _index("watch_events_in_order", "policy", "mode", "certificate", "at_us", "id", "what"),
)
Table(
    "watch_states",
    METADATA,
    _key("policy", Text),
    _key("mode", Text),
    _key("certificate", Text),
    _key("part", Text),
    _needed("at_us", BigInteger),
    _needed("version", BigInteger),
    _needed("writer", Text),
    _needed("state", Text),
)

# `state` is `waiting` until the models were asked, then `done` or `failed`; `whole` says that the
# recorded texts are as they were, so that anybody can ask; `owner` asks until `until_us` and not
# before `due_us`.
Table(
    "audits",
    METADATA,
    _key("id", Text),
    _needed("at_us", BigInteger),
    _needed("policy", Text),
    _needed("mode", Text),
    _needed("certificate", Text),
    _needed("purpose", Text),
    _needed("probability", DOUBLE_PRECISION),
    _needed("graded_by", Text),
    _needed("whole", BigInteger),
    _needed("state", Text),
    _needed("owner", Text),
    _needed("until_us", BigInteger),
    _needed("due_us", BigInteger),
    _needed("tries", BigInteger),
    Column("value", DOUBLE_PRECISION),
    _needed("writer", Text),
    _index("audits_waiting", "until_us", where="state = 'waiting'"),
    _index("audits_owned", "owner", "due_us", "at_us", "id", where="state = 'waiting'"),
    _index("audits_by_time", "at_us"),
    _index("audits_ungraded", "at_us", "id", where="value IS NULL AND purpose = 'audit'"),
    _index("audits_not_kept", "at_us", "id", where="purpose = 'audit' AND value < 0.5"),
    _index("audits_kept", "at_us", "id", where="purpose = 'audit' AND value >= 0.5"),
    _index(
        "audits_graded",
        *("policy", "certificate", "at_us"),
        where="value IS NOT NULL AND purpose = 'audit'",
    ),
)
Table(
    "feedback",
    METADATA,
    _key("id", Text),
    _needed("at_us", BigInteger),
    Column("key_id", Text),
    Column("grade", DOUBLE_PRECISION),
    Column("gold", Text),
    Column("comment", Text),
    _needed("revision", BigInteger),
    _needed("writer", Text),
    _index("feedback_by_time", "at_us"),
)
Table(
    "alarms",
    METADATA,
    _key("id", Text),
    _needed("policy", Text),
    _needed("mode", Text),
    _needed("certificate", Text),
    _needed("signal", Text),
    _needed("at_us", BigInteger),
    _needed("says", Text),
    _needed("evidence", DOUBLE_PRECISION),
    Column("closed_at_us", BigInteger),
    Column("closed_by", Text),
    _index("alarms_open", "at_us", where="closed_at_us IS NULL"),
)

# Deployments of a policy's mode are numbered from 1.
Table(
    "deployments",
    METADATA,
    _key("policy", Text),
    _key("mode", Text),
    _one("number", BigInteger),
    _needed("at_us", BigInteger),
    Column("certificate", Text),
    _needed("says", Text),
    _needed("how", Text),
    Column("who", Text),
)

# What was spent and is set aside: an account in a window, such as 2026-11-22T14:05, 2026-11 or
# total. Rows change all the time: in PostgreSQL room on their page (`fillfactor`, of which Core has
# no word) keeps such a change from touching the index.
Table(
    "ledger_windows",
    METADATA,
    _key("account", _COMPARED),
    _key("window", _COMPARED),
    _sum("settled_nano"),
    _sum("settled_tokens"),
    _sum("settled_calls"),
    _sum("held_nano"),
    _sum("held_tokens"),
    _sum("held_calls"),
    _sum("overcharged_nano"),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

# Calls under way, and those of unknown outcome that nobody has reconciled.
Table(
    "ledger_holds",
    METADATA,
    _key("id", _COMPARED),
    _needed("accounts", _LIST),
    _needed("windows", _LIST),
    _needed("nano", _WHOLE),
    _needed("tokens", _WHOLE),
    _needed("calls", _WHOLE),
    _needed("made_at", _COMPARED),
    _needed("lease_ends", _COMPARED),
    _needed("state", Text),
    _needed("note", Text),
    Column("marked_at", _COMPARED),
    CheckConstraint("state IN ('reserved', 'sent', 'unknown')"),
    _index("ledger_leases", "lease_ends", where="state <> 'unknown'"),
    sqlite_strict=True,
    sqlite_with_rowid=False,
)

# Idempotency keys; status and body are there once the request was answered.
Table(
    "ledger_keys",
    METADATA,
    _key("key", _COMPARED),
    _needed("fingerprint", Text),
    _needed("token", Text),
    _needed("claimed_at", _COMPARED),
    _needed("lease_ends", _COMPARED),
    Column("status", Integer),
    Column("body", LargeBinary),
    sqlite_strict=True,
)

# Read by a Farthing from before migrations alone, which could be gone back to.
Table("ledger_schema", METADATA, _one("version", Integer), sqlite_strict=True)
