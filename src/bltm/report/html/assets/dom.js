// Small helpers. Text of users reaches the page through textContent and attributes of text alone.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const readJson = (id) => JSON.parse(byId(id).textContent);

/** Make an element with attributes and children; strings become text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/** Text of a user: isolated, so that its direction of writing changes nothing around it. */
function userText(text, className = "") {
  const element = make("bdi", { class: className }, text);
  element.title = text;
  return element;
}

function makeSvg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** A horizontal bar from 0 to 1 that is as wide as its place. */
function bar(value, className = "") {
  const svg = makeSvg("svg", {
    class: `bar ${className}`, viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true",
  });
  svg.append(
    makeSvg("rect", { class: "track", width: 100, height: 10 }),
    makeSvg("rect", { class: "fill", width: Math.max(0, Math.min(1, value)) * 100, height: 10 }),
  );
  return svg;
}

/** The row of T as a few upright bars; that of the given label stands out. */
function miniRow(entries, given) {
  const step = 7;
  const svg = makeSvg("svg", {
    class: "mini", viewBox: `0 0 ${entries.length * step} 20`, role: "img",
    width: entries.length * step, height: 20,
    "aria-label": `Row of T: ${entries.map(([c, v]) => `${className(c)} ${percent(v)}`).join(", ")}`,
  });
  entries.forEach(([code, value], i) => {
    const height = Math.max(1.5, value * 20);
    svg.append(makeSvg("rect", {
      class: code === given ? "fill" : "other", x: i * step, y: 20 - height, width: step - 2, height,
    }));
  });
  return svg;
}

/** An estimated probability as a percentage; estimates are never certain. */
function percent(share) {
  const value = share * 100;
  if (value < 0.5) return "<\u00a01\u00a0%";
  if (value >= 99.5) return ">\u00a099\u00a0%";
  return `${Math.round(value)}\u00a0%`;
}

function count(n, one, many) {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}
