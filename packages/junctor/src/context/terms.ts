/** Words that say nothing about what a tool does. */
const stopWords = new Set(
  (
    "a about after all also an and any are as at be because been before being but by can could did do does for from had has " +
    "have he her here him his how i if in into is it its just let like ll may me more most must my no not now of on once only or " +
    "our out please re s she should so some someone something such t than that the their them then there these they this to too " +
    "up us use used using ve via want was we what when where which while who why will with would you your"
  ).split(" "),
);

/** Letters and digits in one piece, and the parts of it that case and digits tell apart. */
const piece = /[\p{L}\p{N}]+/gu;
const part = /[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+|[^A-Za-z0-9]+/g;

/**
 * The words of a text in lower case, without stop words. A word such as `GitHub` or `createIssue` is there whole and in its parts:
 * people write both.
 */
function wordsOf(text: string): readonly string[] {
  const words: string[] = [];
  const add = (word: string): void => {
    if (!stopWords.has(word)) words.push(word);
  };
  for (const [whole] of text.matchAll(piece)) {
    const lower = whole.toLowerCase();
    add(lower);
    if (lower === whole) continue;
    const parts = whole.match(part) ?? [];
    if (parts.length > 1) for (const each of parts) add(each.toLowerCase());
  }
  return words;
}

/** The terms of a text: its words as stems. */
export function termsOf(text: string): readonly string[] {
  return wordsOf(text).map(stemOf);
}

/** One step of the stemmer: an ending, the ending that takes its place, and what must be true of the stem before it. */
type EndingRule = readonly [ending: string, replacement: string];

const consonant = "(?:[^aeiou]|(?<=^|[aeiou])y)";
const vowel = "(?:[aeiou]|(?<=[^aeiou])y)";
/** Whether there is a vowel and a consonant after it: the measure of the paper is above 0. */
const isLong = new RegExp(`^${consonant}*${vowel}+${consonant}`);
const isLonger = new RegExp(`^${consonant}*(?:${vowel}+${consonant}+){2}`);
const hasVowel = new RegExp(vowel);
const isDoubled = /([^aeiouylsz])\1$/;
/** Ends like `hop` or `fil`: the `e` that was cut off belongs to it. */
const isShort = new RegExp(`^${consonant}+${vowel}[^aeiouwxy]$`);

const second: readonly EndingRule[] = [
  ["ational", "ate"],
  ["tional", "tion"],
  ["enci", "ence"],
  ["anci", "ance"],
  ["izer", "ize"],
  ["abli", "able"],
  ["alli", "al"],
  ["entli", "ent"],
  ["eli", "e"],
  ["ousli", "ous"],
  ["ization", "ize"],
  ["ation", "ate"],
  ["ator", "ate"],
  ["alism", "al"],
  ["iveness", "ive"],
  ["fulness", "ful"],
  ["ousness", "ous"],
  ["aliti", "al"],
  ["iviti", "ive"],
  ["biliti", "ble"],
];
const third: readonly EndingRule[] = [
  ["icate", "ic"],
  ["ative", ""],
  ["alize", "al"],
  ["iciti", "ic"],
  ["ical", "ic"],
  ["ful", ""],
  ["ness", ""],
];
const fourth =
  /^(.+?)(al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|(?<=[st])ion|ou|ism|ate|iti|ous|ive|ize)$/;

/** Longer than any word that has a stem; what is longer is left as it is. */
const maxLength = 40;
const stems = new Map<string, string>();
const maxStems = 20_000;

/**
 * The stem of an English word in lower case, after Porter (An algorithm for suffix stripping, 1980): `creating`, `created` and
 * `creates` have the same one. The last ones are kept, because definitions repeat their words.
 */
export function stemOf(word: string): string {
  if (word.length < 3 || word.length > maxLength || !/^[a-z]+$/.test(word)) return word;
  const known = stems.get(word);
  if (known !== undefined) return known;
  if (stems.size >= maxStems) stems.clear();
  const stem = makeStem(word);
  stems.set(word, stem);
  return stem;
}

function makeStem(word: string): string {
  let stem = word.replace(/(ss|i)es$/, "$1").replace(/([^s])s$/, "$1");
  if (stem.endsWith("eed")) {
    if (isLong.test(stem.slice(0, -3))) stem = stem.slice(0, -1);
  } else {
    const cut = stem.replace(/(?:ed|ing)$/, "");
    if (cut !== stem && hasVowel.test(cut)) stem = mend(cut);
  }
  if (stem.endsWith("y") && hasVowel.test(stem.slice(0, -1))) stem = `${stem.slice(0, -1)}i`;
  stem = replaceEnding(replaceEnding(stem, second), third);
  const [, before = "", ending] = fourth.exec(stem) ?? [];
  if (ending !== undefined && isLonger.test(before)) stem = before;
  if (stem.endsWith("e")) {
    const before = stem.slice(0, -1);
    if (isLonger.test(before) || (isLong.test(before) && !isShort.test(before))) stem = before;
  }
  return isLonger.test(stem) && stem.endsWith("ll") ? stem.slice(0, -1) : stem;
}

/** What is left of a word without `ed` or `ing`, as it would be written. */
function mend(cut: string): string {
  if (/(?:at|bl|iz)$/.test(cut)) return `${cut}e`;
  if (isDoubled.test(cut)) return cut.slice(0, -1);
  return isShort.test(cut) ? `${cut}e` : cut;
}

function replaceEnding(word: string, rules: readonly EndingRule[]): string {
  for (const [ending, replacement] of rules) {
    if (!word.endsWith(ending)) continue;
    const before = word.slice(0, -ending.length);
    return isLong.test(before) ? before + replacement : word;
  }
  return word;
}

/**
 * Words that people use for the same thing: verbs first, then nouns. Each finds the others of its group, at less weight. A word may be in
 * several groups, whose other words are not synonyms of each other.
 */
const groups =
  "create make add new|create insert register define init initialize provision setup|create open raise file|" +
  "generate create produce render draw|draw paint sketch illustrate generate|build compile construct|compose draft write|" +
  "delete remove erase drop destroy clear|delete purge wipe trash discard uninstall|get fetch read retrieve show view|" +
  "get load obtain inspect display see detail|list show enumerate browse|find search lookup locate query|" +
  "search discover seek explore|update edit change modify set|update patch alter adjust revise|update refresh sync|" +
  "rename title name|move transfer relocate|copy duplicate clone fork|send post deliver push|send share forward|" +
  "publish release deploy post|reply respond answer comment|run execute exec invoke trigger perform|start launch begin run boot|" +
  "spin provision launch create|stop cancel abort kill terminate halt shutdown|pause suspend disable hold|" +
  "enable activate resume|restart reboot reload|open visit navigate browse goto|click press tap push|type enter fill input|" +
  "drag drop|scroll swipe|wait sleep delay|upload attach attachment import|download export save|save store keep persist write|" +
  "append insert add put|put write place set|check verify validate|check inspect examine review|validate lint check|" +
  "analyze analyse inspect investigate diagnose|explain describe detail|summarize summary overview digest|" +
  "compare diff difference|count number total amount|measure metric statistic|monitor watch track observe|" +
  "schedule book plan arrange|invite invitation add|join enter|leave exit quit|assign delegate allocate|approve accept confirm|" +
  "reject decline deny refuse|close resolve complete finish done|archive close|restore recover reopen|" +
  "undo revert rollback restore reset|merge combine join|split divide break expand|convert transform format|" +
  "translate translation language|connect link join|login authenticate signin auth|grant allow permit authorize|" +
  "revoke deny block ban|subscribe follow watch|notify alert notification|remember memory recall|buy purchase order checkout|" +
  "pay payment charge transaction|refund reimburse|ship shipment delivery|crawl scrape extract spider|extract parse content|" +
  "install setup add|upgrade update|configure config configuration setting setup|scale resize size replica|" +
  "deploy release rollout sync|stash shelve aside|repository repo project codebase|issue ticket bug|issue error problem|" +
  "task todo reminder|pr pull|mr merge|commit revision changeset|history log changelog activity|blame annotate author|" +
  "email mail message|inbox mailbox|chat conversation thread channel room|message dm chat|comment note reply feedback|" +
  "person people user member contact|user account profile|team group organization org|company organization business|" +
  "customer client buyer|lead prospect deal opportunity|file document doc|folder directory|page document note wiki|" +
  "wiki knowledge article|website site web page webpage url|tab window|image picture photo|screenshot capture snapshot image|" +
  "video clip movie|audio sound music voice|transcript caption subtitle|calendar agenda schedule|event meeting appointment|" +
  "event calendar|place location poi|restaurant eat food cafe dine|hotel accommodation lodging|address location geocode|" +
  "coordinate latitude longitude location|direction route navigate|distance far reach|weather forecast temperature|" +
  "table collection|row record entry item|column field attribute property|database db|schema structure mapping|" +
  "query sql statement select|spreadsheet sheet excel workbook worksheet|cell range value|presentation slide deck powerpoint|" +
  "word docx document|form survey questionnaire|chart graph plot diagram visualize visualise|report dashboard|" +
  "metric usage statistic analytic|performance speed fast slow|log trace output|error exception crash failure fail fault|" +
  "alert alarm incident|incident outage downtime|test spec suite|build pipeline ci|pipeline workflow automation|" +
  "job run execution task|deployment release|version revision release|package dependency library module|code source snippet|" +
  "example demo sample|documentation docs guide reference manual help|api endpoint rest|request call http|webhook hook callback|" +
  "server instance machine vm host droplet node|container pod docker|kubernetes k8s cluster|application app program service|" +
  "dns domain record|certificate ssl tls cert|secret credential password|key token credential|permission access role privilege|" +
  "policy rule|bucket storage blob|disk volume storage|backup snapshot|invoice bill billing|price cost pricing|product item sku|" +
  "inventory stock|subscription plan|budget spend cost|expense receipt|quote estimate proposal|employee staff worker|" +
  "board kanban column|card ticket|sprint iteration cycle|milestone goal epic|status state progress|label tag|" +
  "category type kind|phone telephone call dial ring|sms text message|news article headline|research paper literature study|" +
  "flag feature toggle|environment env variable|template boilerplate|theme style|component widget element|link url|entity node|" +
  "relation relationship edge|bookmark favorite star|think thought reason|time clock date|now current today|" +
  "latest recent last newest|previous earlier last former|preference setting option|limit quota|region zone|size length";

/** The same word, shortened or spelt in another way, and exact synonyms. */
const spellings =
  "email mail|repository repo|database db|kubernetes k8s|application app|documentation doc|document doc|configuration config|" +
  "authentication auth|authorization auth|environment env|directory dir folder|organization organisation org|image picture photo|" +
  "message msg|information info|statistic stat|specification spec|parameter param|administrator admin|analyze analyse|color colour|" +
  "certificate cert|execute exec|development dev|production prod|identifier id|url link|delete remove|cancel abort|" +
  "initialize initialise init|synchronize sync|visualize visualise|summarize summarise|optimize optimise|customize customise|" +
  "attribute attr|reference ref|temporary temp tmp|variable var|maximum max|minimum min|average avg|number num|value val|" +
  "command cmd|address addr|calendar cal|transaction txn|telephone phone|picture pic|webpage page|" +
  "website site|todo task|vm machine|pr pull|mr merge|generate gen|calculate calc|password pwd|source src|" +
  "destination dest|previous prev|library lib|utility util|service svc|namespace ns|deployment deploy|javascript js|" +
  "typescript ts|python py|dataset data|timestamp time|e-commerce ecommerce shop store|catalogue catalog|centre center|" +
  "licence license|programme program|favourite favorite|behaviour behavior";

const synonymWeight = 0.25;
const spellingWeight = 0.6;

type Synonyms = ReadonlyMap<string, number>;

/** The synonyms of each term. Made for the first search: it takes milliseconds, and most processes never search. */
let byTerm: ReadonlyMap<string, Synonyms> | undefined;

/** Terms with the same meaning, and the weight of each: the term itself has 1. */
function synonymsOf(term: string): Synonyms {
  byTerm ??= readTables();
  return byTerm.get(term) ?? noSynonyms;
}

const noSynonyms: Synonyms = new Map();

function readTables(): ReadonlyMap<string, Synonyms> {
  const found = new Map<string, Map<string, number>>();
  for (const [table, weight] of [
    [groups, synonymWeight],
    [spellings, spellingWeight],
  ] as const) {
    for (const group of table.split("|")) {
      const terms = group.split(" ").map(stemOf);
      for (const term of terms) {
        const others = found.get(term) ?? new Map<string, number>();
        for (const other of terms) if (other !== term) others.set(other, weight);
        found.set(term, others);
      }
    }
  }
  return found;
}

/** One concept of a query: its own term, and others that may stand for it. */
export interface Concept {
  /** The term of the query; undefined for a concept that is only implied. */
  readonly own: string | undefined;
  /** By term: how much it counts. */
  readonly weights: ReadonlyMap<string, number>;
}

/** A query is cut here: longer ones are texts, and cost more than they find. */
const maxQuery = 1000;
const maxTerms = 32;

/** Two words of a query that a tool writes as one: `data source`, `datasource`. */
const joinedWeight = 0.8;

/** A query that asks a question slightly prefers tools that read. */
const asks = /^\s*(?:which|what|who|how|where|is|are|does|show|see)\b/i;
const reading: Concept = {
  own: undefined,
  weights: new Map([
    ["get", 0.3],
    ["list", 0.3],
    ["read", 0.2],
    ["search", 0.2],
    ["retriev", 0.15],
  ]),
};

/** The concepts of a query. */
export function toConcepts(query: string): readonly Concept[] {
  const words = wordsOf(query.slice(0, maxQuery)).slice(0, maxTerms);
  const own = new Map<string, Map<string, number>>();
  for (const word of words) {
    const term = stemOf(word);
    if (!own.has(term)) own.set(term, new Map([[term, 1]]));
  }
  for (const [term, weights] of own)
    for (const [other, weight] of synonymsOf(term)) if (!own.has(other)) weights.set(other, weight);
  for (const [at, word] of words.entries()) {
    const next = words[at + 1];
    if (next === undefined) break;
    for (const each of [word, next]) own.get(stemOf(each))?.set(stemOf(word + next), joinedWeight);
  }
  const concepts = [...own].map(([term, weights]) => ({ own: term, weights }));
  return asks.test(query) ? [...concepts, reading] : concepts;
}
