import { existsSync } from "node:fs";
import { resolve } from "node:path";
import {
  fileOf,
  readClientFile,
  readSection,
  writeOurConfig,
  type ClientProgram,
  clients,
  isOurEntry,
  ourName,
  type OurEntry,
  toOurEntry,
  addServers,
  whyRefused,
} from "../../install/index.ts";
import { junctor } from "../../invocation/index.ts";
import { note, print, type Run, toSafeLine, UsageError } from "../terminal/index.ts";
import {
  assertOwnTerminal,
  clientOf,
  configOf,
  mayWrite,
  tellGateways,
  thisMachine,
} from "./own-terminal.ts";
import { describeEntry, moveSecrets } from "./server-entries.ts";

/** `junctor import` */
export const importServers: Run<"import"> = async (parsed) => {
  assertOwnTerminal();
  const [word, stray] = parsed.operands;
  if (word === undefined || stray !== undefined) throw new UsageError("import takes one client or file");
  const { client, file, origin } = findSource(word);
  const read = readClientFile(file);
  if (!read.exists) throw new UsageError(`${client.title} has no servers to import: ${file} does not exist`);
  const entries = new Map<string, OurEntry>();
  for (const [name, value] of Object.entries(await readSection(client, file, read.text))) {
    if (name === ourName || isOurEntry(value)) continue;
    const taken = toOurEntry(client, value);
    const why = taken.kind === "entry" ? whyRefused(name, taken.entry) : taken.why;
    if (taken.kind !== "entry" || why !== undefined) {
      await note(`${toSafeLine(`${name} is left out: ${why ?? ""}`)}\n`);
      continue;
    }
    entries.set(name, taken.entry);
    if (taken.dropped.length > 0)
      await note(`${toSafeLine(`${name}: not carried over: ${taken.dropped.join(", ")}`)}\n`);
  }
  const config = configOf(parsed);
  const moved = moveSecrets(parsed, entries, false);
  const edit = addServers(config, origin, moved.entries);
  for (const [name, own] of edit.names)
    await note(
      `  ${toSafeLine(`${own}: ${describeEntry(entries.get(name) ?? {})}`)}${edit.added.includes(own) ? "" : edit.enabled.includes(own) ? " (known, now on)" : " (known)"}\n`,
    );
  if (edit.text === edit.file.text) await print("nothing is new\n");
  else if (await mayWrite(parsed, `Add ${edit.added.length} to ${toSafeLine(config)}?`)) {
    moved.write();
    writeOurConfig(edit.file, edit.text);
    await print(`${edit.added.length} added to ${toSafeLine(config)}\n`);
    await tellGateways(config);
  }
  return 0;
};

/** A client by its name, or a file by its path; the format of a file is recognised by the end of its name. */
function findSource(word: string): {
  /** The client that writes such files. */
  readonly client: ClientProgram;
  readonly file: string;
  /** What is added to a name that our config has for another server. */
  readonly origin: string;
} {
  if (!/[/\\.]/.test(word)) {
    const client = clientOf(word);
    return { client, file: fileOf(client, thisMachine()), origin: client.id };
  }
  const file = resolve(word);
  if (!existsSync(file))
    throw new UsageError(
      `${file} does not exist; name another file, or a client that ${junctor("clients")} lists`,
    );
  const known = clients.find((each) => each.files(thisMachine()).includes(file));
  const ending = /\.(toml|ya?ml)$/.exec(file)?.[1];
  const id = ending === "toml" ? "codex" : ending !== undefined ? "goose" : sectionIn(file);
  return { client: known ?? clientOf(id), file, origin: known?.id ?? "file" };
}

/** Which client writes such a file, by the name of its section. */
function sectionIn(file: string): string {
  const { text } = readClientFile(file);
  const found = [
    ["context_servers", "zed"],
    ["mcpServers", "cursor"],
    ["servers", "vscode"],
    ["mcp", "opencode"],
  ].find(([section]) => new RegExp(`"${section}"\\s*:`).test(text));
  return found?.[1] ?? "cursor";
}
