// Text files that are dropped on the page or chosen.

const LARGEST = 8 << 20;  // bytes that are read of a file

// The text of a file in UTF-8, UTF-16 or GB18030; null if it is not text.
export async function textOf(file) {
  const bytes = new Uint8Array(await file.slice(0, LARGEST).arrayBuffer());
  const marked = { "255,254": "utf-16le", "254,255": "utf-16be" }[bytes.slice(0, 2).join()];
  const rest = file.size > LARGEST;  // its end may cut a character
  for (const encoding of marked ? [marked] : ["utf-8", "gb18030"]) {
    try {
      const text = new TextDecoder(encoding, { fatal: true }).decode(bytes, { stream: rest });
      return text.includes("\0") ? null : text.replaceAll("\r\n", "\n");
    } catch { /* another encoding */ }
  }
  return null;
}
