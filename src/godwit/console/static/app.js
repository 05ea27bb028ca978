// The frame: who is logged in, which view is shown, and what all views know of the brokers.
import { all, get, post, split } from "./api.js";
import { h, head, show, toast, total } from "./dom.js";
import * as cluster from "./views/cluster.js";
import * as clients from "./views/clients.js";
import * as map from "./views/map.js";
import * as problems from "./views/problems.js";
import * as bench from "./views/bench.js";
import * as backlogs from "./views/backlogs.js";
import * as handoffs from "./views/handoffs.js";
import * as data from "./views/data.js";
import * as users from "./views/users.js";
import * as wire from "./views/wire.js";
import * as archive from "./views/archive.js";
import * as structures from "./views/structures.js";
import * as context from "./views/context.js";
import * as audit from "./views/audit.js";
import * as reference from "./views/reference.js";

const EVERY_MS = 2000;
const KEPT = 90;
const VIEWS = { cluster, clients, map, problems, bench, backlogs, handoffs, data, users, wire, archive, structures, context, audit, reference };
const KEYS = { 1: "cluster", 2: "clients", 3: "map", 4: "problems", 5: "bench", 6: "backlogs", 7: "handoffs", 8: "data", 9: "users", 0: "wire", a: "archive", s: "structures", c: "context" };

// What views share. `brokers` is the last answer of each; `rates` what a second brought, by broker and name.
export const store = { me: null, brokers: new Map(), failed: new Map(), rates: new Map(), names: [] };
export const colour = (broker) => Math.max(0, store.names.indexOf(broker)) % 8;
export const dot = (broker) => h("span", { class: `dot c${colour(broker)}`, "aria-hidden": "true" });
export const operates = () => store.me?.role === "operator";

let shown = null, timer = 0, alive = true;
const main = document.getElementById("main");

const RATES = { published: "published", delivered: "delivered", dropped: "dropped", forwarded: "forwarded", refused: "refused" };

function note(name, row) {
  const before = store.brokers.get(name);
  store.brokers.set(name, row);
  const kept = store.rates.get(name) ?? Object.fromEntries(Object.keys(RATES).map((key) => [key, []]));
  store.rates.set(name, kept);
  const passed = before ? row.now - before.now : 0;
  if (passed <= 0.2) return;
  for (const key of Object.keys(RATES)) {
    const grown = total(row.counts[key]) - total(before.counts[key]);
    kept[key].push(Math.max(0, grown) / passed);
    if (kept[key].length > KEPT) kept[key].shift();
  }
}

export const rate = (name, key) => store.rates.get(name)?.[key].at(-1) ?? 0;
export const history = (name, key) => store.rates.get(name)?.[key] ?? [];

async function look() {
  try {
    const { good, bad } = split(await all("broker"));
    const here = new Set();
    for (const [name, row] of good) { note(row.name, row); here.add(row.name); }
    for (const name of [...store.brokers.keys()]) if (!here.has(name)) store.brokers.delete(name);
    store.failed = new Map(bad.map(([name, told]) => [name, told.text]));
    store.names = [...new Set([...store.brokers.keys(), ...store.failed.keys()])].sort();
    if (!alive) toast("The console answers again.");
    alive = true;
  } catch (error) {
    if (error.status === 401) return enter();
    if (alive) toast(error.message, "bad");
    alive = false;
  }
  frame();
  await refreshed();
  timer = setTimeout(look, EVERY_MS);
}

async function refreshed() {
  const mine = shown;
  try {
    await mine?.update?.();
  } catch (error) {
    if (error.status === 401) return enter();
    if (alive) toast(error.message, "bad");
  }
  if (mine === shown) main.querySelector(":scope > .asking")?.remove();
}

let framed = "";

function frame() {
  const troubled = [...store.brokers.values()].filter((one) => one.troubles.length).length + store.failed.size;
  const { me } = store;
  const now = JSON.stringify([troubled, alive, store.names, me.user, me.role, location.hash]);
  if (now === framed) return;
  framed = now;
  show(document.getElementById("top"),
    h("img", { src: "/static/icon.svg", alt: "" }), h("a", { class: "brand", href: "#/cluster" }, "Godwit"),
    h("span", { class: `pill ${troubled ? "bad" : alive ? "ok" : "warn"}`, id: "health" },
      !alive ? "no answer" : troubled ? `${troubled} of ${store.names.length} in trouble` : `${store.names.length} ${store.names.length === 1 ? "broker" : "brokers"} well`),
    h("span", { class: "grow" }),
    h("span", { class: "who" }, me.user || "this machine", h("span", { class: "dim hide-small" }, ` · ${me.role}`)),
    me.named && h("button", { "data-key": "logout", onclick: leave }, "Log out"));
  const path = location.hash.split("/")[1] || "cluster";
  const current = path === "client" ? "clients" : path;
  show(document.getElementById("nav"), Object.entries(VIEWS).map(([name, view]) => {
    const key = Object.keys(KEYS).find((one) => KEYS[one] === name) ?? "";
    return h("a", { href: `#/${name}`, "data-key": `nav-${name}`, "aria-current": name === current && "page" },
      h("span", { class: "key", "aria-hidden": "true" }, key), view.title, name === "cluster" && troubled > 0 && h("span", { class: "count" }, troubled));
  }));
  const nav = document.getElementById("nav"), here = nav.querySelector("[aria-current]");
  if (here && nav.scrollWidth > nav.clientWidth) nav.scrollLeft = here.offsetLeft - nav.clientWidth / 3;
}

function go() {
  const [, path, ...rest] = (location.hash || "#/cluster").split("/");
  const view = path === "client" ? clients : VIEWS[path] ?? cluster;
  shown?.stop?.();
  const argument = rest.length ? decodeURIComponent(rest.join("/")) : "";
  document.title = `${view.title} · Godwit console`;
  main.replaceChildren();
  shown = view.start(main, argument) ?? {};
  // Brokers may be far away or busy: whoever waits is told so, under the title of the view.
  if (shown.update) main.append(h("div", { class: "asking" }, !main.querySelector("h1") && head(argument || view.title, ""), h("p", { class: "empty", role: "status" }, "Asking the brokers.")));
  frame();
  refreshed();
}

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  if (event.key === "/") {
    event.preventDefault();
    if (!main.querySelector("input[type=search]")) location.hash = "#/clients";
    setTimeout(() => main.querySelector("input[type=search]")?.focus(), 50);
  } else if (KEYS[event.key]) location.hash = `#/${KEYS[event.key]}`;
}

async function leave() {
  await post("logout", {}).catch(() => {});
  enter();
}

function enter(problem = "") {
  clearTimeout(timer);
  shown?.stop?.();
  shown = null;
  store.brokers.clear(); store.rates.clear();
  document.body.classList.add("plain");
  document.getElementById("top").replaceChildren();
  framed = "";
  const error = h("p", { class: "note bad", role: "alert", hidden: !problem }, problem);
  const form = h("form", { class: "panel login", onsubmit: async (event) => {
    event.preventDefault();
    const said = Object.fromEntries(new FormData(form));
    form.querySelector("button").disabled = true;
    try { await post("login", said); location.reload(); } catch (failure) {
      error.textContent = failure.message; error.hidden = false; form.querySelector("button").disabled = false; form.querySelector("[name=password]").select();
    }
  } },
    h("h1", null, "Godwit console"), h("p", { class: "dim" }, "Log in as a user of the brokers' users file that has a role."), error,
    h("label", null, "User", h("input", { name: "user", autocomplete: "username", required: true })),
    h("label", null, "Password", h("input", { name: "password", type: "password", autocomplete: "current-password", required: true })),
    h("button", { class: "primary" }, "Log in"));
  main.replaceChildren(form);
  form.querySelector("input").focus();
}

async function begin() {
  let me;
  try { me = await get("me"); } catch (error) { me = { role: "", problem: error.message }; }
  if (!me.role) return enter(me.problem);
  store.me = me;
  document.body.classList.remove("plain");
  clearTimeout(timer);
  try { await look(); } finally { if (!shown && document.body.classList.contains("plain") === false) go(); }
}

addEventListener("hashchange", () => { if (store.me && !document.body.classList.contains("plain")) { go(); main.focus(); } });
addEventListener("keydown", pressed);
begin();
