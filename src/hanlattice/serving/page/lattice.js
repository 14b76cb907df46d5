// Draws a lattice: rows of characters, words as arcs above them, entities as bars below.

import { glyphs } from "./text.js";

const EM = 30, MARGIN = 10, GAP = 18, STEP = 12, HIGHEST = 96, LEVEL = 24;
const SVG = "http://www.w3.org/2000/svg";

// Symbols for white space, as in `hanlattice explain`.
const SHOWN = { "\n": "↵", "\r": "↵", "\t": "⇥", " ": "␣" };

function draw(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// reading: { characters, words, entities }; shares: the strength of each word relative to the strongest word, or null.
export function picture(reading, { width, colours, shares, isNew, title }) {
  const { characters, words, entities } = reading;
  const sizes = glyphs(characters);
  const wide = characters.map((c, i) => (sizes[i] ? EM * (c.codePointAt(0) < 0x1100 ? 0.62 : 1) : 0));
  const rows = breakRows(characters.length, wide, sizes, [...words, ...entities], width - 2 * MARGIN)
    .map(([start, end]) => row(start, end, wide, sizes, words, entities));
  const height = rows.reduce((sum, r) => sum + r.above + EM + r.below + GAP, MARGIN);
  const right = Math.max(...rows.map((r) => r.x[r.x.length - 1]), 0) + MARGIN;
  const svg = draw("svg", { width: right, height, viewBox: `0 0 ${right} ${height}`, role: "img", "aria-label": title });
  let top = MARGIN;
  for (const r of rows) {
    const line = top + r.above;
    for (const m of r.marks) svg.append(entityMark(r, m, line, colours(m.entity.label)));
    for (const { word, i } of r.arcs) svg.append(arc(r, word, i, line - 3, shares && shares[i], isNew(word.text)));
    for (let i = r.start; i < r.end; i++) {
      if (!sizes[i]) continue;
      const shown = characters.slice(i, i + sizes[i]).join("");
      const x = (r.x[i - r.start] + r.x[Math.min(i + sizes[i], r.end) - r.start]) / 2;
      const text = draw("text", { x, y: line + EM * 0.84, class: shown in SHOWN ? "char faint" : "char" });
      text.textContent = SHOWN[shown] ?? shown;
      svg.append(text);
    }
    top = line + EM + r.below + GAP;
  }
  return svg;
}

// Break n characters into rows [start, end) of at most `limit` pixels. A row ends where the break cuts the fewest words
// and entities, and never inside a glyph.
function breakRows(n, wide, sizes, ranges, limit) {
  const cut = new Array(n + 1).fill(0);
  for (const { start, end } of ranges) for (let at = start + 1; at < end; at++) cut[at]++;
  const found = [];
  for (let start = 0; start < n;) {
    let end = start, used = 0;
    while (end < n && (end === start || used + wide[end] <= limit)) used += wide[end++];
    if (end < n) {
      let best = 0;
      for (let at = end; at > start + (end - start) / 2; at--) {
        if (sizes[at] && (!best || cut[at] < cut[best])) best = at;
      }
      end = best || end;
    }
    found.push([start, end]);
    start = end;
  }
  return found.length ? found : [[0, 0]];
}

function row(start, end, wide, sizes, words, entities) {
  const x = [MARGIN];
  for (let i = start; i < end; i++) x.push(x[i - start] + wide[i]);
  const here = ({ start: s, end: e }) => s < end && e > start;
  const arcs = words.map((word, i) => ({ word, i })).filter(({ word }) => here(word));
  arcs.sort((a, b) => b.word.end - b.word.start - (a.word.end - a.word.start));  // short arcs last, on top, so that the mouse can point at them
  const marks = levels(entities.filter(here), start, end, x);
  const above = Math.max(0, ...arcs.map(({ word }) => height(word) * 0.75)) + 8;
  const below = marks.length ? 8 + LEVEL * (Math.max(...marks.map((m) => m.level)) + 1) : 2;
  return { start, end, x, arcs, marks, above, below };
}

const height = ({ start, end }) => Math.min(16 + STEP * (end - start - 1), HIGHEST) / 0.75;

const edges = (r, { start, end }) => [r.x[Math.max(start, r.start) - r.start], r.x[Math.min(end, r.end) - r.start]];

// Assign each entity, longest first, the highest level where it and its label do not overlap others.
function levels(entities, start, end, x) {
  const taken = [];
  return [...entities].sort((a, b) => b.end - b.start - (a.end - a.start) || a.start - b.start).map((entity) => {
    const [left, last] = edges({ start, end, x }, entity);
    const right = Math.max(last, left + 9 * entity.label.length);
    let level = taken.findIndex((spans) => spans.every(([a, b]) => right <= a || b <= left));
    if (level < 0) level = taken.push([]) - 1;
    taken[level].push([left, right]);
    return { entity, level };
  });
}

function arc(r, word, i, y, share, isNew) {
  const [left, right] = edges(r, word), top = y - height(word);
  const d = `M${left + 3} ${y}C${left + 3} ${top} ${right - 3} ${top} ${right - 3} ${y}`;
  const whole = r.start <= word.start && word.end <= r.end;
  const force = share === null || share === undefined ? 0.35 : Math.sqrt(share);
  const line = draw("path", { d, class: "line", "stroke-width": Math.max(1 + 4 * force, isNew ? 2 : 0), "stroke-opacity": 0.3 + 0.7 * force });
  if (!whole) line.setAttribute("stroke-dasharray", "5 4");
  const made = draw("g", { class: isNew ? "arc new" : "arc", "data-word": i }, line, draw("path", { d, class: "reach" }));
  return made;
}

function entityMark(r, { entity, level }, line, colour) {
  const [left, right] = edges(r, entity), y = line + EM + 6 + LEVEL * level;
  const made = draw("g", { class: "found" });
  made.style.setProperty("--c", colour);
  made.append(
    draw("rect", { class: "tint", x: left + 1, y: line - 1, width: right - left - 2, height: EM + 4, rx: 5 }),
    draw("rect", { class: "bar", x: left + 1, y, width: right - left - 2, height: 4, rx: 2 }),
  );
  if (r.start <= entity.start) {
    const label = draw("text", { class: "label", x: left + 2, y: y + 17 });
    label.textContent = entity.label;
    made.append(label);
  }
  return made;
}
