// The texts of the user interface, in Chinese and English.

const TEXTS = {
  zh: {
    other: "English", skip: "跳转到结果", tagline: "基于词格（lattice）的中文命名实体识别", api: "API 文档",
    convention: "标注规范", elsewhere: "当前规范没有该类别", text: "文本", examples: "示例", chars: (n, most) => `${n} / ${most} 字`, tooLong: "文本过长",
    lexicon: "词典", lexiconHelp: "添加或移除词语，结果立即更新，无需重新训练模型。",
    word: "词语", labelOfWord: "类别", noLabel: "不指定类别", add: "添加", isAlways: "始终识别为该类别的实体", always: "始终识别", edits: "词典改动",
    added: "已添加", left: "已移除", undo: (word) => `撤销：${word}`, remove: "移除", removeWord: (word) => `移除“${word}”`,
    threshold: "置信度阈值", entities: "实体", token: "访问令牌", open: "确定",
    count: (n, ms) => `${n ? `识别出 ${n} 个实体` : "未识别出实体"} · ${ms} 毫秒`,
    legend: "图例", lattice: "词格（lattice）", passage: (i, n) => `第 ${i} 段，共 ${n} 段`, previous: "上一段", next: "下一段",
    alone: "长文本逐段绘制，每段单独推理。",
    attention: "弧线表示匹配到的词；弧越粗，模型对该词的注意力越大。", influence: "弧线表示匹配到的词；弧越粗，对结果影响越大。",
    none: "弧线表示匹配到的词。", attentionShort: "注意力", influenceShort: "影响", noneShort: "",
    picture: (words, entities) => `词格图。词：${words || "无"}。实体：${entities || "无"}。`,
    table: "以表格查看这些词", actions: "操作", entity: (e, kind) => `${e.text}，${kind}，置信度 ${percent(e.score)}`,
    score: "置信度", place: (s, e) => `第 ${s + 1} 至 ${e} 字`, unreachable: "无法连接服务", busy: (s) => `服务繁忙，${s} 秒后重试`,
    failed: "出错了", hereToo: "新词",
    copy: "复制", link: "链接", copied: (what) => `已复制：${what}`, notCopied: "浏览器不允许复制", noLink: "文本太长，无法放入链接",
    openFile: "打开文件", drop: "松开以读取文件", notText: (name) => `${name} 不是文本文件`,
    cut: (name, n) => `${name} 过长，只读取了前 ${n} 字`, suggestion: (kind) => `建议类别：${kind}`,
  },
  en: {
    other: "中文", skip: "Skip to the results", tagline: "Chinese named entity recognition on word lattices",
    convention: "Convention", elsewhere: "not in this convention", api: "API", text: "Text", examples: "Examples", chars: (n, most) => `${n} of ${most} characters`, tooLong: "The text is too long",
    lexicon: "Lexicon", lexiconHelp: "Add or remove words: results change at once, without training.",
    word: "Word", labelOfWord: "Label", noLabel: "no label", add: "Add", isAlways: "always an entity with this label", always: "always", edits: "Changes to the lexicon",
    added: "added", left: "removed", undo: (word) => `Undo: ${word}`, remove: "Remove", removeWord: (word) => `Remove ${word}`,
    threshold: "Minimum confidence", entities: "Entities", token: "Access token", open: "Submit",
    count: (n, ms) => `${n === 1 ? "1 entity" : `${n || "no"} entities`} · ${ms} ms`,
    legend: "Labels", lattice: "Lattice", passage: (i, n) => `Passage ${i} of ${n}`, previous: "Previous passage", next: "Next passage",
    alone: "A long text is drawn passage by passage; each passage is read separately.",
    attention: "Arcs are matched words; a thicker arc means more attention.",
    influence: "Arcs are matched words; a thicker arc means more influence on the entities.",
    none: "Arcs are matched words.", attentionShort: "Attention", influenceShort: "Influence", noneShort: "",
    picture: (words, entities) => `Lattice. Words: ${words || "none"}. Entities: ${entities || "none"}.`,
    table: "These words as a table", actions: "Actions", entity: (e, kind) => `${e.text}, ${kind}, confidence ${percent(e.score)}`,
    score: "Confidence", place: (s, e) => `characters ${s + 1} to ${e}`, unreachable: "The service cannot be reached",
    busy: (s) => `The service is busy; trying again in ${s} s`,
    failed: "Something went wrong", hereToo: "new word",
    copy: "Copy", link: "Link", copied: (what) => `Copied: ${what}`, notCopied: "The browser does not allow copying",
    noLink: "The text is too long for a link", openFile: "Open a file", drop: "Drop the file to read it",
    notText: (name) => `${name} is not a text file`, cut: (name, n) => `${name} is too long: only its first ${n} characters were read`,
    suggestion: (kind) => `Suggested label: ${kind}`,
  },
};

const LABELS = {
  PER: ["人名", "person"], LOC: ["地名", "place"], ORG: ["机构", "organisation"], GPE: ["行政区", "state or region"],
  WORK: ["作品", "work"], PRODUCT: ["产品", "product"], EVENT: ["事件", "event"],
  TIME: ["时间", "time"], MISC: ["其他", "other"],
  name: ["姓名", "person"], address: ["地址", "address"], company: ["公司", "company"], organization: ["组织", "organisation"],
  government: ["政府", "government"], position: ["职位", "position"], book: ["书籍", "book"], game: ["游戏", "game"],
  movie: ["影视", "film"], scene: ["景点", "sight"],
  NAME: ["姓名", "person"], TITLE: ["职务", "title"], EDU: ["学历", "education"], CONT: ["国籍", "nationality"],
  RACE: ["民族", "ethnic group"], PRO: ["专业", "profession"],
  bod: ["身体部位", "body part"], dis: ["疾病", "disease"], sym: ["临床表现", "symptom"], pro: ["医疗程序", "procedure"], dru: ["药物", "drug"],
  ite: ["检验项目", "test"], mic: ["微生物", "microbe"], equ: ["医疗设备", "equipment"], dep: ["科室", "department"],
  "PER.NAM": ["人名", "person"], "PER.NOM": ["人物泛指", "person, common noun"],
  "LOC.NAM": ["地名", "place"], "LOC.NOM": ["地点泛指", "place, common noun"],
  "ORG.NAM": ["机构", "organisation"], "ORG.NOM": ["机构泛指", "organisation, common noun"],
  "GPE.NAM": ["行政区", "state or region"], "GPE.NOM": ["行政区泛指", "state or region, common noun"],
};

const CONVENTIONS = {
  open: ["通用", "general"], msra: ["新闻", "news"], cluener: ["细粒度新闻", "news, fine-grained"],
  weibo: ["微博", "microblogs"], resume: ["简历", "résumés"], medical: ["医学", "medicine"],
  news1998: ["1998 年报纸", "newspapers of 1998"], words: ["分词与词性", "words and parts of speech"],
};

let language = "zh";

export const percent = (share) => `${(100 * share).toFixed(1)}%`;

export function say(what, ...details) {
  const saying = TEXTS[language][what];
  return typeof saying === "function" ? saying(...details) : saying;
}

const titled = (titles, name) => (Object.hasOwn(titles, name) ? `${titles[name][language === "zh" ? 0 : 1]} ${name}` : name);

export const kind = (label) => titled(LABELS, label);

export const convention = (name) => titled(CONVENTIONS, name);

// Write all texts, labels and placeholders into the document.
export function speak(chosen) {
  language = chosen;
  document.documentElement.lang = chosen === "zh" ? "zh-CN" : "en";
  for (const e of document.querySelectorAll("[data-say]")) e.textContent = say(e.dataset.say);
  for (const e of document.querySelectorAll("[data-label]")) e.setAttribute("aria-label", say(e.dataset.label));
  for (const e of document.querySelectorAll("[data-placeholder]")) e.placeholder = say(e.dataset.placeholder);
}

export const spoken = () => language;
