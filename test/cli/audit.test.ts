import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import type { AuditRecord } from "../../packages/core/src/provider/audit.ts";
import { openAuditFile } from "../../packages/junctor/src/audit/audit-file.ts";
import { runNode } from "../support/child.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-audit-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const verify = (...args: readonly string[]): ReturnType<typeof runNode> =>
  runNode("packages/junctor/dist/cli/main.js", "audit", "verify", ...args);

test("audit verify says that a log is whole, where it is not, and exits by that", async () => {
  const path = join(folder, "audit.jsonl");
  {
    await using file = await openAuditFile({ path });
    for (const call of ["a", "b", "c"])
      await file.sink({ time: "2026-01-01", call, tool: "t" } as AuditRecord);
  }
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: {}, junctor: { audit: "audit.jsonl" } }), {
    mode: 0o600,
  });
  const whole = await verify("--config", config);
  expect(whole).toMatchObject({ code: 0, stderr: "" });
  expect(whole.stdout).toMatch(/^3 records in 1 file, .*\nlast hash: [0-9a-f]{64}\nThe log is whole\.\n$/);
  const [hash = ""] = /[0-9a-f]{64}/.exec(whole.stdout) ?? [];
  const text = readFileSync(path, "utf8");
  writeFileSync(path, text.replace('"call":"b"', '"call":"B"'));
  const edited = await verify(path, "--json");
  expect(edited.code).toBe(1);
  expect(JSON.parse(edited.stdout)).toMatchObject({
    faults: [{ file: path, line: 3, kind: "edited" }, { line: 4 }],
  });
  writeFileSync(path, `${text.split("\n").slice(0, 3).join("\n")}\n`);
  expect(await verify(path, "--expect", hash)).toMatchObject({ code: 1 });
  expect(await verify(join(folder, "absent"))).toMatchObject({ code: 2 });
});
