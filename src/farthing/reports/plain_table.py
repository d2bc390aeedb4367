"""The one look of tables on a screen: a line under the headings, and nothing else."""

from rich import box
from rich.table import Table


def plain_table() -> Table:
    """Return a table without rows or columns.

    >>> table = plain_table()
    >>> table.add_column("Model")
    >>> table.columns[0].header
    'Model'
    """
    return Table(box=box.SIMPLE_HEAD, padding=(0, 2, 0, 0), pad_edge=False, show_edge=False)
