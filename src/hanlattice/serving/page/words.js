// What the page says, in two languages.

const SAYINGS = {
  zh: {
    other: "English", skip: "跳到结果", tagline: "在词格上识别中文命名实体", api: "接口文档",
    convention: "标注规范", elsewhere: "此规范中无此类别", text: "文本", examples: "示例", chars: (n, most) => `${n} / ${most} 字`, tooLong: "文本太长",
    lexicon: "词典", lexiconHelp: "加词或去词，答案随即改变，模型无须重新训练。",
    word: "词", labelOfWord: "类别", noLabel: "无类别", add: "加入", isAlways: "遇到它时一律作为该类实体", always: "一律", edits: "对词典的修改",
    added: "加入的词", left: "去掉的词", undo: (word) => `撤销：${word}`, remove: "去掉", removeWord: (word) => `去掉“${word}”`,
    threshold: "最低置信度", entities: "实体", token: "访问令牌", open: "进入",
    count: (n, ms) => `${n ? `找到 ${n} 个实体` : "没有实体"} · ${ms} 毫秒`, reading: "正在读取…",
    legend: "类别", lattice: "词格", passage: (i, n) => `第 ${i} 段，共 ${n} 段`, previous: "上一段", next: "下一段",
    alone: "长文本逐段绘制，每段单独读取。",
    attention: "弧是读到的词；越粗，模型注意得越多。", influence: "弧是读到的词；越粗，去掉它时答案变得越多。",
    none: "弧是读到的词。", attentionShort: "注意力", influenceShort: "影响", noneShort: "",
    picture: (words, entities) => `词格图。词：${words || "无"}。实体：${entities || "无"}。`,
    table: "以表格列出这些词", actions: "操作", entity: (e, kind) => `${e.text}，${kind}，置信度 ${percent(e.score)}`,
    score: "置信度", place: (s, e) => `第 ${s + 1} 至 ${e} 字`, unreachable: "连不上服务", busy: (s) => `服务繁忙，${s} 秒后再试`,
    moved: "用左右方向键在实体间移动", failed: "出错了", hereToo: "新词",
  },
  en: {
    other: "中文", skip: "Skip to the answer", tagline: "Named entities in Chinese text, read on a word lattice",
    convention: "Convention", elsewhere: "not in this convention", api: "API", text: "Text", examples: "Examples", chars: (n, most) => `${n} of ${most} characters`, tooLong: "The text is too long",
    lexicon: "Lexicon", lexiconHelp: "Add or remove words: the answer changes at once, and nothing is trained.",
    word: "Word", labelOfWord: "Label", noLabel: "no label", add: "Add", isAlways: "always an entity of this label", always: "always", edits: "Edits of the lexicon",
    added: "added", left: "removed", undo: (word) => `Undo: ${word}`, remove: "Remove", removeWord: (word) => `Remove ${word}`,
    threshold: "Least confidence", entities: "Entities", token: "Access token", open: "Enter",
    count: (n, ms) => `${n === 1 ? "1 entity" : `${n || "no"} entities`} · ${ms} ms`, reading: "Reading…",
    legend: "Labels", lattice: "Lattice", passage: (i, n) => `Passage ${i} of ${n}`, previous: "Previous passage", next: "Next passage",
    alone: "A long text is drawn passage by passage, each read by itself.",
    attention: "Arcs are the words that were read; the thicker, the more the model attended to them.",
    influence: "Arcs are the words that were read; the thicker, the more the answer changes without them.",
    none: "Arcs are the words that were read.", attentionShort: "Attention", influenceShort: "Influence", noneShort: "",
    picture: (words, entities) => `Lattice. Words: ${words || "none"}. Entities: ${entities || "none"}.`,
    table: "These words as a table", actions: "Actions", entity: (e, kind) => `${e.text}, ${kind}, confidence ${percent(e.score)}`,
    score: "Confidence", place: (s, e) => `characters ${s + 1} to ${e}`, unreachable: "The service cannot be reached",
    busy: (s) => `The service is busy; trying again in ${s} s`, moved: "Left and right arrows move between entities",
    failed: "Something went wrong", hereToo: "new word",
  },
};

const LABELS = {
  PER: ["人名", "person"], LOC: ["地名", "place"], ORG: ["机构", "organisation"], GPE: ["政区", "state or region"],
  WORK: ["作品", "work"], PRODUCT: ["产品", "product"], EVENT: ["事件", "event"],
  TIME: ["时间", "time"], MISC: ["其他", "other"],
  name: ["姓名", "person"], address: ["地址", "address"], company: ["公司", "company"], organization: ["组织", "organisation"],
  government: ["政府", "government"], position: ["职位", "position"], book: ["书籍", "book"], game: ["游戏", "game"],
  movie: ["影视", "film"], scene: ["景点", "sight"],
  NAME: ["姓名", "person"], TITLE: ["职务", "title"], EDU: ["学历", "education"], CONT: ["国籍", "nationality"],
  RACE: ["民族", "ethnic group"], PRO: ["专业", "profession"],
  bod: ["身体", "body"], dis: ["疾病", "disease"], sym: ["症状", "symptom"], pro: ["诊疗", "procedure"], dru: ["药物", "drug"],
  ite: ["检验", "test"], mic: ["微生物", "microbe"], equ: ["设备", "equipment"], dep: ["科室", "department"],
  "PER.NAM": ["人名", "person"], "PER.NOM": ["人的泛称", "person, common noun"],
  "LOC.NAM": ["地名", "place"], "LOC.NOM": ["地点泛称", "place, common noun"],
  "ORG.NAM": ["机构", "organisation"], "ORG.NOM": ["机构泛称", "organisation, common noun"],
  "GPE.NAM": ["政区", "state or region"], "GPE.NOM": ["政区泛称", "state or region, common noun"],
};

const CONVENTIONS = {
  open: ["现代文本", "text of today"], msra: ["新闻", "news"], cluener: ["新闻细分类", "news, fine labels"],
  weibo: ["微博", "microblogs"], resume: ["简历", "résumés"], medical: ["医学", "medicine"],
  news1998: ["1998 年报纸", "newspapers of 1998"], words: ["词性", "parts of speech"],
};

let language = "zh";

export const percent = (share) => `${(100 * share).toFixed(1)}%`;

export function say(what, ...details) {
  const saying = SAYINGS[language][what];
  return typeof saying === "function" ? saying(...details) : saying;
}

const titled = (titles, name) => (Object.hasOwn(titles, name) ? `${titles[name][language === "zh" ? 0 : 1]} ${name}` : name);

export const kind = (label) => titled(LABELS, label);

export const convention = (name) => titled(CONVENTIONS, name);

// Everything in the document that says or is called something.
export function speak(chosen) {
  language = chosen;
  document.documentElement.lang = chosen === "zh" ? "zh-CN" : "en";
  for (const e of document.querySelectorAll("[data-say]")) e.textContent = say(e.dataset.say);
  for (const e of document.querySelectorAll("[data-label]")) e.setAttribute("aria-label", say(e.dataset.label));
  for (const e of document.querySelectorAll("[data-placeholder]")) e.placeholder = say(e.dataset.placeholder);
}

export const spoken = () => language;
