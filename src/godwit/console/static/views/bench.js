// Try filters, and ask why a client did not get an event.
import { all, post, split } from "../api.js";
import { clock, empty, h, head, pill, show, table, toast } from "../dom.js";
import { dot, operates, store } from "../app.js";

export const title = "Filter bench";
const RECORD_S = 600;

const failed = (place, error) => show(place, h("p", { class: "note bad", role: "alert" }, error.message));

function bench() {
  const text = h("textarea", { spellcheck: false, "aria-label": "Filter", value: "" , placeholder: "pm25 > 150 AND within(lat, lon, 39.92, 116.42, 5km)" });
  const event = h("textarea", { spellcheck: false, placeholder: '{"pm25": 163.5, "lat": 39.93, "lon": 116.42}' });
  const against = h("input", { placeholder: "another filter, or nothing" });
  const topic = h("input", { placeholder: "air/beijing", value: "t" });
  const out = h("div");
  const run = async (submitted) => {
    submitted?.preventDefault();
    try {
      const told = await post("filter", { filter: text.value, against: against.value, event: event.value ? JSON.stringify({ ...JSON.parse(event.value), topic: topic.value || "t" }) : "" });
      show(out, h("h2", null, "It means"), told.canonical.map((line, at) => h("p", null, at > 0 && h("b", null, "or "), h("code", null, line))), !told.canonical.length && h("p", { class: "warn" }, "Nothing matches: the conditions contradict each other."),
        h("p", { class: "dim small" }, "In Spark SQL: ", h("code", null, told.spark ?? "there is no condition that says the same")),
        told.against && h("p", null, h("b", null, "Against the other: "), told.against.sentence),
        told.event && [h("p", null, told.event.matches ? pill("the event matches", "ok") : pill("the event does not match", "bad")), h("ul", { class: "steps" }, told.event.alternatives.map((one) => h("li", { class: one.matches ? "yes" : "no" }, h("code", null, one.filter), !one.matches && h("div", { class: "dim small" }, `fails at ${one.failed}: ${one.because}`))))]);
    } catch (error) { failed(out, error); }
  };
  const who = async () => {
    try {
      const { good, bad } = split(await post("all/wanting", { topic: topic.value || "t", payload: event.value }));
      const rows = good.flatMap(([broker, told]) => told.takers.map((one) => ({ ...one, broker })));
      if (!good.length && bad.length) throw new Error(bad[0][1].text);
      show(out, h("h2", null, `${rows.length} ${rows.length === 1 ? "subscription" : "subscriptions"} would get it`), table([["Client", (row) => h("a", { href: `#/client/${encodeURIComponent(row.client)}`, class: "mono" }, row.client), "wrap"], ["Broker", (row) => [dot(row.broker), row.broker], "nowrap"], ["State", (row) => row.state], ["Condition", (row) => h("code", null, row.condition || row.key), "wrap"]], rows, empty("Nobody wants it", "At no broker that answers.")));
    } catch (error) { failed(out, error); }
  };
  return h("section", { class: "panel" }, h("h2", null, "Try a filter"), h("form", { onsubmit: run }, h("label", null, "Filter", text), h("label", null, "Event, a JSON object", event), h("div", { class: "grid" }, h("label", null, "Topic of the event", topic), h("label", null, "Compare with", against)),
    h("div", { class: "row" }, h("button", { class: "primary" }, "Explain"), h("button", { type: "button", onclick: who }, "Who would get the event?"))), out);
}

function why(client) {
  const name = h("input", { value: client, placeholder: "van-7", required: true, "aria-label": "Client" });
  const event = h("input", { placeholder: "publisher:sequence, or choose one below", "aria-label": "Event" });
  const topic = h("input", { placeholder: "or a topic" }), payload = h("textarea", { placeholder: "and a payload that is only thought of", spellcheck: false });
  const out = h("div"), recent = h("div", { class: "feed" });
  const state = h("p", { class: "dim small" });
  const ask = async (submitted) => {
    submitted?.preventDefault();
    try {
      const told = await post("why", { client: name.value, event: event.value, topic: event.value ? "" : topic.value, payload: payload.value });
      show(out, h("p", { class: "answer", role: "status" }, told.sentence), h("ul", { class: "steps" }, told.steps.map((one) => h("li", { class: one.mark }, one.text))),
        told.brokers.some((one) => one.trace.length) && h("details", null, h("summary", null, "What was recorded"), table([["When", (row) => clock(row.time)], ["Broker", (row) => row.broker], ["What", (row) => row.kind], ["Client", (row) => row.client, "wrap"], ["Note", (row) => [row.peer, " ", row.note]]], told.brokers.flatMap((one) => one.trace.map((row) => ({ ...row, broker: one.broker }))).sort((a, b) => a.time - b.time), null)));
    } catch (error) { failed(out, error); }
  };
  const record = async (seconds) => {
    try {
      const { bad } = split(await post("all/actions/record", { seconds }));
      if (bad.length) throw new Error(`${bad[0][0]}: ${bad[0][1].text}`);
      toast(seconds ? "All brokers record publications and deliveries for ten minutes." : "Nothing is recorded any more.");
    } catch (error) { toast(error.message, "bad"); }
  };
  const node = h("section", { class: "panel" }, h("h2", null, "Why did a client not get an event?"),
    state, operates() && h("div", { class: "row" }, h("button", { type: "button", onclick: () => record(RECORD_S) }, "Record for ten minutes"), h("button", { type: "button", onclick: () => record(0) }, "Stop")),
    h("form", { onsubmit: ask }, h("label", null, "Client", name), h("label", null, "Event", event), h("label", null, "Topic", topic), h("label", null, "Payload", payload), h("button", { class: "primary" }, "Ask why")), out, h("h2", null, "Published lately"), recent);
  const update = async () => {
    const on = [...store.brokers.values()].filter((one) => one.traced_until > one.now).length;
    state.textContent = on ? `${on} of ${store.brokers.size} brokers record what happens.` : "Nothing is recorded: the answer then rests on filters, rights and places as they are now.";
    const { good } = split(await all("events", { limit: 30 }));
    const rows = good.flatMap(([broker, told]) => told.events.map((one) => ({ ...one, broker }))).sort((a, b) => b.time - a.time).slice(0, 40);
    show(recent, rows.length ? rows.map((one) => h("div", { class: "item" }, h("p", null, h("button", { class: "link mono", type: "button", "data-key": one.event, onclick: () => { event.value = one.event; topic.value = ""; if (name.value) ask(); } }, one.event), h("span", { class: "dim small" }, ` ${clock(one.time)} · ${one.topic} · at ${one.broker}`)),
      h("p", { class: "small mono dim" }, JSON.stringify(Object.fromEntries(Object.entries(one.values).filter(([key]) => !/^topic(_|$)/.test(key)))).slice(0, 240)))) : empty("Nothing yet", "What is published while this view is open is listed here."));
  };
  return { node, update };
}

export function start(root, client) {
  const question = why(client ?? "");
  root.append(head(title, "What a filter means, who would get an event, and why somebody did not."), h("div", { class: "grid" }, bench(), question.node));
  return { update: question.update };
}
