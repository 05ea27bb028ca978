// What is kept of what was published, and who follows it.
import { all, split } from "../api.js";
import { bytes, clock, count, empty, h, head, show, stat, table } from "../dom.js";
import { dot } from "../app.js";

export const title = "Archive";

export function start(root) {
  const body = h("div");
  root.append(body);
  const update = async () => {
    const { good } = split(await all("archive"));
    const kept = good.filter(([, told]) => told);
    const followers = kept.flatMap(([broker, told]) => told.followers.map((one) => ({ ...one, broker })));
    const files = kept.flatMap(([broker, told]) => told.files.map((one) => ({ ...one, broker }))).sort((a, b) => (a.name < b.name ? 1 : -1));
    const sum = (key) => kept.reduce((all, [, told]) => all + told[key], 0);
    show(body, head(title, "What brokers keep of what was published, as Parquet."),
      kept.filter(([, told]) => told.failure).map(([broker, told]) => h("p", { class: "note bad" }, `${broker}: ${told.failure}`)),
      !kept.length ? h("section", { class: "panel" }, empty("No broker keeps an archive", "Start one with --archive DIR; data jobs follow it with --archive-listen.")) : [
        h("div", { class: "stats" }, stat(bytes(sum("bytes")), "on the disk"), stat(count(sum("rows")), "rows"), stat(count(files.length), "files"), stat(count(followers.length), "followers"), stat(count(Math.max(0, ...followers.map((one) => one.behind))), "rows behind, at most")),
        h("section", { class: "panel flush" }, h("h2", null, "Followers"), table([["Who", (row) => row.user || "anonymous", "wrap"], ["Address", (row) => row.address], ["Broker", (row) => [dot(row.broker), row.broker]], ["Reads", (row) => row.kind], ["Asked last", (row) => clock(row.seen)], ["Rows behind", (row) => count(row.behind), "num"]], followers, empty("Nobody follows", "Since the brokers started."))),
        h("section", { class: "panel flush" }, h("h2", null, "Files"), table([["Name", (row) => h("span", { class: "mono" }, row.name), "wrap"], ["Broker", (row) => [dot(row.broker), row.broker]], ["Rows", (row) => count(row.rows), "num"], ["Size", (row) => bytes(row.bytes), "num"]], files, empty("No files yet", "The first rows make one.")))]);
  };
  return { update };
}
