// Policies hold for tools, resources, prompts and completions alike.
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { RawJson } from "../../packages/core/src/json/raw.ts";
import { type CallContext, createCallContext } from "../../packages/core/src/provider/context.ts";
import { createCompletion, createOperation } from "../../packages/core/src/provider/operation.ts";
import type { Operation } from "../../packages/core/src/provider/provider.ts";
import { createCompletionRegistry } from "../../packages/server/src/registry/completion.ts";
import { createPromptRegistry } from "../../packages/server/src/registry/prompts.ts";
import { createRegistry, type Registry } from "../../packages/server/src/registry/registry.ts";
import { createResourceRegistry } from "../../packages/server/src/registry/resources.ts";
import { readAuditCalls } from "../support/audit-lines.ts";
import { listItems } from "../support/use-provider.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";

const mail = "ada@example.com";
const token = `ghp_${"a1".repeat(18)}`;
const kinds = ["tool", "prompt", "resource", "completion"] as const;
type Kind = (typeof kinds)[number];

/** A provider whose everything is called `secret` or `open` and says an address; `hang` never answers. */
function createEverything(): Registry {
  const [prompts, resources, completion] = [
    createPromptRegistry(),
    createResourceRegistry(),
    createCompletionRegistry(),
  ];
  const registry = createRegistry({ prompts, resources, completion });
  const never = (): Promise<string> => new Promise(() => {});
  const text = `from ${mail}`;
  for (const name of ["open", "secret", "hang", token]) {
    const say = name === "hang" ? never : () => text;
    const described = { title: text, description: text };
    registry.register(name, { ...described, input: { type: "object" } }, say);
    prompts.register(name, described, say);
    resources.register(`note://${name}`, { name: text, ...described }, say);
    resources.registerTemplate(`${name.replace("_", "-")}://${name}/{id}`, { name: text, ...described }, say);
    completion.registerPrompt(name, "a", async () => [await say()]);
  }
  return registry;
}

const start = (junctor: object, folder?: string): Promise<TestGateway> =>
  startTestGateway(
    { mcpServers: {}, junctor },
    { local: { own: createEverything() }, ...(folder === undefined ? {} : { folder }) },
  );

const completionOf = (ref: object, argument: string): Operation =>
  createCompletion(RawJson.fromValue({ ref, argument: { name: argument, value: "" } }));

/** Uses a thing of some kind; resolves with what came back as text, or the error. */
async function use(
  { gateway }: TestGateway,
  kind: Kind,
  name: string,
  context: CallContext = createCallContext({ caller: "ada" }),
): Promise<string> {
  const operations: { readonly [kind in Kind]: Operation } = {
    tool: createOperation("tools/call", name),
    prompt: createOperation("prompts/get", name),
    resource: createOperation("resources/read", `note://${name}`),
    completion: completionOf({ type: "ref/prompt", name }, "a"),
  };
  try {
    const outcome = await gateway.provider.call(operations[kind], context);
    return outcome.kind === "complete" ? outcome.result.text : outcome.kind;
  } catch (error) {
    return String(error);
  }
}

async function listsOf({ gateway }: TestGateway): Promise<{ readonly [part: string]: readonly object[] }> {
  const context = createCallContext({ caller: "ada" });
  const parts = ["tools", "prompts", "resources", "templates"] as const;
  const lists = parts.map(async (part) => [part, await listItems(gateway.provider, part, context)] as const);
  return Object.fromEntries(await Promise.all(lists));
}

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "junctor-policy-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

test("redaction holds for results of every kind, and for all that lists say", async () => {
  await using at = await start({ redact: ["email"] });
  for (const kind of kinds) {
    const told = await use(at, kind, "open");
    expect(told).toContain("from [redacted]");
    expect(told).not.toContain(mail);
  }
  for (const items of Object.values(await listsOf(at))) {
    expect(items).toHaveLength(4);
    for (const item of items)
      expect(item).toMatchObject({ title: "from [redacted]", description: "from [redacted]" });
    expect(JSON.stringify(items)).not.toContain(mail);
  }
});

test("what has a secret for its name is not listed, and a tool or prompt cannot be used by it", async () => {
  await using at = await start({ redact: ["github-token"] });
  for (const items of Object.values(await listsOf(at))) {
    expect(items).toHaveLength(3);
    expect(JSON.stringify(items)).not.toContain(token);
  }
  for (const kind of ["tool", "prompt", "completion"] as const)
    expect(await use(at, kind, token)).toMatch(/NotFoundError/);
});

test.each(kinds)("the rate limit counts a %s", async (kind) => {
  await using at = await start({ limits: { callsPerMinute: 2 } });
  expect(await use(at, kind, "open")).toContain(mail);
  expect(await use(at, kind, "open")).toContain(mail);
  for (const other of kinds) expect(await use(at, other, "open")).toMatch(/No more than 2 calls a minute/);
  expect(await use(at, kind, "open", createCallContext({ caller: "bob" }))).toContain(mail);
});

test.each(kinds)("the time limit stops a %s", async (kind) => {
  await using at = await start({ limits: { callTimeoutMs: 20 } });
  expect(await use(at, kind, "hang")).toMatch(/was not done after 0.02 s and was stopped/);
});

test("the audit has a record of every kind, and of what was refused", async () => {
  const folder = await newFolder();
  {
    await using at = await start({ audit: "audit.jsonl", deny: ["secret", "note://secret"] }, folder);
    await listsOf(at);
    for (const kind of kinds) for (const name of ["open", "secret"]) await use(at, kind, name);
  }
  const records = await readAuditCalls(join(folder, "audit.jsonl"));
  expect(
    records.map(({ kind = "tool", tool, server, caller, outcome }) => [kind, tool, server, caller, outcome]),
  ).toEqual(
    kinds.flatMap((kind) => {
      const prefix = kind === "resource" ? "note://" : "";
      return [
        [kind, `${prefix}open`, "own", "ada", "ok"],
        [kind, `${prefix}secret`, "own", "ada", "refused"],
      ];
    }),
  );
});

test("a module's hooks see every kind, and what they leave out of a list cannot be used", async () => {
  const folder = await newFolder();
  await writeFile(
    join(folder, "mine.mjs"),
    `const kindOf = ({ method, part }) => (method === "completion/complete" ? "completion" : part.slice(0, -1));
     export default {
       filterTools: (items, context, part) =>
         items.filter((item) => !(item.uriTemplate ?? item.uri ?? item.name).includes("secret")),
       beforeCall: (call) => { if (call.name.includes("hang")) throw new Error("not this " + kindOf(call)); },
       afterCall: (call, end) => end.kind === "complete" ? { kind: "failed", error: new Error("after " + kindOf(call)) } : undefined,
     };`,
  );
  await using at = await start({ middleware: ["./mine.mjs"] }, folder);
  for (const items of Object.values(await listsOf(at))) expect(items).toHaveLength(3);
  for (const kind of kinds) {
    expect(await use(at, kind, "secret")).toMatch(/NotFoundError/);
    expect(await use(at, kind, "hang")).toContain(`not this ${kind}`);
    expect(await use(at, kind, "open")).toContain(`after ${kind}`);
  }
  const { provider } = at.gateway;
  const context = createCallContext();
  const call = async (operation: Operation): Promise<unknown> => provider.call(operation, context);
  const watch = async (name: string): Promise<unknown> =>
    provider.watch?.({ part: "resources", name, ref: undefined }, context, () => {});
  for (const uri of ["note://secret", "note://secre%74", "secret://secret/1"]) {
    await expect(call(createOperation("resources/read", uri))).rejects.toThrow("not found");
    await expect(watch(uri)).rejects.toThrow("not found");
  }
  const ref = { type: "ref/resource", uri: "secret://secret/{id}" };
  await expect(call(completionOf(ref, "id"))).rejects.toThrow("not found");
});

test("an edit of the config changes the policy of every kind", async () => {
  await using at = await start({});
  for (const kind of kinds) expect(await use(at, kind, "open")).toContain(mail);
  await at.gateway.update({ mcpServers: {}, junctor: { redact: ["email"] } });
  for (const kind of kinds) expect(await use(at, kind, "open")).toContain("[redacted]");
  expect(JSON.stringify(await listsOf(at))).not.toContain(mail);
});

test.each([
  ["with keys", { keys: { ada: { sha256: "0".repeat(64) } } }],
  ["without keys", {}],
])("status counts what clients are listed, and not what rules keep from them: %s", async (_how, keys) => {
  await using all = await start(keys);
  await using some = await start({ ...keys, deny: ["secret", "own__note://secret"] });
  await expect.poll(() => all.gateway.status()).toMatchObject([{ tools: 4, prompts: 4, resources: 8 }]);
  await expect.poll(() => some.gateway.status()).toMatchObject([{ tools: 3, prompts: 3, resources: 7 }]);
  const { tools } = await listsOf(some);
  expect(tools).toHaveLength(3);
});
