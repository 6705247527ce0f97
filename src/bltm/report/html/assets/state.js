// What the person decided, kept in this browser under the name of the audit.

const data = readJson("review-data");
const pictures = readJson("review-pictures");
const rows = readJson("review-rows");
const total = data.suggested.length;
const STORE = `bltm-review-${data.key}`;
const UNDO = 500;

const className = (code) => data.classes[code];
const given = (n) => data.items.given[n];

/** Suspect → {decision, code}; decision is accept, reject or choose. */
let decisions = new Map();
/** What to put back: [suspect, decision before or null]. */
let undoable = [];
let storageWorks = true;

function loadState() {
  decisions = new Map();
  undoable = [];
  let kept = null;
  try {
    kept = JSON.parse(localStorage.getItem(STORE));
    localStorage.setItem(`${STORE}-probe`, "1");
    localStorage.removeItem(`${STORE}-probe`);
  } catch {
    storageWorks = false;
  }
  if (!kept || !Array.isArray(kept.decisions)) return;
  // Decisions are kept by the example's place in the data: a longer report knows them, too.
  const places = new Map(data.items.index.slice(0, total).map((index, n) => [index, n]));
  for (const [index, decision, code] of kept.decisions) {
    if (!places.has(index) || !(code in data.classes)) continue;
    decisions.set(places.get(index), { decision, code });
  }
  undoable = [...decisions.keys()].map((n) => [n, null]);
}

function saveState() {
  const kept = [...decisions].map(([n, { decision, code }]) => [data.items.index[n], decision, code]);
  try {
    localStorage.setItem(STORE, JSON.stringify({ decisions: kept }));
  } catch {
    storageWorks = false;
  }
}

/** Decide that an example has a label. How it is called follows from the label. */
function decide(n, code) {
  const decision = code === given(n) ? "reject" : code === data.suggested[n] ? "accept" : "choose";
  undoable.push([n, decisions.get(n) ?? null]);
  if (undoable.length > UNDO) undoable.shift();
  decisions.delete(n);
  decisions.set(n, { decision, code });
  saveState();
}

/** Take the last decision back; return the suspect, or null if there is nothing to take back. */
function undo() {
  const last = undoable.pop();
  if (!last) return null;
  const [n, before] = last;
  decisions.delete(n);
  if (before) decisions.set(n, before);
  saveState();
  return n;
}

function clearState() {
  decisions = new Map();
  undoable = [];
  try {
    localStorage.removeItem(STORE);
  } catch {
    storageWorks = false;
  }
}

/** What was decided, in words. */
function decisionWords(n) {
  const made = decisions.get(n);
  if (!made) return "";
  if (made.decision === "reject") return "Kept";
  return made.decision === "accept" ? "Accepted" : `Now ${className(made.code)}`;
}
