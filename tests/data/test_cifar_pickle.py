import os
import pickle
import pickletools
from pathlib import Path

import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.data.cifar_pickle import read_batch

from .small_sets import pickled, python2, rows


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data_batch_1"


def test_what_python_2_wrote_is_read(path: Path) -> None:
    stored = rows(2, 0)
    path.write_bytes(pickled({b"labels": [3, 300], b"data": stored, b"batch_label": b"one"}))
    batch = read_batch(path)
    assert list(batch) == ["labels", "data", "batch_label"]
    assert batch["labels"] == [3, 300]
    assert batch["batch_label"] == b"one"
    np.testing.assert_array_equal(batch["data"], stored)


def test_the_writer_of_these_tests_writes_what_python_2_wrote(path: Path) -> None:
    value = {b"labels": [3, 300], b"data": rows(2, 0), b"names": [b"x" * 300]}
    found = pickle.loads(pickled(value), encoding="bytes")
    assert list(found) == list(value)
    np.testing.assert_array_equal(found[b"data"], value[b"data"])
    names = {code.name for code, _, _ in pickletools.genops(pickled(value))}
    assert {"SHORT_BINSTRING", "BINSTRING", "GLOBAL", "REDUCE", "BUILD"} <= names


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("order", ["C", "F"])
def test_what_python_3_writes_is_read(path: Path, protocol: int, order: str) -> None:
    stored = np.array(rows(2, 0), order=order)
    path.write_bytes(pickle.dumps({"data": stored, "labels": [1, 2]}, protocol=protocol))
    if protocol == 5:
        with pytest.raises(InputError, match="numpy"):
            read_batch(path)
        return
    batch = read_batch(path)
    np.testing.assert_array_equal(batch["data"], stored)
    assert batch["labels"] == [1, 2]


class Evil:
    def __init__(self, function, *arguments) -> None:
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_cannot_run_anything(path: Path, tmp_path: Path, protocol: int) -> None:
    marker = tmp_path / "marker"
    attacks = {
        "system": Evil(os.system, f"touch {marker}"),
        "eval": Evil(eval, f"open({str(marker)!r}, 'w')"),
        "open": Evil(open, str(marker), "w"),
        "getattr": Evil(getattr, os, "system"),
        "load": Evil(np.load, str(marker)),
        "Path": marker,
    }
    for name, attack in attacks.items():
        try:
            content = pickle.dumps({"data": attack}, protocol=protocol)
        except TypeError:  # a module cannot be pickled: ask for it by name
            content = b"c__builtin__\ngetattr\n(cposix\n__dict__\nS'system'\ntR."
        path.write_bytes(content)
        with pytest.raises(InputError, match="is no file of the Python release") as error:
            read_batch(path)
        assert "it asks for" in str(error.value), name
        assert not marker.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02cnumpy\nndarray.__class__\n.",
        b"\x80\x04\x8c\x05numpy\x8c\x10ndarray.__init__\x93.",
        b"\x80\x02cnumpy.core.multiarray\nfromfile\n.",
        b"\x80\x02cbltm.data.cifar_pickle\nread_batch\n.",
        b"\x80\x02c_codecs\ndecode\n.",
        b"\x80\x02c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
        b"\x80\x02cnumpy\ndtype\nU\x01OK\x00K\x01\x87R.",
        b"\x80\x02cnumpy\ndtype\nU\x02u1\x85R}b0cnumpy\nndarray\n(tR(K\x01K\x02\x85K\x05\x89U\x02abtb.",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\ndtype\nK\x00\x85U\x01b\x87R.",
        b"\x80\x02Pnumber\n.",
        b"\x80\x02\x82\x01.",
        b"\x80\x02K\x01\x85R.",
        b"\x80\x02}(U\x04data" + python2(np.zeros((2, 2), np.uint8))[:-2] + b"u.",
        b"",
        b"\x80\x02",
        b"nothing of the kind",
        pickled({b"data": rows(1, 0)})[:-100],
    ],
)
def test_anything_else_is_one_error(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with pytest.raises(InputError, match="data_batch_1: "):
        read_batch(path)


def test_something_that_is_no_batch_is_an_error(path: Path) -> None:
    path.write_bytes(pickled([1, 2]))
    with pytest.raises(InputError, match="holds list, no batch"):
        read_batch(path)
    path.write_bytes(pickled({b"data": np.zeros((2, 2), np.uint8)}).replace(b"K\x02", b"K\x03"))
    with pytest.raises(InputError, match="cannot reshape"):
        read_batch(path)
