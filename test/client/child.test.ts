import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { ChildCommand } from "../../packages/client/src/child/child.ts";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect, type ConnectOptions } from "../../packages/client/src/client/connect.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import { ConnectError } from "../../packages/core/src/errors/index.ts";
import { isAlive } from "../support/processes.ts";

const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/children/${name}`, import.meta.url));
const script = pathOf("server.mjs");
const node = process.execPath;

/** What the fixture tells about itself. */
interface Facts {
  readonly pid: number;
  readonly grandchild?: number;
  readonly env: { readonly [name: string]: string };
  readonly cwd: string;
}

async function start(command: ChildCommand, options: ConnectOptions = {}): Promise<Client> {
  const client = await connect(command, { eras: createEraCache(), stageMs: 200, ...options });
  onTestFinished(() => client[Symbol.asyncDispose]());
  return client;
}

const fixture = (...flags: readonly string[]): ChildCommand => ({ command: node, args: [script, ...flags] });
const factsOf = async (client: Client): Promise<Facts> =>
  (await client.callTool("facts")).structuredContent as Facts;
const failure = async (connecting: Promise<unknown>): Promise<ConnectError> =>
  (await connecting.catch((error: unknown) => error)) as ConnectError;

describe("a child", () => {
  test("leads a process group of its own", async () => {
    const { pid } = await factsOf(await start(fixture()));
    expect(isAlive(pid)).toBe(true);
    expect(() => process.kill(-pid, 0)).not.toThrow();
  });

  test("gets a short list of our environment and what is named, and nothing else", async () => {
    vi.stubEnv("JUNCTOR_CANARY", "a secret");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "another");
    const client = await start({ ...fixture(), env: { NAMED: "yes", EMPTY: "" } });
    const { env } = await factsOf(client);
    expect(env).toMatchObject({ NAMED: "yes", EMPTY: "", PATH: process.env["PATH"] });
    expect(Object.values(env)).not.toContain("a secret");
    const ours = new Set(Object.keys(process.env));
    const passed = Object.keys(env).filter((name) => ours.has(name));
    expect(passed.filter((name) => /SECRET|TOKEN|KEY|CANARY|VITEST/.test(name))).toEqual([]);
  });

  test("runs in the folder that was named", async () => {
    expect((await factsOf(await start({ ...fixture(), cwd: "/" }))).cwd).toBe("/");
  });

  test("that ends on the probe is started again and spoken to in its own way", async () => {
    const client = await start(fixture("--exit-on-probe"));
    expect((await client.agreement()).mode.kind).toBe("legacy");
    await factsOf(client);
  });

  test("that answers the probe and then ends is started again too", async () => {
    const client = await start(fixture("--answer-and-exit"));
    expect((await client.agreement()).mode.kind).toBe("legacy");
  });

  test("whose standard error nobody reads is not stopped by that", async () => {
    const client = await start(fixture(`--flood=${4 * 1024 * 1024}`));
    expect((await factsOf(client)).pid).toBeGreaterThan(0);
  });

  test("that ended is started again for the next call", async () => {
    const client = await start(fixture());
    const { pid } = await factsOf(client);
    process.kill(pid, "SIGKILL");
    await expect.poll(() => isAlive(pid)).toBe(false);
    const again = await expect
      .poll(() => factsOf(client).catch(() => undefined))
      .toBeDefined()
      .then(() => factsOf(client));
    expect(again.pid).not.toBe(pid);
  });
});

describe("a child that does not start", () => {
  test("because there is no such program is an error that says so", async () => {
    const error = await failure(connect({ command: "no-such-program-anywhere", args: ["--x"] }));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error).toMatchObject({
      kind: "no_program",
      reason: 'there is no program "no-such-program-anywhere" here',
      delivery: "not_sent",
    });
  });

  test.each([["/no/such/folder"], [process.execPath]])(
    "because there is no folder %s is another error",
    async (cwd) => {
      const error = await failure(connect({ command: node, args: ["-e", ""], cwd }));
      expect(error).toMatchObject({
        kind: "no_folder",
        reason: `there is no folder ${JSON.stringify(cwd)} to run ${JSON.stringify(node)} in`,
      });
    },
  );

  test("because the program is missing says so, also with a folder that exists", async () => {
    const error = await failure(connect({ command: "no-such-program-anywhere", cwd: "/" }));
    expect(error).toMatchObject({ kind: "no_program" });
  });

  test("because it is another kind of program is an error with the first line that is not a message", async () => {
    const said = `Usage: \u001b[1mserver\u001b[0m ${"x".repeat(300)}\nmore\n`;
    const code = `process.stdout.write(${JSON.stringify(said)}, () => process.exit(2))`;
    const heard: string[] = [];
    const error = await failure(
      connect({ command: node, args: ["-e", code] }, { onStray: (line) => heard.push(line) }),
    );
    expect(error).toMatchObject({ kind: "exited", reason: "it exited with code 2" });
    expect(error.stray).toMatch(/^Usage: server x+…$/);
    expect(error.stray).toHaveLength(200);
    expect(error.message).toContain(error.stray);
    expect(new Set(heard)).toEqual(new Set([error.stray]));
  });

  test("because it fails is an error with how it ended and what it wrote", async () => {
    const error = await failure(connect(fixture("--fail"), { eras: createEraCache() }));
    expect(error).toBeInstanceOf(ConnectError);
    expect(error.message).toContain("it exited with code 7");
    expect(error.message).toContain("Set DATABASE_URL and try again.");
    expect(error.stderr).toContain("The database is not there.");
  });

  test("in time is an error with what it wrote, and leaves no process", async () => {
    const code = "console.error('waiting', process.pid); process.stdin.resume(); setInterval(()=>{},1000)";
    const error = await failure(
      connect(
        { command: node, args: ["-e", code] },
        { probeTimeoutMs: 300, connectTimeoutMs: 300, stageMs: 200 },
      ),
    );
    expect(error.message).toContain("no answer to initialize within 300 ms");
    expect(error.stderr).toMatch(/waiting \d+/);
    const pid = Number(/waiting (\d+)/.exec(error.stderr)?.[1]);
    await expect.poll(() => isAlive(pid)).toBe(false);
  });

  test("keeps the end of what it wrote, not all of it", async () => {
    const code = "process.stderr.write('y'.repeat(100000) + 'THE END', () => process.exit(3))";
    const error = await failure(connect({ command: node, args: ["-e", code] }));
    expect(error.stderr.length).toBeLessThanOrEqual(16 * 1024);
    expect(error.stderr).toMatch(/THE END$/);
  });
});

describe("closing", () => {
  // Longer than any test may take: nothing but the end of its input ends the child.
  const endless = { stageMs: 600_000 };

  test("a child that ends with its input is not waited for longer", async () => {
    const client = await start(fixture(), endless);
    const { pid } = await factsOf(client);
    await client[Symbol.asyncDispose]();
    expect(isAlive(pid)).toBe(false);
  });

  test("a child that ignores the end of its input and SIGTERM ends all the same", async () => {
    const client = await start(fixture("--ignore-eof", "--ignore-term"));
    const { pid } = await factsOf(client);
    await client[Symbol.asyncDispose]();
    expect(isAlive(pid)).toBe(false);
  });

  test("a child that hangs in a call is not waited for longer than another", async () => {
    const client = await start(fixture(), endless);
    await client.listTools();
    const call = client.callTool("hang").catch((error: unknown) => error);
    await client[Symbol.asyncDispose]();
    expect(await call).toMatchObject({ name: "ClosedError" });
  });

  const chains: readonly [string, ChildCommand][] = [
    ["its own grandchild", fixture("--grandchild")],
    ["a shell that waits", { command: "sh", args: ["-c", `"${node}" "${script}" --grandchild; true`] }],
    [
      "a shell with a job in the background",
      { command: "sh", args: ["-c", `exec 3<&0; "${node}" "${script}" --grandchild <&3 & wait`] },
    ],
    ["a wrapper like npx", { command: node, args: [pathOf("wrapper.mjs"), node, script, "--grandchild"] }],
    [
      "two wrappers and a shell",
      {
        command: node,
        args: [pathOf("wrapper.mjs"), node, pathOf("wrapper.mjs"), node, script, "--grandchild"],
      },
    ],
  ];
  test.each(chains)("leaves nothing of %s", async (_, command) => {
    const client = await start(command);
    const { pid, grandchild } = await factsOf(client);
    expect(isAlive(grandchild!)).toBe(true);
    await client[Symbol.asyncDispose]();
    await expect.poll(() => [pid, grandchild!].filter(isAlive)).toEqual([]);
  });

  test("a child that is killed leaves nothing either", async () => {
    const client = await start(fixture("--grandchild"));
    const { pid, grandchild } = await factsOf(client);
    process.kill(pid, "SIGKILL");
    await expect.poll(() => [pid, grandchild!].filter(isAlive)).toEqual([]);
  });
});
