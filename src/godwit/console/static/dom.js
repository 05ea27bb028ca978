// Builds elements. Text only ever becomes text: whatever clients call themselves cannot become markup.
const SVG = "http://www.w3.org/2000/svg";

function put(node, children) {
  for (const child of children.flat(9)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

function dress(node, props) {
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "open") node[name] = value;
    else if (name === "width%") node.style.width = `${Math.max(0, Math.min(100, value))}%`;
    else node.setAttribute(name, value === true ? "" : value);
  }
  return node;
}

export const h = (tag, props, ...children) => put(dress(document.createElement(tag), props), children);
export const s = (tag, props, ...children) => put(dress(document.createElementNS(SVG, tag), props), children);

// Replaces what is shown; whoever had the focus has it again.
export function show(node, ...children) {
  const key = node.contains(document.activeElement) ? document.activeElement.getAttribute("data-key") : null;
  const { scrollTop, scrollLeft } = node;
  node.replaceChildren();
  put(node, children);
  node.scrollTop = scrollTop;
  node.scrollLeft = scrollLeft;
  if (key) node.querySelector(`[data-key="${CSS.escape(key)}"]`)?.focus({ preventScroll: true });
}

const plain = new Intl.NumberFormat("en");
export const count = (value) => plain.format(Math.round(value));
export const short = (value) =>
  value >= 1e9 ? `${(value / 1e9).toFixed(1)} G` : value >= 1e6 ? `${(value / 1e6).toFixed(1)} M` : value >= 1e4 ? `${(value / 1e3).toFixed(1)} k` : value >= 100 || Number.isInteger(value) ? count(value) : value.toFixed(1);
export const bytes = (value) => {
  for (const [unit, size] of [["TB", 1e12], ["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) if (value >= size) return `${(value / size).toFixed(value >= 100 * size ? 0 : 1)} ${unit}`;
  return `${Math.round(value)} B`;
};
export const lasting = (seconds) => {
  if (!Number.isFinite(seconds)) return "for ever";
  if (seconds < 0.01) return `${(seconds * 1000).toFixed(1)} ms`;
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 90) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
};
export const many = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
export const clock = (time) => (time ? new Date(time * 1000).toLocaleTimeString("en-GB") : "");
export const date = (time) => (time ? new Date(time * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }) : "");
export const total = (figure) => (figure && typeof figure === "object" ? Object.values(figure).reduce((a, b) => a + b, 0) : figure ?? 0);
export const empty = (title, text) => h("p", { class: "empty" }, h("b", null, title), text);
export const pill = (text, kind) => h("span", { class: `pill ${kind ?? ""}` }, text);
export const head = (title, text, ...more) => h("div", { class: "head" }, h("h1", null, title), h("p", null, text), h("span", { class: "grow" }), ...more);
export const stat = (value, text, kind) => h("div", { class: `stat ${kind ?? ""}` }, h("b", null, value), h("span", null, text));
export const link = (client) => `#/client/${encodeURIComponent(client)}`;

// On a phone a row is a list, and its cells say what they are.
function cell(name, kind, content) {
  const nothing = content === null || content === undefined || content === false || content === "" || content.length === 0;
  return h("td", { class: kind, "data-label": name }, nothing ? null : h("div", null, content));
}

export function table(columns, rows, nothing) {
  if (!rows.length) return nothing;
  return h("div", { class: "scroll" }, h("table", null,
    h("thead", null, h("tr", null, columns.map(([name, , kind]) => h("th", { class: kind, scope: "col" }, name)))),
    h("tbody", null, rows.map((row) => h("tr", null, columns.map(([name, part, kind]) => cell(name, kind, part(row))))))));
}

export function toast(text, kind) {
  const one = h("div", { class: `toast ${kind ?? ""}` }, text);
  document.getElementById("toasts").append(one);
  setTimeout(() => one.remove(), 6000);
}

// Asks before something that cannot be undone; the answer is true or false.
export function confirmed(title, text, word) {
  return new Promise((resolve) => {
    const box = h("dialog", { "aria-labelledby": "ask" },
      h("h2", { id: "ask" }, title), h("p", null, text),
      h("div", { class: "row" },
        h("button", { onclick: () => box.close("no"), autofocus: true }, "Cancel"),
        h("button", { class: "danger", "data-key": "confirm", onclick: () => box.close("yes") }, word)));
    box.addEventListener("close", () => { resolve(box.returnValue === "yes"); box.remove(); });
    document.body.append(box);
    box.showModal();
  });
}

// A line of what was, the newest at the right.
export function spark(values, colour) {
  const most = Math.max(1e-9, ...values);
  const at = (value, place) => `${((place / Math.max(1, values.length - 1)) * 100).toFixed(2)},${(34 - (value / most) * 30).toFixed(2)}`;
  const path = values.length > 1 ? `M${values.map(at).join("L")}` : "M0,34L100,34";
  return s("svg", { class: "spark", viewBox: "0 0 100 36", preserveAspectRatio: "none", role: "img", "aria-label": `up to ${short(most)}` },
    s("path", { d: path, class: `s${colour}` }));
}
