// Where things are, where subscriptions look, where clients go: live.
import { all, one, split } from "../api.js";
import { count, h, head } from "../dom.js";
import { colour, store } from "../app.js";
import { Globe } from "../globe.js";

export const title = "Live map";
const THINGS_MS = 1000, AREAS_MS = 6000;

function palette() {
  const read = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return { panel: read("--panel"), line: read("--line"), dim: read("--faint"), text: read("--text"), brokers: [0, 1, 2, 3, 4, 5, 6, 7].map((at) => read(`--c${at}`)) };
}

export function start(root) {
  const canvas = h("canvas", { tabindex: 0, role: "img", "aria-label": "Map; arrows move it, plus and minus zoom", "data-key": "map" });
  const tip = h("div", { class: "tip", hidden: true }), legend = h("div", { class: "legend" });
  const globe = new Globe(canvas, palette());
  const boxes = [["things", "positions"], ["areas", "subscription areas"], ["cells", "cells of interest"], ["arcs", "roaming"], ["brokers", "brokers"]].map(([key, text]) =>
    h("label", { class: "check" }, h("input", { type: "checkbox", checked: true, onchange: (event) => { globe.layers[key] = event.target.checked; } }), text));
  root.append(head(title, "What was published with a latitude and a longitude, since this view was opened."), h("div", { class: "row panel" }, boxes),
    h("div", { class: "map" }, canvas, h("div", { class: "tools" }, h("button", { "aria-label": "Zoom in", onclick: () => globe.zoomBy(1) }, "+"), h("button", { "aria-label": "Zoom out", onclick: () => globe.zoomBy(-1) }, "−"), h("button", { "aria-label": "Show everything", onclick: () => { globe.moved = false; globe.fitted = false; } }, "⤢")), legend, tip));
  const details = [], since = new Map();
  let stopped = false, seen = 0, places = new Map(), reach = new Map(), areas = 0, asked = false;
  const scheme = matchMedia("(prefers-color-scheme: dark)"), recolour = () => { globe.colours = palette(); };
  scheme.addEventListener("change", recolour);
  globe.onhover = (event) => {
    const at = globe.near(event.offsetX, event.offsetY);
    tip.hidden = at < 0;
    if (at >= 0) { const one = details[at]; tip.textContent = `${globe.names[at]} · ${one.topic} · at ${one.broker}`; tip.style.left = `${Math.min(event.offsetX + 12, canvas.clientWidth - 200)}px`; tip.style.top = `${event.offsetY + 12}px`; }
  };

  async function things() {
    if (stopped) return;
    await Promise.all([...store.brokers.keys()].map(async (broker) => {
      const told = await one(broker, "things", { since: since.get(broker) ?? 0 }).catch(() => null);
      if (!told || stopped) return;
      since.set(broker, told.serial);
      const now = performance.now();
      let x = 0, y = 0;
      for (const [name, lat, lon, , topic] of told.things) { details[globe.thing(name, lat, lon, colour(broker), now)] = { topic, broker }; x += lon; y += lat; }
      if (told.things.length) reach.set(broker, [y / told.things.length, x / told.things.length]);
    }));
    told();
    if (!stopped) setTimeout(things, THINGS_MS);
  }

  async function slow() {
    if (stopped) return;
    const { good } = split(await all("areas").catch(() => ({})));
    globe.areas = good.flatMap(([broker, one]) => one.areas.map((area) => ({ ...area, owner: colour(broker) })));
    globe.cells = good.flatMap(([broker, one]) => one.interest.map((area) => ({ ...area, owner: colour(broker) })));
    // In a ring every broker owns cells of the globe, told as longitudes and latitudes, each from and to.
    for (const [name, row] of store.brokers) for (const { box } of row.ring?.cells ?? []) globe.cells.push({ box: [box[1][0], box[0][0], box[1][1], box[0][1]], owner: colour(name) });
    areas = good.reduce((sum, [, one]) => sum + one.total, 0);
    asked = true;
    told();
    // A broker stands where its configuration says, else in the middle of what is published there.
    places = new Map();
    for (const [name, row] of store.brokers) { const place = row.place ?? reach.get(name); if (place) places.set(name, place); }
    globe.brokers = [...places].map(([name, [lat, lon]]) => ({ name, lat, lon, owner: colour(name), radius: spread(name, lat, lon) }));
    const moves = split(await all("handoffs").catch(() => ({}))).good;
    globe.arcs = moves.flatMap(([to, one]) => {
      const ways = new Map();
      for (const move of one.moves) ways.set(move.source, (ways.get(move.source) ?? 0) + 1);
      return [...ways.keys()].filter((from) => places.has(from) && places.has(to)).map((from, at) => ({ from: places.get(from), to: places.get(to), owner: colour(to), phase: at * 0.37 }));
    });
    if (!stopped) setTimeout(slow, AREAS_MS);
  }

  // How far what is published at a broker lies from it, in metres: what it covers.
  function spread(name, lat, lon) {
    let most = 0;
    for (let at = 0; at < details.length; at++) if (details[at]?.broker === name) {
      const dx = (globe.toX[at] * 360 - 180 - lon) * Math.cos((lat * Math.PI) / 180), dy = (Math.atan(Math.sinh(Math.PI * (1 - 2 * globe.toY[at]))) * 180) / Math.PI - lat;
      most = Math.max(most, Math.hypot(dx, dy));
    }
    return most * 111320;
  }

  function told() {
    if (!globe.moved && (globe.names.length > seen * 1.2 || !seen)) { globe.fit(); seen = globe.names.length; }
    const cost = [...globe.costs].sort((a, b) => a - b)[Math.floor(globe.costs.length / 2)] ?? 0;
    canvas.dataset.things = globe.names.length; canvas.dataset.cost = cost.toFixed(2); canvas.dataset.frames = globe.frames;
    legend.textContent = globe.names.length || areas ? `${count(globe.names.length)} things, ${count(areas)} areas; a frame takes ${cost.toFixed(1)} ms` : asked ? "Nothing was published with lat and lon yet, and no subscription looks at an area." : "Asking the brokers.";
  }

  things();
  setTimeout(slow, 1500);
  return { stop: () => { stopped = true; globe.stop(); scheme.removeEventListener("change", recolour); } };
}
