// What the protocol may add crosses: members that we do not know arrive at the server, and at the caller, as they were sent.
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Client } from "../packages/client/src/client/client.ts";
import { connect } from "../packages/client/src/client/connect.ts";
import { RawJson } from "../packages/core/src/json/raw.ts";
import { methods } from "../packages/core/src/mcp/methods.ts";
import { encodeHeaderValue } from "../packages/core/src/mcp/mirrored-headers.ts";
import { createCallContext } from "../packages/core/src/provider/context.ts";
import { readOperation } from "../packages/core/src/provider/operation.ts";
import { toTaskJson } from "../packages/server/src/wire/tasks.ts";
import { startTestGateway, type TestGateway } from "./gateway/support/gateway.ts";
import { createRandom } from "./support/random.ts";
import { differences, listenRaw, type Members, type Request, sprinkle } from "./support/unknown-members.ts";

/** 10,000 in all with `UNKNOWN_MEMBERS_RUNS=10000`; a seed that failed is replayed by `UNKNOWN_MEMBERS_SEED`. */
const operationCount = Number(process.env["UNKNOWN_MEMBERS_RUNS"] ?? 250);
const firstSeed = Number(process.env["UNKNOWN_MEMBERS_SEED"] ?? 1);

/** Members that belong to one hop or one era: whoever sends a message writes its own. */
const ofHop = ["resultType", "ttlMs", "cacheScope"];
const isOfProtocol = (key: string): boolean =>
  key.startsWith("io.modelcontextprotocol/") || key === "progressToken" || key === "traceparent";

const prefix = "io.modelcontextprotocol";
const skillsId = `${prefix}/skills`;
const tasksId = `${prefix}/tasks`;

interface Upstream {
  readonly name: string;
  readonly isModern: boolean;
  readonly isStdio: boolean;
}
const upstreams: readonly Upstream[] = [
  { name: "pipe-new", isModern: true, isStdio: true },
  { name: "pipe-old", isModern: false, isStdio: true },
  { name: "web-new", isModern: true, isStdio: false },
  { name: "web-old", isModern: false, isStdio: false },
];
/** Who asks: over HTTP as it is, or by a client of ours. */
interface Caller {
  readonly isModern: boolean;
  readonly isOurs: boolean;
}
const callers: readonly Caller[] = [true, false].flatMap((isModern) =>
  [true, false].map((isOurs) => ({ isModern, isOurs })),
);
const vendorOf = (name: string): string => `com.example/${name}`;

const skillOf = (head: string): Members => ({
  uri: `${head}demo/SKILL.md`,
  frontmatter: { name: "demo", description: "A demonstration" },
  resources: [{ uri: `${head}demo/SKILL.md`, digest: `sha256:${"0".repeat(64)}`, size: 1 }],
});
const date = "2026-01-01T00:00:00.000Z";
const taskOf = (taskId: string, status: string): Members => ({
  taskId,
  status,
  createdAt: date,
  lastUpdatedAt: date,
  ttlMs: 600_000,
});

/** A kind of request: as a caller writes it and as its server does, and what the server answers. */
interface Kind {
  readonly method: string;
  /** The params, with names of the server or, behind a gateway, of the caller. */
  params(server: string, side: "own" | "public", taskId: string): Members;
  result(server: string, side: "own" | "public", taskId: string): Members;
  /** Objects that are maps, and have no members of the protocol's. */
  readonly maps?: readonly string[];
  /** Only between parties of the modern era. */
  readonly isModern?: true;
}
const nameOf = (server: string, side: "own" | "public", own: string): string =>
  side === "own" ? own : `${server}__${own}`;
const headOf = (server: string, side: "own" | "public"): string =>
  side === "own" ? "skill://" : `skill://${server}/`;
const block = { type: "text", text: "words", annotations: { priority: 1 } };

const kinds: readonly Kind[] = [
  {
    method: "tools/call",
    params: (server, side) => ({ name: nameOf(server, side, "echo"), arguments: { deep: { a: 1 } } }),
    result: (server) => ({
      content: [block, { type: "resource", resource: { uri: `note://${server}/a`, text: "a" } }],
      _meta: { "com.example/meta": {} },
    }),
  },
  {
    method: "prompts/get",
    params: (server, side) => ({ name: nameOf(server, side, "ask"), arguments: { who: "you" } }),
    result: () => ({ description: "asks", messages: [{ role: "user", content: block }] }),
    maps: ["arguments"],
  },
  {
    method: "resources/read",
    params: (server) => ({ uri: `note://${server}/a` }),
    result: (server) => ({ contents: [{ uri: `note://${server}/a`, mimeType: "text/plain", text: "a" }] }),
  },
  {
    method: "completion/complete",
    params: (server, side) => ({
      ref: { type: "ref/prompt", name: nameOf(server, side, "ask") },
      argument: { name: "who", value: "y" },
      context: { arguments: { other: "z" } },
    }),
    result: () => ({ completion: { values: ["you"], total: 1, hasMore: false } }),
    maps: ["context.arguments"],
  },
  {
    method: "skills/get",
    params: (server, side) => ({ uri: `${headOf(server, side)}demo/SKILL.md` }),
    result: (server, side) => ({ skill: skillOf(headOf(server, side)) }),
  },
  {
    method: "resources/directory/read",
    params: (server, side) => ({ uri: `${headOf(server, side)}demo` }),
    result: (server, side) => ({
      resources: [
        { uri: `${headOf(server, side)}demo/SKILL.md`, name: "SKILL.md", mimeType: "text/markdown" },
      ],
    }),
  },
  {
    method: "com.example",
    params: () => ({ at: { x: 1 } }),
    result: () => ({ found: { y: 2 } }),
  },
  {
    method: "tasks/get",
    params: (_, __, taskId) => ({ taskId }),
    result: (_, __, taskId) => ({ ...taskOf(taskId, "completed"), result: { content: [block] } }),
    isModern: true,
  },
  {
    method: "tasks/update",
    params: (_, __, taskId) => ({
      taskId,
      inputResponses: { ok: { action: "accept", content: { ok: true } } },
    }),
    result: () => ({}),
    maps: ["inputResponses"],
    isModern: true,
  },
  {
    method: "tasks/cancel",
    params: (_, __, taskId) => ({ taskId }),
    result: () => ({}),
    isModern: true,
  },
];

const listed: { readonly [method: string]: (server: string) => Members } = {
  "tools/list": () => ({
    tools: [{ name: "echo", description: "Echoes", inputSchema: { type: "object", properties: {} } }],
  }),
  "prompts/list": () => ({ prompts: [{ name: "ask", arguments: [{ name: "who" }] }] }),
  "resources/list": (server) => ({ resources: [{ uri: `note://${server}/a`, name: "a", annotations: {} }] }),
  "resources/templates/list": (server) => ({
    resourceTemplates: [{ uriTemplate: `note://${server}/{id}`, name: "any" }],
  }),
  "skills/list": () => ({ skills: [skillOf("skill://")] }),
};

describe("members that the protocol does not know", () => {
  let gateway: TestGateway;
  let raw: Awaited<ReturnType<typeof listenRaw>>;
  const lists = new Map<string, Members>();
  /** What the servers got since the last operation, and what they answer to the next. */
  let arrived: Request[] = [];
  let next: Members = {};
  /** Ids of tasks are used once: a server may not change a task that has ended. */
  let count = 0;

  const answer = (server: string, request: Request): Members | undefined => {
    const { isModern } = upstreams.find(({ name }) => name === server) as Upstream;
    const capabilities = {
      tools: {},
      prompts: {},
      resources: {},
      completions: {},
      extensions: { [skillsId]: { directoryRead: true }, [tasksId]: {}, [vendorOf(server)]: {} },
    };
    const complete = (result: Members): Members =>
      isModern ? { resultType: "complete", ttlMs: 0, cacheScope: "private", ...result } : result;
    const serverInfo = { name: server, version: "1" };
    const { method } = request;
    if (method === "server/discover")
      return isModern
        ? complete({
            supportedVersions: ["2026-07-28"],
            capabilities,
            serverInfo,
            _meta: { [`${prefix}/serverInfo`]: serverInfo },
          })
        : undefined;
    if (method === "initialize")
      return isModern ? undefined : { protocolVersion: "2025-11-25", capabilities, serverInfo };
    if (method === "ping") return {};
    const list = lists.get(`${server} ${method}`);
    if (list !== undefined) return complete(list);
    if (method === "subscriptions/listen") return undefined;
    arrived.push(request);
    return complete(next);
  };

  beforeAll(async () => {
    for (const { name } of upstreams)
      for (const [method, list] of Object.entries(listed))
        lists.set(
          `${name} ${method}`,
          sprinkle(list(name), createRandom(firstSeed), (path) => path === ""),
        );
    raw = await listenRaw(answer);
    const pipe = fileURLToPath(new URL("fixtures/line-pipe.mjs", import.meta.url));
    const entries = upstreams.map(({ name, isStdio }): [string, object] => [
      name,
      isStdio
        ? { command: process.execPath, args: [pipe], env: { RECORDER_URL: `${raw.url}/pipe/${name}` } }
        : { type: "http", url: `${raw.url}/web/${name}` },
    ]);
    const servers = upstreams.map(({ name }): [string, object] => [
      name,
      { extensions: { [vendorOf(name)]: { methods: [`${vendorOf(name)}/*`] } } },
    ]);
    gateway = await startTestGateway({
      mcpServers: Object.fromEntries<object>(entries),
      junctor: {
        servers: Object.fromEntries<object>(servers),
        perCaller: { completionsPerMinute: 1_000_000 },
      },
    });
  });
  afterAll(async () => {
    for (const client of clients.values()) await (await client).close();
    await gateway?.[Symbol.asyncDispose]();
    raw?.server.close();
  });

  const capabilities = {
    elicitation: {},
    extensions: Object.fromEntries(
      [tasksId, skillsId, ...upstreams.map(({ name }) => vendorOf(name))].map((id) => [id, {}]),
    ),
  };
  let session: Promise<string> | undefined;
  const post = (body: object, headers: { readonly [name: string]: string }): Promise<Response> =>
    fetch(gateway.url, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...headers,
      },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
    });
  const openSession = async (): Promise<string> => {
    const params = { protocolVersion: "2025-11-25", capabilities, clientInfo: { name: "raw", version: "1" } };
    const opened = await post({ id: 0, method: "initialize", params }, {});
    const id = opened.headers.get("mcp-session-id") ?? "";
    await opened.text();
    const more = { "mcp-session-id": id, "mcp-protocol-version": "2025-11-25" };
    await (await post({ method: "notifications/initialized" }, more)).text();
    return id;
  };
  /** Sends a request as a caller of an era would, and gives its result. */
  const ask = async (isModern: boolean, method: string, params: Members): Promise<Members> => {
    const row = methods.get(method);
    const subject = row?.name === undefined ? undefined : params[row.name];
    const meta = {
      [`${prefix}/protocolVersion`]: "2026-07-28",
      [`${prefix}/clientCapabilities`]: capabilities,
      [`${prefix}/clientInfo`]: { name: "raw", version: "1" },
      ...(params["_meta"] as object | undefined),
    };
    const response = isModern
      ? await post(
          { id: 1, method, params: { ...params, _meta: meta } },
          {
            "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
            ...(typeof subject === "string" ? { "mcp-name": encodeHeaderValue(subject) } : {}),
          },
        )
      : await post(
          { id: 1, method, params },
          { "mcp-session-id": await (session ??= openSession()), "mcp-protocol-version": "2025-11-25" },
        );
    const text = await response.text();
    const data = text.startsWith("{") ? text : (/^data: (.*"id":1.*)$/m.exec(text)?.[1] ?? "{}");
    const { result, error } = JSON.parse(data) as { readonly result?: Members; readonly error?: object };
    if (result === undefined) throw new Error(`${method}: ${JSON.stringify(error ?? text)}`);
    return result;
  };

  const clients = new Map<boolean, Promise<Client>>();
  /** The same by a client of ours, as far as it is a provider. */
  const askByClient = async (isModern: boolean, method: string, params: Members): Promise<Members> => {
    const revision = isModern ? "2026-07-28" : "2025-11-25";
    const client = await (clients.get(isModern) ?? connect(gateway.url, { revision, tasks: true }));
    clients.set(isModern, Promise.resolve(client));
    const raw = RawJson.parse(Buffer.from(JSON.stringify(params)));
    const row = methods.get(method);
    if (row === undefined) return (await client.request(method, params)) as Members;
    const operation = readOperation(row, raw);
    const made = row.kind === "task" ? { ...operation, name: "", ref: operation.name } : operation;
    const context = createCallContext({ capabilities, revision, meta: raw.at("_meta") });
    const outcome = await client.call(made, context);
    if (outcome.task !== undefined) return toTaskJson(outcome, outcome.task.ref).value as Members;
    if (outcome.kind !== "complete") throw new Error(`${method}: ${outcome.kind}`);
    return outcome.result.value as Members;
  };

  /** Without the members of a hop. */
  const bare = (message: Members): Members => {
    const { _meta, ...members } = message;
    const meta = Object.entries((_meta ?? {}) as Members).filter(([key]) => !isOfProtocol(key));
    return {
      ...Object.fromEntries(Object.entries(members).filter(([key]) => !ofHop.includes(key))),
      ...(meta.length === 0 ? {} : { _meta: Object.fromEntries(meta) }),
    };
  };

  const begin = async (server: string, own: string): Promise<string> => {
    next = { ...taskOf(own, "working"), resultType: "task" };
    const { taskId } = await ask(true, "tools/call", { name: `${server}__echo`, arguments: {} });
    return taskId as string;
  };

  const isOf = (kind: Kind, upstream: Upstream, isModern: boolean): boolean =>
    kind.isModern !== true || (upstream.isModern && isModern);

  /** One operation of a seed; gives the members that did not cross, by direction. */
  const run = async (
    kind: Kind,
    upstream: Upstream,
    { isModern, isOurs }: Caller,
    seed: number,
  ): Promise<{ readonly params: readonly string[]; readonly result: readonly string[] }> => {
    const { name: server } = upstream;
    const method = kind.method === "com.example" ? `${vendorOf(server)}/locate` : kind.method;
    const isTask = method.startsWith("tasks/");
    const own = `${method} ${seed} ${count++}`;
    const taskId = isTask ? await begin(server, own) : "";
    const isMap = (path: string): boolean => kind.maps?.includes(path) === true;
    const make = (make: Kind["params"], side: "own" | "public", offset: number): Members =>
      sprinkle(make(server, side, side === "own" ? own : taskId), createRandom(seed * 2 + offset), isMap);
    const meta = { _meta: { "com.example/trace": seed } };
    arrived = [];
    next = make(kind.result, "own", 1);
    const send = isOurs ? askByClient : ask;
    const result = await send(isModern, method, { ...make(kind.params, "public", 0), ...meta });
    const received = arrived.find((request) => request.method === method);
    if (received === undefined) throw new Error(`${method} did not arrive`);
    return {
      params: differences({ ...make(kind.params, "own", 0), ...meta }, bare(received.params ?? {})),
      result: differences(bare(make(kind.result, "public", 1)), bare(result)),
    };
  };

  const cells = kinds.flatMap((kind) =>
    upstreams.flatMap((upstream) =>
      callers
        .filter(({ isModern }) => isOf(kind, upstream, isModern))
        .map((caller) => ({ kind, upstream, caller })),
    ),
  );
  const each = Math.ceil(operationCount / cells.length);

  for (const kind of kinds) {
    describe(`of ${kind.method}`, () => {
      const own = cells.filter((cell) => cell.kind === kind);
      /** Why operations failed, and what they lost: apart, so that a failure is not taken for a loss that is expected. */
      const failures: string[] = [];
      const lost = { params: new Set<string>(), result: new Set<string>() };
      beforeAll(async () => {
        for (const { upstream, caller } of own)
          for (let seed = firstSeed; seed < firstSeed + each; seed++) {
            const where = `${caller.isModern ? "modern" : "legacy"} ${caller.isOurs ? "client" : "caller"}, ${upstream.name}, seed ${seed}`;
            try {
              const found = await run(kind, upstream, caller, seed);
              for (const direction of ["params", "result"] as const)
                for (const difference of found[direction])
                  if (difference.startsWith("lost ")) lost[direction].add(`${where}: ${difference}`);
                  else failures.push(`${where}: ${direction} ${difference}`);
            } catch (error) {
              failures.push(`${where}: ${String(error)}`);
            }
          }
      });

      test("arrives and is answered, with any unknown members", () => {
        expect(failures).toEqual([]);
      });
      for (const direction of ["params", "result"] as const)
        test(`keeps those of its ${direction}`, () => {
          expect([...lost[direction]].slice(0, 20)).toEqual([]);
        });
    });
  }

  test.each([true, false])("are kept in definitions, for a modern caller: %s", async (isModern) => {
    for (const method of Object.keys(listed)) {
      const member = methods.get(method)?.member ?? "";
      const result = await ask(isModern, method, {});
      const got = new Map((result[member] as readonly Members[]).map((item) => [keyOf(item), item]));
      for (const { name: server } of upstreams) {
        const [own] = (lists.get(`${server} ${method}`) as Members)[member] as readonly Members[];
        const item = JSON.parse(
          JSON.stringify(own).replaceAll('"skill://', `"skill://${server}/`),
        ) as Members;
        const expected =
          "uri" in item || "uriTemplate" in item
            ? item
            : { ...item, name: `${server}__${String(item["name"])}` };
        expect([method, server, differences(expected, got.get(keyOf(expected)))]).toEqual([
          method,
          server,
          [],
        ]);
      }
    }
  });
});

function keyOf(item: Members): unknown {
  return item["uri"] ?? item["uriTemplate"] ?? item["name"];
}
