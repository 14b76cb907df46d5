// What the page gives to other programs: a link to itself, and the request and response as JSON, Python and curl.

const LONGEST = 2000;  // code points of a text that a link holds

// The fragment of a link; it never reaches the server. Empty for a text that is too long.
export function fragmentOf({ text, convention, added, removed, threshold }) {
  if (!text || Array.from(text).length > LONGEST) return "";
  const facts = new URLSearchParams({ text });
  if (convention) facts.set("convention", convention);
  if (added.size) facts.set("words", JSON.stringify([...added]));
  if (removed.size) facts.set("removed", JSON.stringify([...removed]));
  if (threshold) facts.set("threshold", threshold);
  return `#${facts}`;
}

// The opposite; null if the fragment holds no text. Whatever cannot be understood is left out.
export function readFragment(fragment) {
  const facts = new URLSearchParams(fragment.replace(/^#/, ""));
  if (!facts.has("text")) return null;
  const threshold = Number(facts.get("threshold"));
  return {
    text: facts.get("text"),
    convention: facts.get("convention") ?? "",
    added: new Map(pairs(facts.get("words"))),
    removed: new Set(list(facts.get("removed")).filter((word) => typeof word === "string" && word)),
    threshold: threshold > 0 && threshold <= 1 ? threshold : 0,
  };
}

function list(json) {
  try {
    const found = JSON.parse(json ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

const pairs = (json) => list(json)
  .filter((row) => Array.isArray(row) && typeof row[0] === "string" && row[0] && row[1] && typeof row[1] === "object")
  .map(([word, how]) => [word, { label: typeof how.label === "string" ? how.label : "", always: how.always === true }]);

export const asJson = (request, entities) => JSON.stringify({ text: request.text, entities }, null, 2);

export function asCurl(request, address, hasToken) {
  const body = JSON.stringify(request).replaceAll("'", "'\\''");
  const token = hasToken ? " -H 'Authorization: Bearer …'" : "";
  return `curl ${address} -H 'Content-Type: application/json'${token} -d '${body}'`;
}

// A program that gets the same entities from the library; a JSON string is also a string of Python.
export function asPython(request) {
  const { text, convention, lexicon, force, threshold } = request;
  const quoted = (value) => JSON.stringify(value);
  const options = [
    ...(force ? [`force=${quoted(force)}`] : []),
    ...(threshold ? [`threshold=${threshold}`] : []),
  ].join(", ");
  const words = (lexicon?.words ?? []).map((word) => (
    typeof word === "string" ? `ner.lexicon.add(${quoted(word)})` : `ner.lexicon.add(${quoted(word.text)}, label=${quoted(word.label)})`
  ));
  return [
    "import hanlattice",
    "",
    `ner = hanlattice.load(${convention ? `convention=${quoted(convention)}` : ""})  # or load("FOLDER") for a model of your own`,
    ...(lexicon?.remove ?? []).map((word) => `ner.lexicon.remove(${quoted(word)})`),
    ...words,
    ...(options ? [`with ner.using(${options}):`, `    document = ner(${quoted(text)})`] : [`document = ner(${quoted(text)})`]),
    "for entity in document.entities:",
    "    print(entity.start, entity.end, entity.text, entity.label, entity.score)",
    "",
  ].join("\n");
}

// Copy a text; outside of secure pages, browsers offer only the old way.
export async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const area = document.createElement("textarea");
  area.value = text;
  area.setAttribute("aria-hidden", "true");
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  if (!done) throw new Error("the browser does not copy");
}
