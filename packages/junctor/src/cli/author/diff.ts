import { isDeepStrictEqual } from "node:util";
import { type Client, connect } from "@junctor/client";
import { BrandedError, RpcError } from "@junctor/core/errors";
import type { AskParams } from "@junctor/core/mcp";
import { createServer } from "@junctor/server";
import { type RecordedCall, replayProvider } from "../../author/index.ts";
import { diffLines, note, print, type Run, toSafeLine, toSafeText, UsageError } from "../terminal/index.ts";
import { assertUp, openOneServer } from "./one-server.ts";
import { openCassetteFile } from "./record.ts";

/** `junctor diff` */
export const diff: Run<"diff"> = async (parsed) => {
  const [file, named, stray] = parsed.operands;
  if (file === undefined) throw new UsageError("diff needs the file of a recording, such as weather.jsonl");
  if (stray !== undefined)
    throw new UsageError(`diff takes a file and one server, but got ${JSON.stringify(stray)} as well`);
  const cassette = openCassetteFile(file);
  const replayed = createServer(replayProvider(cassette), cassette.head);
  await using one = await openOneServer(parsed, named);
  await assertUp(one);
  const script = new Script();
  const target = createServer(one.gateway.provider, cassette.head);
  await using now = await connect({ server: target }, { handlers: script.handlers, validate: false });
  await using recorded = await connect({ server: replayed }, { handlers: script.handlers, validate: false });
  const differences = [...(await compareLists(recorded, now))];
  let calls = 0;
  if (!parsed.flags.definitions)
    for (const rounds of conversationsOf(cassette.calls)) {
      calls++;
      differences.push(...(await compareCall({ recorded, now, script }, rounds)));
    }
  for (const { what, lines } of differences)
    await print(`${[toSafeLine(what), ...lines.map(toSafeText)].join("\n")}\n`);
  const found =
    differences.length === 0
      ? "nothing differs"
      : `${differences.length} ${differences.length === 1 ? "difference" : "differences"}`;
  await note(
    `${found}${parsed.flags.definitions ? "" : `; ${calls} ${calls === 1 ? "call was" : "calls were"} made again`}\n`,
  );
  return differences.length === 0 ? 0 : 1;
};

interface Difference {
  readonly what: string;
  /** As `diff -u` marks them. */
  readonly lines: readonly string[];
}

/** Answers questions as they were answered when the call was recorded. Questions that were not recorded are declined. */
class Script {
  #left: { readonly asked: string; readonly answer: unknown }[] = [];

  begin(rounds: readonly RecordedCall[]): void {
    const answers = new Map(rounds.flatMap((round) => Object.entries(round.answers)));
    this.#left = rounds.flatMap(({ end }) =>
      end.kind !== "asks"
        ? []
        : Object.entries(end.asks).map(([key, { params = {} }]) => ({
            asked: JSON.stringify(params),
            answer: answers.get(key)?.value,
          })),
    );
  }

  #answer(params: AskParams): unknown {
    const asked = JSON.stringify(params);
    const at = this.#left.findIndex((each) => each.asked === asked && each.answer !== undefined);
    if (at === -1) throw new RpcError("rpc.other", `The recording has no answer to ${asked}`);
    return this.#left.splice(at, 1)[0]?.answer;
  }

  readonly handlers = {
    elicit: (params: AskParams) => this.#answer(params) as never,
    elicitUrl: (params: AskParams) => this.#answer(params) as never,
    sample: (params: AskParams) => this.#answer(params) as never,
    roots: () => (this.#answer({}) as { readonly roots: never[] }).roots,
  };
}

/** The recorded rounds of each call. */
function conversationsOf(calls: readonly RecordedCall[]): readonly (readonly RecordedCall[])[] {
  const made: RecordedCall[][] = [];
  for (const call of calls) {
    const isFirst = Object.keys(call.answers).length === 0;
    const begun = isFirst
      ? undefined
      : made.findLast(([first]) => first !== undefined && isSameCall(first, call));
    if (begun === undefined) made.push([call]);
    else begun.push(call);
  }
  return made;
}

function isSameCall(one: RecordedCall, other: RecordedCall): boolean {
  return (
    one.call === other.call &&
    one.name === other.name &&
    isDeepStrictEqual(one.arguments.value, other.arguments.value)
  );
}

async function compareLists(recorded: Client, now: Client): Promise<readonly Difference[]> {
  const lists = [
    ["tool", (client: Client) => client.listTools()],
    ["prompt", (client: Client) => client.listPrompts()],
    ["resource", (client: Client) => client.listResources()],
    ["template", (client: Client) => client.listResourceTemplates()],
  ] as const;
  const found = await Promise.all(
    lists.map(async ([kind, list]) => {
      const [before, after] = await Promise.all(
        [list(recorded), list(now)].map(async (listed) => byKey(await listed)),
      );
      const keys = [...new Set([...(before?.keys() ?? []), ...(after?.keys() ?? [])])].toSorted();
      return keys.flatMap((key) => toDifference(`${kind} ${key}`, before?.get(key), after?.get(key)));
    }),
  );
  return found.flat();
}

function byKey(items: readonly object[]): ReadonlyMap<string, unknown> {
  const keyOf = (item: { uriTemplate?: string; uri?: string; name?: string }): string =>
    item.uriTemplate ?? item.uri ?? item.name ?? "";
  return new Map(items.map((item) => [keyOf(item), item]));
}

interface Compared {
  readonly recorded: Client;
  readonly now: Client;
  readonly script: Script;
}

async function compareCall(
  { recorded, now, script }: Compared,
  rounds: readonly RecordedCall[],
): Promise<readonly Difference[]> {
  const [first] = rounds;
  if (first === undefined) return [];
  script.begin(rounds);
  const before = await outcomeOf(recorded, first);
  script.begin(rounds);
  const after = await outcomeOf(now, first);
  const args = first.arguments.text;
  const shown = args === "{}" ? "" : ` ${args.length > 120 ? `${args.slice(0, 119)}…` : args}`;
  return toDifference(`${first.call} ${first.name}${shown}`, before, after);
}

/** What a call gives, or how it fails. */
async function outcomeOf(client: Client, { call, name, arguments: args }: RecordedCall): Promise<unknown> {
  try {
    switch (call) {
      case "tools/call":
        return await client.callTool(name, args.value as object);
      case "prompts/get":
        return await client.getPrompt(name, args.value as { readonly [name: string]: string });
      case "resources/read":
        return await client.readResource(name);
      default:
        return await client.request(call, args.value as object);
    }
  } catch (error) {
    if (error instanceof RpcError) return { error: { code: error.rpcCode, message: error.message } };
    if (error instanceof BrandedError) return { error: { message: error.message } };
    throw error;
  }
}

function toDifference(what: string, before: unknown, after: unknown): readonly Difference[] {
  if (isDeepStrictEqual(before, after)) return [];
  const text = (value: unknown): string =>
    value === undefined ? "" : `${JSON.stringify(value, undefined, 2)}\n`;
  if (before === undefined) return [{ what: `+ ${what}`, lines: [] }];
  if (after === undefined) return [{ what: `- ${what}`, lines: [] }];
  return [{ what: `~ ${what}`, lines: diffLines(text(before), text(after)).map((line) => `  ${line}`) }];
}
