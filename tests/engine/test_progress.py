import io
import sys
from dataclasses import replace

import pytest

from bltm.engine.loop import EpochRecord
from bltm.engine.progress import BarReporter, LineReporter, Reporter, make_reporter

RECORD = EpochRecord(
    stage="round-1/correct",
    epoch=2,
    epochs=5,
    loss=0.51234,
    lr=0.1,
    seconds=1.25,
    metrics={"val_accuracy": 0.5, "val_loss": 1.0},
    selected=True,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_name_the_stage_and_its_figures() -> None:
    stream = io.StringIO()
    LineReporter(stream, every=0.0).epoch(RECORD)
    assert stream.getvalue().startswith(
        "round-1/correct: epoch 2/5, loss 0.5123, noisy validation accuracy 50.0 %"
    )


def test_lines_are_seldom_but_the_last_epoch_of_a_stage_is_told() -> None:
    stream = io.StringIO()
    reporter = LineReporter(stream, every=1e9)
    for epoch in range(1, 6):
        reporter.epoch(replace(RECORD, epoch=epoch))
    assert [line.split(",")[0] for line in stream.getvalue().splitlines()] == [
        "round-1/correct: epoch 5/5"
    ]


def test_a_bar_names_the_stage_shows_the_figures_and_counts_resumed_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "200")
    reporter = make_reporter(1)
    assert isinstance(reporter, BarReporter)
    reporter.begin("round-1/correct", 2, 1)
    for position in range(4):
        reporter.step(1 + position / 4)
    reporter.epoch(RECORD)
    reporter.end()
    text = terminal.getvalue()
    assert "round-1/correct" in text
    assert "loss 0.5123, noisy validation accuracy 50.0 %" in text
    assert "100 %" in text


def test_silence_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    reporter = make_reporter(0)
    reporter.begin("stage", 1, 0)
    reporter.step(0.5)
    reporter.epoch(RECORD)
    reporter.say("something")
    reporter.end()
    assert type(reporter) is Reporter
    assert capsys.readouterr() == ("", "")


def test_a_pipe_gets_lines() -> None:
    assert isinstance(make_reporter(True), LineReporter)
