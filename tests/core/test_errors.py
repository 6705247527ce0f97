"""Errors name the argument, the problem and the remedy, also after a trip between processes."""

import copy
import pickle

import pytest

from bltm.core.errors import InputError


def test_message_has_argument_problem_and_remedy():
    error = InputError("rate", "must lie in [0, 1], got 3", "Write 30 % as 0.3.")
    assert str(error) == "rate: must lie in [0, 1], got 3. Write 30 % as 0.3."
    assert (error.argument, error.problem) == ("rate", "must lie in [0, 1], got 3")
    assert error.remedy == "Write 30 % as 0.3."


def test_message_without_remedy_ends_with_the_problem():
    assert str(InputError("x", "is empty")) == "x: is empty."


def test_it_is_a_value_error():
    with pytest.raises(ValueError, match="x: is empty"):
        raise InputError("x", "is empty")


@pytest.mark.parametrize("copied", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_keep_everything(copied):
    error = InputError("x", "is empty", "Give data.")
    other = copied(error)
    assert type(other) is InputError
    assert (str(other), other.argument, other.remedy) == (str(error), "x", "Give data.")
