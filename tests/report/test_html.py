"""The report as a file: what is in it, how large it is, and that user text stays text."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from bltm.audit.cells import cell
from bltm.report.html import Limits, build_report, write_report
from bltm.report.html.embed import embedded_json, plain, source_hash
from bltm.report.html.suspects import audit_key, choose_suspects, largest, payload
from bltm.report.html.thumbnails import thumbnail

from .audit_example import HOSTILE, example_audit, example_content, hostile_audit, picture_maker


class Elements(HTMLParser):
    """Tags with their attributes, the text of scripts by id or number, and all other text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: dict[str, str] = {}
        self.text: list[str] = []
        self._inside: str | None = None
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._inside = dict(attrs).get("id") or f"{tag}{len(self.scripts)}"
            self.scripts[self._inside] = ""

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self._inside = None

    def handle_data(self, data: str) -> None:
        if self._inside is not None:
            self.scripts[self._inside] += data
        else:
            self.text.append(data)


@pytest.fixture(scope="module")
def hostile_page() -> Elements:
    rows = [dict.fromkeys(HOSTILE, name) for name in HOSTILE]
    content = example_content(
        hostile_audit(),
        title=HOSTILE[0],
        data=HOSTILE[1],
        method=HOSTILE[2],
        config=dict.fromkeys(HOSTILE, HOSTILE[1]),
        versions={HOSTILE[0]: HOSTILE[1]},
        history=[{"stage": HOSTILE[0], "epoch": 1, "loss": 1.0}],
        table_rows=lambda index: [rows[i % len(rows)] for i in index],
    )
    return Elements(build_report(content))


def test_user_text_adds_no_elements(hostile_page: Elements) -> None:
    clean = example_content(
        example_audit(240, [f"class {i}" for i in range(len(HOSTILE))]),
        config={f"name {i}": "value" for i in range(len(HOSTILE))},
        history=[{"stage": "one", "epoch": 1, "loss": 1.0}],
        table_rows=lambda index: [{"x": "1"} for _ in index],
    )
    expected = {tag for tag, _ in Elements(build_report(clean)).tags}
    assert {tag for tag, _ in hostile_page.tags} == expected
    assert sum(tag == "script" for tag, _ in hostile_page.tags) == 5
    assert not any(
        name.startswith("on") for _, attributes in hostile_page.tags for name in attributes
    )
    assert HOSTILE[0] in "".join(hostile_page.text)


def test_the_policy_allows_what_is_in_the_file_and_nothing_else(hostile_page: Elements) -> None:
    policy = next(
        attributes["content"] or ""
        for tag, attributes in hostile_page.tags
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy"
    )
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    code = [text for name, text in hostile_page.scripts.items() if name.startswith("script")]
    assert set(rules["script-src"].split()) == {source_hash(text) for text in code}
    [style] = [text for name, text in hostile_page.scripts.items() if name.startswith("style")]
    assert rules["style-src"] == source_hash(style)
    assert not any("style" in attributes for _, attributes in hostile_page.tags)
    sources = [a for _, a in hostile_page.tags if {"src", "srcset", "action"} & set(a)]
    assert sources == []
    links = {a["href"] for _, a in hostile_page.tags if "href" in a}
    assert all((link or "").startswith(("#", "data:")) for link in links)


def test_hostile_names_arrive_unchanged(hostile_page: Elements) -> None:
    data = json.loads(hostile_page.scripts["review-data"])
    assert data["classes"] == list(HOSTILE)
    assert data["written"]["header"] == ["'=file <b>name</b>", "given_label", "label", "decision"]
    assert data["written"]["classes"] == {
        str(code): cell(name) for code, name in enumerate(HOSTILE) if cell(name) != name
    }
    rows = json.loads(hostile_page.scripts["review-rows"])
    assert rows["columns"] == list(HOSTILE)
    assert max(len(text) for row in rows["cells"] for text in row) == Limits().cell


def test_names_do_not_turn_sentences_around() -> None:
    sentence = "About 'abc\u202egnp.exe\u2066' and " + "x" * 300 + " it says: 5 % of labels"
    found = example_audit()
    summary = dataclasses.replace(found.summary, words=["First. Second.", sentence])
    content = example_content(dataclasses.replace(found, summary=summary))
    text = "".join(Elements(build_report(content)).text)
    assert "About 'abcgnp.exe' and xxx" in text
    assert "… it says: 5\u00a0% of labels" in text


@given(st.recursive(st.text() | st.integers(), lambda x: st.lists(x, max_size=3), max_leaves=5))
def test_embedded_json_means_the_same_and_has_nothing_of_html(value: object) -> None:
    text = embedded_json(value)
    assert json.loads(text) == value
    assert text.isascii()
    assert not re.search("[<>&]", text)


@given(st.text(st.characters(exclude_categories=()), max_size=20))
def test_plain_text_can_be_written(text: str) -> None:
    shown = plain(text)
    shown.encode("utf-8")
    assert "\0" not in shown
    if not re.search("[\0\ud800-\udfff]", text):
        assert shown == text


def test_suspects_are_those_that_are_not_kept_most_suspicious_first() -> None:
    found = example_audit()
    suspects = choose_suspects(found, 5000)
    flagged = {i for i in range(200) if found.verdict[i] != 0}
    assert set(suspects.indices.tolist()) == flagged
    assert suspects.flagged == len(flagged)
    doubts = found.p_wrong[suspects.indices]
    assert (np.diff(doubts) <= 0).all()
    shown = set(suspects.all.tolist())
    assert {int(i) for i in found.support[suspects.indices].ravel()} <= shown
    assert len(shown) == len(suspects.all)


def test_where_nothing_stands_out_the_nearest_are_shown() -> None:
    found = example_audit()
    found = dataclasses.replace(found, verdict=np.zeros(200, dtype=np.int8))
    suspects = choose_suspects(found, 5000)
    assert suspects.flagged == 0
    assert suspects.indices.tolist() == found.ranking()[: len(suspects)].tolist()
    page = build_report(example_content(found))
    assert "No labels stand out" in page


def test_the_page_knows_what_the_audit_says() -> None:
    found = example_audit()
    suspects = choose_suspects(found, 10)
    data = payload(found, suspects)
    for n, i in enumerate(suspects.indices):
        assert data["items"]["id"][n] == str(found.ids[i])
        assert data["p"][n] == pytest.approx(found.p_wrong[i], abs=1e-4)
        assert data["top"][n] == found.top[i].tolist()
        assert data["topP"][n] == pytest.approx(found.top_probs[i], abs=1e-4)
        row = found.t_row[int(i)]
        assert {code: value for code, value in data["t"][n]} == pytest.approx(
            {code: row[code] for code in range(4)}, abs=1e-4
        )
        near = [data["items"]["index"][place] for place in data["support"][n]]
        assert near == found.support[i].tolist()


def test_keys_have_classes_even_if_the_audit_keeps_few() -> None:
    classes = [f"class {i}" for i in range(12)]
    found = example_audit(240, classes)
    few = dataclasses.replace(found, top=found.top[:, :2], top_probs=found.top_probs[:, :2])
    data = payload(few, choose_suspects(few, 50))
    for n, codes in enumerate(data["top"]):
        assert len(set(codes)) == 9
        assert data["items"]["given"][n] in codes
        known = 2 + (data["items"]["given"][n] not in codes[:2])
        assert [value is None for value in data["topP"][n]] == [False] * known + [True] * (
            9 - known
        )


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12), st.integers(1, 6), st.data())
def test_largest_entries_hold_the_one_that_is_asked_for(
    row: list[float], most: int, data: st.DataObject
) -> None:
    also = data.draw(st.integers(0, len(row) - 1))
    found = largest(row, most, also)
    assert len(found) == min(most, len(row))
    assert also in dict(found)
    others = [value for code, value in found if code != also]
    left = sorted((round(v, 4) for i, v in enumerate(row) if i != also), reverse=True)
    assert others == left[: len(others)]


def test_other_labels_have_another_key() -> None:
    found = example_audit()
    changed = found.labels.copy()
    changed[0] = (changed[0] + 1) % 4
    assert audit_key(found) == audit_key(example_audit())
    assert audit_key(found) != audit_key(dataclasses.replace(found, labels=changed))


def speckled(index: Sequence[int]) -> list[bytes | None]:
    """Pictures that no format makes small."""
    made: list[bytes | None] = []
    for i in index:
        pixels = np.random.default_rng(i).integers(0, 256, (200, 150, 3), dtype=np.uint8)
        file = io.BytesIO()
        Image.fromarray(pixels).save(file, "PNG", compress_level=1)
        made.append(file.getvalue())
    return made


@pytest.mark.parametrize("size", [15_000_000, 400_000, 140_000])
def test_the_file_stays_within_its_limit_and_says_what_that_cost(size: int, tmp_path: Path) -> None:
    limits = Limits(size=size, pixels=128)
    content = example_content(pictures=speckled, limits=limits)
    write_report(content, tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert len(page.encode()) <= size
    pictures = json.loads(Elements(page).scripts["review-pictures"])["data"]
    assert pictures[0] is not None
    assert ("Pictures have at most" in page) == (size < 1_000_000)
    assert ("There was no room for" in page) == (None in pictures)


def test_the_list_of_suspects_is_cut_and_the_report_says_so() -> None:
    page = build_report(example_content(limits=Limits(suspects=10)))
    data = json.loads(Elements(page).scripts["review-data"])
    assert len(data["suggested"]) == 10
    assert "The 10 most suspicious of" in page
    long = example_audit(ids=[f"{i}" + "x" * 3000 for i in range(200)])
    page = build_report(example_content(long, limits=Limits(size=250_000)))
    assert len(page) <= 250_000
    assert "most suspicious of" in page


def test_rows_are_cut_to_the_room_there_is() -> None:
    limits = Limits(size=120_000, columns=3)
    page = build_report(
        example_content(
            table_rows=lambda index: [{f"x{k}": "y" * 400 for k in range(9)} for _ in index],
            limits=limits,
        )
    )
    rows = json.loads(Elements(page).scripts["review-rows"])
    assert rows["columns"] == ["x0", "x1", "x2"]
    assert "The first 3 of 9 columns are shown." in page
    assert len(page) <= limits.size
    assert ("There was no room for" in page) == (None in rows["cells"])


def test_thumbnails_are_bounded_and_unreadable_ones_are_counted() -> None:
    [large] = speckled([1])
    assert large is not None
    with Image.open(io.BytesIO(thumbnail(large, 64) or b"")) as small:
        assert (small.format, small.size) == ("WEBP", (48, 64))
    deep = io.BytesIO()
    Image.fromarray(np.linspace(0, 60000, 400).reshape(20, 20).astype(np.uint16)).save(deep, "PNG")
    with Image.open(io.BytesIO(thumbnail(deep.getvalue(), 64) or b"")) as small:
        assert small.convert("L").getextrema() == (0, 255)
    assert thumbnail(b"no picture", 64) is None
    make = picture_maker()
    page = build_report(
        example_content(pictures=lambda index: [b"broken", *make(index[1:])], title="t")
    )
    assert "could not be read" in page


def test_supporting_examples_share_their_pictures() -> None:
    page = build_report(example_content(pictures=picture_maker()))
    data = json.loads(Elements(page).scripts["review-data"])
    shown = json.loads(Elements(page).scripts["review-pictures"])["data"]
    assert len(shown) == len(data["items"]["index"]) == len(set(data["items"]["index"]))


def test_a_score_is_not_called_a_probability() -> None:
    found = dataclasses.replace(example_audit(), kind="score")
    text = "".join(Elements(build_report(example_content(found))).text)
    assert "score, which only ranks" in text
    assert "of the labels seem wrong" not in text


def test_every_part_is_there() -> None:
    text = "".join(Elements(build_report(example_content())).text)
    for part in ("Noise by class", "Class pairs", "Average T", "Null check", "Config", "Versions"):
        assert part in text
    assert all(stage in text for stage in ("warm up", "transition", "correct"))


def test_one_thousand_classes_are_shown_in_part() -> None:
    found = example_audit(3000, [f"class {i} " + "x" * 290 for i in range(1000)])
    page = build_report(example_content(found, limits=Limits(size=2_500_000)))
    assert len(page) <= 2_500_000
    assert "Of 1000 classes those are shown" in page
