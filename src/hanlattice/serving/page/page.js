// The page: sends the typed text to the service and shows the response. Texts are set as text, never as markup.

import { picture } from "./lattice.js";
import { textOf } from "./files.js";
import { element, mark } from "./marked.js";
import { asCurl, asJson, asPython, copy, fragmentOf, readFragment } from "./share.js";
import { characters, passages, wellFormed } from "./text.js";
import { convention, kind, percent, say, speak, spoken } from "./words.js";

// Each with the convention that it shows, for models that have it.
const EXAMPLES = [
  ["雷军在北京发布小米14，央视直播，网友却在看世界杯和流浪地球2", "open"],
  ["患者因急性阑尾炎入院，腹部CT提示阑尾增粗，予头孢曲松抗感染治疗。", "medical"],
  ["王芳，女，汉族，中共党员，清华大学工学博士，现任东方科技股份有限公司董事长兼总经理。", "resume"],
  ["听说纪老六把店开到了落雁坡，连云栖数科的人都去打卡", "open"],
  ["香港中文大學的陳教授上週飛往臺北，在國立故宮博物院演講。", "open"],
  ["😀张伟在上海开了一家叫“鹅厂”的咖啡馆。", "open"],
];
const PAUSE = 250;  // ms after the last key

const $ = (id) => document.getElementById(id);
const state = {
  model: { conventions: {}, colours: {}, max_chars: 10000 }, convention: "", added: new Map(), removed: new Set(), token: "",
  chosen: false, suggestedFor: "", request: null, chars: [], entities: [], milliseconds: null, passages: [[0, 0]], passage: 0, reading: null,
};

const colours = (label) => state.model.colours[label] ?? "#999999";
const labels = () => state.model.conventions[state.convention] ?? [];

class ServiceError extends Error {
  constructor(message, status, retryAfter) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

async function send(path, body, signal) {
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  const options = body
    ? { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body), signal }
    : { headers, signal };
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    throw error.name === "AbortError" ? error : new ServiceError(say("unreachable"), 0, 3);
  }
  const content = await response.json().catch(() => ({}));
  signal?.throwIfAborted();
  if (response.ok) return content;
  const fields = (content.fields ?? []).map(({ field, problem }) => `${field}: ${problem}`).join("; ");
  const why = [content.error ?? say("failed"), fields].filter(Boolean).join(" — ");
  throw new ServiceError(why, response.status, Number(response.headers.get("Retry-After")) || 0);
}

function requestOf(text) {
  const added = [...state.added];
  const words = added.map(([word, { label }]) => (label ? { text: word, label } : word));
  const forced = added.filter(([, { label, always }]) => always && labels().includes(label));
  const force = Object.fromEntries(forced.map(([word, { label }]) => [word, label]));
  const remove = [...state.removed];
  const threshold = Number($("threshold").value);
  return {
    text,
    ...(state.convention ? { convention: state.convention } : {}),
    ...(words.length || remove.length ? { lexicon: { words, remove } } : {}),
    ...(Object.keys(force).length ? { force } : {}),
    ...(threshold ? { threshold } : {}),
  };
}

let pending = new AbortController(), pause = 0;

function soon(wait = PAUSE) {
  clearTimeout(pause);
  $("answer").setAttribute("aria-busy", "true");  // what is shown belongs to an earlier text
  pause = setTimeout(predict, wait);
}

async function predict() {
  clearTimeout(pause);
  pending.abort();
  const mine = (pending = new AbortController());
  const text = wellFormed($("text").value);
  const chars = characters(text);
  count(chars.length);
  remember(text);
  if (chars.length > state.model.max_chars) {
    complain(new ServiceError(say("tooLong"), 422));
    $("answer").removeAttribute("aria-busy");
    return;
  }
  $("answer").setAttribute("aria-busy", "true");
  const request = requestOf(text);
  let answered = false;
  try {
    const start = performance.now();
    const { entities } = await send("v1/entities", request, mine.signal);
    Object.assign(state, { request, chars, entities, milliseconds: Math.round(performance.now() - start) });
    state.passages = passages(chars);
    state.passage = Math.min(state.passage, state.passages.length - 1);
    $("problem").hidden = true;
    answered = true;
    show();
    await explain(mine.signal);
  } catch (error) {
    if (error.name !== "AbortError") complain(error, answered);
  } finally {
    if (mine === pending) $("answer").removeAttribute("aria-busy");
  }
}

async function explain(signal) {
  const [start, end] = state.passages[state.passage];
  state.reading = await send("v1/explain", requestOf(state.chars.slice(start, end).join("")), signal);
  showLattice();
}

// Put the text and its options into the address, so that reloading or sharing the page shows them again.
function remember(text) {
  const fragment = fragmentOf({ ...state, text, threshold: Number($("threshold").value) });
  history.replaceState(null, "", fragment || location.pathname + location.search);
}

// Take the text and its options from the fragment of the address; returns whether there are any.
function restore(fragment = location.hash) {
  const found = readFragment(fragment);
  if (!found) return false;
  $("text").value = found.text;
  $("threshold").value = found.threshold;
  $("least").textContent = found.threshold.toFixed(2);
  Object.assign(state, { added: found.added, removed: found.removed, passage: 0 });
  if (Object.hasOwn(state.model.conventions, found.convention)) state.convention = found.convention;
  return true;
}

// Nothing of an earlier text stays beside a problem.
function clear() {
  Object.assign(state, { request: null, chars: [], entities: [], milliseconds: null, passages: [[0, 0]], passage: 0 });
  $("marked").replaceChildren();
  $("status").textContent = "";
  $("passages").hidden = true;
  showLegend();
}

// Show a problem; the entities stay if only their lattice is missing.
function complain(error, answered = false) {
  if (!answered) clear();
  state.reading = null;
  for (const id of ["measure", "picture", "words"]) $(id).replaceChildren();
  const again = error.status === 503 || error.status === 0;
  $("enter").hidden = error.status !== 401;
  $("problem").hidden = false;
  $("problem").textContent = error.status === 503 ? say("busy", error.retryAfter || 1) : error.message;
  if (!(error instanceof ServiceError)) console.error(error);
  if (again) soon(1000 * (error.retryAfter || 1));
}

function count(n) {
  $("count").textContent = say("chars", n, state.model.max_chars);
  $("count").classList.toggle("wrong", n > state.model.max_chars);
}

function show() {
  const { chars, entities, milliseconds } = state;
  count(chars.length);
  $("status").textContent = milliseconds === null ? "" : say("count", entities.length, milliseconds);
  $("marked").replaceChildren(mark(chars, entities, colours));
  const stops = [...$("marked").querySelectorAll("[role=button]")];
  if (stops.length) stops[0].tabIndex = 0;
  showLegend();
}

function showLegend() {
  $("copies").hidden = !state.request;
  $("copied").textContent = "";
  const found = new Map();
  for (const { label } of state.entities) found.set(label, (found.get(label) ?? 0) + 1);
  $("legend").replaceChildren(...labels().map((label) => {
    const n = found.get(label);
    const made = element("li", { class: n ? "" : "none", textContent: n ? `${kind(label)} × ${n}` : kind(label) });
    made.style.setProperty("--c", colours(label));
    return made;
  }));
}

function showLattice() {
  const { reading } = state;
  if (!reading) return;
  const strongest = Math.max(0, ...reading.words.map((w) => w.strength ?? 0));
  const shares = reading.by === "none" ? null : reading.words.map((w) => (strongest ? w.strength / strongest : 0));
  const names = (rows) => rows.map((row) => row.text).join(", ");
  const title = say("picture", names(reading.words), reading.entities.map((e) => `${e.text} ${e.label}`).join(", "));
  const width = Math.max($("picture").clientWidth, 200);
  const isNew = (word) => state.added.has(word);
  $("picture").replaceChildren(picture(reading, { width, colours, shares, isNew, title }));
  const many = state.passages.length > 1;
  $("measure").textContent = many ? `${say(reading.by)} ${say("alone")}` : say(reading.by);
  $("passages").hidden = !many;
  $("which").textContent = say("passage", state.passage + 1, state.passages.length);
  $("previous").disabled = state.passage === 0;
  $("next").disabled = state.passage + 1 === state.passages.length;
  $("strength-title").textContent = say(`${reading.by}Short`);
  const order = reading.words.map((_, i) => i).sort((a, b) => (shares ? shares[b] - shares[a] : 0) || a - b);
  const seen = new Set();
  const rows = order.filter((i) => !seen.has(reading.words[i].text) && seen.add(reading.words[i].text));
  $("words").replaceChildren(...rows.map((i) => wordRow(reading.words[i], shares && shares[i])));
}

function wordRow(word, share) {
  const button = element("button", { type: "button", textContent: say("remove"), onclick: () => edit(word.text, null) });
  button.setAttribute("aria-label", say("removeWord", word.text));
  const strength = element("td");
  if (share !== null) {
    const bar = element("span", { class: "share" });
    bar.style.setProperty("--share", share);
    strength.append(bar, strengthOf(word));
  }
  const name = element("th", { scope: "row", textContent: word.text });
  if (state.added.has(word.text)) name.append(element("em", { textContent: say("hereToo") }));
  return element("tr", {}, name, element("td", { textContent: word.label ?? "" }), strength, element("td", {}, button));
}

const strengthOf = (word) => (state.reading.by === "attention" ? percent(word.strength) : word.strength.toFixed(3));

// Add a word ({ label, always }) or remove it (null); the opposite of an earlier edit undoes it.
function edit(word, how) {
  if (how === null) {
    if (!state.added.delete(word)) state.removed.add(word);
  } else {
    state.removed.delete(word);
    state.added.set(word, how);
  }
  showEdits();
  predict();
}

function showEdits() {
  const undo = (word, from) => {
    const made = element("button", { type: "button", textContent: "×", onclick: () => {
      from.delete(word);
      showEdits();
      predict();
      $("word").focus();
    } });
    made.setAttribute("aria-label", say("undo", word));
    return made;
  };
  const item = (word, note, from, how) => element(
    "li", { class: how }, element("span", { class: "hidden", textContent: `${say(how)}: ` }),
    element("span", { class: "word", textContent: word }), element("small", { textContent: note }), undo(word, from),
  );
  $("edits").replaceChildren(
    ...[...state.added].map(([word, { label, always }]) => {
      const note = label && !labels().includes(label) ? say("elsewhere") : always && say("always");
      return item(word, [label, note].filter(Boolean).join(" · "), state.added, "added");
    }),
    ...[...state.removed].map((word) => item(word, "", state.removed, "left")),
  );
}

// The tooltip beside the hovered or focused element.
function hint(target, ...lines) {
  const box = $("hint");
  box.replaceChildren(...lines.map((line, i) => element(i ? "span" : "strong", { textContent: line })));
  box.hidden = false;
  const at = target.getClientRects()[0] ?? target.getBoundingClientRect();
  const left = Math.min(Math.max(8, at.left + at.width / 2 - box.offsetWidth / 2), innerWidth - box.offsetWidth - 8);
  const above = at.top - box.offsetHeight - 8;
  box.style.left = `${left + scrollX}px`;
  box.style.top = `${(above > 4 ? above : at.bottom + 8) + scrollY}px`;
}

function hintOfEntity(target) {
  const marked = target.closest?.("mark[data-entity]");
  if (!marked) return false;
  const e = state.entities[marked.dataset.entity];
  const first = $("marked").querySelector(`mark[data-entity="${marked.dataset.entity}"][role]`) ?? marked;
  hint(first, `${e.text} · ${kind(e.label)}`, `${say("score")} ${percent(e.score)}`, say("place", e.start, e.end));
  return true;
}

function hintOfWord(target) {
  const arc = target.closest?.(".arc");
  if (!arc) return false;
  const word = state.reading.words[arc.dataset.word];
  const lines = [[word.text, word.label && kind(word.label)].filter(Boolean).join(" · ")];
  if (state.reading.by !== "none") lines.push(`${say(`${state.reading.by}Short`)} ${strengthOf(word)}`);
  if (spoken() === "en" && word.reason) lines.push(word.reason);
  hint(arc, ...lines);
  return true;
}

function moveTo(i) {
  state.passage = i;
  pending.abort();
  pending = new AbortController();
  explain(pending.signal).catch((error) => error.name === "AbortError" || complain(error, true));
}

function passageOf(entity) {
  const i = state.passages.findIndex(([, end]) => entity.start < end);
  if (i >= 0 && i !== state.passage) moveTo(i);
}

const COPIES = {
  json: () => asJson(state.request, state.entities),
  python: () => asPython(state.request),
  curl: () => asCurl(state.request, new URL("v1/entities", location.href.split("#")[0]).href, state.token !== ""),
  link: () => location.href,
};

async function copyAs(button) {
  const { copy: what } = button.dataset;
  if (what === "link" && !location.hash.includes("text=")) {
    $("copied").textContent = say("noLink");
    return;
  }
  try {
    await copy(COPIES[what]());
    $("copied").textContent = say("copied", button.textContent);
  } catch {
    $("copied").textContent = say("notCopied");
  }
}

// The label for a new word: that of an entity or of a word in the text, or what the model sees in the word alone.
async function suggestion(word, signal) {
  const among = (label) => labels().includes(label) && label;
  const found = state.entities.find((e) => e.text === word) ?? state.reading?.words.find((w) => w.text === word && among(w.label))
    ?? state.entities.find((e) => e.text.includes(word) || word.includes(e.text));
  if (found && among(found.label)) return found.label;
  const options = state.convention ? { convention: state.convention } : {};
  const { entities } = await send("v1/entities", { text: word, ...options }, signal);
  const [best] = [...entities].sort((a, b) => b.end - b.start - (a.end - a.start) || b.score - a.score);
  return best?.label ?? "";
}

let asking = new AbortController(), typing = 0;

const newWord = () => wellFormed($("word").value.trim());

// Choose the suggested label, unless the user chose one for this word.
async function suggest() {
  clearTimeout(typing);
  asking.abort();
  const word = newWord();
  if (!word || state.chosen || state.suggestedFor === word) return;
  const mine = (asking = new AbortController());
  const label = await suggestion(word, mine.signal).catch(() => "");
  if (mine.signal.aborted || state.chosen || newWord() !== word) return;
  state.suggestedFor = word;
  chooseLabel(label);
  $("suggestion").textContent = label ? say("suggestion", kind(label)) : "";
}

function suggestSoon() {
  clearTimeout(typing);
  asking.abort();
  $("suggestion").textContent = "";
  state.suggestedFor = "";
  if (!newWord()) {
    state.chosen = false;
    chooseLabel("");
  }
  typing = setTimeout(suggest, PAUSE);
}

// A word with a label is always an entity, unless the user says otherwise.
function chooseLabel(label) {
  $("label").value = label;
  $("always").disabled = !label;
  $("always").checked = Boolean(label);
}

async function openFile(file) {
  if (!file) return;
  const text = await textOf(file);
  if (text === null) {
    complain(new ServiceError(say("notText", file.name), 422));
    return;
  }
  const chars = characters(text);
  const most = state.model.max_chars;
  $("text").value = chars.slice(0, most).join("");
  state.passage = 0;
  await predict();
  if (chars.length > most) {
    $("problem").hidden = false;
    $("problem").textContent = say("cut", file.name, most);
  }
}

function listenToFiles() {
  $("choose").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", () => {
    openFile($("file").files[0]);
    $("file").value = "";
  });
  const isFile = (event) => event.dataTransfer?.types.includes("Files");
  document.addEventListener("dragover", (event) => {
    if (!isFile(event)) return;
    event.preventDefault();
    $("drop").hidden = false;
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) $("drop").hidden = true;
  });
  document.addEventListener("drop", (event) => {
    $("drop").hidden = true;
    if (!isFile(event)) return;
    event.preventDefault();
    openFile(event.dataTransfer.files[0]);
  });
}

// The lists of conventions and of the labels of the chosen convention.
function showChoices() {
  const names = Object.keys(state.model.conventions);
  $("by").hidden = names.length < 2;
  $("convention").replaceChildren(
    ...names.map((name) => element("option", { value: name, textContent: convention(name) })),
  );
  $("convention").value = state.convention;
  $("label").replaceChildren(
    element("option", { value: "", textContent: say("noLabel") }),
    ...labels().map((label) => element("option", { value: label, textContent: kind(label) })),
  );
  chooseLabel("");
  $("suggestion").textContent = "";
}

function setLanguage(language) {
  speak(language);
  $("language").textContent = say("other");
  $("language").lang = language === "zh" ? "en" : "zh-CN";
  showChoices();
  try {
    localStorage.setItem("language", language);
  } catch { /* not available in private windows */ }
  showEdits();
  show();
  showLattice();
}

function remembered() {
  try {
    const language = localStorage.getItem("language");
    if (language === "zh" || language === "en") return language;
  } catch { /* as above */ }
  return navigator.language.startsWith("zh") ? "zh" : "en";
}

function listen() {
  $("text").addEventListener("input", () => soon());
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) predict();
  });
  $("language").addEventListener("click", () => setLanguage(spoken() === "zh" ? "en" : "zh"));
  $("add").addEventListener("submit", async (event) => {
    event.preventDefault();
    const word = newWord();
    await suggest();
    if (!word || newWord() !== word) return;
    edit(word, { label: $("label").value, always: !$("always").disabled && $("always").checked });
    $("word").value = "";
    suggestSoon();
    $("word").focus();
  });
  $("word").addEventListener("input", suggestSoon);
  $("convention").addEventListener("change", () => {
    state.convention = $("convention").value;
    showChoices();
    showEdits();
    predict();
  });
  $("label").addEventListener("change", () => {
    state.chosen = true;
    $("suggestion").textContent = "";
    chooseLabel($("label").value);
  });
  $("copies").addEventListener("click", ({ target }) => target.dataset.copy && copyAs(target));
  addEventListener("hashchange", ({ newURL }) => {  // an answer may have changed the address since
    if (!restore(new URL(newURL).hash)) return;
    showChoices();
    showEdits();
    predict();
  });
  listenToFiles();
  $("threshold").addEventListener("input", () => {
    $("least").textContent = Number($("threshold").value).toFixed(2);
    soon();
  });
  $("enter").addEventListener("submit", (event) => {
    event.preventDefault();
    state.token = $("token").value;
    $("enter").hidden = true;
    begin();
  });
  $("previous").addEventListener("click", () => moveTo(state.passage - 1));
  $("next").addEventListener("click", () => moveTo(state.passage + 1));
  const marked = $("marked");
  marked.addEventListener("click", (event) => activate(event.target));
  marked.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      activate(event.target);
    }
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) walk(event.target, step);
  });
  marked.addEventListener("mouseup", () => {  // a word selected in the result can be added
    const chosen = String(getSelection()).trim();
    if (!chosen || characters(chosen).length > 20) return;
    $("word").value = chosen;
    state.chosen = false;
    suggestSoon();
  });
  for (const [kindOfEvent, gone] of [["mouseover", "mouseout"], ["focusin", "focusout"]]) {
    document.addEventListener(kindOfEvent, ({ target }) => hintOfEntity(target) || hintOfWord(target));
    document.addEventListener(gone, () => ($("hint").hidden = true));
  }
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") $("hint").hidden = true;
  });
  let width = 0;
  new ResizeObserver(([{ contentRect }]) => {
    if (contentRect.width !== width) showLattice();
    width = contentRect.width;
  }).observe($("picture"));
}

function activate(target) {
  const marked = target.closest("mark[data-entity]");
  if (marked) passageOf(state.entities[marked.dataset.entity]);
}

function walk(from, step) {
  const stops = [...$("marked").querySelectorAll("[role=button]")];
  const to = stops[stops.indexOf(from) + step];
  if (!to) return;
  from.tabIndex = -1;
  to.tabIndex = 0;
  to.focus();
}

// The first example that is not too long for this service.
function firstExample() {
  const [text] = EXAMPLES.find(([example]) => characters(example).length <= state.model.max_chars) ?? EXAMPLES[0];
  return text;
}

async function begin() {
  try {
    state.model = await send("v1/model");
    state.convention = state.model.convention;
    if ($("text").value === EXAMPLES[0][0]) $("text").value = firstExample();
    restore();
  } catch (error) {
    complain(error);
    if (error.status === 401) return;
  }
  setLanguage(spoken());
  predict();
}

speak(remembered());
for (const [text, shown] of EXAMPLES) {
  const [first] = text.split(/[，,]/u);
  $("examples").append(element("button", { type: "button", lang: "zh", textContent: first, onclick: () => {
    $("text").value = text;
    state.passage = 0;
    if (Object.hasOwn(state.model.conventions, shown)) state.convention = shown;
    showChoices();
    showEdits();
    predict();
  } }));
}
if (!restore()) $("text").value ||= EXAMPLES[0][0];
listen();
setLanguage(spoken());
begin();
