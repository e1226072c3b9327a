import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { demoServer, junctor } from "../support/junctor-bin.ts";

const [command = "", ...args] = demoServer;
const advice = "a variable it needs is not set: set NOT_SET_HERE, or write ${NOT_SET_HERE:-}";

let folder: string;
let file: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "junctor-unset-"));
  file = join(folder, "mcp.json");
  const mcpServers = { demo: { command, args }, github: { command, args: [...args, "${NOT_SET_HERE}"] } };
  writeFileSync(file, JSON.stringify({ mcpServers }));
});
afterAll(() => rmSync(folder, { recursive: true }));

test("check shows the server as disabled, with what to do, and the others as they are", async () => {
  const { code, stdout, stderr } = await junctor(["check", "--config", file]);
  expect(stdout).toMatch(/^✓ demo +up /m);
  expect(stdout).toMatch(/^! github +disabled /m);
  expect(stdout).toContain(`github: ${advice}.`);
  expect(stderr).toContain("1 of 2 servers are fine");
  expect(code).toBe(1);
});

test("the tools of the other servers can be called", async () => {
  const { code, stdout, stderr } = await junctor(["call", "demo__add", "a=1", "b=2", "--config", file]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "3\n" });
  expect(stderr).toContain("github is missing");
});

test("naming the server says why it is not there", async () => {
  const { code, stderr } = await junctor(["tools", "github", "--config", file]);
  expect(code).toBe(2);
  expect(stderr).toContain(`github is disabled: ${advice}`);
});
