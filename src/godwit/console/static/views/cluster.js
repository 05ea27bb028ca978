// All brokers: are they well, what do they do, how are they connected.
import { act, get, post } from "../api.js";
import { bytes, clock, confirmed, count, empty, h, head, lasting, many, pill, s, short, show, spark, stat, toast, total } from "../dom.js";
import { colour, dot, history, operates, rate, store } from "../app.js";

export const title = "Cluster";

const ROW = 84;
const sum = (rows, part) => rows.reduce((all, one) => all + part(one), 0);

// A tree from its leader down, or a ring of whoever is linked: the links are drawn as they are.
function drawing(rows) {
  const names = [...new Set(rows.flatMap((one) => [one.name, ...one.peers.map((peer) => peer.name)]))].sort();
  if (names.length < 2) return empty("One broker", "With --peer it finds others, and they are drawn here.");
  const known = new Map(rows.map((one) => [one.name, one]));
  const children = new Map(names.map((name) => [name, []]));
  const parent = new Map();
  for (const one of rows) for (const peer of one.peers) {
    if (peer.role === "parent") parent.set(one.name, peer.name);
    if (peer.role === "child") parent.set(peer.name, one.name);
  }
  for (const [child, above] of parent) children.get(above)?.push(child);
  const tops = names.filter((name) => !parent.has(name));
  const tree = rows.some((one) => one.leader) && parent.size > 0;
  const place = new Map();
  let width = 640, height = 340;
  if (tree) {
    let leaves = 0, deepest = 0;
    const set = (name, depth, seen) => {
      if (seen.has(name)) return;
      seen.add(name);
      deepest = Math.max(deepest, depth);
      const below = children.get(name).filter((one) => !seen.has(one));
      below.forEach((one) => set(one, depth + 1, seen));
      const ys = below.map((one) => place.get(one)?.[1]).filter((y) => y !== undefined);
      place.set(name, [depth, ys.length ? (ys[0] + ys.at(-1)) / 2 : leaves++]);
    };
    const seen = new Set();
    tops.forEach((one) => set(one, 0, seen));
    // From left to right, or on a phone from above to below.
    const narrow = matchMedia("(max-width: 44rem)").matches;
    width = narrow ? 40 + Math.max(1, leaves) * 120 : 200 + deepest * 230; height = 30 + (narrow ? deepest + 1 : Math.max(1, leaves)) * ROW;
    for (const [name, [x, y]] of place) place.set(name, narrow ? [80 + y * 120, 15 + ROW / 2 + x * ROW] : [100 + x * 230, 15 + ROW / 2 + y * ROW]);
  } else names.forEach((name, at) => place.set(name, [width / 2 - 40 + 120 * Math.sin((2 * Math.PI * at) / names.length), height / 2 - 120 * Math.cos((2 * Math.PI * at) / names.length)]));
  const drawn = new Set(), edges = [];
  for (const one of rows) for (const peer of one.peers) {
    const key = [one.name, peer.name].sort().join("\n");
    if (!peer.linked || drawn.has(key) || !place.has(peer.name)) continue;
    drawn.add(key);
    const [x1, y1] = place.get(one.name), [x2, y2] = place.get(peer.name);
    const isTree = parent.get(one.name) === peer.name || parent.get(peer.name) === one.name;
    const bow = y1 === y2 ? 34 : 0;
    edges.push(s("path", { d: isTree || !tree ? `M${x1},${y1}L${x2},${y2}` : `M${x1},${y1}Q${(x1 + x2) / 2 + (bow ? 0 : 40)},${(y1 + y2) / 2 - bow} ${x2},${y2}`, class: `edge ${isTree ? "tree" : "spare"}` }));
  }
  const leader = rows.find((one) => one.leader)?.leader;
  const nodes = [...place].map(([name, [x, y]]) => {
    const one = known.get(name);
    const what = !one ? "no answer" : one.troubles.length ? one.troubles[0] : `${many(one.levels.connected, "client")}${one.ring ? `, ${many(one.ring.cells.length, "cell")}` : ""}`;
    return s("g", { class: "node", transform: `translate(${x},${y})` },
      s("circle", { r: one ? 11 + Math.min(10, Math.sqrt(one.levels.connected) / 2) : 9, class: one ? `f${colour(name)}` : "f7", opacity: one ? 1 : 0.35 }),
      s("text", { y: -22 }, name + (name === leader ? " ★" : "")), s("text", { y: 34, class: "what" }, what.slice(0, 40)));
  });
  return s("svg", { class: "drawing", viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": `${names.length} brokers and their links` }, edges, nodes);
}

async function done(name, action, question, word) {
  if (question && !(await confirmed(`${word} ${name}?`, question, word))) return;
  try { toast(`${name}: ${(await act(name, action)).result}`); } catch (error) { toast(`${name}: ${error.message}`, "bad"); }
}

function card(one) {
  const { disk, levels } = one;
  const used = 1 - disk.free_bytes / disk.total_bytes;
  const state = one.troubles.length ? ["bad", one.draining ? "draining" : "trouble"] : one.cordoned ? ["warn", "cordoned"] : ["ok", "well"];
  const button = (action, word, question) => h("button", { "data-key": `${action}-${one.name}`, onclick: () => done(one.name, action, question, word) }, word);
  return h("section", { class: "panel card", "aria-label": one.name },
    h("h2", null, dot(one.name), one.name, pill(state[1], state[0])),
    one.troubles.map((trouble) => h("p", { class: "note bad small" }, trouble)),
    spark(history(one.name, "delivered"), colour(one.name)),
    h("div", { class: "facts" },
      [["delivered/s", short(rate(one.name, "delivered"))], ["published/s", short(rate(one.name, "published"))], ["clients", count(levels.connected)], ["sessions", count(levels.sessions)],
        ["waiting", short(levels.waiting)], ["dropped", short(total(one.counts.dropped))], ["subscriptions", count(levels.subscriptions)], ["links", count(levels.links)]]
        .map(([name, value]) => h("div", null, h("span", null, name), h("b", null, value)))),
    h("div", { class: `bar ${used > 0.95 ? "bad" : used > 0.85 ? "warn" : ""}`, role: "img", "aria-label": `disk ${Math.round(used * 100)} % full` }, h("i", { "width%": used * 100 })),
    h("p", { class: "dim small" }, `${bytes(disk.used_bytes)} of its own; ${bytes(disk.free_bytes)} free. Up ${lasting(one.uptime_s)}, ${one.version}.`),
    operates() && h("div", { class: "row" },
      one.cordoned ? button("uncordon", "Uncordon") : button("cordon", "Cordon", "New clients are sent to other brokers. Those that are here stay."),
      !one.draining && button("drain", "Drain", "All clients are sent to other brokers, with their sessions. Uncordon lets them in again."),
      button("restart", "Restart", "It stops in order and starts again. Clients without another broker wait meanwhile."),
      button("reload", "Reload")));
}

async function rolled(update) {
  if (!(await confirmed("Restart all brokers?", "One after the other, each only when the last one is well again. It stops at the first that does not come back.", "Restart all"))) return;
  try { await post("rolling", { confirm: true }); await update(); } catch (error) { toast(error.message, "bad"); }
}

export function start(root) {
  const body = h("div");
  root.append(body);
  const update = async () => {
    const rows = [...store.brokers.values()];
    const rolling = await get("rolling").catch(() => ({ stages: [] }));
    const all = (key) => sum(rows, (one) => rate(one.name, key));
    const waiting = sum(rows, (one) => one.levels.waiting), dropped = all("dropped");
    show(body,
      head(title, rows.length ? `As of ${clock(Math.max(...rows.map((one) => one.now)))}.` : "", operates() && rows.length > 1 && h("button", { "data-key": "rolling", onclick: () => rolled(update) }, "Rolling restart")),
      [...store.failed].map(([name, text]) => h("p", { class: "note bad", role: "alert" }, `${name} does not answer: ${text}`)),
      rolling.under_way || rolling.stages.some((one) => one.state === "failed") ? h("section", { class: "panel" }, h("h2", null, "Rolling restart"),
        h("ul", { class: "steps" }, rolling.stages.map((one) => h("li", { class: one.state === "done" ? "yes" : one.state === "failed" ? "no" : "open" }, `${one.broker}: ${one.state} ${one.text}`)))) : null,
      h("div", { class: "stats" }, stat(count(sum(rows, (one) => one.levels.connected)), "clients connected"), stat(short(all("published")), "published a second"), stat(short(all("delivered")), "delivered a second"),
        stat(short(waiting), "waiting", waiting > 1e5 ? "warn" : ""), stat(short(dropped), "dropped a second", dropped > 0 ? "bad" : ""), stat(short(sum(rows, (one) => one.levels.store_pending)), "writes pending")),
      rows.length ? [h("section", { class: "panel" }, h("h2", null, rows.some((one) => one.ring) ? "The ring, and its links" : "Links, and the tree among them"), h("div", { class: "scroll" }, drawing(rows)), h("p", { class: "dim small" }, rows.some((one) => one.ring) ? "Each broker owns cells of the globe; the live map shows them." : "★ leads the tree; thin lines are links beside it.")), h("div", { class: "grid" }, rows.sort((a, b) => (a.name < b.name ? -1 : 1)).map(card))]
        : h("section", { class: "panel" }, empty("No broker answers", "Start one with godwit serve, or name others with --brokers.")));
  };
  return { update };
}
