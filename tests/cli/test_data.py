"""``bltm data``: what registered data sets are, where they are, and what is wrong with them."""

import numpy as np
import pytest
from scipy.io import savemat

from .processes import Shell


@pytest.fixture
def house_numbers(shell: Shell) -> Shell:
    """Write two small files of SVHN's form."""
    (shell.cwd / "mine").mkdir()
    for name in ("train", "test"):
        X = np.zeros((32, 32, 3, 4), np.uint8)
        y = np.array([[1], [10], [3], [4]], np.uint8)
        savemat(shell.cwd / f"mine/{name}_32x32.mat", {"X": X, "y": y})
    return shell


def test_info__says_what_it_is_and_where_it_is(house_numbers: Shell) -> None:
    text = house_numbers.succeed("data", "info", "svhn", "--cache", "cache").stdout
    assert text.startswith("svhn: digits of house numbers")
    assert "73,257" in text
    assert "downloads it from http://ufldl.stanford.edu/housenumbers/" in text
    text = house_numbers.succeed(
        "data", "info", "svhn", "--cache", "cache", "--root", "mine"
    ).stdout
    assert "cropped digits in mine" in text
    assert not (house_numbers.cwd / "cache").exists()


def test_get__finds_files_or_needs_none(house_numbers: Shell) -> None:
    args = ("--cache", "cache", "--root", "mine")
    assert house_numbers.succeed("data", "get", "svhn", *args).stdout == (
        "svhn: cropped digits in mine\n"
    )
    assert "no files are needed" in house_numbers.succeed("data", "get", "digits").stdout


def test_verify__counts_and_refuses_what_is_not_the_original(house_numbers: Shell) -> None:
    ended = house_numbers.succeed("data", "verify", "toy")
    assert "2,000 training examples of 3 classes, as published" in ended.stdout
    assert "% of the training labels differ from the clean ones" in ended.stdout
    message = house_numbers.fail("data", "verify", "svhn", "--root", "mine", "--cache", "cache")
    assert "train_32x32.mat: from mine/train_32x32.mat is not the original" in message


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("info", "imagenet"), "Registered are digits, toy, mnist"),
        (("get", "imagenet"), "there is no data set 'imagenet'"),
        (("verify", "imagenet"), "there is no data set 'imagenet'"),
        (("get", "svhn", "--root", "nowhere"), "root: there is no folder 'nowhere'"),
        (("get", "clothing1m", "--cache", "cache"), "noisy_label_kv.txt, clean_test_key_list.txt"),
        (("verify", "cifar100", "--cache", "cache"), "Put cifar-100-python.tar.gz or"),
        (("info",), "Missing argument 'NAME'"),
    ],
)
def test_errors__one_paragraph_and_code_two(shell: Shell, args: tuple[str, ...], says: str) -> None:
    assert says in shell.fail("data", *args)
    assert list(shell.cwd.iterdir()) == []
