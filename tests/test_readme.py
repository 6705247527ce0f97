"""What the README says is run and compared with what was measured."""

import importlib.util
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def load_script(name: str, search_path: list[str]) -> ModuleType:
    search_path.insert(0, str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def script(name: str) -> ModuleType:
    path = sys.path.copy()
    try:
        return load_script(name, sys.path)
    finally:
        sys.path[:] = path


def rows_of(module: ModuleType, file: str | None = None) -> Any:
    return module.read_rows(module.RESULTS if file is None else module.FOLDER / file)


def test_python_example_runs(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert float(result.stdout.split()[0]) > 0.8
    assert (tmp_path / "model" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("benchmark", "page", "tables"),
    [
        ("confirmation", "recipe.md", lambda m: m.table(rows_of(m))),
        ("held_out", "recipe/classifier.md", lambda m: m.tables(rows_of(m))),
        ("raters", "recipe/human-labels.md", lambda m: m.table(rows_of(m), 20_000, "none")),
        ("raters", "recipe/human-labels.md", lambda m: m.table(rows_of(m), 20_000, "flip")),
        ("raters", "recipe/human-labels.md", lambda m: m.table(rows_of(m), 10_000, "flip", 1)),
        (
            "raters",
            "recipe/human-labels.md",
            lambda m: m.table(rows_of(m), 20_000, "flip", "worse"),
        ),
        ("networks", "recipe/classifier.md", lambda m: m.table(rows_of(m))),
        ("moderation", "recipe/human-labels.md", lambda m: m.table(rows_of(m))),
        ("threshold", "recipe/transition.md", lambda m: m.tables(rows_of(m))),
        ("tuning", "recipe/rivals.md", lambda m: m.tables(rows_of(m))),
        ("cleaning", "recipe/rivals.md", lambda m: m.table(rows_of(m))),
        ("steps", "recipe/posterior.md", lambda m: m.table(rows_of(m, "averaged.jsonl"))),
        ("steps", "recipe/lost-classes.md", lambda m: m.table(rows_of(m, "bounded.jsonl"))),
        ("steps", "recipe/transition.md", lambda m: m.table(rows_of(m, "redirect.jsonl"))),
        ("audit", "audit.md", lambda m: m.table(rows_of(m), 20_000)),
    ],
)
def test_tables_of_the_docs_are_those_of_the_rows(
    benchmark: str, page: str, tables: Callable[[ModuleType], str]
) -> None:
    module = script(benchmark)
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    for table in tables(module).split("\n\n"):
        assert table in text, f"docs/{page} needs\n{table}"
