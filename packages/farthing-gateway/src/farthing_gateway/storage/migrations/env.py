"""What Alembic runs by: in the transaction of the connection that it is given."""

from alembic import context

context.configure(**context.config.attributes)
context.run_migrations()
