// Who did what.
import { all, split } from "../api.js";
import { date, empty, h, head, show, table } from "../dom.js";
import { dot } from "../app.js";

export const title = "Audit log";

export function start(root) {
  const body = h("div");
  root.append(body);
  const update = async () => {
    const { good } = split(await all("audit"));
    const rows = good.flatMap(([broker, told]) => told.rows.map((one) => ({ ...one, broker }))).sort((a, b) => b.time - a.time).slice(0, 300);
    show(body, head(title, "Every action on a broker, whoever asked for it."), h("section", { class: "panel flush" }, table([["When", (row) => date(row.time), "nowrap"], ["Who", (row) => `${row.user || "this machine"} from ${row.address}`, "wrap"], ["Action", (row) => row.action], ["On", (row) => [row.target && h("span", { class: "mono" }, row.target, " "), h("span", { class: "nowrap" }, dot(row.broker), row.broker)], "wrap"], ["Result", (row) => row.result, "wrap"]], rows, empty("Nothing was done", "Actions of operators are written here before they are done."))));
  };
  return { update };
}
