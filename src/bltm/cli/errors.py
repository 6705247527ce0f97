"""What goes wrong, as one readable paragraph and an exit code."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

import typer

from bltm.core.errors import (
    CollapseWarning,
    CoverageWarning,
    DataQualityWarning,
    InputError,
    TrainingError,
)

BAD_INPUT, FAILED, INTERRUPTED = 2, 1, 130
_OURS = (CollapseWarning, CoverageWarning, DataQualityWarning)


def say(message: str) -> None:
    """Print a line of progress."""
    typer.echo(message, err=True)


@contextmanager
def reported(resumable: bool = False) -> Iterator[None]:
    """Turn errors of users and of training into a message and an exit code.

    Anything else is a mistake of ours and keeps its traceback.

    Parameters
    ----------
    resumable
        Whether what is interrupted can be resumed.
    """
    with warnings.catch_warnings():
        _print_notes()
        try:
            yield
        except InputError as error:
            _fail(str(error), BAD_INPUT)
        except TrainingError as error:
            _fail(str(error), FAILED)
        except OSError as error:
            # Files of the user's; an error without a file name is not about one.
            if error.filename is None:
                raise
            _fail(f"{error.filename}: {error.strerror}.", BAD_INPUT)
        except KeyboardInterrupt:
            text = "Stopped."
            if resumable:
                text += " Repeat the command with --resume to continue from the last save."
            _fail(text, INTERRUPTED, "")


def _fail(message: str, code: int, prefix: str = "error: ") -> None:
    number = os.environ.get("LOCAL_RANK", "0")
    typer.echo(f"{'' if number == '0' else f'process {number}: '}{prefix}{message}", err=True)
    raise typer.Exit(code)


def _print_notes() -> None:
    """Print warnings of ours as plain lines, each text once."""
    usual, seen = warnings.showwarning, set[str]()
    first = os.environ.get("LOCAL_RANK", "0") == "0"

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if not issubclass(category, _OURS):
            usual(message, category, filename, lineno, file, line)
        elif str(message) not in seen and first:
            seen.add(str(message))
            say(f"note: {message}")

    warnings.showwarning = show
    for kind in _OURS:
        warnings.simplefilter("always", kind)
