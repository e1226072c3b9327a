import { describeCommand } from "@junctor/client/internal";
import type { OurEntry } from "../../install/index.ts";
import { junctor } from "../../invocation/index.ts";
import { findServer, type Needed, officialRegistry, searchRegistry } from "../../registry/index.ts";
import { isAccepted } from "../config/index.ts";
import {
  describeError,
  note,
  type ParsedOf,
  print,
  type Run,
  toRows,
  toSafeLine,
  UsageError,
  watchInterrupt,
} from "../terminal/index.ts";

/** `junctor search` */
export const search: Run<"search"> = async (parsed) => {
  const words = parsed.operands.join(" ").trim();
  if (words === "") throw new UsageError(`write ${junctor("search")} WORDS`);
  using interruption = watchInterrupt();
  const base = parsed.flags.registry ?? officialRegistry;
  const found = await searchRegistry(base, words, interruption.signal).catch(refuse);
  if (parsed.flags.json) await print(`${JSON.stringify(found, undefined, 2)}\n`);
  else {
    const rows = toRows(
      found.map(({ name, version, description }) => [name, version, description].map(toSafeLine)),
    );
    await print(rows.map((row) => `${row}\n`).join(""));
    if (found.length > 0) await note(`${junctor("add")} NAME adds one of them\n`);
  }
  return found.length === 0 ? 1 : 0;
};

interface Listed {
  /** The name it gets in our config. */
  readonly name: string;
  readonly entry: OurEntry;
}

/** A server of a registry, after a person saw what it runs or reaches. Undefined when that was refused. */
export async function chooseListed(parsed: ParsedOf<"add">, given: string): Promise<Listed | undefined> {
  const { env, header, set, cwd, registry = officialRegistry } = parsed.flags;
  if (cwd !== undefined) throw new UsageError("--cwd is for servers with a command");
  const [, name = given, version] = /^(.+?)(?:@([^@/]+))?$/s.exec(given) ?? [];
  if (!/^[\w.-]{1,200}\/[\w.-]{1,200}$/.test(name))
    throw new UsageError(
      `${JSON.stringify(given)} is not a name of a registry: write io.github.OWNER/NAME or io.github.OWNER/NAME@VERSION`,
    );
  const values = new Map(
    [...env, ...set].map((pair) => split(pair, "=")).concat(header.map((pair) => split(pair, ":"))),
  );
  using interruption = watchInterrupt();
  const found = await findServer(registry, { name, version }, values, interruption.signal).catch(
    (error: unknown) => refuse(error, `${name}: `),
  );
  const entry: OurEntry = found.launch;
  const target = entry.url ?? describeCommand({ command: entry.command ?? "", args: entry.args ?? [] });
  const names = Object.keys(entry.env ?? entry.headers ?? {}).join(", ");
  const kind = entry.url === undefined ? ["It runs", "sets"] : ["It is at", "sends"];
  const lines = [
    `${found.name} ${found.version}${found.isDeprecated ? " (deprecated)" : ""}: ${found.description}`,
    `${kind[0]}: ${target}${names === "" ? "" : ` (${kind[1]} ${names})`}`,
  ];
  await note(lines.map((line) => `${toSafeLine(line)}\n`).join(""));
  if (found.missing.length > 0)
    throw new UsageError(`${name} wants ${found.missing.map(describeNeeded).join("; ")}`);
  if (!parsed.flags.yes) {
    if (!process.stdin.isTTY || !process.stderr.isTTY)
      throw new UsageError("there is no terminal to ask you on: write --yes if it may be added");
    if (!(await isAccepted("Add it? (y/N): "))) return undefined;
  }
  return { name: name.split("/").at(-1) ?? name, entry };
}

function split(pair: string, mark: string): readonly [string, string] {
  const at = pair.indexOf(mark);
  if (at <= 0) throw new UsageError(`${JSON.stringify(pair.slice(0, 20))} is wrong: write NAME${mark}VALUE`);
  return [pair.slice(0, at).trim(), pair.slice(at + 1).trim()];
}

function describeNeeded({ name, kind, description, isSecret }: Needed): string {
  const flags = { env: `--env ${name}=`, header: `--header '${name}: `, value: `--set ${name}=` };
  const example = `${flags[kind]}${isSecret ? "${VARIABLE}" : "VALUE"}${kind === "header" ? "'" : ""}`;
  return toSafeLine(`${example}${description === "" ? "" : ` (${description.slice(0, 200)})`}`);
}

function refuse(error: unknown, before = ""): never {
  throw new UsageError(`${before}${describeError(error)}`);
}
