import { describe, expect, test } from "vitest";
import { type Child, spawnServer } from "./support/child.ts";
import { envelope } from "./support/conversation.ts";
import { standsStill } from "./support/stands-still.ts";
import type { Frame } from "./support/wire-schema.ts";

const demo = (): Child => spawnServer("packages/junctor/dist/cli/main.js", "serve", "--stdio");
const noisy = (): Child => spawnServer("test/fixtures/noisy-server.mjs");
const late = (): Child => spawnServer("test/fixtures/late-server.mjs");

function call(
  id: string | number,
  name: string,
  args: object = {},
  meta: object = {},
): Frame & { id: typeof id } {
  return {
    id,
    method: "tools/call",
    params: { name, arguments: args, _meta: { ...envelope(), ...meta } },
  };
}

const textOf = ({ result }: Frame): unknown => (result as { content: { text: string }[] }).content[0]?.text;

describe("a server on standard streams", () => {
  test("writes nothing but messages to its standard output, whatever its tools write", async () => {
    await using child = noisy();
    await expect(child.request(call(1, "shout"))).resolves.toMatchObject({ id: 1 });
    child.process.stdin.end();
    await expect(child.exited).resolves.toEqual({ code: 0, signal: null });
    const noise = ["log on stdout", "info on stdout", "noise", "written to stdout", "bytes to stdout"];
    for (const text of [...noise, "error on stderr"]) expect(child.stderr()).toContain(text);
    expect(child.lines).toHaveLength(1);
  });

  test("does not hold up the next message for a slow tool", async () => {
    await using child = demo();
    child.send({ jsonrpc: "2.0", ...call("slow", "countdown", { from: 100 }) });
    await expect(child.request(call("quick", "add", { a: 2, b: 3 }))).resolves.toMatchObject({
      result: { content: [{ text: "5" }] },
    });
  });

  test("reads input that is cut anywhere", async () => {
    await using child = demo();
    const bytes = Buffer.from(
      `${JSON.stringify({ jsonrpc: "2.0", ...call(1, "echo", { message: "é日😀" }) })}\r\n`,
    );
    for (const byte of bytes) child.process.stdin.write(Uint8Array.of(byte));
    expect(textOf(await child.take())).toBe("é日😀");
  });

  test("discloses no detail of a tool's failure to the model, and all of it to the operator", async () => {
    await using child = noisy();
    const answer = await child.request(call(1, "crash"));
    expect(answer).toMatchObject({ result: { isError: true } });
    expect(textOf(answer)).not.toContain("secret");
    await expect.poll(() => child.stderr()).toContain("a secret");
  });

  test("goes on after an argument that the pattern of a tool would take hours for", async () => {
    await using child = noisy();
    const endless = await child.request(call(1, "coded", { code: `${"a".repeat(40)}!` }));
    expect(endless).toMatchObject({ result: { isError: true } });
    await expect.poll(() => child.stderr()).toContain("schema.exhausted");
    expect(textOf(await child.request(call(2, "coded", { code: "aaa" })))).toBe("aaa");
  });

  test.each([
    ["unknown_block", 'content[0] is of the unknown type "img"; did you mean "image"?'],
    ["misfit", "The tool's output does not fit its own schema"],
  ])("writes what is wrong with the result of a tool to its log: %s", async (tool, message) => {
    await using child = noisy();
    await expect(child.request(call(1, tool))).resolves.toMatchObject({ result: { isError: true } });
    await expect.poll(() => child.stderr()).toContain(message);
    expect(child.stderr()).toContain(`The tool ${tool} failed:`);
  });

  test("stops reading when nobody reads its answers, and loses none of them", async () => {
    await using child = demo();
    const { stdin, stdout } = child.process;
    await child.request(call("warm", "add", { a: 1, b: 1 }));
    stdout.pause();
    const total = 3000;
    const message = "x".repeat(16 * 1024);
    for (let id = 0; id < total; id++) child.send({ jsonrpc: "2.0", ...call(id, "echo", { message }) });
    await standsStill(() => stdin.writableLength);
    expect(stdin.writableLength).toBeGreaterThan(24 * 1024 * 1024);
    stdout.resume();
    await expect.poll(() => child.frames.length).toBe(total + 1);
    const ids = new Set(child.frames.map(({ id }) => id));
    expect(ids.size).toBe(total + 1);
  });

  test("starts no more calls than it can hold the answers of, and loses none of 200 MiB", async () => {
    await using child = noisy();
    const { stdout } = child.process;
    const seen = new Set<unknown>();
    stdout.pause();
    const total = 200;
    const send = (id: number): void =>
      child.send({ jsonrpc: "2.0", ...call(id, "large", { fill: id % 10 }) });
    send(0);
    // Part of an answer is here and the rest of it is stuck: the server can tell a reader that stalls from tools that are slow.
    await expect.poll(() => stdout.readableLength).toBeGreaterThan(0);
    for (let id = 1; id < total; id++) send(id);
    const begun = (): number => child.stderr().split("large has begun").length - 1;
    await expect.poll(begun).toBeGreaterThan(1);
    await standsStill(begun);
    expect(begun()).toBeLessThan(total - 1);
    // A call that waits can be cancelled.
    child.send({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: total - 1 } });
    stdout.removeAllListeners("data").setEncoding("utf8");
    let rest = "";
    stdout.on("data", (text: string) => {
      const lines = (rest + text).split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const { id, result } = JSON.parse(line) as Frame;
        if (textOf({ result }) === String(Number(id) % 10).repeat(1024 * 1024)) seen.add(id);
      }
    });
    stdout.resume();
    await expect.poll(() => seen.size).toBe(total - 1);
    expect(begun()).toBe(total - 1);
  });
});

describe.concurrent("a server on standard streams ends with code 0", () => {
  test.each([
    ["nothing runs", demo, undefined],
    ["a tool runs that ignores its signal", noisy, call(1, "stubborn")],
  ])("when its input ends and %s", async (_, start, running) => {
    await using child = start();
    await child.request(call("up", "echo", { message: "x" }));
    if (running !== undefined) child.send({ jsonrpc: "2.0", ...running });
    child.process.stdin.end();
    await expect(child.exited).resolves.toEqual({ code: 0, signal: null });
  });

  test("when its input ends and a tool runs, after the tool has answered", async () => {
    await using child = demo();
    await child.request(call("up", "echo", { message: "x" }));
    child.send({ jsonrpc: "2.0", ...call("slow", "countdown", { from: 3 }) });
    child.process.stdin.end();
    await expect(child.exited).resolves.toEqual({ code: 0, signal: null });
    expect(child.frames.at(-1)).toMatchObject({ id: "slow", result: { resultType: "complete" } });
  });

  test.each([
    ["", demo, (id: number) => call(id, "add", { a: id, b: 0 })],
    [", though its tools end only then", late, (id: number) => call(id, "late", { text: String(id) })],
  ])("when its input ends, after what was asked is answered in order%s", async (_, start, toCall) => {
    await using child = start();
    for (let id = 0; id < 100; id++) child.send({ jsonrpc: "2.0", ...toCall(id) });
    child.process.stdin.end();
    await expect(child.exited).resolves.toEqual({ code: 0, signal: null });
    expect(child.frames.map(textOf)).toEqual(Array.from({ length: 100 }, (_, id) => String(id)));
  });

  test.each([
    ["a tool runs", demo, call(1, "countdown", { from: 100 }, { progressToken: 1 })],
    ["a tool runs that ignores its signal", noisy, call(1, "stubborn")],
  ])("when nobody reads its output any more and %s", async (_, start, running) => {
    await using child = start();
    await child.request(call("up", "echo", { message: "x" }));
    child.send({ jsonrpc: "2.0", ...running });
    child.process.stdout.destroy();
    child.send({ jsonrpc: "2.0", ...call(2, "echo", { message: "to nobody" }) });
    await expect(child.exited).resolves.toEqual({ code: 0, signal: null });
    expect(child.stderr()).not.toContain("EPIPE");
  });

  test.each(["SIGTERM", "SIGINT"] as const)("on %s, though a tool runs", async (signal) => {
    await using child = demo();
    await child.request(call("up", "echo", { message: "x" }));
    child.send({ jsonrpc: "2.0", ...call(1, "countdown", { from: 100 }) });
    child.process.kill(signal);
    await expect(child.exited).resolves.toEqual({ code: 0, signal: null });
    expect(child.stderr()).toBe("");
  });

  test("on SIGTERM after the end of its input, and answers a request that it gives up", async () => {
    await using child = demo();
    child.send({ jsonrpc: "2.0", ...call(1, "countdown", { from: 100 }, { progressToken: 1 }) });
    await expect(child.take()).resolves.toMatchObject({ method: "notifications/progress" });
    child.process.stdin.end();
    child.process.kill("SIGTERM");
    await expect(child.exited).resolves.toEqual({ code: 0, signal: null });
    const data = { code: "channel.closed", delivery: "outcome_unknown" };
    expect(child.frames.at(-1)).toMatchObject({ id: 1, error: { code: -32603, data } });
  });
});

/** A line that is not right, and what it is answered with; nothing if it looks like a response or a notification. */
const corpus: readonly (readonly [line: string | Buffer, code: number | undefined])[] = [
  ["nonsense", -32700],
  ["{", -32700],
  ['{"jsonrpc":"2.0","id":1,"method":"ping"} trailing', -32700],
  ['\ufeff{"jsonrpc":"2.0","id":1,"method":"ping"}', -32700],
  [Buffer.from([0x22, 0xff, 0xfe, 0x22]), -32700],
  [Buffer.from([0x00]), -32700],
  ["7", -32600],
  ["null", -32600],
  ["[]", -32600],
  ['[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600],
  ["{}", -32600],
  ['{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600],
  ['{"jsonrpc":"2.0","id":null,"method":"ping"}', -32600],
  ['{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600],
  ['{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32600],
  ['{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}', -32600],
  ['{"jsonrpc":"2.0","id":1,"method":"ping","Method":"ping"}', -32600],
  ['{"jsonrpc":"2.0","id":1,"method":"ping","param\u017f":{}}', -32600],
  ["[".repeat(100_000), -32600],
  [`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":${"[".repeat(300)}${"]".repeat(300)}}}`, -32600],
  [`"${"x".repeat(17 * 1024 * 1024)}"`, -32600],
  ['{"jsonrpc":"2.0","id":1,"method":"tools/list"}', -32002],
  ['{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}', -32602],
  ['{"jsonrpc":"2.0","id":1,"result":{}}', undefined],
  ['{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', undefined],
  ['{"jsonrpc":"2.0","id":1,"error":{"code":"x"}}', undefined],
  ['{"jsonrpc":"2.0","method":"notifications/unknown"}', undefined],
  ['{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":1}}}', undefined],
  ['{"jsonrpc":"2.0","method":"notifications/cancelled","params":[]}', undefined],
  ["", undefined],
  [" \t \r", undefined],
];

test("a server is sent every kind of bad input, answers each as documented, and serves the next message", async () => {
  await using child = demo();
  for (const [line, code] of corpus) {
    const before = child.frames.length;
    child.process.stdin.write(line);
    child.process.stdin.write("\n");
    await expect(child.request({ id: "next", method: "ping" })).resolves.toMatchObject({ result: {} });
    const codes = child.frames.slice(before, -1).map(({ error }) => (error as { code: number }).code);
    const shown = String(line).slice(0, 100);
    expect([shown, ...codes]).toEqual([shown, ...(code === undefined ? [] : [code])]);
  }
  expect(child.stderr()).toBe("");
});
