// Moving, deciding, keys.

function showProgress() {
  const done = decisions.size;
  const share = total ? done / total : 0;
  byId("progress").value = done;
  byId("progress").textContent = percent(share);
  byId("progress-text").textContent = `${done.toLocaleString("en")} of ${count(total, "suspect", "suspects")} decided`;
  byId("export").disabled = done === 0;
  byId("undo").disabled = undoable.length === 0;
  byId("clear").disabled = done === 0;
  byId("no-storage").hidden = storageWorks;
}

function say(text) {
  byId("live").textContent = text;
}

/** Go to a position of the list. */
function goTo(position, focus = true) {
  if (found.length === 0) return;
  current = Math.max(0, Math.min(found.length - 1, position));
  drawPage();
  markCurrent();
  showDetail();
  if (focus) {
    const element = itemAt(current);
    element.focus({ preventScroll: true });
    element.scrollIntoView({ block: "nearest" });
  }
}

function refilter() {
  const before = found[current];
  found = findSuspects();
  current = Math.max(0, found.indexOf(before));
  drawPage(true);
  markCurrent();
  showDetail();
  byId("found").textContent = found.length === total
    ? count(total, "suspect", "suspects")
    : `${found.length.toLocaleString("en")} of ${count(total, "suspect", "suspects")}`;
}

/** Note a decision about the current suspect and go on to the next one. */
function decideCurrent(code) {
  const n = found[current];
  if (n === undefined || code === undefined) return;
  decide(n, code);
  const inList = list.contains(document.activeElement) || document.activeElement === document.body;
  showDecision(n);
  showProgress();
  say(`${data.items.id[n]}: ${decisionWords(n)}. ${byId("progress-text").textContent}.`);
  if (current + 1 < found.length) goTo(current + 1, inList);
  else showDetail();
}

function takeBack() {
  const n = undo();
  if (n === null) return;
  showDecision(n);
  showProgress();
  say(`${data.items.id[n]}: taken back. ${byId("progress-text").textContent}.`);
  const position = found.indexOf(n);
  if (position >= 0) goTo(position);
  else showDetail();
}

const actions = {
  accept: () => decideCurrent(data.suggested[found[current]]),
  reject: () => decideCurrent(given(found[current])),
};

const KEYS = {
  j: () => goTo(current + 1), k: () => goTo(current - 1),
  ArrowRight: () => goTo(current + 1), ArrowLeft: () => goTo(current - 1),
  ArrowDown: () => goTo(current + perLine()), ArrowUp: () => goTo(current - perLine()),
  Home: () => goTo(0), End: () => goTo(found.length - 1),
  PageDown: () => goTo(current + PAGE), PageUp: () => goTo(current - PAGE),
  a: actions.accept, r: actions.reject, u: takeBack,
  "/": () => { byId("filter-box").open = true; controls.text.focus(); controls.text.select(); },
  "?": () => byId("help").showModal(),
};
// Keys that scroll the page elsewhere belong to the list only while it has the focus.
const IN_LIST = new Set(["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "Home", "End", "PageDown", "PageUp"]);

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  const target = event.target;
  if (target.matches("input, select, textarea")) {
    if (event.key === "Escape") {
      // The browser would clear the search.
      event.preventDefault();
      if (found.length) goTo(current);
      else target.blur();
    }
    return;
  }
  if (IN_LIST.has(event.key) && !list.contains(target)) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const action = /^[1-9]$/.test(key)
    ? () => decideCurrent(data.top[found[current]]?.[Number(key) - 1]) : KEYS[key];
  if (!action) return;
  event.preventDefault();
  action();
}

function wire() {
  for (const select of [[controls.given, (n) => given(n)], [controls.suggested, (n) => data.suggested[n]]]) {
    fillClasses(select[0], Array.from({ length: total }, (_, n) => select[1](n)));
  }
  data.classes.forEach((name, i) => {
    byId("other-class").append(make("option", { value: i }, name.length > 60 ? `${name.slice(0, 60)}…` : name));
  });
  byId("filters").addEventListener("input", refilter);
  byId("filters").addEventListener("submit", (event) => { event.preventDefault(); goTo(current); });
  // The form has its first values again only after the event.
  byId("filters").addEventListener("reset", () => setTimeout(refilter));
  list.addEventListener("click", (event) => {
    const item = event.target.closest("[id^=suspect-]");
    if (!item) return;
    goTo(found.indexOf(Number(item.id.slice("suspect-".length))));
    if (matchMedia("(max-width: 900px)").matches) byId("detail").scrollIntoView({ block: "start" });
  });
  for (const name of ["accept", "reject"]) byId(name).addEventListener("click", actions[name]);
  byId("choices").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) decideCurrent(Number(button.dataset.code));
  });
  byId("other-class").addEventListener("change", (event) => {
    if (event.target.value !== "") decideCurrent(Number(event.target.value));
  });
  byId("undo").addEventListener("click", takeBack);
  byId("export").addEventListener("click", exportCsv);
  byId("before").addEventListener("click", () => goTo(current - 1, false));
  byId("after").addEventListener("click", () => goTo(current + 1, false));
  byId("page-before").addEventListener("click", () => goTo((page - 1) * PAGE, false));
  byId("page-after").addEventListener("click", () => goTo((page + 1) * PAGE, false));
  byId("show-help").addEventListener("click", () => byId("help").showModal());
  byId("clear").addEventListener("click", () => byId("confirm-clear").showModal());
  byId("confirm-clear").addEventListener("close", (event) => {
    if (event.target.returnValue === "clear") { clearState(); redraw(); say("All decisions are forgotten."); }
    event.target.returnValue = "";
  });
  document.addEventListener("keydown", onKey);
  // The same report in another tab.
  addEventListener("storage", (event) => {
    if (event.key === STORE) { loadState(); redraw(); }
  });
  for (const button of document.querySelectorAll("[data-pair]")) {
    button.addEventListener("click", () => {
      resetFilters();
      [controls.given.value, controls.suggested.value] = button.dataset.pair.split(",");
      byId("review").scrollIntoView();
      setTimeout(() => { refilter(); goTo(0); });
    });
  }
  byId("theme").addEventListener("click", switchTheme);
}

function redraw() {
  refilter();
  showProgress();
}

function switchTheme() {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  try {
    localStorage.setItem("bltm-theme", root.dataset.theme);
  } catch {
    // It holds until the page is closed.
  }
}

// On a phone the list matters more than its filters.
byId("filter-box").open = !matchMedia("(max-width: 560px)").matches;
loadState();
wire();
redraw();
document.documentElement.dataset.ready = "";
