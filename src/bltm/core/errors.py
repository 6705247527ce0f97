"""Errors that say which argument is wrong, what was received and what to do instead."""

from __future__ import annotations


class InputError(ValueError):
    """Something the user gave cannot be used.

    The command line prints the message and exits with code 2; in Python it is a ``ValueError``.

    Parameters
    ----------
    argument
        The name of the argument, option, column or file at fault.
    problem
        What is wrong with it, including the value received.
    remedy
        What the user can do.

    Examples
    --------
    >>> print(InputError("rho_max", "must lie in [0, 1), got 1.5", "Use a value such as 0.3."))
    rho_max: must lie in [0, 1), got 1.5. Use a value such as 0.3.
    """

    def __init__(self, argument: str, problem: str, remedy: str = "") -> None:
        self.argument, self.problem, self.remedy = argument, problem, remedy
        super().__init__(f"{argument}: {problem}. {remedy}".strip())

    def __reduce__(self) -> tuple[type[InputError], tuple[str, str, str]]:
        return type(self), (self.argument, self.problem, self.remedy)


class TrainingError(RuntimeError):
    """Training broke down (a loss that is not finite); the message names stage and remedy."""


class DataQualityWarning(UserWarning):
    """Something in the data was treated in a way the user should know about."""


class CollapseWarning(UserWarning):
    """The trained network predicts one and the same class for everything."""


class CoverageWarning(UserWarning):
    """Classes for which few or no Bayes labels were collected."""
