from pathlib import Path

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tiny data leaves classes thinly covered; tests that are not about it do not hear of it."""
    mark = pytest.mark.filterwarnings("ignore::bltm.core.errors.CoverageWarning")
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(mark, append=False)
