"""Settings for all tests: generated examples are the same in every run, and no test is timed."""

import signal

import pytest
from hypothesis import settings

# In the background of a shell SIGINT is ignored, by all processes that tests start, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


def pytest_make_parametrize_id(config: pytest.Config, val: object, argname: str) -> str | None:
    """Names of tests that do not hold the bytes of a file: archives carry the time they were made.

    Two workers that read the tests in different seconds would otherwise disagree on their names.
    """
    return argname if isinstance(val, bytes) else None
