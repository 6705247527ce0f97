import numpy as np
import pytest

from bltm.core.errors import InputError
from bltm.data.idx import parse_idx

from .small_sets import idx


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (0,)])
def test_idx_files_are_read(shape: tuple[int, ...]) -> None:
    array = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    found = parse_idx(idx(array), "x", array.ndim)
    assert found.flags.writeable
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "begins with nothing"),
        (b"\x00\x00\x0d\x01\x00\x00\x00\x00", "begins with 00000d01"),
        (b"\x00\x00\x08\x02\x00\x00\x00\x00", "no idx file of bytes in 1 dimensions"),
        (b"\x00\x00\x08\x01\x00\x00", "ends within its head"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x05abc", "announces 5 bytes of data and has 3"),
        (b"\x00\x00\x08\x01\x00\x00\x00\x02abc", "announces 2 bytes of data and has 3"),
    ],
)
def test_idx_files_that_are_wrong_are_errors(content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_idx(content, "x", 1)
