// Publish and subscribe from the browser, over MQTT within WebSocket.
import { clock, empty, h, head, pill, show, toast } from "../dom.js";
import { store } from "../app.js";
import { Client } from "../mqtt.js";

export const title = "Publish, subscribe";
const KEPT = 200;

// Browsers let a page that came over HTTPS speak without TLS to this machine only.
const allowed = (url) => location.protocol !== "https:" || url.startsWith("wss:") || ["127.0.0.1", "localhost", "[::1]"].includes(new URL(url).hostname);
const placed = (url) => { const found = new URL(url.replace(/^(wss?:\/\/):/, `$1${location.hostname}:`)); return found.href; };

export function start(root) {
  let client = null, up = false;
  const heard = [];
  const where = h("select", { "aria-label": "Broker" }), user = h("input", { placeholder: "empty: anonymous", autocomplete: "off" }), password = h("input", { type: "password", autocomplete: "off" });
  const state = h("p", { class: "dim", role: "status" }, "Not connected.");
  const topics = h("input", { value: "#" }), condition = h("input", { placeholder: "pm25 > 150" }), qosIn = h("select", null, [0, 1].map((one) => h("option", { value: one }, one)));
  const topic = h("input", { placeholder: "air/beijing", required: true }), payload = h("textarea", { placeholder: '{"pm25": 163.5}', spellcheck: false }), qosOut = h("select", null, [0, 1].map((one) => h("option", { value: one }, one))), retain = h("input", { type: "checkbox" });
  const feed = h("div", { class: "feed" });
  const listed = () => show(feed, heard.length ? heard.map((one) => h("div", { class: "item" }, h("p", null, h("code", null, one.topic), " ", one.retain && pill("retained"), h("span", { class: "dim small" }, ` ${clock(one.time)} · QoS ${one.qos}`)), h("p", { class: "mono small" }, one.text))) : empty("Nothing received", "Connect, subscribe, and wait for events."));
  const connect = (event) => {
    event.preventDefault();
    client?.close();
    if (!where.value) return toast("No broker listens for WebSockets; start one with --ws HOST:PORT.", "bad");
    if (!allowed(placed(where.value))) return toast("This page came over HTTPS, so it may only speak to a broker over TLS; start that one with --wss HOST:PORT.", "bad");
    state.textContent = "Connecting.";
    client = new Client(placed(where.value), { id: `console-${Math.random().toString(36).slice(2, 10)}`, user: user.value, password: password.value,
      opened: () => { up = true; state.textContent = `Connected to ${where.value}.`; },
      closed: (reason) => { up = false; state.textContent = reason; },
      message: (message) => { heard.unshift({ ...message, time: Date.now() / 1000, text: new TextDecoder().decode(message.payload.slice(0, 2000)) }); heard.length = Math.min(heard.length, KEPT); listed(); } });
  };
  const subscribe = async (event) => {
    event.preventDefault();
    if (!up) return toast("Connect first.", "bad");
    const { code, reason } = await client.subscribe(topics.value, condition.value, Number(qosIn.value));
    toast(code < 128 ? `Subscribed to ${topics.value}.` : `Refused: ${reason || code}`, code < 128 ? "" : "bad");
  };
  const publish = async (event) => {
    event.preventDefault();
    if (!up) return toast("Connect first.", "bad");
    const { code, reason } = await client.publish(topic.value, payload.value, Number(qosOut.value), retain.checked);
    toast(code < 128 ? `Published to ${topic.value}.` : `Refused: ${reason || code}`, code < 128 ? "" : "bad");
  };
  root.append(head(title, "As any MQTT client, with the rights of the user that you name here."),
    h("div", { class: "grid" },
      h("section", { class: "panel" }, h("h2", null, "Connect"), h("form", { onsubmit: connect }, h("label", null, "Broker", where), h("label", null, "User", user), h("label", null, "Password", password), h("button", { class: "primary" }, "Connect")), state),
      h("section", { class: "panel" }, h("h2", null, "Subscribe"), h("form", { onsubmit: subscribe }, h("label", null, "Topics", topics), h("label", null, "Condition", condition), h("label", null, "QoS", qosIn), h("button", { class: "primary" }, "Subscribe"))),
      h("section", { class: "panel" }, h("h2", null, "Publish"), h("form", { onsubmit: publish }, h("label", null, "Topic", topic), h("label", null, "Payload", payload), h("label", null, "QoS", qosOut), h("label", { class: "check" }, retain, "retain"), h("p"), h("button", { class: "primary" }, "Publish")))),
    h("section", { class: "panel flush" }, h("h2", null, "Received"), feed));
  listed();
  let known = "?";
  const update = () => {
    const urls = [...store.brokers.values()].filter((one) => one.websocket).map((one) => [one.name, one.websocket]);
    if (JSON.stringify(urls) === known) return;
    known = JSON.stringify(urls);
    show(where, urls.length ? urls.map(([name, url]) => h("option", { value: url }, `${name}, ${url}`)) : h("option", { value: "" }, "no broker listens for WebSockets"));
  };
  return { update, stop: () => client?.close() };
}
