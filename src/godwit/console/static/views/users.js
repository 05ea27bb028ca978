// Who may do what, and: may this one do that?
import { all, split } from "../api.js";
import { count, empty, h, head, pill, show, table } from "../dom.js";
import { dot } from "../app.js";

export const title = "Users";
const granted = (list) => (list === null ? "everything" : list.length ? list.map((one) => h("div", null, h("code", null, one))) : h("span", { class: "dim" }, "nothing"));

export function start(root) {
  const user = h("input", { placeholder: "empty: anonymous" }), topic = h("input", { placeholder: "air/beijing", required: true }), condition = h("input", { placeholder: "pm25 > 150" }), payload = h("input", { placeholder: '{"pm25": 163}' });
  const act = h("select", null, h("option", { value: "subscribe" }, "subscribe to"), h("option", { value: "publish" }, "publish to"));
  const out = h("div"), body = h("div");
  const ask = async (event) => {
    event.preventDefault();
    const { good, bad } = split(await all("may", { user: user.value, act: act.value, topic: topic.value, condition: condition.value, payload: payload.value }));
    show(out, bad.map(([broker, told]) => h("p", { class: "note bad", role: "alert" }, `${broker}: ${told.text}`)), good.map(([broker, told]) => h("p", { role: "status" }, dot(broker), `${broker}: `, pill(told.may ? "yes" : "no", told.may ? "ok" : "bad"), ` ${told.because}`)));
  };
  root.append(head(title, "As the brokers have read their users files."), h("section", { class: "panel" }, h("h2", null, "May somebody do that?"), h("form", { onsubmit: ask }, h("div", { class: "grid" }, h("label", null, "User", user), h("label", null, "wants to", act), h("label", null, "Topic, or topic filter", topic), h("label", null, "Condition of a subscription", condition), h("label", null, "Payload of a publication", payload)), h("button", { class: "primary" }, "May it?")), out), body);
  const update = async () => {
    const { good, bad } = split(await all("users"));
    const same = new Map();
    for (const [broker, told] of good) for (const one of told.users) {
      const key = JSON.stringify({ ...one, sessions: 0 }), known = same.get(key) ?? { ...one, sessions: 0, brokers: [] };
      known.sessions += one.sessions; known.brokers.push(broker); same.set(key, known);
    }
    const rows = [...same.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    show(body, bad.map(([broker, told]) => h("p", { class: "note bad" }, `${broker}: ${told.text}`)), good.filter(([, told]) => !told.file).map(([broker]) => h("p", { class: "note" }, `${broker} has no users file: whoever is on its machine may do anything, and nobody else gets in.`)),
      h("section", { class: "panel flush" }, table([["User", (row) => h("b", null, row.name || "anonymous"), "wrap"], ["At", (row) => (row.brokers.length === good.length ? "all brokers" : row.brokers.join(", ")), "wrap"], ["Role", (row) => (row.role === "none" ? "" : pill(row.role, "ok"))], ["By", (row) => row.by], ["May publish", (row) => granted(row.publish), "wrap"], ["May subscribe", (row) => granted(row.subscribe), "wrap"], ["Clients", (row) => row.clients?.join(", ") ?? "any"], ["Sessions", (row) => count(row.sessions), "num"]], rows, empty("No users", "No broker answers."))));
  };
  return { update };
}
