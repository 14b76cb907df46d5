// The text with its entities marked. All of it is set as text, never as markup.

import { kind, say } from "./words.js";

export function element(name, facts = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(facts)) {
    if (key === "class") made.className = value;
    else if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// The text is cut at the borders of entities; each part lies inside the marks of all entities that cover it, the longest
// outside. The first part of an entity can be focused by the keyboard, and its last part shows the label.
export function mark(chars, entities, colours) {
  const borders = new Set([0, chars.length]);
  for (const { start, end } of entities) borders.add(start).add(end);
  const cuts = [...borders].sort((a, b) => a - b);
  const ordered = entities.map((entity, i) => ({ entity, i }))
    .sort((a, b) => a.entity.start - b.entity.start || b.entity.end - a.entity.end);
  const made = document.createDocumentFragment();
  let first = 0;
  for (let n = 0; n + 1 < cuts.length; n++) {
    const [start, end] = [cuts[n], cuts[n + 1]];
    while (first < ordered.length && ordered[first].entity.end <= start) first++;
    const over = [];
    for (let k = first; k < ordered.length && ordered[k].entity.start <= start; k++) {
      if (ordered[k].entity.end > start) over.push(ordered[k]);
    }
    let piece = document.createTextNode(chars.slice(start, end).join(""));
    for (const { entity, i } of over.reverse()) piece = wrapped(piece, entity, i, start, end, colours);
    made.append(piece);
  }
  return made;
}

function wrapped(piece, entity, i, start, end, colours) {
  const made = element("mark", { class: "entity" }, piece);
  made.dataset.entity = i;
  made.style.setProperty("--c", colours(entity.label));
  if (entity.start === start) {
    made.tabIndex = -1;
    made.setAttribute("role", "button");
    made.setAttribute("aria-label", say("entity", entity, kind(entity.label)));
  }
  if (entity.end === end) made.append(element("small", { textContent: entity.label }));
  return made;
}
