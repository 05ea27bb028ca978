// Things and lasting questions: what each question is told, both forests, and a check against asking every thing.
import { all, split } from "../api.js";
import { count, empty, h, head, link, pill, show, stat, table } from "../dom.js";
import { dot } from "../app.js";
import { forest } from "./structures.js";

export const title = "Context";
const checked = (agrees) => (agrees === null ? pill("too many to ask") : agrees ? pill("the same", "ok") : pill("differs", "bad"));

export function start(root) {
  const body = h("div");
  root.append(head(title, "What lasts: retained things, subspaces among them, and the questions of connected clients."), body);
  let last = "";
  const update = async () => {
    const { good, bad } = split(await all("context"));
    const now = JSON.stringify(good);
    if (now === last) return;
    last = now;
    const questions = good.flatMap(([broker, told]) => told.questions.map((one) => ({ ...one, broker })));
    const sum = (key) => good.reduce((total, [, told]) => total + told[key], 0);
    show(body, bad.map(([broker, told]) => h("p", { class: "note bad" }, `${broker}: ${told.text}`)),
      h("div", { class: "stats" }, stat(count(Math.max(0, ...good.map(([, told]) => told.retained))), "retained"), stat(count(Math.max(0, ...good.map(([, told]) => told.subspaces.length))), "subspaces"), stat(count(sum("total")), "questions"), stat(count(questions.reduce((all, one) => all + one.pending, 0)), "changes to be told")),
      h("section", { class: "panel flush" }, h("h2", null, "Questions"), table([["Client", (row) => h("a", { href: link(row.client) }, row.client), "wrap"], ["Broker", (row) => [dot(row.broker), row.broker], "nowrap"], ["Question", (row) => h("code", null, row.text), "wrap"], ["Sense", (row) => row.sense], ["Told", (row) => count(row.number), "num"], ["Knows", (row) => count(row.known), "num"], ["Match now", (row) => count(row.matches), "num"], ["Things", (row) => h("span", { class: "small mono" }, row.topics.slice(0, 6).join("  "), row.matches > 6 ? " ..." : ""), "wrap"], ["Asking every thing", (row) => checked(row.agrees), "nowrap"]], questions, empty("No questions", "Ask one: godwit query FILTER --topic T"))),
      good.map(([broker, told]) => told.subspaces.length > 0 && h("section", { class: "panel" }, h("h2", null, dot(broker), `Subspaces at ${broker}`),
        table([["Thing", (row) => h("code", null, row.topic), "wrap"], ["Profile", (row) => h("code", null, row.profile), "wrap"], ["Questions that it answers", (row) => count(row.questions), "num"]], told.subspaces, empty("", "")),
        h("h3", null, "Forest of profiles"), forest(told.profile_forest, empty("None", "")),
        h("h3", null, "Forest of questions"), forest(told.question_forest, empty("None", "")))));
  };
  return { update };
}
