// Everything about one suspect.

const MOST_SUPPORT = 3;

function showDetail() {
  const n = found[current];
  byId("detail").hidden = n === undefined;
  if (n === undefined) return;
  byId("detail-place").textContent = `${(current + 1).toLocaleString("en")} of ${found.length.toLocaleString("en")}`;
  byId("detail-id").textContent = data.items.id[n];
  byId("detail-id").title = data.items.id[n];
  showPicture(n);
  byId("detail-given").textContent = className(given(n));
  byId("detail-suggested").textContent = className(data.suggested[n]);
  byId("detail-measure").textContent = measureText(n);
  byId("detail-verdict").textContent = VERDICTS[data.verdict[n]];
  byId("detail-collected").textContent = COLLECTED[data.collected[n]];
  byId("accept").hidden = data.suggested[n] === given(n);
  showChoices(n);
  showRow(n);
  showSupport(n);
  showChosen(n);
}

const VERDICTS = ["keep", "relabel", "review", "drop"];
const COLLECTED = [
  "Its right label was not inferred in training.",
  "In training its given label was inferred to be right.",
  "In training another label was inferred for it.",
];

function showPicture(n) {
  const place = byId("detail-picture");
  place.replaceChildren(...(gallery ? [picture(n, `Picture ${data.items.id[n]}`)] : []));
  const shown = place.querySelector("img");
  if (!shown) return;
  // A picture that has more to show gets the whole width.
  const fit = () => place.parentElement.classList.toggle("large", shown.naturalWidth > 100);
  if (shown.complete) fit();
  else shown.addEventListener("load", fit, { once: true });
}

function showChoices(n) {
  const items = data.top[n].map((code, i) => {
    const button = make("button", { type: "button", "data-code": code },
      make("kbd", {}, String(i + 1)), userText(className(code), "name"),
      bar(data.topP[n][i] ?? 0),
      make("span", { class: "share" }, data.topP[n][i] === null ? "" : percent(data.topP[n][i])));
    return make("li", {}, button);
  });
  byId("choices").replaceChildren(...items);
  const more = byId("other-class");
  more.value = "";
  byId("other").hidden = data.classes.length <= data.top[n].length;
}

function showRow(n) {
  const box = byId("detail-row");
  box.hidden = !data.t;
  if (!data.t) return;
  const share = data.t[n].find(([code]) => code === given(n))[1];
  byId("row-words").replaceChildren(
    "Examples like this one that are really ", userText(className(data.suggested[n]), "strong"),
    " get the label ", userText(className(given(n)), "strong"), ` ${percent(share)} of the time.`);
  byId("row-bars").replaceChildren(...data.t[n].map(([code, value]) =>
    make("li", { class: code === given(n) ? "is-given" : "" },
      userText(className(code), "name"), bar(value), make("span", { class: "share" }, percent(value)))));
}

function showSupport(n) {
  const near = (data.support?.[n] ?? []).slice(0, MOST_SUPPORT);
  byId("detail-support").hidden = near.length === 0 && !rows;
  byId("support-title").hidden = near.length === 0;
  byId("support-label").textContent = className(data.suggested[n]);
  byId("support-pictures").replaceChildren(...(gallery ? near.map((item) => {
    const shown = picture(item, `Supporting example ${data.items.id[item]}`);
    return make("figure", {}, shown, make("figcaption", {}, userText(data.items.id[item]),
      make("span", { class: "soft" }, "given "), userText(className(data.items.given[item]))));
  }) : []));
  const table = byId("support-rows");
  table.hidden = gallery || (!rows && near.length === 0);
  if (!table.hidden) table.replaceChildren(...comparison(n, near));
}

/** This row beside those that support the suggestion, column by column. */
function comparison(n, near) {
  const items = [n, ...near];
  const head = make("tr", {}, make("td"), make("th", { scope: "col" }, "this"),
    ...near.map((item) => make("th", { scope: "col" }, userText(data.items.id[item]))));
  const line = (name, cells) => make("tr", {}, make("th", { scope: "row" }, userText(name)),
    ...cells.map((text) => make("td", {}, userText(text))));
  const body = [line("given label", items.map((item) => className(data.items.given[item])))];
  (rows?.columns ?? []).forEach((name, column) => {
    body.push(line(name, items.map((item) => rows.cells[item]?.[column] ?? "–")));
  });
  return [make("thead", {}, head), make("tbody", {}, ...body)];
}

function showChosen(n) {
  const made = decisions.get(n);
  byId("accept").setAttribute("aria-pressed", String(made?.decision === "accept"));
  byId("reject").setAttribute("aria-pressed", String(made?.decision === "reject"));
  for (const button of byId("choices").querySelectorAll("button")) {
    button.setAttribute("aria-pressed", String(Number(button.dataset.code) === made?.code));
  }
}
