// Find a client anywhere: where it is, what it wants, where it was.
import { act, all, split } from "../api.js";
import { bytes, clock, confirmed, count, date, empty, h, head, lasting, link, pill, show, table, toast } from "../dom.js";
import { dot, operates } from "../app.js";

export const title = "Clients";
const STATES = { connected: "ok", away: "", moved: "warn" };

export const state = (row) => pill(row.state === "moved" && row.moved_to ? `moved to ${row.moved_to}` : row.state, STATES[row.state]);

export async function doTo(broker, action, client, question, word, after) {
  if (!(await confirmed(`${word}?`, question, word))) return;
  try { toast(`${client}: ${(await act(broker, action, { client })).result}`); await after?.(); } catch (error) { toast(`${client}: ${error.message}`, "bad"); }
}

function list(root) {
  const search = h("input", { type: "search", placeholder: "A part of the name; press / to come here", "aria-label": "Search for clients", oninput: () => update() });
  const which = h("select", { "aria-label": "State", onchange: () => update() }, h("option", { value: "" }, "all"), ["connected", "away", "moved"].map((one) => h("option", { value: one }, one)));
  const body = h("div", { class: "panel flush" });
  root.append(head(title, "Of all brokers together."), h("div", { class: "row panel" }, search, which), body);
  const update = async () => {
    const asked = { search: search.value, state: which.value, limit: 200 };
    const { good, bad } = split(await all("clients", asked));
    if (asked.search !== search.value || asked.state !== which.value) return;
    const rows = good.flatMap(([broker, told]) => told.rows.map((row) => ({ ...row, broker }))).sort((a, b) => (a.client < b.client ? -1 : a.client > b.client ? 1 : a.state < b.state ? 1 : -1));
    const found = good.reduce((sum, [, told]) => sum + told.total, 0);
    show(body, bad.map(([broker, told]) => h("p", { class: "note bad" }, `${broker}: ${told.text}`)),
      table([["Client", (row) => h("a", { href: link(row.client), class: "mono", "data-key": row.client + row.broker }, row.client || "(no name)"), "wrap"], ["Broker", (row) => [dot(row.broker), row.broker], "nowrap"], ["State", state],
        ["Address", (row) => row.address, "hide-small"], ["Since", (row) => clock(row.since), "hide-small"], ["Filters", (row) => count(row.subscriptions), "num"], ["Waiting", (row) => count(row.waiting + row.under_way), "num"], ["Dropped", (row) => (row.dropped ? h("span", { class: "bad" }, count(row.dropped)) : "0"), "num"]],
        rows, empty(asked.search ? "Nobody is called that" : "No clients", asked.search ? "At no broker that answers." : "Whoever connects is shown here.")),
      found > rows.length && h("p", { class: "dim small empty" }, `${count(rows.length)} of ${count(found)} are shown: search for more of the name.`));
  };
  return { update };
}

function detail(root, client) {
  const body = h("div");
  root.append(body);
  const update = async () => {
    const { good } = split(await all("client", { name: client }));
    const rows = good.map(([broker, told]) => ({ broker, ...told })).sort((a, b) => (a.row.state === "moved") - (b.row.state === "moved"));
    const home = rows[0];
    const top = head(client, "", h("a", { href: "#/clients" }, "All clients"));
    if (!home) return show(body, top, h("div", { class: "panel" }, empty("No session", "No broker that answers has a session of this client. It may have expired, or never been."), audit(client)));
    const { row, broker } = home;
    const moves = rows.flatMap((one) => one.moves.map((move) => ({ ...move, to: one.broker }))).sort((a, b) => b.time - a.time);
    const button = (action, word, question) => h("button", { class: "danger", "data-key": action, onclick: () => doTo(broker, action, client, question, word, update) }, word);
    show(body, top,
      h("div", { class: "two" },
        h("div", null,
          h("section", { class: "panel" }, h("h2", null, "Where it is"), h("dl", { class: "plain" },
            [["Broker", [dot(broker), broker]], ["State", state(row)], ["Address", row.address ? `${row.address} over ${row.over}, MQTT ${row.version === 4 ? "3.1.1" : row.version === 3 ? "3.1" : row.version}` : "not connected"], ["Since", date(row.since)],
              ["User", home.user || "nobody in particular"], ["Session", home.expiry_s === null ? "stays for ever" : home.expiry_s === 0 ? "ends with the connection" : `stays ${lasting(home.expiry_s)} after it leaves`], ["Copies at", home.copies.join(", ") || "no other broker"],
              ["May publish", home.publish === null ? "everything" : home.publish.join(" OR ") || "nothing"], ["May subscribe", home.subscribe === null ? "everything" : home.subscribe.join(" OR ") || "nothing"]]
              .map(([name, value]) => [h("dt", null, name), h("dd", null, value)]))),
          h("section", { class: "panel flush" }, h("h2", null, `Filters (${home.subscriptions.length})`), table([["Topics", (one) => h("code", null, one.topics), "wrap"], ["Condition", (one) => h("code", null, one.condition || "everything"), "wrap"], ["QoS", (one) => one.qos, "num"], ["Group", (one) => one.group]],
            home.subscriptions, empty("It wants nothing", "It has no subscriptions.")))),
        h("div", null,
          h("section", { class: "panel flush" }, h("h2", null, "Last moves"), table([["When", (one) => clock(one.time)], ["From", (one) => [dot(one.source), one.source]], ["To", (one) => [dot(one.to), one.to]], ["Waited", (one) => lasting(one.seconds), "num"]], moves, empty("It has not moved", "As far as the brokers remember."))),
          h("section", { class: "panel flush" }, h("h2", null, `What waits: ${count(row.waiting + row.under_way)}, ${bytes(row.waiting_bytes)}`),
            Object.entries(home.dropped).length > 0 && h("p", { class: "note bad small" }, `Dropped: ${Object.entries(home.dropped).map(([why, many]) => `${count(many)} (${why})`).join(", ")}`),
            table([["Topic", (one) => h("code", null, one.topic), "wrap"], ["QoS", (one) => one.qos, "num"], ["Age", (one) => lasting(one.age_s), "num"], ["Size", (one) => bytes(one.bytes), "num"]], home.queue, empty("Nothing waits", "It has taken all that was for it."))),
          operates() && h("section", { class: "panel" }, h("h2", null, "Act"), h("div", { class: "row" },
            row.state === "connected" && button("disconnect", "Disconnect", `Hang up on ${client}. Its session stays, and it may come back.`),
            button("purge", "Purge backlog", `Drop the ${count(row.waiting + row.under_way)} deliveries that wait for ${client}.`), button("end", "End session", `Forget the session of ${client}, with its filters and what waits.`))),
          audit(client))));
  };
  return { update };
}

const audit = (client) => h("p", { class: "small" }, h("a", { href: `#/bench/${encodeURIComponent(client)}` }, "Why did it not get an event?"));

export const start = (root, client) => (client ? detail(root, client) : list(root));
