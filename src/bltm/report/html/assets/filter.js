// Which suspects are listed, and in which order.

const controls = {
  text: byId("search"), given: byId("filter-given"), suggested: byId("filter-suggested"),
  verdict: byId("filter-verdict"), decided: byId("filter-decided"),
  low: byId("filter-low"), high: byId("filter-high"), sort: byId("sort"),
};

let haystacks = null;
function haystack(n) {
  haystacks ??= Array.from({ length: total }, (_, i) =>
    [data.items.id[i], className(given(i)), className(data.suggested[i])].join("\n").toLowerCase());
  return haystacks[n];
}

const compareText = new Intl.Collator("en", { numeric: true }).compare;
const ORDERS = {
  wrong: null, // the order of the data
  unsure: (a, b) => Math.abs(data.p[a] - 0.5) - Math.abs(data.p[b] - 0.5) || a - b,
  least: (a, b) => data.p[a] - data.p[b] || a - b,
  given: (a, b) => given(a) - given(b) || a - b,
  suggested: (a, b) => data.suggested[a] - data.suggested[b] || a - b,
  id: (a, b) => compareText(data.items.id[a], data.items.id[b]),
};

function code(control) {
  return control.value === "" ? null : Number(control.value);
}

/** A bound in percent; what is not a number bounds nothing. */
function bound(control, otherwise) {
  const value = control.valueAsNumber;
  return Number.isFinite(value) ? value / 100 : otherwise;
}

function findSuspects() {
  const text = controls.text.value.trim().toLowerCase();
  const [givenCode, suggestedCode] = [code(controls.given), code(controls.suggested)];
  const verdict = code(controls.verdict);
  const decided = controls.decided.value;
  const [low, high] = [bound(controls.low, 0), bound(controls.high, 1)];
  // The numbers on the page are rounded; 97 % is found from 97 to 97.
  const slack = 0.005;
  const found = [];
  for (let n = 0; n < total; n++) {
    if (givenCode !== null && given(n) !== givenCode) continue;
    if (suggestedCode !== null && data.suggested[n] !== suggestedCode) continue;
    if (verdict !== null && data.verdict[n] !== verdict) continue;
    if (data.p[n] < low - slack || data.p[n] > high + slack) continue;
    if (decided === "open" && decisions.has(n)) continue;
    if (decided === "made" && !decisions.has(n)) continue;
    if (text && !haystack(n).includes(text)) continue;
    found.push(n);
  }
  const order = ORDERS[controls.sort.value];
  if (order) found.sort(order);
  return found;
}

/** Offer the classes that occur among the suspects, with how often they do. */
function fillClasses(select, codes) {
  const counts = new Map();
  for (const each of codes) counts.set(each, (counts.get(each) ?? 0) + 1);
  for (const [each, times] of [...counts].sort((a, b) => a[0] - b[0])) {
    const name = className(each);
    const short = name.length > 60 ? `${name.slice(0, 60)}…` : name;
    select.append(make("option", { value: each }, `${short} (${times})`));
  }
}

function resetFilters() {
  byId("filters").reset();
}
