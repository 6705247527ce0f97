import pytest


@pytest.fixture(autouse=True)
def _no_data_of_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BLTM_DATA", raising=False)
