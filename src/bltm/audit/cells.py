"""User text in cells of a table: what is written, and how it finds its way back.

A spreadsheet takes text that starts with ``=``, ``+``, ``-`` or ``@`` for a formula, and does what
it says. Such text is written with an apostrophe before it, which spreadsheets take as "this is
text". Text that has such apostrophes already gets one more, so that no two texts become one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from bltm.core.errors import InputError

_FORMULA = re.compile("'*[=+\\-@\t\r\n＝＋－＠]")
_WHOLE = re.compile(r"(-?\d+)\.0+")


def cell(value: Any) -> str:
    r"""Return how a name is written in a table.

    Examples
    --------
    >>> cell("=1+1"), cell("'=1+1"), cell("'quoted'"), cell("a\x00b"), cell(7)
    ("'=1+1", "''=1+1", "'quoted'", 'a␀b', '7')
    """
    text = str(value).replace("\x00", "␀")
    # Names of files need not be valid text.
    text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return f"'{text}" if _FORMULA.match(text) and isinstance(value, str) else text


class Lookup:
    """Positions of names by how they are written, with and without the apostrophe.

    Parameters
    ----------
    names
        The names, in order.
    argument
        What they are, for messages.

    Examples
    --------
    >>> Lookup(["=a", "b", 3], "ids").find("'=a"), Lookup(["=a", "b", 3], "ids").find("3.0")
    (0, 2)
    """

    def __init__(self, names: Iterable[Any], argument: str) -> None:
        self.written: dict[str, int] = {}
        self.plain: dict[str, int] = {}
        for position, name in enumerate(names):
            text = cell(name)
            if text in self.written:
                raise InputError(
                    argument,
                    f"{name!r} occurs twice, in rows {self.written[text]} and {position}",
                    "Corrections find their examples by ids that are all different.",
                )
            self.written[text] = position
            self.plain.setdefault(str(name), position)

    def find(self, value: Any) -> int | None:
        """Return the position of a name that was read from a table, or None."""
        text = str(value)
        for candidate in (text, text.strip()):
            for table in (self.written, self.plain):
                if candidate in table:
                    return table[candidate]
        # Tools that take a column for numbers write 3 as 3.0.
        whole = _WHOLE.fullmatch(text.strip())
        return None if whole is None else self.written.get(whole[1])
