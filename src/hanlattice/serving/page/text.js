// Texts as the service counts them: in code points, of which JavaScript's strings may hold two units each.

export const characters = (text) => Array.from(text);

// Letters for a lone surrogate, which no service takes: it becomes U+FFFD, one code point as well.
export const wellFormed = (text) => text.toWellFormed ? text.toWellFormed() : text.replace(/\p{Cs}/gu, "\ufffd");

const ENDS = new Set("。！？；!?;\n");
const LONGEST = 100;

// Stretches [start, end) of whole sentences, each short enough to be drawn; a longer sentence is cut.
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

// For each code point the number of those that are drawn as one with it, counted at the first: 0 at the others.
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
