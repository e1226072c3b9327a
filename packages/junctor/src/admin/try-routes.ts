import type { Caller } from "@junctor/core/mcp";
import { AdminError } from "./admin-error.ts";
import { type AdminRequest, optionalText, readBody } from "./admin-request.ts";
import type { AdminSource } from "./admin-source.ts";
import { EventSink } from "./sse.ts";
import type { Tries, TryRequest } from "./try-it.ts";

interface TryParts {
  readonly source: AdminSource;
  readonly tries: Tries;
  readonly headers: { readonly [name: string]: string };
}

const maxTryBytes = 4 * 1024 * 1024;

/** Makes a call for the person at the page. The answer is an event stream; hanging up cancels the call. */
export async function startTry(
  request: AdminRequest,
  { source, tries, headers }: TryParts,
): Promise<undefined> {
  const body = await readBody(request, ["tool", "prompt", "resource", "arguments", "as"], maxTryBytes);
  const wanted = (["tool", "prompt", "resource"] as const).flatMap((kind) => {
    const name = optionalText(body, kind);
    return name === undefined ? [] : [{ kind, name }];
  });
  const [first] = wanted;
  if (first === undefined || wanted.length > 1)
    throw new AdminError("admin.bad_request", "Write one of tool, prompt and resource");
  const args = body.at("arguments");
  if (args !== undefined && args.kind !== "object")
    throw new AdminError("admin.bad_request", "arguments must be an object");
  const caller = callerOf(source, optionalText(body, "as"));
  tries.assertRoom();
  const { kind, name } = first;
  const call: TryRequest = { ...ways[kind], name, args: kind === "resource" ? undefined : args, caller };
  let id: string | undefined;
  const sink = new EventSink(request.response, headers, () => {
    if (id !== undefined) tries.cancel(id);
  });
  await tries.run(call, sink, (open) => {
    id = open;
  });
  id = undefined;
  return undefined;
}

const ways = {
  tool: { method: "tools/call", key: "name" },
  prompt: { method: "prompts/get", key: "name" },
  resource: { method: "resources/read", key: "uri" },
} as const;

/** Most callers that an error names. */
const maxNamed = 20;

/** With keys or tokens, no call comes without a name, so the page has to say whose rights it uses. */
function callerOf({ gateway, hasKeys }: AdminSource, as: string | undefined): Caller | undefined {
  const { controls } = gateway;
  if (as === undefined) {
    if (!hasKeys()) return undefined;
    const known = controls.callers().slice(0, maxNamed).join(", ");
    const choice = known === "" ? "a caller; none has come in by a token yet" : `one of ${known}`;
    throw new AdminError("admin.bad_request", `Write as: ${choice}`);
  }
  if (!hasKeys()) throw new AdminError("admin.bad_request", "as is not needed: callers have no names");
  if (!controls.callers().includes(as))
    throw new AdminError(
      "admin.not_found",
      `There is no caller ${JSON.stringify(as)} in the config, and none came in lately`,
    );
  if (controls.isRevoked(as)) throw new AdminError("admin.conflict", `${as} is revoked`);
  return controls.identityOf(as) ?? { name: as };
}

export async function answerTry(
  request: AdminRequest,
  { tries }: TryParts,
): Promise<{ status: number; json: object }> {
  const answers = (await readBody(request, ["answers"])).at("answers");
  if (answers?.kind !== "object")
    throw new AdminError("admin.bad_request", "Write answers: an object by question");
  tries.answer(request.at.id ?? "", answers);
  return { status: 202, json: {} };
}

export function cancelTry(request: AdminRequest, { tries }: TryParts): { readonly json: object } {
  tries.cancel(request.at.id ?? "");
  return { json: {} };
}
