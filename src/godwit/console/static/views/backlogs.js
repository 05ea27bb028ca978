// For whom something waits, the most first.
import { all, split } from "../api.js";
import { bytes, count, empty, h, head, lasting, link, show, stat, table } from "../dom.js";
import { dot, operates } from "../app.js";
import { doTo, state } from "./clients.js";

export const title = "Backlogs";

export function start(root) {
  const body = h("div");
  root.append(body);
  const update = async () => {
    const { good } = split(await all("backlogs", { limit: 100 }));
    const rows = good.flatMap(([broker, told]) => told.rows.map((row) => ({ ...row, broker }))).sort((a, b) => b.waiting + b.under_way - a.waiting - a.under_way);
    const most = Math.max(1, ...rows.map((row) => row.waiting + row.under_way));
    const sum = (key) => rows.reduce((all, row) => all + row[key], 0);
    show(body, head(title, "What clients have not taken yet, above QoS 0."),
      h("div", { class: "stats" }, stat(count(good.reduce((all, [, told]) => all + told.total, 0)), "clients with a backlog"), stat(count(sum("waiting")), "waiting"), stat(count(sum("under_way")), "under way"), stat(bytes(sum("waiting_bytes")), "waiting"), stat(lasting(Math.max(0, ...rows.map((row) => row.oldest_s))), "the oldest"), stat(count(sum("dropped")), "dropped by bounds", sum("dropped") ? "bad" : "")),
      h("section", { class: "panel flush" }, table([["Client", (row) => h("a", { href: link(row.client), class: "mono", "data-key": row.client }, row.client), "wrap"], ["Broker", (row) => [dot(row.broker), row.broker], "nowrap"], ["State", state],
        ["Waiting", (row) => [count(row.waiting + row.under_way), h("div", { class: `bar ${row.dropped ? "bad" : ""}` }, h("i", { "width%": (100 * (row.waiting + row.under_way)) / most }))], "num"], ["Size", (row) => bytes(row.waiting_bytes), "num"], ["Oldest", (row) => lasting(row.oldest_s), "num"], ["Dropped", (row) => count(row.dropped), "num"],
        ["", (row) => operates() && row.state !== "moved" && h("button", { class: "danger", "data-key": `purge-${row.client}`, onclick: () => doTo(row.broker, "purge", row.client, `Drop the ${count(row.waiting + row.under_way)} deliveries that wait for ${row.client}.`, "Purge", update) }, "Purge"), "num"]],
        rows, empty("Nothing waits", "Every client has taken what was for it."))));
  };
  return { update };
}
