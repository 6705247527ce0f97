"""Settings for all tests: generated examples are the same in every run, and no test is timed."""

from hypothesis import settings

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")
