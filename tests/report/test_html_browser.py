"""The report in Chromium: a review with mouse, keyboard and phone, in light and dark."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest

from bltm.audit import Audit, apply_corrections, read_corrections
from bltm.report.html import ReportContent, write_report

from .audit_example import HOSTILE, example_audit, example_content, hostile_audit, picture_maker

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

TOTAL = int((example_audit().verdict != 0).sum())
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), None)

pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason=f"needs Chromium: none of {NAMES} is installed"),
    # One browser for all of them.
    pytest.mark.xdist_group("chromium"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("reports")
    cells = [{"weight": f"{i}.5", "colour": HOSTILE[i % len(HOSTILE)]} for i in range(200)]
    contents: dict[str, ReportContent] = {
        "pictures": example_content(pictures=picture_maker()),
        "rows": example_content(table_rows=lambda index: [cells[i] for i in index]),
        "hostile": example_content(
            hostile_audit(),
            title=HOSTILE[1],
            config=dict.fromkeys(HOSTILE, HOSTILE[9]),
            pictures=picture_maker(),
        ),
    }
    for name, content in contents.items():
        write_report(content, folder / f"{name}.html")
    return {name: folder / f"{name}.html" for name in contents}


class Visit:
    """An open page, and what went wrong on it."""

    def __init__(self, context: BrowserContext, path: Path) -> None:
        self.requests: list[str] = []
        self.problems: list[str] = []
        context.on("request", lambda request: self.requests.append(request.url))
        self.page: Page = context.new_page()
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("console", lambda message: self.problems.append(message.text))
        self.page.on("dialog", lambda dialog: self.problems.append(dialog.message))
        self.page.set_default_timeout(5000)
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached")

    def reload(
        self, until: str = "true", lost: str = "false", again: Callable[[], None] = lambda: None
    ) -> None:
        """Load the page anew until a script says that it remembers.

        A page hands what it keeps to the browser's storage process without waiting for it. On a
        busy machine that can be late, or lost with a storage process that is started anew: only
        where a script says that the browser itself ``lost`` it is it done ``again``.
        """
        for wait in (0.5, 1.0, 2.0, 4.0):
            time.sleep(wait)
            self.page.reload()
            self.page.wait_for_selector("html[data-ready]", state="attached")
            if self.value(until):
                return
            if self.value(lost):
                again()
        kept = self.value("Object.entries(localStorage)")
        raise AssertionError(f"not after any reload: {until}, and the browser keeps {kept}")

    def value(self, script: str) -> Any:
        return self.page.evaluate(script)

    def wait(self, script: str) -> None:
        """Wait until a script says yes; Playwright's own way is forbidden by the page's policy."""
        until = time.monotonic() + 5.0
        while not self.value(script):
            assert time.monotonic() < until, script
            time.sleep(0.02)

    def text(self, element: str) -> str:
        return self.page.inner_text(f"#{element}")

    def press(self, keys: str) -> None:
        for key in keys.split():
            self.page.keyboard.press(key)

    def export(self, folder: Path) -> Path:
        with self.page.expect_download() as coming:
            self.page.click("#export")
        assert coming.value.suggested_filename == "corrected.csv"
        coming.value.save_as(folder / "corrected.csv")
        return folder / "corrected.csv"


@pytest.fixture
def visit(browser: Browser) -> Iterator[Any]:
    opened: list[tuple[BrowserContext, Visit]] = []

    def make(path: Path, width: int = 1280, **options: Any) -> Visit:
        size = {"width": width, "height": 800}
        context = browser.new_context(viewport=size, accept_downloads=True, **options)
        opened.append((context, Visit(context, path)))
        return opened[-1][1]

    yield make
    for context, each in opened:
        assert each.problems == []
        assert all(url.startswith(("file://", "data:", "blob:")) for url in each.requests)
        context.close()


def corrected(found: Audit, path: Path) -> list[Any]:
    """The labels with what was exported put in."""
    names = np.array(found.classes, dtype=object)
    changes = read_corrections(path, found.id_name)
    return apply_corrections(found.ids, names[found.labels], found.classes, changes).tolist()


def test_filters_show_what_they_promise(visit: Any, reports: dict[str, Path]) -> None:
    found = example_audit()
    here = visit(reports["pictures"])
    suspects = np.flatnonzero(found.verdict != 0)
    assert 20 < len(suspects) <= 40, "all on one page"

    def shown() -> list[str]:
        ids = "[...document.querySelectorAll('.card')].map(c => c.getAttribute('aria-label'))"
        return sorted(label.split(":")[0] for label in here.value(ids))

    def expected(mask: Any) -> list[str]:
        return sorted(str(found.ids[i]) for i in suspects if mask[i])

    assert shown() == expected(np.ones(200, bool))
    here.page.select_option("#filter-given", "1")
    assert shown() == expected(found.labels == 1)
    here.page.select_option("#filter-suggested", "2")
    assert shown() == expected((found.labels == 1) & (found.suggested == 2))
    here.page.click("text=Reset")
    here.wait("document.querySelectorAll('.card').length > 20")
    here.page.select_option("#filter-verdict", "3")
    assert shown() == expected(found.verdict == 3)
    here.page.select_option("#filter-verdict", "")
    here.page.fill("#filter-low", "60")
    here.page.fill("#filter-high", "80")
    rounded = np.round(found.p_wrong, 4)
    assert shown() == expected((rounded >= 0.595) & (rounded <= 0.805))
    here.page.fill("#filter-low", "")
    here.page.fill("#filter-high", "")
    here.page.fill("#search", "no such thing")
    assert shown() == []
    assert here.page.is_visible("#nothing")
    here.page.fill("#search", str(found.ids[suspects[0]]))
    assert str(found.ids[suspects[0]]) in shown()


def test_decisions_survive_a_reload_and_find_their_way_back(
    visit: Any, reports: dict[str, Path], tmp_path: Path
) -> None:
    found = example_audit()
    order = found.ranking()
    here = visit(reports["pictures"])
    assert here.page.is_disabled("#export")

    def decide() -> None:
        here.page.click("#accept")
        here.page.click("#reject")
        here.page.click("#choices li:nth-child(3) button")
        assert f"3 of {TOTAL} suspects decided" in here.text("progress-text")
        assert here.value("localStorage.length") == 1

    decide()
    three = f"document.getElementById('progress-text').innerText.includes('3 of {TOTAL} ')"
    here.reload(three, "localStorage.length === 0", again=decide)
    assert f"3 of {TOTAL} suspects decided" in here.text("progress-text")
    assert here.page.get_attribute(f"#suspect-{0}", "data-decision") == "accept"

    path = here.export(tmp_path)
    table = pd.read_csv(path)
    assert table.columns.tolist() == ["id", "given_label", "label", "decision"]
    assert sorted(table["id"]) == sorted(found.ids[order[:3]].tolist())
    labels = corrected(found, path)
    expected = found.labels.copy()
    expected[order[0]] = found.suggested[order[0]]
    expected[order[2]] = found.top[order[2], 2]
    assert labels == [found.classes[code] for code in expected]

    here.page.click("#clear")
    here.page.click("text=Cancel")
    assert f"3 of {TOTAL} " in here.text("progress-text")
    here.page.click("#clear")
    here.page.click("text=Forget them")
    here.wait("document.querySelector('#progress').value === 0")
    here.reload(f"document.getElementById('progress-text').innerText.includes('0 of {TOTAL} ')")


def test_a_browser_that_keeps_nothing_is_no_hindrance(
    visit: Any, reports: dict[str, Path], tmp_path: Path
) -> None:
    here = visit(reports["pictures"])
    assert not here.page.is_visible("#no-storage")
    here.page.add_init_script("Storage.prototype.setItem = () => { throw new Error('full'); };")
    here.reload()
    here.press("a a")
    assert here.page.is_visible("#no-storage")
    assert len(pd.read_csv(here.export(tmp_path))) == 2


def test_a_review_needs_no_mouse(visit: Any, reports: dict[str, Path], tmp_path: Path) -> None:
    here = visit(reports["pictures"])
    focus = "document.activeElement.id"
    here.press("Tab")
    assert here.value("document.activeElement.className") == "skip"
    here.press("Enter")
    for _ in range(20):
        here.press("Tab")
        if here.value(focus).startswith("suspect-"):
            break
    assert here.value(focus) == "suspect-0"
    here.press("j j k")
    assert here.value(focus) == "suspect-1"
    here.press("ArrowRight ArrowLeft End Home")
    assert here.value(focus) == "suspect-0"
    here.press("ArrowDown")
    below = int(here.value(focus).removeprefix("suspect-"))
    assert below >= 3
    here.press("ArrowUp a r 3")
    made = here.value(
        "[0, 1, 2].map(n => document.getElementById(`suspect-${n}`).dataset.decision)"
    )
    assert made[:2] == ["accept", "reject"]
    assert here.value(focus) == "suspect-3"
    assert f"3 of {TOTAL} " in here.value("document.getElementById('live').textContent")
    here.press("u")
    assert here.value(focus) == "suspect-2"
    assert f"2 of {TOTAL} " in here.text("progress-text")
    here.press("/")
    assert here.value(focus) == "search"
    here.page.keyboard.type("ar1")
    assert f"2 of {TOTAL} " in here.text("progress-text"), "letters in the search are not commands"
    here.press("Escape Control+a")
    here.press("?")
    assert here.page.is_visible("#help")
    here.press("Escape")
    assert not here.page.is_visible("#help")
    here.page.focus("#export")
    with here.page.expect_download() as coming:
        here.press("Enter")
    coming.value.save_as(tmp_path / "corrected.csv")
    assert pd.read_csv(tmp_path / "corrected.csv")["decision"].tolist() in (
        ["accept", "reject"],
        ["reject", "accept"],
    )


def test_everything_has_a_name_and_focus_can_be_seen(visit: Any, reports: dict[str, Path]) -> None:
    here = visit(reports["rows"])
    nameless = here.value(
        """[...document.querySelectorAll('button, select, input, a, img, [role=img], [role=row],'
            + ' [role=option], [role=listbox], [role=grid], progress')].filter(
            e => e.checkVisibility() && !(e.textContent.trim() || e.getAttribute('aria-label')
            || e.alt || e.labels?.length || e.getAttribute('aria-labelledby')))
            .map(e => e.outerHTML)"""
    )
    assert nameless == []
    marks = "['header', 'main', 'footer', 'nav', 'aside'].map(t => !!document.querySelector(t))"
    assert all(here.value(marks))
    here.page.focus("#suspect-0")
    here.press("j")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert here.value(outline) == "solid"
    assert here.value("document.querySelectorAll('[aria-selected=true]').length") == 1


def test_rows_are_shown_beside_those_that_support_the_suggestion(
    visit: Any, reports: dict[str, Path]
) -> None:
    here = visit(reports["rows"])
    first = int(example_audit().ranking()[0])
    cells = here.value("[...document.querySelectorAll('#support-rows tr')].map(r => r.innerText)")
    assert [line.split()[0] for line in cells[1:]] == ["given", "weight", "colour"]
    assert cells[2].split()[1] == f"{first}.5"
    assert len(cells[0].split("\t")) == 5


def test_hostile_names_do_no_harm(visit: Any, reports: dict[str, Path], tmp_path: Path) -> None:
    found = hostile_audit()
    for width in (1280, 390):
        here = visit(reports["hostile"], width)
        for _ in range(12):
            here.press("a")
        assert here.value("document.title") == HOSTILE[1]
        assert here.value("document.querySelectorAll('script').length") == 5
        assert here.value("document.documentElement.scrollWidth") <= width
        bodies = here.value("document.body.textContent")
        assert all(name.replace("\0", "") in bodies.replace("\0", "") for name in HOSTILE[:5])
    path = here.export(tmp_path)
    labels = corrected(found, path)
    decided = found.ranking()[:12]
    expected = found.labels.copy()
    expected[decided] = found.suggested[decided]
    assert labels == [found.classes[code] for code in expected]
    lines = pd.read_csv(path, dtype=str, keep_default_na=False)
    assert not lines.map(lambda text: text.startswith(("=", "+", "-", "@", "\t", "\r"))).any().any()


CONTRAST = """() => {
  const parse = (c) => { const v = c.match(/[\\d.]+/g).map(Number);
    return v.length < 4 ? [...v, 1] : v; };
  const over = (a, b) => [0, 1, 2].map((i) => a[i] * a[3] + b[i] * (1 - a[3]));
  const ground = (e) => { const layers = [];
    for (; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]); };
  const light = (c) => { const [r, g, b] = c.map((v) => { v /= 255;
    return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const low = [];
  for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !e.checkVisibility() || e.closest('.hidden, :disabled, script, svg')) continue;
    const under = ground(e), style = getComputedStyle(e);
    const [a, b] = [light(over(parse(style.color), under)), light(under)];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const large = parseFloat(style.fontSize) >= 24;
    if (ratio < (large ? 3 : 4.5)) low.push(`${ratio.toFixed(2)} ${e.outerHTML.slice(0, 120)}`);
  }
  return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_and_fits(visit: Any, reports: dict[str, Path], scheme: str) -> None:
    other = "light" if scheme == "dark" else "dark"
    for name, width in (("pictures", 1280), ("pictures", 390), ("rows", 390)):
        here = visit(reports[name], width, color_scheme=scheme)
        here.press("a r 3")
        assert here.value(CONTRAST) == []
        assert here.value("document.documentElement.scrollWidth") <= width
        before = here.value("getComputedStyle(document.body).backgroundColor")
        changed = f"getComputedStyle(document.body).backgroundColor !== '{before}'"

        def switch(here: Visit = here, changed: str = changed) -> None:
            here.page.click("#theme")
            assert here.value(changed)
            assert here.value("localStorage.getItem('bltm-theme')") == other

        switch()
        here.reload(changed, "localStorage.getItem('bltm-theme') === null", again=switch)


def test_five_thousand_suspects_stay_smooth(visit: Any, tmp_path: Path) -> None:
    found = example_audit(50_000, [f"class {i}" for i in range(10)])
    write_report(example_content(found, pictures=picture_maker(8)), tmp_path / "many.html")
    here = visit(tmp_path / "many.html")
    assert "of 5,000 suspects" in here.text("progress-text")
    assert here.value("document.querySelectorAll('.card').length") <= 100
    # Times include the drawing of the next frame; the best of some counts, for the machine may be
    # busy with something else.
    spent = """(change) => new Promise((done) => { const start = performance.now(); change();
        requestAnimationFrame(() => setTimeout(() => done(performance.now() - start))); })"""
    search = """() => { const box = document.getElementById('search'); box.value = '%s';
        box.dispatchEvent(new Event('input', { bubbles: true })); }"""
    assert min(here.value(f"({spent})({search % text})") for text in "789") < 1000
    assert (
        here.value("performance.timing.domContentLoadedEventEnd - performance.timing.fetchStart")
        < 8000
    )
    here.page.focus("[aria-selected=true]")
    here.press("End j")
    assert here.value("document.querySelectorAll('.card').length") >= 1
    assert here.value("document.activeElement.className") == "card"
