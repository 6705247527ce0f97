// Corrected labels as a CSV file, by the ids of the examples.

// Where a name is written differently than shown, such as with an apostrophe before what a
// spreadsheet would take for a formula, the data says how.
const writtenId = (n) => data.written.ids[n] ?? data.items.id[n];
const writtenClass = (code) => data.written.classes[code] ?? className(code);

function cell(text) {
  return /[",;\t\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function correctedCsv() {
  const lines = [data.written.header];
  const inOrder = [...decisions].sort((a, b) => data.items.index[a[0]] - data.items.index[b[0]]);
  for (const [n, { decision, code }] of inOrder) {
    lines.push([writtenId(n), writtenClass(given(n)), writtenClass(code), decision]);
  }
  return lines.map((line) => line.map(cell).join(",") + "\n").join("");
}

function exportCsv() {
  const url = URL.createObjectURL(new Blob([correctedCsv()], { type: "text/csv;charset=utf-8" }));
  const link = make("a", { href: url, download: "corrected.csv" });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
