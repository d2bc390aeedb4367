"""The tables of `storage.schema`; what is there already, as an older gateway left it, stays.

A later version leaves what this one made: a new database has all of the schema from here on.
"""

from pathlib import Path

from alembic import op
from sqlalchemy import inspect

from farthing_gateway.storage.schema import METADATA

revision, down_revision = "0002", None
_FILL = """
INSERT INTO traffic_hours_failures (hour, model, status, code, number, cost_nano)
SELECT at_us / 3600000000, coalesce(model, ''), status, code, count(*),
    CAST(sum(cost_nano) AS BIGINT)
FROM traffic_failures GROUP BY at_us / 3600000000, coalesce(model, ''), status, code"""


def upgrade() -> None:
    """Make what lacks, and sum what failed where nothing did before."""
    connection = op.get_bind()
    summed = inspect(connection).has_table("traffic_hours_failures")
    for table in METADATA.sorted_tables:
        table.create(connection, checkfirst=True)
        for index in sorted(table.indexes, key=lambda one: str(one.name)):
            index.create(connection, checkfirst=True)
    if not summed:
        op.execute(_FILL)
    op.execute("INSERT INTO ledger_schema (version) VALUES (1) ON CONFLICT DO NOTHING")
    if connection.dialect.name == "postgresql":
        functions = Path(__file__).with_name("v0002_ledger.sql").read_text(encoding="utf-8")
        for statement in functions.split("\n\n"):
            connection.exec_driver_sql(statement)
