"""The pages that are committed say what the committed rows say; 'make results' updates them."""

import re
from pathlib import Path

from bltm.report.documents import generated_texts

ROOT = Path(__file__).parents[2]


def test_pages_are_up_to_date() -> None:
    for path, text in generated_texts(ROOT).items():
        committed = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).exists() else ""
        assert committed == text, f"{path} is out of date: run 'make results'"


def test_figures_that_pages_link_are_there() -> None:
    page = ROOT / "docs" / "results.md"
    text = page.read_text(encoding="utf-8") if page.exists() else ""
    for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", text):
        assert (page.parent / link).is_file(), f"{link} is missing: run 'make results'"
