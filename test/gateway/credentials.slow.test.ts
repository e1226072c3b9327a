import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import {
  both,
  initializeOf,
  json,
  legacyCall,
  mirrored,
  modern,
  modernCall,
  toPairs,
} from "../support/http-wire.ts";
import { bin } from "../support/junctor-bin.ts";
import { RawSocket } from "../support/raw-http.ts";
import type { Frame } from "../support/wire-schema.ts";

// Invariant 6: credentials stop at the hop. Each secret is a text that occurs nowhere else; whatever crosses to the other
// side, and whatever is logged, is searched for it, also in base64 and encoded for a URL.

const fixture = fileURLToPath(new URL("../fixtures/gateway-echo.mjs", import.meta.url));

const client = {
  key: "client-key-canary-4b1f9a77c2d04",
  cookie: "client-cookie-canary-8d2e61b0f3",
  odd: "client-odd-header-canary-77aa19",
  proxy: "client-proxy-canary-19c0ffee4242",
  query: "client-query-canary-5150abadcafe",
};
const upstream = {
  header: "upstream-header-canary-c0deba5e",
  apiKey: "upstream-apikey-canary-fee1dead",
  env: "upstream-env-canary-0ddba11ca5cade",
  query: "upstream-query-canary-dabbad0000",
  argument: "upstream-argument-canary-f005ba11",
};

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

/** Which secrets are in a text, in any of the forms they may take. */
function secretsIn(text: string, secrets: { readonly [name: string]: string }): readonly string[] {
  return Object.entries(secrets).flatMap(([name, secret]) => {
    const inBase64 = Buffer.from(secret).toString("base64").slice(0, -4);
    const isThere = [secret, inBase64, encodeURIComponent(secret)].some((form) => text.includes(form));
    return isThere ? [`${name}: ${excerpt(text, secret)}`] : [];
  });
}

function excerpt(text: string, secret: string): string {
  const at = text.indexOf(secret);
  return text.slice(Math.max(0, at - 200), at + secret.length + 40);
}

interface Stage {
  readonly gateway: Gateway;
  readonly port: number;
  /** Everything the gateway logged or warned of. */
  log(): string;
  /** Everything the servers behind it got: messages, headers, URLs. */
  received(): string;
  /** Sends a message with every secret a client could have, and resolves with all that comes back. */
  send(message: Frame, more?: { readonly [name: string]: string | undefined }): Promise<string>;
}

interface StageOptions {
  readonly junctor?: object;
  readonly flags?: readonly string[];
  readonly servers?: (url: string) => object;
}

async function setStage({ junctor = {}, flags = [], servers }: StageOptions = {}): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "junctor-credentials-"));
  const files = ["pipe", "http"].map((name) => join(folder, name));
  for (const file of files) writeFileSync(file, "");
  const http = spawn(
    process.execPath,
    [fixture, "--http", "--era=modern", `--record=${files[1]}`, ...flags],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  cleanups.push(() => http.kill("SIGKILL"));
  const [printed] = (await once(http.stdout, "data")) as [Buffer];
  const url = `http://127.0.0.1:${Number(printed.toString())}/mcp`;
  const logged: string[] = [];
  const write =
    (level: string) =>
    (facts: object, text: string): void =>
      void logged.push(
        `${level} ${text} ${JSON.stringify(facts, (_, value: unknown) => (value instanceof Error ? describeError(value) : value))}`,
      );
  const log = { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
  const mcpServers = servers?.(url) ?? {
    pipe: {
      command: process.execPath,
      args: [fixture, `--record=${files[0]}`],
      env: { UPSTREAM_SECRET: upstream.env },
    },
    http: {
      url: `${url}?token=${upstream.query}`,
      headers: { Authorization: `Bearer ${upstream.header}`, "X-Api-Key": upstream.apiKey },
    },
  };
  const gateway = await createGateway(
    { mcpServers, junctor: { keys: { alice: { env: "CLIENT_KEY" } }, ...junctor } },
    { env: { CLIENT_KEY: client.key }, log },
  );
  cleanups.push(() => gateway.close());
  const { authenticate } = gateway;
  const onWarning = (text: string, error?: unknown): void =>
    void logged.push(`warning ${text} ${describeError(error)}`);
  const listener = await listenHttp(gateway.server, {
    port: 0,
    onWarning,
    ...(authenticate === undefined ? {} : { authenticate }),
  });
  cleanups.push(
    () => listener.close(),
    () => rmSync(folder, { recursive: true, force: true }),
  );
  await gateway.ready;
  return {
    gateway,
    port: listener.port,
    log: () => logged.join("\n"),
    received: () => files.map((file) => readFileSync(file, "utf8")).join("\n"),
    send: async (message, more = {}) => {
      using socket = new RawSocket(listener.port);
      const headers = {
        "content-type": json,
        accept: both,
        authorization: `Bearer ${client.key}`,
        cookie: `session=${client.cookie}`,
        "x-odd-header": client.odd,
        "x-forwarded-authorization": client.odd,
        "x-api-key": client.odd,
        "proxy-authorization": `Basic ${client.proxy}`,
        "mcp-param-region": client.odd,
        traceparent: client.odd,
        ...mirrored(message),
        ...more,
      };
      const path = `/mcp?access_token=${client.query}`;
      const reply = await socket.send({ path, headers: toPairs(headers), body: JSON.stringify(message) })
        .complete;
      return [JSON.stringify(reply.headers), reply.body, ...reply.events.map(({ data }) => data)].join("\n");
    },
  };
}

function describeError(error: unknown): string {
  return error instanceof Error ? `${error.stack} ${describeError(error.cause)}` : String(error);
}

/** Everything there is to ask of a gateway, of one server. */
function everything(server: string): readonly Frame[] {
  return [
    modern("server/discover"),
    modern("tools/list"),
    modern("prompts/list"),
    modern("resources/list"),
    modern("resources/templates/list"),
    modernCall(`${server}__echo`, { text: "hello" }),
    modernCall(`${server}__nothing`),
    modern("prompts/get", { name: `${server}__open` }),
    modern("prompts/get", { name: `${server}__nothing` }),
    modern("resources/read", { uri: "note://open" }),
    modern("resources/read", { uri: "other://open" }),
    modern("completion/complete", {
      ref: { type: "ref/prompt", name: `${server}__open` },
      argument: { name: "topic", value: "x" },
    }),
    modern("no/such/method"),
  ];
}

describe("what a client presents", () => {
  test("does not reach servers, their environment, the log or an answer", async () => {
    const stage = await setStage();
    const answers: string[] = [];
    for (const server of ["pipe", "http"]) {
      for (const message of everything(server)) answers.push(await stage.send(message));
    }
    answers.push(await stage.send(modernCall("pipe__about")));
    expect(answers.join()).toContain("UPSTREAM_SECRET");
    expect(stage.received()).toContain("tools/call");
    expect.soft(secretsIn(stage.received(), client), "servers").toEqual([]);
    expect.soft(secretsIn(answers.join("\n"), client), "answers").toEqual([]);
    expect.soft(secretsIn(stage.log(), client), "log").toEqual([]);
  });

  test("does not get through as a legacy client either, in its session or after it", async () => {
    const stage = await setStage();
    const own = { "mcp-method": undefined, "mcp-name": undefined, "mcp-protocol-version": undefined };
    const answer = await stage.send(initializeOf("2025-11-25", { roots: {} }), own);
    const session = { ...own, "mcp-session-id": /"mcp-session-id":"([^"]+)"/.exec(answer)?.[1] };
    const answers = [answer];
    for (const name of ["pipe__echo", "http__echo", "pipe__about", "none"])
      answers.push(await stage.send(legacyCall(1, name, {}), session));
    expect(answers.join()).toContain("UPSTREAM_SECRET");
    expect.soft(secretsIn(stage.received(), client), "servers").toEqual([]);
    expect.soft(secretsIn(answers.join("\n"), client), "answers").toEqual([]);
    expect.soft(secretsIn(stage.log(), client), "log").toEqual([]);
  });

  test("is not repeated when it is wrong", async () => {
    const stage = await setStage();
    const answers: string[] = [];
    for (const authorization of [
      `Bearer ${client.proxy}`,
      `Basic ${client.key}`,
      `Bearer ${client.key} ${client.proxy}`,
      `Bearer ${client.key}x`,
      client.key,
      undefined,
    ]) {
      const answer = await stage.send(modernCall("pipe__echo"), { authorization });
      expect(answer).toContain("Bearer KEY");
      answers.push(answer);
    }
    expect.soft(secretsIn(answers.join("\n"), client), "answers").toEqual([]);
    expect.soft(secretsIn(stage.log(), client), "log").toEqual([]);
    expect.soft(stage.received()).not.toContain("tools/call");
  });

  test("is not in the audit file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "junctor-audit-"));
    cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
    const file = join(folder, "audit.jsonl");
    const stage = await setStage({ junctor: { audit: file } });
    for (const server of ["pipe", "http"]) await stage.send(modernCall(`${server}__echo`));
    await stage.gateway.close();
    const audit = readFileSync(file, "utf8");
    expect(audit).toContain("alice");
    expect(secretsIn(audit, { ...client, ...upstream })).toEqual([]);
  });

  test("is not what a server is asked with: it gets the credentials of the config", async () => {
    const stage = await setStage();
    await stage.send(modernCall("http__echo"));
    expect(stage.received()).toContain(`Bearer ${upstream.header}`);
    expect(stage.received()).toContain(upstream.apiKey);
  });
});

describe("the credentials of a server", () => {
  test("are in no answer and no log while all is well", async () => {
    const stage = await setStage();
    const answers: string[] = [];
    for (const server of ["pipe", "http"]) {
      for (const message of everything(server)) answers.push(await stage.send(message));
    }
    expect.soft(secretsIn(answers.join("\n"), upstream), "answers").toEqual([]);
    expect.soft(secretsIn(stage.log(), upstream), "log").toEqual([]);
    expect.soft(secretsIn(JSON.stringify(stage.gateway.status()), upstream), "status").toEqual([]);
  });

  for (const status of [401, 403, 404, 500, 503]) {
    test(`are not passed on by a server that answers ${status} and repeats them`, async () => {
      const stage = await setStage({ flags: [`--refuse=${status}`] });
      const answers: string[] = [];
      for (const message of everything("http")) answers.push(await stage.send(message));
      // It is tried again now and then, and is starting for a moment.
      await expect
        .poll(() => stage.gateway.status().find(({ name }) => name === "http")?.status)
        .toBe("down");
      expect.soft(secretsIn(answers.join("\n"), upstream), "answers").toEqual([]);
      expect.soft(secretsIn(stage.log(), upstream), "log").toEqual([]);
      expect.soft(secretsIn(JSON.stringify(stage.gateway.status()), upstream), "status").toEqual([]);
    });
  }

  test("are not passed on by a server that refuses one list and repeats them", async () => {
    const stage = await setStage({ flags: ["--refuse-prompts"] });
    expect(stage.gateway.status().find(({ name }) => name === "http")?.trouble).toContain(
      "prompts cannot be listed",
    );
    const answers: string[] = [];
    for (const message of everything("http")) answers.push(await stage.send(message));
    expect.soft(secretsIn(answers.join("\n"), upstream), "answers").toEqual([]);
    expect.soft(secretsIn(stage.log(), upstream), "log").toEqual([]);
    expect.soft(secretsIn(JSON.stringify(stage.gateway.status()), upstream), "status").toEqual([]);
  });

  test("are not disclosed when nothing listens at its URL", async () => {
    const stage = await setStage({
      servers: () => ({
        http: {
          url: `http://127.0.0.1:1/mcp/?token=${upstream.query}`,
          headers: { Authorization: `Bearer ${upstream.header}` },
        },
        nowhere: {
          url: `http://nowhere.invalid/mcp?token=${upstream.query}`,
          headers: { "X-Api-Key": upstream.apiKey },
        },
      }),
    });
    const answers: string[] = [];
    for (const message of [...everything("http"), modernCall("nowhere__echo")])
      answers.push(await stage.send(message));
    expect.soft(secretsIn(answers.join("\n"), upstream), "answers").toEqual([]);
    expect.soft(secretsIn(stage.log(), upstream), "log").toEqual([]);
    expect.soft(secretsIn(JSON.stringify(stage.gateway.status()), upstream), "status").toEqual([]);
  });

  test("are not disclosed when a child prints them and exits", async () => {
    const stage = await setStage({
      servers: () => ({
        pipe: {
          command: process.execPath,
          args: [fixture, "--fail", `--token=${upstream.argument}`],
          env: { UPSTREAM_SECRET: upstream.env },
        },
      }),
    });
    const answers: string[] = [];
    for (const message of everything("pipe")) answers.push(await stage.send(message));
    expect(stage.log()).toContain("is down");
    expect.soft(secretsIn(answers.join("\n"), upstream), "answers").toEqual([]);
    // What stands in args is for everybody who can list processes.
    expect.soft(secretsIn(stage.log(), { env: upstream.env }), "log").toEqual([]);
  });

  test("are not disclosed when a program does not exist", async () => {
    const stage = await setStage({
      servers: () => ({
        pipe: { command: `no-such-program-${upstream.argument}`, env: { UPSTREAM_SECRET: upstream.env } },
      }),
    });
    const answers: string[] = [];
    for (const message of everything("pipe")) answers.push(await stage.send(message));
    expect.soft(secretsIn(answers.join("\n"), upstream), "answers").toEqual([]);
    expect.soft(secretsIn(stage.log(), { env: upstream.env }), "log").toEqual([]);
  });

  test("are not disclosed when a child prints them and dies in the middle of a call", async () => {
    const stage = await setStage();
    const answer = await stage.send(modernCall("pipe__die"));
    expect(answer).toContain("outcome_unknown");
    await expect.poll(() => stage.log()).toContain("pipe is down");
    const answers = [
      answer,
      await stage.send(modern("tools/list")),
      await stage.send(modernCall("pipe__echo")),
    ];
    expect.soft(secretsIn(answers.join("\n"), upstream), "answers").toEqual([]);
    expect.soft(secretsIn(stage.log(), upstream), "log").toEqual([]);
  });

  test("are not passed on in the message of an error of its own", async () => {
    const stage = await setStage();
    const answer = await stage.send(modernCall("pipe__scold"));
    expect(answer).toContain("are not enough");
    expect.soft(secretsIn(answer, upstream), "answers").toEqual([]);
    expect.soft(secretsIn(stage.log(), upstream), "log").toEqual([]);
  });
});

describe("a key that may use one server", () => {
  const keys = { alice: { env: "CLIENT_KEY", allow: ["http__*"] } };

  test("is told nothing of the others when they are down", async () => {
    const servers = (url: string): object => ({
      hidden: { command: process.execPath, args: [fixture, "--fail"] },
      http: { url },
    });
    const stage = await setStage({ junctor: { keys }, servers });
    const answers: string[] = [];
    for (const message of everything("http")) answers.push(await stage.send(message));
    expect(answers.join()).toContain("http__echo");
    expect(answers.filter((answer) => answer.includes("hidden"))).toEqual([]);
  });

  test("is not told how to use the others", async () => {
    const servers = (url: string): object => ({
      hidden: { command: process.execPath, args: [fixture, "--instructions=Launch with care."] },
      http: { url },
    });
    const stage = await setStage({ junctor: { keys }, servers, flags: ["--instructions=Say hello."] });
    const own = { "mcp-method": undefined, "mcp-name": undefined, "mcp-protocol-version": undefined };
    const answers = [
      await stage.send(modern("server/discover")),
      await stage.send(initializeOf("2025-11-25"), own),
    ];
    for (const answer of answers) {
      expect.soft(answer).toContain("Say hello.");
      expect.soft(answer).not.toContain("Launch with care.");
      expect.soft(answer).not.toContain("hidden");
    }
  });
});

test("junctor serve prints no secret, whatever its servers do and at every log level", async () => {
  const folder = mkdtempSync(join(tmpdir(), "junctor-serve-"));
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }));
  const refusing = spawn(process.execPath, [fixture, "--http", "--refuse=401"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  cleanups.push(() => refusing.kill("SIGKILL"));
  const [printed] = (await once(refusing.stdout, "data")) as [Buffer];
  const command = process.execPath;
  const env = { UPSTREAM_SECRET: "${UPSTREAM_ENV}" };
  const config = {
    mcpServers: {
      fine: { command, args: [fixture], env },
      failing: { command, args: [fixture, "--fail"], env },
      refusing: {
        url: `http://127.0.0.1:${Number(printed.toString())}/mcp?token=\${UPSTREAM_QUERY}`,
        headers: { Authorization: "Bearer ${UPSTREAM_HEADER}", "X-Api-Key": upstream.apiKey },
      },
      nowhere: { url: "http://127.0.0.1:1/mcp?token=${UPSTREAM_QUERY}" },
    },
    junctor: { keys: { alice: { env: "CLIENT_KEY" } } },
  };
  const file = join(folder, "mcp.json");
  writeFileSync(file, JSON.stringify(config));
  const serving = spawn(
    process.execPath,
    [bin, "serve", "--config", file, "--port", "0", "--log-level", "trace"],
    {
      env: {
        ...process.env,
        CLIENT_KEY: client.key,
        UPSTREAM_ENV: upstream.env,
        UPSTREAM_HEADER: upstream.header,
        UPSTREAM_QUERY: upstream.query,
      },
    },
  );
  const ended = once(serving, "close");
  cleanups.push(() => serving.kill("SIGKILL"));
  let output = "";
  let greeting = "";
  for (const stream of [serving.stdout, serving.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  serving.stdout.on("data", (text: string) => (greeting += text));
  const portOf = (): number => Number(/http:\/\/127\.0\.0\.1:(\d+)\/mcp/.exec(greeting)?.[1] ?? 0);
  await expect.poll(portOf).toBeGreaterThan(0);
  await expect.poll(() => output).toContain("failing is down");
  for (const name of ["fine__die", "fine__scold", "refusing__echo", "nowhere__echo"]) {
    using socket = new RawSocket(portOf());
    const call = modernCall(name);
    const own = {
      "content-type": json,
      accept: both,
      authorization: `Bearer ${client.key}`,
      cookie: client.cookie,
    };
    const pairs = toPairs({ ...own, ...mirrored(call) });
    const reply = await socket.send({ headers: pairs, body: JSON.stringify(call) }).complete;
    expect(reply.json).toMatchObject({ error: {} });
  }
  await expect.poll(() => output).toContain("fine is down");
  serving.kill("SIGTERM");
  await ended;
  expect(secretsIn(output, { ...client, ...upstream })).toEqual([]);
});
