// The HTTP API of each broker, as its description says.
import { get } from "../api.js";
import { h, head, pill } from "../dom.js";

export const title = "API";

function fields(schema, components) {
  const name = schema?.$ref?.split("/").at(-1);
  const found = name ? components[name] : schema;
  const entries = Object.entries(found?.properties ?? {});
  const kind = (one) => one.$ref?.split("/").at(-1) ?? one.type ?? one.anyOf?.map(kind).join(" or ") ?? "any";
  return entries.length ? h("dl", { class: "plain small" }, entries.map(([key, one]) => [h("dt", { class: "mono" }, key), h("dd", { class: "dim" }, one.items ? `list of ${kind(one.items)}` : kind(one))])) : null;
}

export function start(root) {
  const body = h("div");
  root.append(head(title, "Every broker answers this at its http address, with a user and a password.", h("a", { href: "/api/openapi.json" }, "openapi.json")), body);
  get("openapi.json").then((told) => {
    body.append(h("section", { class: "panel" }, h("code", null, `curl -u ann http://127.0.0.1:9885/v1/clients?search=van`)), ...Object.entries(told.paths).map(([path, methods]) => {
      const [[method, one]] = Object.entries(methods);
      return h("details", { class: "panel" }, h("summary", null, pill(method.toUpperCase(), method === "post" ? "warn" : "ok"), " ", h("code", null, path), " ", h("span", { class: "dim" }, one.summary)),
        h("p", { class: "dim small" }, `Needs the role ${one["x-role"]}.`), one.parameters && [h("h2", null, "Query"), h("dl", { class: "plain small" }, one.parameters.map((part) => [h("dt", { class: "mono" }, part.name), h("dd", null, part.description)]))],
        one.requestBody && [h("h2", null, "Body"), fields(one.requestBody.content["application/json"].schema, told.components.schemas)], h("h2", null, "Answer"), fields(one.responses["200"].content["application/json"].schema, told.components.schemas));
    }));
  });
  return {};
}
