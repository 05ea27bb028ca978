// How filters cover one another, in the structures of the routing tables; compared, and checked against the naive way.
import { all, split } from "../api.js";
import { count, empty, h, head, link, pill, show, stat, table } from "../dom.js";
import { dot } from "../app.js";

export const title = "Structures";
const KINDS = { FP: "filters poset", PF: "poset-derived forest", BF: "balanced forest", NRF: "non-redundant forest" };
const SIZES = [10, 50, 200, 1000];

// A forest as nested lists: what a filter covers stands below it. In a poset a filter may stand below several.
export function forest(nodes, empties) {
  if (!nodes.length) return empties;
  const below = nodes.map(() => []);
  nodes.forEach((node, at) => node.parents.forEach((parent) => below[parent].push(at)));
  const item = (at) => h("li", null,
    h("code", null, nodes[at].text), " ",
    nodes[at].clients.map((client) => [h("a", { href: link(client), class: "small" }, client), " "]),
    nodes[at].uses > nodes[at].clients.length && h("span", { class: "dim small" }, `and ${count(nodes[at].uses - nodes[at].clients.length)} more`),
    below[at].length > 0 && h("details", { open: true }, h("summary", { class: "small dim" }, `covers ${count(below[at].length)}`), h("ul", null, below[at].map(item))));
  return h("ul", { class: "forest" }, nodes.map((node, at) => at).filter((at) => !nodes[at].parents.length).map(item));
}

export function start(root) {
  const kind = h("select", { "aria-label": "Structure", "data-key": "kind", onchange: () => update() }, Object.entries(KINDS).map(([name, text]) => h("option", { value: name }, `${name}, ${text}`)));
  kind.value = "PF";
  const size = h("select", { "aria-label": "Filters", "data-key": "size", onchange: () => update() }, SIZES.map((one) => h("option", { value: String(one) }, `${count(one)} filters`)));
  size.value = "200";
  const body = h("div");
  root.append(head(title, "What clients of each broker want, arranged by covering, and what the broker tells the others of it."), h("div", { class: "row panel" }, kind, size), body);
  let last = "";
  const update = async () => {
    const { good, bad } = split(await all("structures", { kind: kind.value, size: size.value }));
    const now = JSON.stringify(good);
    if (now === last) return;
    last = now;
    show(body, bad.map(([broker, told]) => h("p", { class: "note bad" }, `${broker}: ${told.text}`)), good.map(([broker, told]) => h("section", { class: "panel" },
      h("h2", null, dot(broker), broker),
      h("div", { class: "stats" }, stat(count(told.total), "filters"), stat(count(told.taken), "arranged here"), stat(count(told.stated.length), "told to others")),
      table([["Structure", (row) => row.kind], ["Filters", (row) => count(row.nodes), "num"], ["Roots", (row) => count(row.roots), "num"], ["Depth", (row) => count(row.depth), "num"], ["Covering tests", (row) => count(row.tests), "num"], ["Roots merged", (row) => count(row.merged), "num"], ["loosely", (row) => count(row.merged_loosely), "num"], ["Naive roots", (row) => (row.agrees ? pill("the same", "ok") : pill("differ", "bad"))]], told.compared, empty("", "")),
      h("h3", null, KINDS[told.kind]),
      forest(told.nodes, empty("No subscriptions", "No client of this broker wants anything yet.")),
      told.stated.length > 0 && h("details", null, h("summary", null, `Told to others: ${count(told.stated.length)}`), h("ul", null, told.stated.slice(0, 200).map((text) => h("li", null, h("code", null, text))))))));
  };
  return { update };
}
