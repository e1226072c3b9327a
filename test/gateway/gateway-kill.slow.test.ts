// Promise 6: no orphan survives the gateway, even `kill -9` of it, however its children are wrapped.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, test } from "vitest";
import { type CliGateway, familyOf, startCliGateway } from "./support/cli-gateway.ts";

/** `node proof/attacks/chaos.mjs gateway` for a long run. */
const rounds = Number(process.env["JUNCTOR_GATEWAY_KILLS"] ?? 3);

const root = fileURLToPath(new URL("../..", import.meta.url));
const fixture = fileURLToPath(new URL("../fixtures/children/chaos-server.mjs", import.meta.url));
const stubborn = fileURLToPath(new URL("../fixtures/gateway-stateful.mjs", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "junctor-gateway-kill-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const node = process.execPath;
const config = join(folder, "gateway.json");
const mcpServers = {
  direct: { command: node, args: [fixture] },
  stubborn: { command: node, args: [stubborn, "--stubborn"] },
  shell: { command: "sh", args: ["-c", `"${node}" "${fixture}"; true`] },
  npx: {
    command: "npx",
    args: ["--no-install", "mcp-server-memory"],
    cwd: root,
    env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") },
  },
};
writeFileSync(config, JSON.stringify({ mcpServers }));
/** One each, two more of the shell and npm with its shell; and the guardian. */
const leastProcesses = 8;

const upOf = ({ log }: CliGateway): readonly string[] =>
  log.flatMap(({ msg }) => (msg.endsWith(" is up") ? [msg.slice(0, -" is up".length)] : [])).toSorted();

describe.runIf(process.platform === "linux")("a gateway that is killed", () => {
  test(
    `leaves no process of its children, ${rounds} times`,
    async () => {
      let slowestMs = 0;
      for (let round = 0; round < rounds; round++) {
        await using gateway = startCliGateway(config, "--port", "0");
        // Every second one is killed while its children are still starting.
        const isEarly = round % 2 === 1;
        const wanted = isEarly ? ["direct"] : Object.keys(mcpServers).toSorted();
        await expect.poll(() => upOf(gateway)).toEqual(expect.arrayContaining(wanted));
        const family = familyOf(gateway.process.pid!);
        if (!isEarly) expect(family.pids.length).toBeGreaterThanOrEqual(leastProcesses);
        const killedAt = performance.now();
        gateway.process.kill("SIGKILL");
        expect(await gateway.exited).toEqual({ code: null, signal: "SIGKILL" });
        await expect.poll(() => family.left()).toEqual([]);
        slowestMs = Math.max(slowestMs, performance.now() - killedAt);
      }
      if ("JUNCTOR_GATEWAY_KILLS" in process.env)
        console.log(`${rounds} gateways killed, nothing left after ${slowestMs.toFixed(0)} ms at most`);
    },
    rounds * 30_000,
  );
});
