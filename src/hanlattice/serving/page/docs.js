// Renders the OpenAPI description as a page.

import { element } from "./marked.js";

const description = await (await fetch("openapi.json")).json();
const schemas = description.components.schemas;
const named = ($ref) => $ref.split("/").pop();

// A type in a few words; named types are links.
function kind(schema = {}) {
  if (schema.$ref) {
    const name = named(schema.$ref);
    return [element("a", { href: `#${name}`, textContent: name })];
  }
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices && !schema.properties) return choices.flatMap((one, i) => (i ? [" or ", ...kind(one)] : kind(one)));
  if (schema.type === "array" && schema.prefixItems) return ["pair"];
  if (schema.type === "array") return ["list of ", ...kind(schema.items), ...bound("at most ", schema.maxItems)];
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(", ")];
  if (schema.type === "object") {
    const values = schema.additionalProperties ?? Object.values(schema.patternProperties ?? {})[0];
    return typeof values === "object" ? ["object of ", ...kind(values)] : ["object"];
  }
  const range = "minimum" in schema ? [` ${schema.minimum} to ${schema.maximum}`] : [];
  return [schema.type ?? "anything", ...range, ...bound("at most ", schema.maxLength, " characters")];
}

const bound = (before, value, after = "") => (value === undefined ? [] : [`, ${before}${value}${after}`]);

function table(rows) {
  return element("table", {}, element("tbody", {}, ...rows.map(([name, ...cells]) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...cells.map((cell) => element("td", {}, ...cell))))));
}

function route(path, method, operation) {
  const card = element("section", { class: "card" }, element("h2", { textContent: `${method.toUpperCase()} ${path}` }));
  card.append(element("p", { textContent: operation.description ?? operation.summary }));
  const body = operation.requestBody?.content["application/json"].schema;
  const rows = (operation.parameters ?? []).map((p) => [p.name, kind(p.schema), [p.description ?? ""]]);
  if (body) rows.push(["body", kind(body), [""]]);
  if (rows.length) card.append(table(rows));
  card.append(table(Object.entries(operation.responses).map(([status, { description: why, content = {} }]) =>
    [status, kind(Object.values(content)[0]?.schema ?? { type: "nothing" }), [why]])));
  return card;
}

function type(name, schema) {
  const card = element("section", { class: "card", id: name }, element("h2", { textContent: name }));
  card.append(element("p", { textContent: schema.description ?? "" }));
  const needed = new Set(schema.required ?? []);
  card.append(table(Object.entries(schema.properties ?? {}).map(([field, one]) =>
    [needed.has(field) ? `${field} (required)` : field, kind(one), [one.description ?? ""]])));
  return card;
}

for (const [path, operations] of Object.entries(description.paths)) {
  for (const [method, operation] of Object.entries(operations)) {
    document.getElementById("routes").append(route(path, method, operation));
  }
}
for (const [name, schema] of Object.entries(schemas)) document.getElementById("routes").append(type(name, schema));
