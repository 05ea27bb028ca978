// What went wrong: refusals, take-overs, drops, silent links, certificates that expire.
import { all, split } from "../api.js";
import { clock, count, date, empty, h, head, lasting, link, pill, show, stat, table, total } from "../dom.js";
import { dot } from "../app.js";

export const title = "Problems";
const KINDS = { refused: "warn", "taken over": "warn", dropped: "bad", link: "warn", closed: "", trouble: "bad", users: "warn" };

export function start(root) {
  const which = h("select", { "aria-label": "Kind", onchange: () => update() }, h("option", { value: "" }, "all kinds"), Object.keys(KINDS).map((one) => h("option", { value: one }, one)));
  const above = h("div"), body = h("section", { class: "panel flush" });
  root.append(head(title, "As the brokers noticed them, the newest first."), above, h("div", { class: "head" }, h("h2", null, "What happened"), h("span", { class: "grow" }), h("div", null, which)), body);
  const update = async () => {
    const { good, bad } = split(await all("problems"));
    const refused = {}, dropped = {};
    for (const [, told] of good) {
      for (const [why, many] of Object.entries(told.refused)) if (many) refused[why] = (refused[why] ?? 0) + many;
      for (const [why, many] of Object.entries(told.dropped)) if (many) dropped[why] = (dropped[why] ?? 0) + many;
    }
    const links = good.flatMap(([broker, told]) => told.links.map((one) => ({ ...one, broker, silence: told.silence_s })));
    const missing = good.flatMap(([broker, told]) => told.missing.map((name) => `${name}, of whom ${broker} keeps something`));
    const certificates = good.flatMap(([broker, told]) => told.certificates.map((one) => ({ ...one, broker })));
    const parts = (figure) => Object.entries(figure).map(([why, many]) => h("div", null, h("span", null, why.replaceAll("_", " ")), h("b", null, count(many))));
    const now = Date.now() / 1000;
    show(above,
      bad.map(([broker, told]) => h("p", { class: "note bad" }, `${broker} does not answer: ${told.text}`)), missing.map((text) => h("p", { class: "note bad" }, `No link leads to ${text}.`)),
      h("div", { class: "stats" }, stat(count(total(refused)), "refused"), stat(count(good.reduce((sum, [, told]) => sum + told.taken_over, 0)), "taken over"), stat(count(total(dropped)), "dropped", total(dropped) ? "bad" : ""), stat(links.length, "silent links", links.length ? "warn" : ""), stat(certificates.length, "certificates expire soon", certificates.length ? "bad" : "")),
      h("div", { class: "grid four" },
        h("section", { class: "panel" }, h("h2", null, "Refused, since the start"), total(refused) ? h("div", { class: "facts" }, parts(refused)) : empty("Nothing", "No client, publication or filter was refused.")),
        h("section", { class: "panel" }, h("h2", null, "Dropped, since the start"), total(dropped) ? h("div", { class: "facts" }, parts(dropped)) : empty("Nothing", "Whatever was to be delivered was, or waits.")),
        h("section", { class: "panel" }, h("h2", null, "Silent links"), links.length ? links.map((one) => h("p", null, dot(one.broker), `${one.broker} has heard nothing of ${one.peer} for ${lasting(one.silent_s)}; given up after ${lasting(one.silence)}`)) : empty("None", "All links were heard of a moment ago.")),
        h("section", { class: "panel" }, h("h2", null, "Certificates"), certificates.length ? certificates.map((one) => h("p", { class: one.expires < now ? "bad" : "warn" }, `${one.broker}: ${one.key} ${one.expires < now ? "expired" : "expires"} ${date(one.expires)}`)) : empty("None expires within 30 days", "Of those that brokers use."))));
    const rows = good.flatMap(([broker, told]) => told.notices.map((one) => ({ ...one, broker }))).filter((one) => !which.value || one.kind === which.value).sort((a, b) => b.time - a.time).slice(0, 200);
    show(body, table([["When", (row) => clock(row.time), "nowrap"], ["Broker", (row) => [dot(row.broker), row.broker], "nowrap"], ["Kind", (row) => pill(row.kind, KINDS[row.kind])], ["What", (row) => [row.text, row.count > 1 && h("span", { class: "dim" }, ` × ${count(row.count)}`)], "wrap"], ["Client", (row) => row.client && h("a", { href: link(row.client), class: "mono", "data-key": `n${row.serial}${row.broker}` }, row.client), "wrap"]],
      rows, empty("Nothing went wrong", "As far as the brokers' logs know.")));
  };
  return { update };
}
