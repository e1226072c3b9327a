// Workers with TLS, with an engine of their own, and the folder of their sockets.
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { familyOf } from "../gateway/support/cli-gateway.ts";
import { freePort } from "../support/free-ports.ts";
import { oddServer } from "../support/junctor-bin.ts";
import { startEngine } from "./support/engine.ts";
import { missingPrograms } from "./support/program.ts";
import { callOnce, startCrew, untilWorkers } from "./support/workers.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "junctor-apart-"));
  file = join(folder, "mcp.json");
});
afterEach(() => rmSync(folder, { recursive: true }));

const [command, ...args] = oddServer;
const odd = { command, args };
const certificates = fileURLToPath(new URL("../fixtures/tls", import.meta.url));

/** The fingerprint of the certificate that one connection is shown. */
function fingerprint(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().fingerprint256);
      socket.destroy();
    });
    socket.on("error", reject);
  });
}

test("each worker takes a renewed certificate", async () => {
  const [cert, key] = [join(folder, "own.pem"), join(folder, "own.key")];
  copyFileSync(join(certificates, "server.pem"), cert);
  copyFileSync(join(certificates, "server.key"), key);
  const config = { mcpServers: {}, junctor: { http: { tls: { cert, key } } } };
  await using crew = await startCrew(file, config, "--workers", "3");
  const [first] = await untilWorkers(crew, 3);
  const port = Number(new URL(first?.url ?? "").port);
  const shown = async (): Promise<ReadonlySet<string>> => {
    const all: string[] = [];
    for (let index = 0; index < 6; index++) all.push(await fingerprint(port));
    return new Set(all);
  };
  const before = await shown();
  expect(before.size).toBe(1);
  copyFileSync(join(certificates, "renewed.pem"), cert);
  copyFileSync(join(certificates, "renewed.key"), key);
  await expect.poll(async () => [...(await shown())].filter((each) => before.has(each))).toEqual([]);
  expect((await shown()).size).toBe(1);
});

const hasRedis = missingPrograms()?.includes("redis-server") !== true;
test.runIf(hasRedis)(
  "with an engine, workers are replicas of it, and one server is one process",
  async () => {
    const enginePort = await freePort();
    await using engine = await startEngine(enginePort, folder);
    await engine.untilTrusted();
    vi.stubEnv("JUNCTOR_STORE", engine.url);
    vi.stubEnv("JUNCTOR_SECRET", "a secret of all the replicas of this test");
    await using crew = await startCrew(file, { mcpServers: { odd } }, "--workers", "2");
    const port = await crew.port;
    await untilWorkers(crew, 2);
    const marks = new Set<string | undefined>();
    for (let index = 0; index < 6; index++)
      marks.add(/"JUNCTOR_GUARD":"[\w-]+"/.exec(await callOnce(port, "odd__environment", {}))?.[0]);
    expect([marks.size, marks.has(undefined)]).toEqual([1, false]);
    expect((await engine.commands()).size).toBeGreaterThan(0);
  },
);

test.each(["SIGTERM", "SIGKILL"] as const)("%s leaves no folder of their sockets", async (signal) => {
  const temporary = join(folder, "tmp");
  mkdirSync(temporary);
  vi.stubEnv("TMPDIR", temporary);
  await using crew = await startCrew(file, { mcpServers: { odd } }, "--workers", "2");
  const [first] = await untilWorkers(crew, 2);
  const sockets = (): readonly string[] =>
    readdirSync(temporary, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".trunk"));
  expect(sockets()).toHaveLength(2);
  // A worker that is killed cannot remove its own.
  process.kill(first?.pid ?? 0, "SIGKILL");
  await untilWorkers(crew, 2, [first?.pid ?? 0]);
  await expect.poll(sockets).toHaveLength(2);
  const family = familyOf(crew.process.pid ?? 0);
  crew.process.kill(signal);
  await crew.exited;
  await expect.poll(() => family.left()).toEqual([]);
  expect(readdirSync(temporary)).toEqual([]);
});
