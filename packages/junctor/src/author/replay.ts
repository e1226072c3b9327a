import { NotFoundError, RpcError } from "@junctor/core/errors";
import type { Items, Part } from "@junctor/core/mcp";
import {
  emptyListing,
  Listing,
  type Offers,
  type Operation,
  type Outcome,
  type Provider,
  thingOf,
} from "@junctor/core/provider";
import { type Cassette, type RecordedCall, redactJson, recordedParts } from "./cassette.ts";
import { isRecord } from "./print-type.ts";

/**
 * A provider that lists what a cassette has and answers each call as it was answered then. The same call that was made several times gives
 * each result in turn, and the last one from then on.
 */
export function replayProvider({ lists, calls }: Cassette): Provider {
  const listings = new Map<Part, Listing<object>>(
    recordedParts.map((part) => [part, new Listing<object>(Object.freeze([...lists[part]]))]),
  );
  const recorded = new Map<string, RecordedCall[]>();
  for (const call of calls) {
    const key = keyOf(call.call, call.name, call.arguments.value, valuesOf(call.answers));
    recorded.set(key, [...(recorded.get(key) ?? []), call]);
  }
  const offers = offersOf(lists, calls);
  const take = (operation: Operation): RecordedCall => {
    const { method, name, arguments: args, round } = operation;
    const found = recorded.get(keyOf(method, name, args.value, valuesOf(round?.answers ?? {})));
    const [first] = found ?? [];
    if (found === undefined || first === undefined) throw createMissing(operation, lists, calls);
    if (found.length > 1) found.shift();
    return first;
  };
  return {
    list: <P extends Part>(part: P) => (listings.get(part) ?? emptyListing) as unknown as Listing<Items[P]>,
    call: async (operation, context): Promise<Outcome> => {
      const { events, end } = take(operation);
      for (const event of events) await context.emit(event);
      switch (end.kind) {
        case "result":
          return { kind: "complete", result: end.result };
        case "asks":
          return { kind: "input_required", asks: end.asks };
        case "error": {
          const { code, message, data } = end.error;
          throw new RpcError("rpc.other", message, { rpcCode: code, data });
        }
      }
    },
    offers: () => offers,
  };
}

/** Offers what is recorded, and always tools. */
function offersOf(lists: Cassette["lists"], calls: readonly RecordedCall[]): Offers {
  const methods = new Set(calls.map(({ call }) => call));
  const hasPrompts = lists.prompts.length > 0 || methods.has("prompts/get");
  const hasResources = lists.resources.length + lists.templates.length > 0 || methods.has("resources/read");
  const offered = new Set([
    "tools/list",
    "tools/call",
    ...(hasPrompts ? ["prompts/list", "prompts/get"] : []),
    ...(hasResources ? ["resources/list", "resources/templates/list", "resources/read"] : []),
    ...(methods.has("completion/complete") ? ["completion/complete"] : []),
  ]);
  return { serves: (method) => offered.has(method) };
}

/** Why there is no such call, and which ones there are. */
function createMissing(
  operation: Operation,
  lists: Cassette["lists"],
  calls: readonly RecordedCall[],
): Error {
  const { method, name, part, round } = operation;
  const near = calls.filter((each) => each.call === method && each.name === name);
  const isListed = part === "tools" && lists.tools.some((tool) => tool.name === name);
  if (near.length === 0 && !isListed) return new NotFoundError(thingOf(operation), name);
  const wanted = keyOf(method, name, operation.arguments.value, {});
  const same = near.filter((each) => keyOf(method, name, each.arguments.value, {}) === wanted);
  if (round !== undefined && same.length > 0) {
    const answers = same
      .map((each) => JSON.stringify(valuesOf(each.answers)))
      .filter((each) => each !== "{}");
    return unrecorded(
      `its questions were answered otherwise in the cassette: ${answers.join(" or ") || "not at all"}`,
    );
  }
  const others = [...new Set(near.map((each) => clip(each.arguments.text)))].slice(0, 5);
  const hint = others.length === 0 ? "no call of it was recorded" : `recorded are ${others.join(", ")}`;
  return unrecorded(`the cassette has no call of ${name} with these arguments; ${hint}`);
}

function unrecorded(message: string): RpcError {
  return new RpcError("rpc.invalid_params", message);
}

function clip(text: string): string {
  return text.length > 200 ? `${text.slice(0, 199)}…` : text;
}

function valuesOf(answers: RecordedCall["answers"]): { readonly [key: string]: unknown } {
  return Object.fromEntries(Object.entries(answers).map(([key, raw]) => [key, raw.value]));
}

/** The order in which members were written makes no difference. What a recording hides is hidden here, too. */
function keyOf(method: string, name: string, args: unknown, answers: object): string {
  return redactJson(JSON.stringify([method, name, sortKeys(args), sortKeys(answers)]));
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([one], [other]) => (one < other ? -1 : 1))
      .map(([key, member]) => [key, sortKeys(member)]),
  );
}
