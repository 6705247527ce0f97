"""Files for users, and the project's own pages."""

import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bltm.cli import app
from bltm.core.errors import InputError
from bltm.report.documents import END, START, generated_texts, write_documents, write_results
from bltm.report.pages import provenance, read_results

from .rows import Row, failed_row, make_row, make_rows, write_rows

FEW = ("clean", "cross-entropy", "gce", "bltm", "bltm-v")
TWO_RATES = (0.1, 0.3)
MARKED = f"# bltm\n\n{START}\n{END}\n\nMore.\n"


def few(**options: object) -> list[Row]:
    return make_rows(FEW, rates=TWO_RATES, **options)  # type: ignore[arg-type]


def files(folder: Path) -> set[str]:
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_file()}


def test_tables_command__prints_accuracies_and_writes_all_files(tmp_path: Path) -> None:
    made = make_rows(FEW[:3], rates=TWO_RATES, seeds=(0, 1))
    rows = write_rows(tmp_path / "mine.jsonl", [*made, failed_row("apl", 0.1, 0)])
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["tables", str(rows), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "Test accuracy, %" in done.stdout
    assert "CE on the right labels (ceiling)" in done.stdout
    found = files(out)
    assert {"results.md", "results.csv", "tables/accuracy.tex", "tables/gap.csv"} <= found
    assert {"figures/accuracy.svg", "figures/accuracy.png", "figures/cost.svg"} <= found
    page = (out / "results.md").read_text(encoding="utf-8")
    assert "![Test accuracy over the noise rate](figures/accuracy.svg)" in page
    assert "- APL: TrainingError: the loss is not finite (10 % seed 0)" in page
    assert "bltm 0.1.0, Python 3.11.7, torch 2.13.0+cpu, numpy 2.4.6" in page
    assert "Some CPU with 2 CPUs, 1 thread a run" in page


def test_a_page_tells_learning_rates_where_rows_do(tmp_path: Path) -> None:
    made = few()
    for row in made:
        if row["spec"]["method"] == "bltm-v":
            row["recipe"]["stages"] = {
                "warm_up/fold-1": {"epochs": 12, "lr": 0.006},
                "revise": {"epochs": 2, "lr": 2e-4},
            }
    (told,) = read_results([write_rows(tmp_path / "told.jsonl", made)])
    assert "Learning rates: 0.006 (BLTM-V); the other rows do not tell." in provenance(told)
    ours = [row for row in made if row["spec"]["method"] == "bltm-v"]
    del ours[0]["recipe"]["stages"]
    (partly,) = read_results([write_rows(tmp_path / "partly.jsonl", made)])
    part = f"0.006 (BLTM-V in {len(ours) - 1} of {len(ours)} rows); the other rows do not tell."
    assert len(ours) > 1
    assert part in provenance(partly)
    (silent,) = read_results([write_rows(tmp_path / "silent.jsonl", few())])
    assert "Learning rates" not in provenance(silent)


def test_a_page_tells_where_flips_were_redirected(tmp_path: Path) -> None:
    made = few()
    ours = [row for row in made if row["spec"]["method"] == "bltm-v"]
    for row in ours[1:]:
        row["figures"]["redirected"] = [0.05, 0.04]
    (told,) = read_results([write_rows(tmp_path / "told.jsonl", made)])
    part = f"Flips redirected by the input: BLTM-V in {len(ours) - 1} of {len(ours)} rows."
    assert part in provenance(told)
    (silent,) = read_results([write_rows(tmp_path / "silent.jsonl", few())])
    assert "redirected" not in provenance(silent)


def test_tables_command__one_format_and_no_figures(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "mine.jsonl", few())
    arguments = ["tables", str(rows), "--out", str(tmp_path / "out"), "--format", "latex"]
    assert CliRunner().invoke(app, [*arguments, "--no-figures"]).exit_code == 0
    found = files(tmp_path / "out")
    assert {Path(name).suffix for name in found if name.startswith("tables/")} == {".tex"}
    assert not any(name.startswith("figures/") for name in found)
    assert "![" not in (tmp_path / "out" / "results.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no file"),
        ("", "has no result rows"),
        ("method,accuracy\ngce,0.8\n", "has no result rows"),
        ("[1, 2]\n", "no result of 'bltm bench'"),
        ('{"id": "0", "status": "done"}\n', "no result of 'bltm bench'"),
        ('{"id": "0", "status": "done", "spec": 3}\n', "no result of 'bltm bench'"),
    ],
)
def test_tables_command__bad_rows__exits_with_2(
    tmp_path: Path, text: str | None, message: str
) -> None:
    path = tmp_path / "rows.jsonl"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    done = CliRunner().invoke(app, ["tables", str(path), "--out", str(tmp_path / "out")])
    assert done.exit_code == 2
    assert message in done.output
    assert not (tmp_path / "out").exists()


def test_tables_command__unknown_format__exits_with_2(tmp_path: Path) -> None:
    rows = write_rows(tmp_path / "mine.jsonl", few())
    done = CliRunner().invoke(app, ["tables", str(rows), "--out", "out", "--format", "html"])
    assert done.exit_code == 2
    assert "md, latex, csv" in done.output


def test_several_grids__have_folders_and_files_of_one_name_are_one_grid(tmp_path: Path) -> None:
    first = write_rows(tmp_path / "a" / "one.jsonl", few(seeds=(0,)))
    more = write_rows(tmp_path / "b" / "one.jsonl", few(seeds=(1,)))
    other = write_rows(tmp_path / "two" / "results.jsonl", few(seeds=(0,)))
    results = read_results([first, more, other])
    assert [(r.name, r.grids[0].seeds) for r in results] == [("one", (0, 1)), ("two", (0,))]
    write_documents([first, more, other], tmp_path / "out", ("md",), figures=False)
    assert {"one/results.md", "two/results.md"} <= files(tmp_path / "out")


def test_several_settings__have_files_of_their_own(tmp_path: Path) -> None:
    rows = few(seeds=(0,)) + few(seeds=(0,), images=None) + few(seeds=(0,), data="cifar10")
    path = write_rows(tmp_path / "mine.jsonl", rows)
    write_documents([path], tmp_path / "out", ("md",), figures=False)
    found = {name for name in files(tmp_path / "out") if "accuracy" in name}
    assert found == {
        "tables/cifar10-10000-accuracy.md",
        "tables/fashion-mnist-10000-accuracy.md",
        "tables/fashion-mnist-all-accuracy.md",
    }


def test_a_line_that_is_being_written_is_not_read(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "mine.jsonl", few())
    with path.open("a", encoding="utf-8") as file:
        file.write('{"id": "cut off')
    assert len(read_results([path])[0].grids[0].runs) == len(few())


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("project")
    write_rows(root / "results" / "paper-fmnist-cpu.jsonl", few())
    plain = make_rows(FEW[:3], rates=(0.3,), seeds=(0,), data="digits", images=None)
    write_rows(root / "results" / "mine.jsonl", plain)
    (root / "README.md").write_text(MARKED, encoding="utf-8")
    made = {path.relative_to(root).as_posix() for path in write_results(root)}
    assert {"docs/figures/paper-fmnist-cpu-accuracy.svg", "docs/results.md", "README.md"} <= made
    return root


@pytest.fixture
def project(written: Path, tmp_path: Path) -> Path:
    return shutil.copytree(written, tmp_path / "project")


def test_pages__say_how_to_reproduce_and_link_figures_that_are_there(written: Path) -> None:
    page = (written / "docs" / "results.md").read_text(encoding="utf-8")
    assert "## Fashion-MNIST, 10,000 images" in page
    assert "`bltm bench paper-fmnist-cpu`" in page
    assert "## mine" in page
    links = [x.partition("(")[2].rstrip(")") for x in page.splitlines() if x.startswith("![")]
    assert len(links) == 5
    assert all((written / "docs" / link).is_file() for link in links)
    assert "not comparable in level" in page


def test_pages__are_up_to_date_after_writing_and_not_after_new_rows(project: Path) -> None:
    texts = generated_texts(project)
    assert {p: (project / p).read_text(encoding="utf-8") for p in texts} == texts
    rows = [*few(), make_row("joint", 0.1, 0)]
    write_rows(project / "results" / "paper-fmnist-cpu.jsonl", rows)
    changed = generated_texts(project)
    assert all(changed[path] != text for path, text in texts.items())


def test_pages__do_not_link_figures_that_are_gone(project: Path) -> None:
    (project / "docs" / "figures" / "paper-fmnist-cpu-cost.svg").unlink()
    assert "fmnist-cpu-cost.svg" not in generated_texts(project)[Path("docs", "results.md")]


def test_readme__gets_the_table_between_its_markers(written: Path) -> None:
    text = (written / "README.md").read_text(encoding="utf-8")
    assert text.startswith(f"# bltm\n\n{START}\n| test accuracy, % | noise 10 % | noise 30 % |\n")
    assert text.endswith(f"(docs/results.md).\n{END}\n\nMore.\n")
    assert "| share of the gap that BLTM-V recovers |" in text
    assert "Digits" not in text


def test_readme__leaves_out_methods_of_which_seeds_are_missing(project: Path) -> None:
    whole = generated_texts(project)[Path("README.md")]
    rows = [row for row in few() if (row["spec"]["method"], row["spec"]["seed"]) != ("gce", 0)]
    assert len(rows) < len(few())
    write_rows(project / "results" / "paper-fmnist-cpu.jsonl", rows)
    text = generated_texts(project)[Path("README.md")]
    assert "| GCE |" in whole
    assert "| GCE |" not in text
    assert "left out" in text
    assert "left out" not in whole


def test_deviations__get_their_table_between_the_markers_of_their_page(project: Path) -> None:
    rows = make_rows(("deviation/base", "deviation/threshold-0.8"), rates=(0.3,))
    write_rows(project / "results" / "deviations-cpu.jsonl", rows)
    page = Path("docs", "deviations.md")
    (project / page).write_text(MARKED, encoding="utf-8")
    text = generated_texts(project)[page]
    assert f"{START}\n| deviation | accuracy: 30 % | error of T(x): 30 % |\n" in text
    assert "| threshold 0.8 |" in text
    assert text.endswith(f"\n{END}\n\nMore.\n")


def test_readme__without_markers_is_left_alone(project: Path) -> None:
    (project / "README.md").write_text("# bltm\n", encoding="utf-8")
    assert list(generated_texts(project)) == [Path("docs", "results.md")]


def test_no_rows__nothing_is_generated(project: Path) -> None:
    shutil.rmtree(project / "results")
    assert generated_texts(project) == {}
    assert write_results(project) == []
    (project / "results").mkdir()
    assert generated_texts(project) == {}


def test_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="unknown: 'pdf'"):
        write_documents([], Path("out"), ("pdf",))
