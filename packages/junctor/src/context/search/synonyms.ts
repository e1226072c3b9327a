import { stemOf } from "./stem.ts";

/**
 * Words that people use for the same thing where tools are about it: acts first, then things. Each is found for the others, at less
 * weight. A word may be in several groups; the words of one group are not words of another that shares one with it.
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

/** The same word, shortened or spelt in another way, and words that differ in nothing. */
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

/** Other terms that say the same, and how much each counts of what the term itself does. */
export function synonymsOf(term: string): Synonyms {
  byTerm ??= readTables();
  return byTerm.get(term) ?? none;
}

const none: Synonyms = new Map();

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
