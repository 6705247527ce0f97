"""What is missing of a grid, and what is left of one that was killed."""

from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

from bltm.benchmark.engines import Event, Finished, Started
from bltm.benchmark.execute import run_directory, snapshot_directory
from bltm.benchmark.grid import parse_grid
from bltm.benchmark.progress import Progress
from bltm.benchmark.rows import append_row, read_rows
from bltm.benchmark.runner import RESULTS, WORK, run_grid, standing
from bltm.benchmark.spec import RunSpec

GRID = parse_grid(
    {"data": "digits", "rates": [0.3], "seeds": [0], "methods": ["bltm", "bltm-v"]}, "mine"
)


def row(run: RunSpec, status: str = "done") -> dict[str, Any]:
    return {"id": run.id, "status": status, "spec": run.to_json()}


class Pretended:
    """Leaves working files and rows, and trains nothing."""

    def run(self, groups: Sequence[Sequence[RunSpec]], work: Path) -> Generator[Event, None, None]:
        for group in groups:
            for spec in group:
                yield Started(spec, "a")
                leave_files(spec, work)
                yield Finished(spec, row(spec), "a")


def leave_files(spec: RunSpec, work: Path) -> None:
    for folder in (run_directory(spec, work), snapshot_directory(spec, work)):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "x.safetensors").touch()


def files(out: Path) -> list[Path]:
    return list((out / WORK).rglob("*.safetensors"))


def test_what_has_rows_is_not_run_again(tmp_path: Path) -> None:
    assert standing(GRID, tmp_path).left == 4
    after = run_grid(GRID, tmp_path, Pretended(), Progress({}, 1))
    assert (after.done, after.failed, after.left) == (4, 0, 0)
    run_grid(GRID, tmp_path, Pretended(), Progress({}, 1))
    assert len((tmp_path / RESULTS).read_text().splitlines()) == 4
    assert not files(tmp_path)


def test_failed_runs_are_tried_again_when_asked(tmp_path: Path) -> None:
    append_row(tmp_path / RESULTS, row(GRID.runs[0], "failed"))
    assert standing(GRID, tmp_path).left == 3
    assert standing(GRID, tmp_path, retry_failed=True).left == 4
    after = run_grid(GRID, tmp_path, Pretended(), Progress({}, 1), retry_failed=True)
    assert (after.done, after.failed) == (4, 0)
    assert len(read_rows(tmp_path / RESULTS)) == 4


def test_runs_that_share_stages_are_one_group_and_keep_their_files_until_the_last(
    tmp_path: Path,
) -> None:
    groups = standing(GRID, tmp_path).missing
    assert [[run.method for run in group] for group in groups] == [
        ["clean"],
        ["cross-entropy"],
        ["bltm", "bltm-v"],
    ]
    bltm, revised = groups[-1]
    append_row(tmp_path / RESULTS, row(bltm))
    leave_files(bltm, tmp_path / WORK)
    seen = []

    class Looking(Pretended):
        def run(self, groups: Sequence[Sequence[RunSpec]], work: Path) -> Any:
            seen.append([path.exists() for path in files(tmp_path)])
            return super().run(groups, work)

    run_grid(GRID, tmp_path, Looking(), Progress({}, 1))
    assert seen == [[True, True]]
    assert not files(tmp_path)


def test_files_of_a_process_that_was_killed_after_its_row_go_away(tmp_path: Path) -> None:
    for run in GRID.runs:
        append_row(tmp_path / RESULTS, row(run))
        leave_files(run, tmp_path / WORK)
    run_grid(GRID, tmp_path, Pretended(), Progress({}, 1))
    assert not files(tmp_path)
