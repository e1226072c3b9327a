// A server that the gateway starts finds none of the gateway's variables in `/proc`.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { startCliGateway } from "../gateway/support/cli-gateway.ts";
import { oddServer } from "../support/junctor-bin.ts";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "junctor-environment-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const snoop = fileURLToPath(new URL("../fixtures/snoop-server.mjs", import.meta.url));
const planted = {
  ADA_KEY: "planted-ada-0123456789",
  JUNCTOR_SECRET: "planted-secret-0123456789-0123456789",
  OTHER_TOKEN: "planted-other-0123456789",
  UNRELATED_PASSWORD: "planted-unrelated-0123456789",
};

interface Seen {
  readonly [pid: string]: { readonly name: string; readonly seen: string };
}

test.runIf(process.platform === "linux")("a server sees no key, secret or token of the gateway", async () => {
  for (const [name, value] of Object.entries(planted)) vi.stubEnv(name, value);
  const [command, ...args] = oddServer;
  const other = { command, args, env: { TOKEN: "${OTHER_TOKEN}" } };
  const keys = { ada: { env: "ADA_KEY" } };
  const file = join(folder, "mcp.json");
  const mcpServers = { snoop: { command: process.execPath, args: [snoop] }, other };
  writeFileSync(file, JSON.stringify({ mcpServers, junctor: { keys } }));
  await using gateway = startCliGateway(file, "--port", "0");
  const headers = { authorization: `Bearer ${planted.ADA_KEY}` };
  await using client = await connect(new URL(`http://127.0.0.1:${await gateway.port}/mcp`), { headers });

  const { pid = 0 } = gateway.process;
  const { content } = await client.callTool("snoop__look", { top: pid });
  const first = content[0] as { readonly text: string };
  const seen = Object.entries(JSON.parse(first.text) as Seen);
  const leaks = seen.flatMap(([each, { name, seen: text }]) => {
    const names = Object.entries(planted).flatMap(([key, value]) => (text.includes(value) ? key : []));
    return names.length === 0 ? [] : [[Number(each) === pid ? "the gateway" : name, names] as const];
  });
  // The gateway, its guardian, this server and the other one, which must have its own token in its environment.
  expect(seen).toHaveLength(4);
  const [own] = seen.filter(([each]) => Number(each) === pid);
  expect(own?.[1].seen).toContain("PATH=");
  expect(leaks).toEqual([[expect.stringContaining("odd-server"), ["OTHER_TOKEN"]]]);

  // The variables are still there for the gateway itself.
  const { content: environment } = await client.callTool("other__environment");
  expect(JSON.stringify(environment)).toContain(planted.OTHER_TOKEN);
});

test.runIf(process.platform === "linux")(
  "a server sees none of them at the primary and its workers",
  async () => {
    // The secrets of sessions are the primary's, where no folder can be written.
    writeFileSync(join(folder, "state"), "a file");
    const { JUNCTOR_SECRET: _, ...others } = planted;
    for (const [name, value] of Object.entries(others)) vi.stubEnv(name, value);
    const keys = { ada: { env: "ADA_KEY" } };
    const file = join(folder, "mcp.json");
    const mcpServers = { snoop: { command: process.execPath, args: [snoop] } };
    writeFileSync(file, JSON.stringify({ mcpServers, junctor: { keys, admin: { port: 0 } } }));
    vi.stubEnv("XDG_STATE_HOME", join(folder, "state"));
    await using gateway = startCliGateway(file, "--port", "0", "--workers", "3");
    const headers = { authorization: `Bearer ${planted.ADA_KEY}` };
    const url = new URL(`http://127.0.0.1:${await gateway.port}/mcp`);
    const { pid = 0 } = gateway.process;
    // Each has another connection, and so another worker.
    for (let round = 0; round < 3; round++) {
      await using client = await connect(url, { headers });
      const { content } = await client.callTool("snoop__look", { top: pid });
      const first = content[0] as { readonly text: string };
      const seen = Object.values(JSON.parse(first.text) as Seen);
      // The primary, three workers, one guardian and one server.
      expect(seen).toHaveLength(6);
      expect(seen.filter(({ name }) => name.includes("serve-worker"))).toHaveLength(3);
      const leaks = seen.filter(({ seen: text }) =>
        Object.values(planted).some((value) => text.includes(value)),
      );
      expect(leaks).toEqual([]);
    }
    const warnings = gateway.log.filter(({ msg }) => msg.includes("sessions end with this process"));
    expect(warnings.map(({ worker }) => worker)).toEqual([undefined]);
  },
);
