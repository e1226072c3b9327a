import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { connect as connectTcp } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Engine, startEngine } from "../cluster/support/engine.ts";
import { createReplica, type Replica } from "../cluster/support/gateway-process.ts";
import { freePorts } from "../support/free-ports.ts";
import { type Shop, startShop } from "./support/shop.ts";

interface Scale {
  readonly keys: number;
  readonly seed: number;
}

interface Tally {
  retries: number;
  kills: number;
  ended: number;
  unknown: number;
  refused: number;
  wrong: string[];
}

/** Runs everything, prints what it found, and resolves with whether nothing ran twice. */
export async function proveOnce({ keys, seed }: Scale): Promise<boolean> {
  await using shop = await startShop();
  const phases = await cutEveryPhase(shop);
  const hasRedis = spawnSync("redis-server", ["--version"]).error === undefined;
  if (!hasRedis) console.log("redis-server cannot be had here: the retries over replicas are skipped");
  const replicas = hasRedis ? await retryOverReplicas(shop, { keys, seed }) : true;
  const twice = [...shop.charged].filter(([, count]) => count !== 1);
  console.log(`orders charged more than once: ${twice.length} of ${shop.charged.size}`);
  return phases && replicas && twice.length === 0;
}

/** One gateway with a file for its calls; the connection is cut after each byte of the request, and at each moment of the call. */
async function cutEveryPhase(shop: Shop): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "junctor-once-"));
  const [port = 0, trunkPort = 0] = await freePorts(2);
  const config = join(folder, "mcp.json");
  const junctor = { admin: false, idempotency: { file: join(folder, "calls") } };
  writeFileSync(config, JSON.stringify({ mcpServers: { shop: shop.entry }, junctor }));
  const gateway = createReplica({
    name: "g",
    port,
    trunkPort,
    trunkPorts: [],
    folder,
    config,
    env: {},
    args: [],
  });
  await gateway.start();
  const wrong: string[] = [];
  let cuts = 0;
  try {
    const whole = toRequest("phase-0", "key-phase-0", port);
    const step = Math.max(1, Math.floor(whole.length / 60));
    for (let at = 0; at <= whole.length; at += step) {
      const order = `phase-${at}`;
      const text = toRequest(order, `key-${order}`, port);
      await cutAfter(port, text, Math.min(at, text.length));
      cuts++;
      const [one, two] = [await post(port, order), await post(port, order)];
      if (one.text !== two.text || !one.text.includes(order))
        wrong.push(`${order}: ${one.text} and ${two.text}`);
      if (shop.charged.get(order) !== 1) wrong.push(`${order} charged ${shop.charged.get(order)} times`);
    }
    // Killed with the call at the server, and after its end.
    const held = post(port, "held", true).catch(() => undefined);
    await shop.begun("held");
    const ended = await post(port, "ended");
    await gateway.end("SIGKILL");
    await held;
    shop.release("held");
    await gateway.start();
    const [unknown, again] = [await post(port, "held", true), await post(port, "ended")];
    if (!unknown.text.includes("rpc.outcome_unknown")) wrong.push(`after a kill: ${unknown.text}`);
    if (again.text !== ended.text) wrong.push(`after a kill: ${again.text} and not ${ended.text}`);
  } finally {
    await gateway.end();
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(
    `connections cut at ${cuts} places of a call and its answer, 1 kill of the gateway: ${wrong.length} wrong`,
  );
  for (const text of wrong.slice(0, 5)) console.log(`  ${text}`);
  return wrong.length === 0;
}

/** Three replicas in processes of their own. Each key is sent again and again, to any of them, while they and Redis die. */
async function retryOverReplicas(shop: Shop, { keys, seed }: Scale): Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), "junctor-once-"));
  const [enginePort = 0, ...ports] = await freePorts(7);
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { shop: shop.entry }, junctor: { admin: false } }), {
    mode: 0o600,
  });
  const engine = await startEngine(enginePort, folder);
  await engine.untilTrusted();
  const trunkPorts = ports.slice(3);
  const env = { JUNCTOR_STORE: engine.url, JUNCTOR_SECRET: "a-secret-of-the-proof-0123456789-abcdefgh" };
  const replicas = [0, 1, 2].map((number) =>
    createReplica({
      name: `r${number}`,
      port: ports[number] ?? 0,
      trunkPort: trunkPorts[number] ?? 0,
      trunkPorts,
      folder,
      config,
      env,
      args: [],
    }),
  );
  const tally: Tally = { retries: 0, kills: 0, ended: 0, unknown: 0, refused: 0, wrong: [] };
  try {
    await Promise.all(replicas.map((replica) => replica.start()));
    const random = createRandom(seed);
    const work = { left: keys };
    const trouble = makeTrouble(replicas, engine, random, work, tally);
    await Promise.all(Array.from({ length: 16 }, () => sendKeys(replicas, random, work, tally)));
    await trouble;
  } finally {
    for (const replica of replicas) await replica.end();
    await engine[Symbol.asyncDispose]();
    rmSync(folder, { recursive: true, force: true });
  }
  const { retries, kills, ended, unknown, refused, wrong } = tally;
  console.log(
    `${keys} keys, ${retries} requests over three replicas, ${kills} kills: ` +
      `${ended} ended with equal bytes, ${unknown} told that the outcome is unknown, ${refused} never sent, ${wrong.length} wrong`,
  );
  for (const text of wrong.slice(0, 5)) console.log(`  ${text}`);
  return wrong.length === 0;
}

/** Sends keys until none is left: each until two answers came, of any of the replicas. */
async function sendKeys(
  replicas: readonly Replica[],
  random: () => number,
  work: { left: number },
  tally: Tally,
): Promise<void> {
  while (work.left > 0) {
    const order = `order-${work.left--}`;
    const answers: string[] = [];
    for (let tries = 0; tries < 200 && answers.length < 3; tries++) {
      const { port } = replicas[Math.floor(random() * 3)]!;
      tally.retries++;
      const cutMs = random() < 0.3 ? random() * 20 : undefined;
      const answer = await post(port, order, false, cutMs).catch(() => undefined);
      if (answer === undefined || answer.text.includes('"not_sent"')) await pause(20);
      else answers.push(answer.text);
    }
    if (answers.length === 0) tally.refused++;
    else if (answers.some((text) => text !== answers[0]))
      tally.wrong.push(`${order}: ${answers.join(" | ")}`);
    else if (answers[0]?.includes(order) === true) tally.ended++;
    else if (answers[0]?.includes("rpc.outcome_unknown") === true) tally.unknown++;
    else tally.wrong.push(`${order}: ${answers[0]}`);
  }
}

/** Kills a replica every now and then, and Redis once in a while; each comes back. */
async function makeTrouble(
  replicas: readonly Replica[],
  engine: Engine,
  random: () => number,
  work: { readonly left: number },
  tally: Tally,
): Promise<void> {
  while (work.left > 0) {
    await pause(1500);
    tally.kills++;
    if (tally.kills % 4 === 0) {
      await engine.kill();
      await pause(200);
      await engine.start();
      continue;
    }
    const replica = replicas[Math.floor(random() * 3)]!;
    await replica.end("SIGKILL");
    await replica.start();
  }
}

interface Answer {
  /** The result or the error, without the id. */
  readonly text: string;
}

function toBody(order: string, waits: boolean): string {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "proof", version: "1" },
    "io.modelcontextprotocol/idempotencyKey": `key-${order}`,
  };
  const params = { name: "shop__charge", arguments: { order, waits }, _meta: meta };
  return JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
}

const headers = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/call",
  "mcp-name": "shop__charge",
};

/** Sends a call; after `cutMs` the connection is cut. */
function post(port: number, order: string, waits = false, cutMs?: number): Promise<Answer> {
  const body = toBody(order, waits);
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path: "/mcp", method: "POST", headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      answer.on("error", reject);
      answer.on("end", () => {
        stop();
        const { result, error } = JSON.parse(text.slice(text.indexOf("{"))) as Record<string, unknown>;
        resolve({ text: JSON.stringify(result ?? error) });
      });
      answer.on("close", () => reject(new Error("cut")));
    });
    const timer = cutMs === undefined ? undefined : setTimeout(() => sent.destroy(new Error("cut")), cutMs);
    const stop = (): void => clearTimeout(timer);
    sent.on("error", reject);
    sent.end(body);
  });
}

function toRequest(order: string, key: string, port: number): string {
  const body = toBody(order, false).replace(`key-${order}`, key);
  const lines = Object.entries({ ...headers, host: `127.0.0.1:${port}`, "content-length": body.length });
  return `POST /mcp HTTP/1.1\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`;
}

/** Sends the first bytes of a request and hangs up; after all of them, at the first byte of the answer. */
function cutAfter(port: number, text: string, bytes: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = connectTcp(port, "127.0.0.1", () => {
      if (bytes === 0) socket.destroy();
      else
        socket.write(text.slice(0, bytes), () => {
          if (bytes < text.length) socket.destroy();
        });
    });
    socket.once("data", () => socket.destroy());
    socket.on("close", () => resolve());
    socket.on("error", reject);
  });
}

/** Numbers from 0 to 1 that follow from the seed. */
export function createRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
