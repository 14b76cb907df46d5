"use strict";
const form = document.forms[0];
const rows = Array.from(document.querySelectorAll(".errors > li"));
const texts = rows.map(row => row.textContent.toLowerCase());
function filter() {
  const kinds = new Set(Array.from(form.querySelectorAll("[name=kind]:checked"), box => box.value));
  const label = form.elements.label.value;
  const text = form.elements.text.value.trim().toLowerCase();
  const nested = form.elements.nested && form.elements.nested.checked;
  let shown = 0;
  rows.forEach((row, i) => {
    const { kind, gold, found } = row.dataset;
    const fits = kinds.has(kind) && (!label || gold === label || found === label)
      && (!nested || "nested" in row.dataset) && (!text || texts[i].includes(text));
    row.hidden = !fits;
    shown += fits;
  });
  form.querySelector("output").textContent = shown + " / " + rows.length;
}
form.addEventListener("input", filter);
form.addEventListener("submit", event => event.preventDefault());
form.hidden = false;
filter();
