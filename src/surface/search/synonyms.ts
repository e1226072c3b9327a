import { stemOf } from "./stem.ts";

/** Words that people use for the same thing where tools are about it. Each is found for the others, at less weight. */
const groups =
  "create make add new provision spin|delete remove erase drop destroy clear|find search lookup locate|" +
  "update edit change modify set|rename title|send deliver forward|email mail|calendar agenda schedule appointment event meeting|" +
  "call phone ring dial|picture photo image|capture screenshot snapshot|deploy release rollout sync publish|" +
  "server droplet instance machine vm|container pod docker|issue ticket bug|task todo reminder|folder directory|file document|" +
  "repository repo|pr pull|comment reply note|person user member contact people|run execute exec invoke trigger|" +
  "stop cancel abort kill terminate|start launch begin|payment charge pay|invoice bill|refund reimburse|customer client|" +
  "order purchase buy|price cost|weather forecast|direction route navigate|place location address|website site page web|" +
  "spreadsheet sheet|row record entry|database db|log trace|metric monitor usage|chart graph plot diagram|" +
  "error exception crash failure|check verify validate|stash shelve aside|undo revert rollback restore|history changelog|" +
  "secret credential password|permission access role|attach attachment upload|download export save|copy duplicate clone|" +
  "archive close complete finish|notify notification alert|message chat conversation|sms text|word document docx|" +
  "kubernetes k8s cluster|branch fork|board column kanban|subscribe follow|tag label|size scale resize|summary overview|" +
  "question ask answer|translate language|crawl scrape extract|fetch read retrieve get|list show enumerate|login authenticate";

/** How much a synonym counts, of what the word itself does. */
export const synonymWeight = 0.4;

const byTerm = new Map<string, Set<string>>();
for (const group of groups.split("|")) {
  const terms = group.split(" ").map(stemOf);
  for (const term of terms) {
    const others = byTerm.get(term) ?? new Set();
    for (const other of terms) if (other !== term) others.add(other);
    byTerm.set(term, others);
  }
}

/** Other terms that say the same. */
export function synonymsOf(term: string): Iterable<string> {
  return byTerm.get(term) ?? [];
}
