"""What failed is summed by the hour, and is found by its key and status as by its time."""

from alembic import op
from sqlalchemy import BigInteger, Column, Text

revision, down_revision = "0002", "0001"
_FILL = """
INSERT INTO traffic_hours_failures (hour, model, status, code, number, cost_nano)
SELECT at_us / 3600000000, coalesce(model, ''), status, code, count(*),
    CAST(sum(cost_nano) AS BIGINT)
FROM traffic_failures GROUP BY at_us / 3600000000, coalesce(model, ''), status, code"""


def upgrade() -> None:
    """Make the sums of what is recorded by now, and the indexes."""
    op.create_table(
        "traffic_hours_failures",
        Column("hour", BigInteger, primary_key=True, autoincrement=False),
        Column("model", Text, primary_key=True),
        Column("status", BigInteger, primary_key=True, autoincrement=False),
        Column("code", Text, primary_key=True),
        Column("number", BigInteger, nullable=False),
        Column("cost_nano", BigInteger, nullable=False),
    )
    op.execute(_FILL)
    op.create_index("traffic_by_key", "traffic_requests", ["key_id", "at_us", "id"])
    op.create_index("traffic_failures_by_key", "traffic_failures", ["key_id", "at_us", "id"])
    op.create_index("traffic_failures_by_status", "traffic_failures", ["status", "at_us", "id"])
