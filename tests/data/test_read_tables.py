from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from bltm.core.errors import DataQualityWarning, InputError
from bltm.data import as_source, open_source


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    path.write_bytes(text.encode(encoding))
    return path


def test_quotes_and_a_byte_order_mark_are_understood(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", '\ufeff"name, full","size",label\n"a, b",1,x\n"c""d",2,y\n')
    source = open_source(path, label="label")
    assert source.inputs.columns.tolist() == ["name, full", "size"]
    assert source.inputs["name, full"].tolist() == ["a, b", 'c"d']
    assert source.labels.tolist() == ["x", "y"]
    assert source.ids.tolist() == [0, 1]


def test_semicolons_with_decimal_commas_are_understood_and_said(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "t.csv", "\na;b;label\n1,5;2;x\n-2,25;3;y\n"))
    assert source.inputs["a"].tolist() == [1.5, -2.25]
    assert "Columns are separated by ';'." in source.notes


def test_tabs_and_other_encodings_are_understood(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "t.tsv", "a\tlabel\n1\tx, y\n2\tz\n"))
    assert source.labels.tolist() == ["x, y", "z"]
    source = open_source(write(tmp_path / "t.csv", "a,label\n1,Käse\n2,z\n", "cp1252"))
    assert source.labels.tolist() == ["Käse", "z"]
    assert "The file is not UTF-8; read as Windows-1252." in source.notes


def test_labels_stay_as_they_are_written(tmp_path: Path) -> None:
    def labels(*values: str) -> list:
        rows = "".join(f"{i},{value}\n" for i, value in enumerate(values))
        return open_source(write(tmp_path / "t.csv", "a,label\n" + rows)).labels.tolist()

    assert labels("001", "002") == ["001", "002"]
    assert labels("NA", "None") == ["NA", "None"]
    assert labels("1", "-20") == [1, -20]
    assert labels("1.0", "2.0") == [1, 2]
    assert labels("1", "", "2") == [1, "", 2]
    assert labels(" x ", "y") == ["x", "y"]


def test_a_missing_label_column_names_the_columns_there_are(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,b,kind\n1,2,x\n")
    with pytest.raises(InputError, match="no column 'species'.*'a', 'b', 'kind'"):
        open_source(path, label="species")
    with pytest.raises(InputError, match="which column holds the labels.*'a', 'b', 'kind'"):
        open_source(path)
    path = write(tmp_path / "t.csv", "y,class\n1,2\n")
    with pytest.raises(InputError, match="could all be it"):
        open_source(path)


def test_a_guessed_label_column_is_said(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "t.csv", "a,Target\n1,2\n3,4\n"))
    assert source.label_name == "Target"
    assert "Took column 'Target' for the labels" in source.notes[0]


def test_prediction_needs_no_labels_and_does_not_read_them(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "a,label\n1,x\n")
    assert open_source(path, for_prediction=True).inputs.columns.tolist() == ["a", "label"]
    source = open_source(path, label="label", for_prediction=True)
    assert source.labels is None
    assert source.inputs.columns.tolist() == ["a"]
    path = write(tmp_path / "t.csv", "a\n1\n")
    assert open_source(path, label="label", for_prediction=True).labels is None


@pytest.mark.parametrize("text", ["", "a,label\n", 'a,label\n1,"x\n', "a,label\n1,2,3\n1,2,3\n"])
def test_tables_that_cannot_be_used_are_errors(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        open_source(write(tmp_path / "t.csv", text), label="label")
    (tmp_path / "t.parquet").write_text("no parquet")
    with pytest.raises(InputError, match="Parquet"):
        open_source(tmp_path / "t.parquet")


@pytest.mark.parametrize("name", ["id", "ID", "customer_id", "uuid", "PassengerId", "index"])
def test_an_id_column_is_recognised_and_said(tmp_path: Path, name: str) -> None:
    source = open_source(write(tmp_path / "t.csv", f"{name},a,label\n007,1,x\nu8,1,y\n"))
    assert source.ids.tolist() == ["007", "u8"]
    assert source.id_name == name
    assert any("not learned from" in note for note in source.notes)


def test_a_running_number_without_a_name_is_an_id(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame({"a": [5, 6], "label": ["x", "y"]}, index=[4, 3]).to_csv(path)
    source = open_source(path)
    assert source.ids.tolist() == [4, 3]


def test_columns_that_only_look_like_ids_are_inputs(tmp_path: Path) -> None:
    source = open_source(write(tmp_path / "t.csv", "id,width,label\n1,7,x\n1,8,y\n"))
    assert source.id_name == "row"
    assert source.ids.tolist() == [0, 1]
    source = as_source(pd.DataFrame({"row": [1, 1], "b": [2, 3]}))
    assert source.id_name not in source.inputs.columns


def test_a_named_id_column_goes_before_a_recognised_one(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "id,code,label\n1,u,x\n2,v,y\n")
    source = open_source(path, id="code")
    assert source.ids.tolist() == ["u", "v"]
    with pytest.raises(InputError, match="no column 'key'"):
        open_source(path, id="key")
    with pytest.raises(InputError, match="empty cells"):
        open_source(write(tmp_path / "t.csv", "code,label\nu,x\n,y\n"), id="code")
    with pytest.warns(DataQualityWarning, match="not unique"):
        open_source(write(tmp_path / "t.csv", "code,label\nu,x\nu,y\n"), id="code")


def test_a_meaningful_index_gives_the_ids_of_a_frame() -> None:
    frame = pd.DataFrame({"a": [1, 2, 3]})
    assert as_source(frame).id_name == "row"
    assert as_source(frame.iloc[[2, 0]]).ids.tolist() == [2, 0]
    named = frame.set_axis(pd.Index(["x", "y", "z"], name="sample"))
    assert as_source(named).ids.tolist() == ["x", "y", "z"]
    assert as_source(named).id_name == "sample"
    assert frame.columns.tolist() == ["a"]


def test_columns_of_one_name_are_an_error() -> None:
    with pytest.raises(InputError, match="several columns called"):
        as_source(pd.DataFrame([[1, 2]], columns=["a", "a"]))


def test_parquet_keeps_its_types(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "kind": pd.Categorical(["a", "b", "a"]),
            "when": pd.to_datetime(["2024-01-01", None, "2024-03-01"]),
            "count": pd.array([1, None, 3], dtype="Int64"),
            "label": pd.array([0, 1, None], dtype="Int64"),
        },
        index=pd.Index(["p", "q", "r"], name="plant"),
    )
    frame.to_parquet(tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet", label="label")
    assert source.ids.tolist() == ["p", "q", "r"]
    assert isinstance(source.inputs["kind"].dtype, pd.CategoricalDtype)
    assert source.labels[:2].tolist() == [0, 1]
    with pytest.raises(InputError, match="no column 'species'"):
        open_source(tmp_path / "t.parquet", label="species")


def images(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (6, 5), (9, 9, 9)).save(folder / name)


def test_a_table_of_image_paths_is_read_relative_to_the_table(tmp_path: Path) -> None:
    images(tmp_path, "pics/a.png", "pics/b.png")
    path = write(tmp_path / "t.csv", "path,label,size,key\npics/a.png,x,1,k1\npics/b.png,y,2,k2\n")
    source = open_source(path, image="path", label="label")
    assert source.kind == "files"
    assert source.ids.tolist() == ["pics/a.png", "pics/b.png"]
    assert source.inputs.path(1).is_file()
    assert "Not used beside the images: size, key." in source.notes
    assert open_source(path, image="path", id="key").ids.tolist() == ["k1", "k2"]
    assert np.array_equal(source.take([1]).ids, ["pics/b.png"])


def test_image_paths_that_lead_nowhere_are_errors_or_skipped(tmp_path: Path) -> None:
    images(tmp_path, "a.png")
    path = write(tmp_path / "t.csv", "path,label\na.png,x\nno.png,y\n")
    with pytest.raises(InputError, match="1 of 2 do not exist, the first being no.png"):
        open_source(path, image="path")
    with pytest.warns(DataQualityWarning, match=r"no\.png"):
        assert open_source(path, image="path", unreadable="skip").ids.tolist() == ["a.png"]
    with pytest.raises(InputError, match="1 empty cells, the first in row 1"):
        open_source(write(tmp_path / "t.csv", "path,label\na.png,x\n,y\n"), image="path")
    with pytest.raises(InputError, match="no column 'file'"):
        open_source(path, image="file")
