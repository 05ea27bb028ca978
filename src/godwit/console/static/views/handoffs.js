// How clients move between brokers: who goes where, how often a copy was there, how long it took.
import { all, split } from "../api.js";
import { clock, count, empty, h, head, lasting, link, many, s, show, stat, table } from "../dom.js";
import { colour, dot } from "../app.js";

export const title = "Handoffs";
// One of each, in the words of whoever runs brokers.
const UNDER_WAY = { shadows: "departed session", "clients that wait": "waiting client", turns: "announced move", "brokers to be asked": "outstanding answer", "ways and gates": "changing stream", "held back": "held event", memories: "older part", reservations: "reservation", crossings: "crossing" };

const LABELS = ["1 ms", "3", "10", "30", "100", "300", "1 s", "3 s", "10 s"];
const quantile = (sorted, part) => (sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] : NaN);
const at = (angle, radius) => [radius * Math.sin(angle), -radius * Math.cos(angle)].map((one) => one.toFixed(2)).join(",");

// A chord diagram: each broker an arc as long as its moves, each way a ribbon as wide as its moves.
function chord(flows) {
  const names = [...new Set(flows.flatMap((one) => [one.from, one.to]))].sort();
  const size = new Map(names.map((name) => [name, 0]));
  for (const one of flows) { size.set(one.from, size.get(one.from) + one.uses); size.set(one.to, size.get(one.to) + one.uses); }
  const whole = [...size.values()].reduce((a, b) => a + b, 0), gap = names.length > 1 ? 0.06 : 0;
  const turn = (2 * Math.PI - gap * names.length) / whole;
  const cursor = new Map(), arcs = [];
  let angle = 0;
  for (const name of names) {
    const end = angle + size.get(name) * turn, middle = (angle + end) / 2;
    cursor.set(name, angle);
    arcs.push(s("path", { class: `f${colour(name)}`, d: `M${at(angle, 150)}A150,150 0 ${end - angle > Math.PI ? 1 : 0} 1 ${at(end, 150)}L${at(end, 138)}A138,138 0 ${end - angle > Math.PI ? 1 : 0} 0 ${at(angle, 138)}Z` }),
      s("text", { x: 164 * Math.sin(middle), y: -164 * Math.cos(middle) + 4, "text-anchor": Math.abs(Math.sin(middle)) < 0.2 ? "middle" : Math.sin(middle) > 0 ? "start" : "end" }, name));
    angle = end + gap;
  }
  const take = (name, uses) => { const begin = cursor.get(name); cursor.set(name, begin + uses * turn); return [begin, begin + uses * turn]; };
  const ribbons = flows.map((one) => {
    const [a, b] = take(one.from, one.uses), [c, d] = take(one.to, one.uses);
    return s("path", { class: `ribbon f${colour(one.from)}`, tabindex: 0, d: `M${at(a, 136)}A136,136 0 0 1 ${at(b, 136)}Q0,0 ${at(c, 136)}A136,136 0 0 1 ${at(d, 136)}Q0,0 ${at(a, 136)}Z` }, s("title", null, `${one.from} to ${one.to}: ${count(one.uses)} moves`));
  });
  return s("svg", { class: "drawing chord", viewBox: "-230 -185 460 370", role: "img", "aria-label": "Who goes where" }, ribbons, arcs);
}

export function start(root) {
  const body = h("div");
  root.append(body);
  const update = async () => {
    const { good } = split(await all("handoffs"));
    const flows = good.flatMap(([from, told]) => told.flows.filter((one) => one.uses).map((one) => ({ from, ...one })));
    const seconds = good.flatMap(([, told]) => told.seconds).sort((a, b) => a - b);
    const left = good.reduce((sum, [, told]) => sum + told.report.handoffs, 0), hits = good.reduce((sum, [, told]) => sum + told.report.handoffs * told.report.hit_rate, 0);
    const moves = good.flatMap(([to, told]) => told.moves.map((one) => ({ ...one, to }))).sort((a, b) => b.time - a.time).slice(0, 50);
    const unfinished = good.map(([broker, told]) => [broker, Object.entries(told.unfinished)]).filter(([, parts]) => parts.length);
    const bars = [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, Infinity], heights = bars.map((top, place) => seconds.filter((one) => one < top && one >= (bars[place - 1] ?? 0)).length), most = Math.max(1, ...heights);
    show(body, head(title, "Clients that went from one broker to another."),
      h("div", { class: "stats" }, stat(count(left), "left in the last hour"), stat(left ? `${Math.round((100 * hits) / left)} %` : "–", "found a copy"), stat(lasting2(quantile(seconds, 0.5)), "median wait"), stat(lasting2(quantile(seconds, 0.95)), "95 % within"), stat(lasting2(quantile(seconds, 0.99)), "99 % within"), stat(count(good.reduce((sum, [, told]) => sum + told.report.copies_held, 0)), "copies held")),
      h("div", { class: "two" },
        h("section", { class: "panel" }, h("h2", null, "Who goes where"), flows.length ? [chord(flows), h("p", { class: "dim small" }, "A ribbon has the colour of the broker that clients leave.")] : empty("Nobody has moved yet", "Brokers learn from moves where clients go next.")),
        h("div", null, h("section", { class: "panel" }, h("h2", null, `How long clients waited (${count(seconds.length)})`), seconds.length ? s("svg", { class: "drawing bars", viewBox: "0 0 400 150", role: "img", "aria-label": "Histogram of waits" }, heights.map((many, place) => s("g", null, s("rect", { class: "f0", x: place * 40 + 4, width: 32, y: 120 - (many / most) * 100, height: (many / most) * 100 }), s("text", { x: place * 40 + 20, y: 137, "text-anchor": "middle" }, bars[place] === Infinity ? "more" : LABELS[place]), many > 0 && s("text", { x: place * 40 + 20, y: 115 - (many / most) * 100, "text-anchor": "middle" }, count(many))))) : empty("No waits yet", "Measured from when a broker knows who it is until the client is in.")),
          h("section", { class: "panel" }, h("h2", null, "Under way"), unfinished.length ? h("dl", { class: "plain" }, unfinished.map(([broker, parts]) => [h("dt", null, dot(broker), broker), h("dd", null, parts.map(([what, number]) => many(number, UNDER_WAY[what] ?? what)).join(", "))])) : empty("Nothing", "All handoffs have ended.")))),
      h("section", { class: "panel flush" }, h("h2", null, "Last moves"), table([["When", (row) => clock(row.time)], ["Client", (row) => h("a", { href: link(row.client), class: "mono", "data-key": `${row.client}${row.time}` }, row.client), "wrap"], ["From", (row) => [dot(row.source), row.source]], ["To", (row) => [dot(row.to), row.to]], ["Waited", (row) => lasting(row.seconds), "num"]], moves, empty("None", "Since the brokers started."))));
  };
  return { update };
}

const lasting2 = (seconds) => (Number.isNaN(seconds) ? "–" : lasting(seconds));
