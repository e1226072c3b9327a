// What becomes of calls whose audit record cannot be written.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { createCallContext } from "../../packages/core/src/provider/context.ts";
import { verifyAudit } from "../../packages/junctor/src/audit/verify.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { readAuditLines } from "../support/audit-lines.ts";
import { type Child, spawnServer } from "../support/child.ts";
import { envelope } from "../support/conversation.ts";
import { callTool, listTools } from "../support/use-provider.ts";
import type { Frame } from "../support/wire-schema.ts";
import { startTestGateway, type TestGateway } from "./support/gateway.ts";
import { statefulServer } from "./support/servers.ts";

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "junctor-audit-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const call = async ({ gateway }: TestGateway, name: string, args: object = {}): Promise<string> => {
  const context = createCallContext({ caller: "ada" });
  const outcome = callTool(gateway.provider, name, args, context);
  return Promise.resolve(outcome).then(
    (end) => (end.kind === "complete" ? end.result.text : end.kind),
    String,
  );
};

function createTools(ran: string[]): ReturnType<typeof createRegistry> {
  const registry = createRegistry();
  registry.register("look", { annotations: { readOnlyHint: true } }, () => (ran.push("look"), "seen"));
  registry.register("change", {}, () => (ran.push("change"), "changed"));
  return registry;
}

/** Every write to this file fails as on a disk that is full. */
const fullDisk = "/dev/full";

describe.skipIf(process.platform !== "linux")("on a disk that is full", () => {
  const failures = ({ log }: TestGateway): readonly string[] =>
    log.flatMap(({ level, text }) => (level === "error" && text.includes("audit") ? [text] : []));

  test("calls are refused before anything is sent, and the log says so once", async () => {
    const ran: string[] = [];
    const config = { mcpServers: { child: statefulServer() }, junctor: { audit: fullDisk } };
    await using at = await startTestGateway(config, { local: { own: createTools(ran) } });
    for (let round = 0; round < 3; round++) {
      expect(await call(at, "change")).toMatch(
        /refused and nothing was sent.*audit record cannot be written/,
      );
      expect(await call(at, "child__hold", { key: "x" })).toMatch(/refused and nothing was sent/);
    }
    expect(await call(at, "look")).toMatch(/refused and nothing was sent/);
    expect(ran).toEqual([]);
    expect(at.stderrOf("child")).not.toContain("held x");
    expect(failures(at)).toEqual(["audit records cannot be written: calls are refused"]);
  });

  test("a read whose record fails is withheld", async () => {
    const ran: string[] = [];
    await using at = await startTestGateway(
      { mcpServers: {}, junctor: { audit: fullDisk } },
      { local: { own: createTools(ran) } },
    );
    await listTools(at.gateway.provider);
    expect(await call(at, "look")).toMatch(/answer is withheld.*audit record cannot be written/);
    expect(await call(at, "look")).toMatch(/refused and nothing was sent/);
    expect(ran).toEqual(["look"]);
  });

  test("calls go on where the config says so, and the log says so once", async () => {
    const ran: string[] = [];
    await using at = await startTestGateway(
      { mcpServers: {}, junctor: { audit: { file: fullDisk, onFailure: "open" } } },
      { local: { own: createTools(ran) } },
    );
    for (const name of ["change", "look", "change"]) expect(await call(at, name)).not.toContain("audit");
    expect(ran).toEqual(["change", "look", "change"]);
    expect(failures(at)).toEqual(["audit records cannot be written: calls go on without a record"]);
  });
});

/** A gateway in a process of its own, with an audit file. */
function serve(folder: string, audit: object = {}): Child {
  const config = join(folder, "config.json");
  const junctor = { audit: { file: join(folder, "audit.jsonl"), ...audit } };
  writeFileSync(config, JSON.stringify({ mcpServers: { child: statefulServer() }, junctor }), {
    mode: 0o600,
  });
  return spawnServer("packages/junctor/dist/cli/main.js", "serve", "--stdio", "--config", config);
}

let ids = 0;
const echo = (text: string): Frame & { id: number } => ({
  id: ++ids,
  method: "tools/call",
  params: { name: "child__echo", arguments: { text }, _meta: envelope() },
});
const isRefused = ({ result }: Frame): boolean =>
  JSON.stringify(result).includes("audit record cannot be written");

const hasPrlimit = spawnSync("prlimit", ["--version"]).status === 0;

test.skipIf(!hasPrlimit)(
  "calls are served again when there is room again, and the log is whole",
  async () => {
    const folder = newFolder();
    await using child = serve(folder);
    await child.request(echo("first"));
    const limit = (bytes: string): void =>
      void execFileSync("prlimit", ["--pid", String(child.process.pid), `--fsize=${bytes}:unlimited`]);
    for (const bytes of [4000, 5001, 6100]) {
      limit(String(bytes));
      let answered = 0;
      while (!isRefused(await child.request(echo("more")))) expect(answered++).toBeLessThan(20);
      expect(isRefused(await child.request(echo("more")))).toBe(true);
      limit("unlimited");
      expect(isRefused(await child.request(echo("again")))).toBe(false);
    }
    expect(child.stderr()).toMatch(/audit records cannot be written: calls are refused[^]*written again/);
    child.process.stdin.end();
    await child.exited;
    const path = join(folder, "audit.jsonl");
    expect((await verifyAudit(path)).faults).toEqual([]);
    // What the disk took of a record before it was full is told in the next line.
    expect(readFileSync(path, "utf8")).toContain('"torn":');
  },
);

test("kill -9 tears no line, and every answered call has both of its records", async () => {
  const folder = newFolder();
  const path = join(folder, "audit.jsonl");
  const answered = new Set<string>();
  for (let round = 0; round < 2; round++) {
    const child = serve(folder, { maxBytes: 20_000, keep: 1000 });
    await child.request(echo(`start ${round}`));
    const calls = Array.from({ length: 100 }, async (_, index) => {
      const text = `${round} ${index}`;
      await child.request(echo(text));
      answered.add(text);
      if (answered.size === 30 + round * 37) child.process.kill("SIGKILL");
    });
    await Promise.race([child.exited, Promise.allSettled(calls)]);
    child.process.kill("SIGKILL");
    await child.exited;
  }
  await using last = serve(folder, { maxBytes: 20_000, keep: 1000 });
  await last.request(echo("last"));
  last.process.stdin.end();
  await last.exited;
  const report = await verifyAudit(path);
  expect(report.faults).toEqual([]);
  expect(answered.size).toBeGreaterThan(50);
  let begun = 0;
  let ended = 0;
  for (const file of report.files)
    for (const { outcome, event } of await readAuditLines(file)) {
      if (event !== undefined) continue;
      if (outcome === "begun") begun++;
      else ended++;
    }
  expect(ended).toBeGreaterThanOrEqual(answered.size);
  expect(begun).toBeGreaterThanOrEqual(ended);
});
