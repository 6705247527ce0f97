"""``bltm methods``."""

from __future__ import annotations

from bltm.cli.errors import reported
from bltm.cli.listing import print_rows


def methods() -> None:
    """List the methods that 'bltm fit --method' knows."""
    with reported():
        from bltm.methods.registry import METHODS

        rows = [
            (m.name, m.family, ", ".join(m.needs) or "-", m.gives, m.paper)
            for m in METHODS.values()
        ]
        print_rows([("method", "family", "needs", "gives", "paper"), *rows])
