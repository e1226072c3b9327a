// What a middleware does holds for every method of the protocol that a provider serves, without code of its own: the table is walked.
import { describe, expect, test } from "vitest";
import { toProvider, valueOf } from "../../../../test/support/use-provider.ts";
import { NotFoundError, ToolError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import { type Items, type Method, methods, type Part } from "../../../core/src/mcp/methods.ts";
import type { AuditRecord } from "../../../core/src/provider/audit.ts";
import { createCallContext } from "../../../core/src/provider/context.ts";
import { Listing } from "../../../core/src/provider/listing.ts";
import { type Middleware, withMiddleware } from "../../../core/src/provider/middleware.ts";
import { createCompletion, createOperation, isLook } from "../../../core/src/provider/operation.ts";
import type { Operation, Outcome, Provider } from "../../../core/src/provider/provider.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { auditLog } from "./audit-log.ts";
import { limitRate, limitTime } from "./limits.ts";
import { redact } from "./redact.ts";

const context = createCallContext();
const secret = "ada@example.com";
const uri = "note://one/SKILL.md";

/** One thing in each list. A new list of the protocol does not compile before it is here. */
const things: Items = {
  tools: { name: "one", inputSchema: { type: "object" } },
  prompts: { name: "one" },
  resources: { uri, name: "one" },
  templates: { uriTemplate: "note://{name}/SKILL.md", name: "one" },
  skills: {
    uri,
    frontmatter: { name: "one", description: "One" },
    resources: [{ uri, digest: "", size: 1 }],
  },
  groups: { name: "one", description: "One", contents: { tools: ["one"] } },
};

/** A result of each method that says the secret. */
const resultOf = ({ method }: Operation): object => {
  if (method === "skills/get") return { skill: things.skills, secret };
  return method === "resources/directory/read" ? { resources: [things.resources], secret } : { secret };
};

const task = { ref: "7", message: secret, createdAt: 0, updatedAt: 0, ttlMs: null };

function createEverything(): { readonly provider: Provider; readonly made: string[] } {
  const made: string[] = [];
  const call = (operation: Operation): Outcome => {
    made.push(operation.method);
    const result = RawJson.fromValue(resultOf(operation));
    return operation.method === "tasks/get"
      ? { kind: "complete", result, task }
      : { kind: "complete", result };
  };
  const list: Provider["list"] = (part) => listings[part] as Listing<never>;
  return { provider: toProvider([], call, { list, offers: () => ({ serves: () => true }) }), made };
}

const listings = Object.fromEntries(
  Object.entries(things).map(([part, item]) => [part, new Listing(Object.freeze([item as object]))]),
) as { readonly [P in Part]: Listing<object> };

/** An operation for the one thing there is. */
function operationOf({ method, part }: Method): Operation {
  if (method === "completion/complete")
    return createCompletion(
      RawJson.fromValue({ ref: { type: "ref/prompt", name: "one" }, argument: { name: "a", value: "b" } }),
    );
  const name = part === "tools" || part === "prompts" || part === "groups" ? "one" : uri;
  return createOperation(method, name, { ref: method.startsWith("tasks/") ? "7" : undefined });
}

const rows = [...methods.values()];
const calls = rows.filter(({ verb }) => verb === "call").map((row) => [row.method, row] as const);
const lists = rows.flatMap(({ method, verb, part }) =>
  verb === "list" && part !== undefined ? [[method, part] as const] : [],
);
const through = (middleware: Middleware) => {
  const { provider, made } = createEverything();
  const clock = createVirtualClock();
  const guarded = withMiddleware(provider, [middleware], { clock });
  return { made, clock, call: async (operation: Operation) => guarded.call(operation, context), guarded };
};

describe.each(calls)("of %s", (method, row) => {
  const operation = operationOf(row);

  test("a refusal of beforeCall keeps it from the provider", async () => {
    const { call, made } = through({
      beforeCall: () => {
        throw new ToolError("not now");
      },
    });
    await expect(call(operation)).rejects.toThrow("not now");
    expect(made).toEqual([]);
  });

  test("a filter that leaves out what it is for hides it", async () => {
    const { call, made } = through({ filterTools: () => [] });
    await expect(call(operation)).rejects.toBeInstanceOf(NotFoundError);
    // A skill is judged by its files, which are known when it is there.
    expect(made).toEqual(method === "skills/get" ? [method] : []);
  });

  test("a change of afterCall reaches the caller", async () => {
    const changed = RawJson.fromValue({ changed: true });
    const { call } = through({ afterCall: () => ({ kind: "complete", result: changed }) });
    expect(valueOf(await call(operation))).toEqual({ changed: true });
  });

  test("a limit on the rate counts it, unless it only looks at a task", async () => {
    const { call } = through(limitRate({ callsPerMinute: 1 }));
    await call(operation);
    const second = call(operation).then(
      () => "made",
      () => "refused",
    );
    expect(await second).toBe(isLook(operation) ? "made" : "refused");
  });

  test("a limit on the time ends it", async () => {
    const { provider } = createEverything();
    const clock = createVirtualClock();
    const hanging: Provider = { ...provider, call: () => new Promise(() => {}) };
    const guarded = withMiddleware(hanging, [limitTime({ ms: 10 })], { clock });
    const ended = Promise.resolve(guarded.call(operation, context)).catch((error: unknown) => error);
    await clock.advance(10);
    expect(String(await ended)).toContain("was stopped");
  });

  test("redaction hides secrets in its result", async () => {
    const { call } = through(redact({ patterns: ["email"] }));
    const outcome = await call(operation);
    expect(JSON.stringify([valueOf(outcome), outcome.task])).not.toContain(secret);
    expect(valueOf(outcome)).toMatchObject({ secret: "[redacted]" });
  });

  test("the audit has a record of it", async () => {
    const records: AuditRecord[] = [];
    const { call } = through(auditLog({ record: (taken) => void records.push(taken) }));
    await call(operation);
    expect(records).toMatchObject([{ tool: operation.name, outcome: "ok" }]);
  });
});

describe.each(lists)("of %s", (_, part) => {
  test("a filter leaves out what is not for the caller", async () => {
    const { guarded } = through({ filterTools: () => [] });
    expect((await guarded.list(part, context)).items).toEqual([]);
  });

  test("redaction leaves out what is called like a secret", async () => {
    const { guarded } = through(redact({ patterns: [/one/] }));
    const { items } = await guarded.list(part, context);
    expect(JSON.stringify(items)).not.toContain('"one"');
  });
});
