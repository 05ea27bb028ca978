// Which attributes there are, and the last values by content.
import { all, split } from "../api.js";
import { clock, count, empty, h, head, pill, show, table } from "../dom.js";
import { dot } from "../app.js";

export const title = "Attributes";
const number = (value) => (value === null || value === undefined ? "" : Number(value.toPrecision(6)).toString());

export function start(root) {
  const filter = h("input", { type: "search", placeholder: "pm25 > 150; nothing: all", "aria-label": "Filter of last values", "data-key": "filter", onchange: () => update() });
  const names = h("section", { class: "panel flush" }), lasts = h("section", { class: "panel flush" });
  root.append(head(title, "Of what is published while this view is open, and of what is retained."), names, h("div", { class: "row panel" }, filter, h("button", { onclick: () => update() }, "Show last values")), lasts);
  const update = async () => {
    const { good } = split(await all("attributes"));
    const found = new Map();
    for (const [broker, told] of good) for (const row of told.attributes) {
      const one = found.get(row.name) ?? { name: row.name, kinds: {}, low: null, high: null, common: new Map(), topics: new Set(), brokers: new Set() };
      for (const [kind, many] of Object.entries(row.kinds)) one.kinds[kind] = (one.kinds[kind] ?? 0) + many;
      if (row.low !== null) { one.low = Math.min(one.low ?? Infinity, row.low); one.high = Math.max(one.high ?? -Infinity, row.high); }
      for (const [value, many] of row.common) one.common.set(value, (one.common.get(value) ?? 0) + many);
      row.topics.forEach((topic) => one.topics.add(topic)); one.brokers.add(broker);
      found.set(row.name, one);
    }
    const rows = [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    const seen = good.reduce((sum, [, told]) => sum + told.seen, 0), skipped = good.reduce((sum, [, told]) => sum + told.skipped, 0);
    show(names, h("h2", null, `Attributes of ${count(seen)} publications${skipped ? `; ${count(skipped)} more were too many to look at` : ""}`),
      table([["Name", (row) => h("button", { class: "link mono", "data-key": `at-${row.name}`, onclick: () => { filter.value = row.low !== null ? `${row.name} > ${number(row.low)}` : `${row.name} IS NOT NULL`; update(); } }, row.name), "wrap"], ["Kind", (row) => Object.keys(row.kinds).join(", ")], ["Seen", (row) => count(Object.values(row.kinds).reduce((a, b) => a + b, 0)), "num"], ["Range", (row) => (row.low === null ? "" : `${number(row.low)} to ${number(row.high)}`), "nowrap"], ["Common values", (row) => h("span", { class: "small mono" }, (row.kinds.number && row.common.size > 12 ? [] : [...row.common]).sort((a, b) => b[1] - a[1]).slice(0, 5).map(([value, many]) => `${value.slice(0, 30)} ×${count(many)}`).join("  ")), "wrap"], ["Topics", (row) => h("span", { class: "small mono" }, [...row.topics].slice(0, 3).join("  ")), "wrap"]],
        rows, empty("Nothing was published yet", "Since this view was opened: brokers look at publications only while somebody watches.")));
    const last = split(await all("last", filter.value ? { filter: filter.value, limit: 100 } : { limit: 100 }));
    const events = last.good.flatMap(([broker, told]) => told.events.map((one) => ({ ...one, broker })));
    const shown = 60;
    const once = [...new Map(events.sort((a, b) => a.time - b.time).map((one) => [one.retained ? `kept ${one.topic}` : `${one.broker} ${one.event}`, one])).values()].reverse();
    show(lasts, h("h2", null, "Last values"), last.bad.map(([broker, told]) => h("p", { class: "note bad" }, `${broker}: ${told.text}`)),
      table([["When", (row) => clock(row.time), "nowrap"], ["Broker", (row) => [dot(row.broker), row.broker], "nowrap"], ["Topic", (row) => [h("code", null, row.topic), " ", row.retained && pill("retained")], "wrap"], ["Publisher", (row) => h("span", { class: "mono" }, row.publisher), "wrap"], ["Values", (row) => h("code", { class: "small" }, Object.entries(row.values).filter(([key]) => !/^topic(_|$)/.test(key)).slice(0, 8).map(([key, value]) => `${key} = ${typeof value === "number" ? number(value) : value}`).join(", ")), "wrap"]],
        once.slice(0, shown), empty("None", filter.value ? "Nothing of what was seen or is retained matches." : "Nothing is retained, and nothing was published since this view was opened.")));
  };
  return { update };
}
