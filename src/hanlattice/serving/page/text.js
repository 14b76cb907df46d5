// Texts in code points, as the service counts them; in JavaScript strings, one code point can be two units.

export const characters = (text) => Array.from(text);

// Replace lone surrogates, which the service rejects, by U+FFFD, which is one code point too.
export const wellFormed = (text) => text.toWellFormed ? text.toWellFormed() : text.replace(/\p{Cs}/gu, "\ufffd");

const ENDS = new Set("。！？；!?;\n");
const LONGEST = 100;

// Spans [start, end) of whole sentences, each short enough to be drawn; longer sentences are cut.
export function passages(chars) {
  const found = [];
  let start = 0, end = 0;
  for (let i = 0; i < chars.length; i++) {
    const last = i + 1 === chars.length;
    if (!last && !ENDS.has(chars[i]) && i + 1 - end < LONGEST) continue;
    if (i + 1 - start > LONGEST && end > start) {
      found.push([start, end]);
      start = end;
    }
    end = i + 1;
  }
  if (end > start || !found.length) found.push([start, end]);
  return found;
}

// The number of code points of each grapheme, at its first code point; 0 at the others.
export function glyphs(chars) {
  const sizes = new Array(chars.length).fill(0);
  let at = 0;
  const segmenter = new Intl.Segmenter("zh", { granularity: "grapheme" });
  for (const { segment } of segmenter.segment(chars.join(""))) {
    const size = characters(segment).length;
    sizes[at] = size;
    at += size;
  }
  return sizes;
}
