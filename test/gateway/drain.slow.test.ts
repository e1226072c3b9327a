// Promise 5: SIGTERM and edits of the config lose nothing that fits the grace period. With the command as people run it.
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { modernCall, modernPost } from "../support/http-wire.ts";
import { exchange, type RawReply, RawSocket } from "../support/raw-http.ts";
import { type FrameReader, isAnswer, readFrames, toLine } from "../support/raw-wire.ts";
import type { Frame } from "../support/wire-schema.ts";
import { type CliGateway, type Family, familyOf, startCliGateway } from "./support/cli-gateway.ts";
import { statefulServer } from "./support/servers.ts";

const fixture = fileURLToPath(new URL("../fixtures/children/chaos-server.mjs", import.meta.url));
const chaos = { command: process.execPath, args: [fixture] };

let folder: string;
let config: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "junctor-drain-"));
  config = join(folder, "gateway.json");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const write = (mcpServers: object): void => writeFileSync(config, JSON.stringify({ mcpServers }));
const textOf = (answer: Frame | undefined): unknown =>
  (answer?.result as { readonly content?: readonly { readonly text: string }[] } | undefined)?.content?.[0]
    ?.text;
const callOver = (port: number, name: string, args: object = {}): Promise<RawReply> =>
  exchange(port, modernPost(modernCall(name, args)));
const stderrOf = ({ log }: CliGateway, server: string): readonly unknown[] =>
  log.flatMap((entry) => (entry.msg === "stderr" && entry["server"] === server ? [entry["stderr"]] : []));
const pidsOf = (gateway: CliGateway, server: string): readonly unknown[] =>
  stderrOf(gateway, server).filter((line) => String(line).startsWith("pid "));
const said = ({ log }: CliGateway, text: string): number => log.filter(({ msg }) => msg === text).length;
/** Makes a call over HTTP that does not end by itself. */
async function holdOver(gateway: CliGateway): Promise<{
  readonly port: number;
  readonly family: Family;
  readonly socket: RawSocket;
  readonly held: ReturnType<RawSocket["send"]>;
}> {
  const port = await gateway.port;
  const socket = new RawSocket(port);
  const held = socket.send(modernPost(modernCall("one__hold", { key: "k" })));
  await expect.poll(() => stderrOf(gateway, "one")).toContain("held k");
  const family = familyOf(gateway.process.pid!);
  return { port, family, socket, held };
}
async function isGone(family: Family): Promise<void> {
  await expect.poll(() => family.left()).toEqual([]);
}

describe.runIf(process.platform === "linux")("SIGTERM to a gateway over HTTP", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "lets calls finish on %s, refuses new ones, and leaves nothing behind",
    async (signal) => {
      write({ one: statefulServer(), two: statefulServer(["--stubborn"]) });
      await using gateway = startCliGateway(config, "--port", "0");
      const { port, family, socket, held } = await holdOver(gateway);
      using _ = socket;
      const [pid] = pidsOf(gateway, "one");
      gateway.process.kill(signal);
      const refused = async (): Promise<number> => (await callOver(port, "two__echo", { text: "hi" })).status;
      await expect.poll(refused).toBe(503);
      const health = await exchange(port, { method: "GET", path: "/health" });
      expect(health.status).toBe(503);
      expect(held.isComplete).toBe(false);
      process.kill(Number(String(pid).slice("pid ".length)), "SIGUSR2");
      expect(textOf((await held.complete).messages.at(-1))).toBe("released k");
      expect(await gateway.exited).toEqual({ code: 0, signal: null });
      await isGone(family);
    },
  );

  test("waits no longer than its grace period for a call that does not end", async () => {
    write({ one: statefulServer() });
    await using gateway = startCliGateway(config, "--port", "0");
    const { family, socket, held } = await holdOver(gateway);
    using _ = socket;
    gateway.process.kill("SIGTERM");
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    await held.closed;
    await isGone(family);
  });

  test("a second time ends it at once, and its children with it", async () => {
    write({ one: statefulServer() });
    await using gateway = startCliGateway(config, "--port", "0");
    const { port, family, socket } = await holdOver(gateway);
    using _ = socket;
    gateway.process.kill("SIGTERM");
    await expect.poll(async () => (await callOver(port, "one__echo")).status).toBe(503);
    gateway.process.kill("SIGTERM");
    expect(await gateway.exited).toEqual({ code: null, signal: "SIGTERM" });
    await isGone(family);
  });
});

/** A gateway on its standard streams, with what it says. */
async function startOnStdio(): Promise<CliGateway & FrameReader & { readonly send: (frame: Frame) => void }> {
  const gateway = startCliGateway(config, "--stdio");
  const reader = readFrames(gateway.process.stdout);
  const send = (frame: Frame): void => void gateway.process.stdin.write(toLine(frame));
  const first = { ...modernCall("one__echo", { text: "hi" }), id: "first" };
  send(first);
  expect(textOf(await reader.take((frame) => isAnswer(frame, "first")))).toBe("hi");
  return { ...gateway, ...reader, send };
}

describe.runIf(process.platform === "linux")("a gateway on standard streams", () => {
  test.each(["the end of its input", "SIGTERM"])(
    "answers what is underway on %s, exits with 0, and leaves nothing behind",
    async (end) => {
      write({ one: statefulServer(), slow: chaos });
      await using gateway = await startOnStdio();
      const family = familyOf(gateway.process.pid!);
      gateway.send({ ...modernCall("slow__work", { nonce: "n", ms: 600 }), id: "slow" });
      gateway.send({ ...modernCall("one__hold", { key: "k" }), id: "held" });
      await expect.poll(() => stderrOf(gateway, "one")).toContain("held k");
      if (end === "SIGTERM") gateway.process.kill("SIGTERM");
      else gateway.process.stdin.end();
      expect(textOf(await gateway.take((frame) => isAnswer(frame, "slow")))).toMatch(/^n \d+$/);
      process.kill(Number(String(pidsOf(gateway, "one")[0]).slice("pid ".length)), "SIGUSR2");
      expect(textOf(await gateway.take((frame) => isAnswer(frame, "held")))).toBe("released k");
      expect(await gateway.exited).toEqual({ code: 0, signal: null });
      await isGone(family);
    },
  );
});

/** How editors write a file. */
const ways: readonly (readonly [string, (text: string) => void])[] = [
  [
    "another file moved into place",
    (text) => {
      writeFileSync(`${config}.tmp`, text);
      renameSync(`${config}.tmp`, config);
    },
  ],
  ["the same file written over", (text) => writeFileSync(config, text)],
  [
    "the file moved away and a new one written",
    (text) => {
      renameSync(config, `${config}~`);
      writeFileSync(config, text);
    },
  ],
];

describe.runIf(process.platform === "linux")("an edit of the config", () => {
  test.each(ways)("%s: is refused and logged if it is bad, and taken if it is good", async (_, edit) => {
    const one = statefulServer([], { WHO: "one" });
    const two = statefulServer([], { WHO: "two" });
    write({ one, two });
    await using gateway = startCliGateway(config, "--port", "0", "--reload", "trust");
    const port = await gateway.port;
    const pids = (): readonly (readonly unknown[])[] => [pidsOf(gateway, "one"), pidsOf(gateway, "two")];
    await expect.poll(() => pids().map(({ length }) => length)).toEqual([1, 1]);
    const before = pids();

    const refused = "the edited config is not used; the last good one stays";
    edit('{ "mcpServers": { "one": ');
    await expect.poll(() => said(gateway, refused)).toBe(1);
    edit(JSON.stringify({ mcpServers: { one: { comand: "x" } } }));
    await expect.poll(() => said(gateway, refused)).toBe(2);
    const complaint = gateway.log.findLast(({ msg }) => msg === refused);
    expect(complaint?.["error"]).toContain("comand");
    expect((await callOver(port, "two__echo", { text: "hi" })).status).toBe(200);

    edit(JSON.stringify({ mcpServers: { one, two, three: statefulServer() } }));
    await expect.poll(() => said(gateway, "the config was read again")).toBe(1);
    const called = async (): Promise<unknown> =>
      textOf((await callOver(port, "three__echo", { text: "hi" })).messages.at(-1));
    await expect.poll(called).toBe("hi");
    expect(pids()).toEqual(before);

    gateway.process.kill("SIGTERM");
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
  });
});
