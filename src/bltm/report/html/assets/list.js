// The suspects, a page of them at a time: pictures in a gallery, others in a table.

const gallery = pictures !== null;
const PAGE = gallery ? 40 : 25;
const SHOWN_COLUMNS = 4;
const list = byId("list");

let found = [];
let current = 0; // position in found
let page = -1;

const pageCount = () => Math.max(1, Math.ceil(found.length / PAGE));

function label(n) {
  const state = decisionWords(n);
  const measure = data.kind === "probability"
    ? `wrong with a probability of ${percent(data.p[n])}` : `score ${data.p[n].toFixed(2)}`;
  return `${data.items.id[n]}: given ${className(given(n))}, suggested `
    + `${className(data.suggested[n])}, ${measure}, ${state || "undecided"}`;
}

function picture(n, alt) {
  const source = pictures.data[n];
  if (source === null) return make("span", { class: "no-picture" }, "no picture");
  return make("img", { src: pictures.prefix + source, alt, decoding: "async" });
}

function change(n) {
  return make("span", { class: "change" },
    userText(className(given(n)), "given"), make("span", { class: "arrow", "aria-hidden": "true" }, "→"),
    userText(className(data.suggested[n]), "suggested"));
}

function measureText(n) {
  return data.kind === "probability" ? percent(data.p[n]) : data.p[n].toFixed(2);
}

function measure(n) {
  return make("span", { class: "measure" }, measureText(n));
}

function card(n) {
  const element = make("div", { role: "option", class: "card", "aria-label": label(n) },
    make("span", { class: "frame" }, picture(n, "")), change(n),
    make("span", { class: "figures" }, measure(n), data.t ? miniRow(data.t[n], given(n)) : ""),
    make("span", { class: "badge" }));
  return element;
}

function tableRow(n) {
  const cells = rows?.cells[n] ?? [];
  return make("tr", { class: "row", "aria-label": label(n) },
    make("th", { scope: "row", class: "id" }, userText(data.items.id[n])),
    make("td", {}, change(n)),
    make("td", { class: "number" }, measure(n), bar(data.p[n])),
    ...(data.t ? [make("td", { class: "t" }, miniRow(data.t[n], given(n)))] : []),
    make("td", { class: "decision" }, make("span", { class: "badge" })),
    ...cells.slice(0, SHOWN_COLUMNS).map((text) => make("td", { class: "extra" }, userText(text))));
}

function tableHead() {
  const names = [data.idName, "given → suggested", data.kind === "probability" ? "P(wrong)" : "score"];
  return make("thead", {}, make("tr", {},
    ...names.map((name) => make("th", { scope: "col" }, userText(name))),
    ...(data.t ? [make("th", { scope: "col", class: "t" }, "T row")] : []),
    make("th", { scope: "col", class: "decision" }, "decision"),
    ...(rows?.columns ?? []).slice(0, SHOWN_COLUMNS)
      .map((name) => make("th", { scope: "col", class: "extra" }, userText(name)))));
}

const itemAt = (position) => byId(`suspect-${found[position]}`);

function showDecision(n) {
  const element = byId(`suspect-${n}`);
  if (!element) return;
  element.dataset.decision = decisions.get(n)?.decision ?? "";
  element.querySelector(".badge").textContent = decisionWords(n);
  element.setAttribute("aria-label", label(n));
}

/** Draw the page that the current suspect is on, if it is not there already. */
function drawPage(again = false) {
  const wanted = Math.floor(current / PAGE);
  if (wanted === page && !again) return;
  page = wanted;
  const shown = found.slice(page * PAGE, (page + 1) * PAGE);
  const items = shown.map((n) => {
    const element = gallery ? card(n) : tableRow(n);
    element.id = `suspect-${n}`;
    element.tabIndex = -1;
    return element;
  });
  list.replaceChildren(...(gallery ? items : [tableHead(), make("tbody", {}, ...items)]));
  shown.forEach(showDecision);
  list.hidden = shown.length === 0;
  byId("nothing").hidden = shown.length > 0;
  byId("pager").hidden = pageCount() < 2;
  byId("page-number").textContent = `Page ${page + 1} of ${pageCount()}`;
  byId("page-before").disabled = page === 0;
  byId("page-after").disabled = page + 1 >= pageCount();
}

function markCurrent() {
  for (const element of list.querySelectorAll('[aria-selected="true"]')) {
    element.setAttribute("aria-selected", "false");
    element.tabIndex = -1;
  }
  const element = itemAt(current);
  if (!element) return;
  element.setAttribute("aria-selected", "true");
  element.tabIndex = 0;
}

/** How many cards stand side by side. */
function perLine() {
  if (!gallery) return 1;
  const items = [...list.children];
  const first = items[0]?.offsetTop;
  const next = items.findIndex((item) => item.offsetTop !== first);
  return next < 0 ? Math.max(1, items.length) : next;
}
