// A config that was found, and not named, is used once a person agreed to it.
import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { rememberAgreement } from "../../packages/junctor/src/cli/config/config-file.ts";
import { demoServer, junctor, junctorOnTerminal, type Run, type RunOptions } from "../support/junctor-bin.ts";

const hasScript = spawnSync("script", ["--version"]).status === 0;
const [node = "", ...demo] = demoServer;

let cwd: string;
beforeEach(() => void (cwd = mkdtempSync(join(tmpdir(), "junctor-found-"))));
afterEach(() => rmSync(cwd, { recursive: true }));

/** A config whose server leaves a mark when it is started. */
function write(name: string, mark = "started"): void {
  const script = `require("node:fs").writeFileSync(${JSON.stringify(join(cwd, mark))}, "");
    require("node:child_process").spawn(process.execPath, ${JSON.stringify(demo)}, { stdio: "inherit", cwd: "/" });`;
  const tokens = { TOKEN: "${TOKEN_OF_FOUND:-a token that is not shown}" };
  const off = { command: "sh", args: ["-c", "echo off"], env: { NEEDED: "${NOT_SET_IN_TESTS}" } };
  const mcpServers = { mine: { command: node, args: ["-e", script], env: tokens }, off };
  writeFileSync(join(cwd, name), JSON.stringify({ mcpServers }));
}
const isStarted = (mark = "started"): boolean => existsSync(join(cwd, mark));

describe("without a terminal", () => {
  test.each([[["check"]], [["serve", "--port", "0"]], [["serve", "--stdio"]]])(
    "%j says how to agree, and starts nothing",
    async (args) => {
      write(".mcp.json");
      write("mcp.json");
      const { code, stderr } = await junctor(args, { cwd });
      expect(stderr).toContain(
        ".mcp.json was found here, and you have not agreed to start what it names; write --config .mcp.json to use it",
      );
      expect(code).toBe(2);
      expect(isStarted()).toBe(false);
    },
  );

  test.runIf(process.platform === "linux").each([
    [["check"], ""],
    [["audit", "verify"], ""],
    [["complete", "--", "tools", ""], "mine\n"],
    [["complete", "--", "tools", "--profile", ""], "work\n"],
    [["complete", "--", "call", ""], ""],
  ])("%j asks the keychain for nothing before a person agreed", async (args, output) => {
    const file = join(cwd, "mcp.json");
    const mine = { command: node, env: { TOKEN: "${keychain:mine/TOKEN}" } };
    const junctorSection = { profiles: { work: {} }, audit: { file: "audit.jsonl" } };
    writeFileSync(file, JSON.stringify({ mcpServers: { mine }, junctor: junctorSection }));
    writeFileSync(join(cwd, "audit.jsonl"), "");
    const script = `#!/bin/sh\necho "$@" >>${join(cwd, "asked")}\n`;
    writeFileSync(join(cwd, "secret-tool"), script, { mode: 0o755 });
    const env = { PATH: `${cwd}:${process.env["PATH"]}` };
    const { stdout } = await junctor(args, { cwd, env });
    expect(existsSync(join(cwd, "asked"))).toBe(false);
    if (args[0] === "complete") expect(stdout).toBe(output);
    rememberAgreement(file, readFileSync(file, "utf8"));
    await junctor(args, { cwd, env });
    expect(readFileSync(join(cwd, "asked"), "utf8")).toContain("account mine/TOKEN");
  });

  test("what was agreed to is used, but not by a gateway that another gateway started", async () => {
    write("mcp.json");
    rememberAgreement(join(cwd, "mcp.json"), readFileSync(join(cwd, "mcp.json"), "utf8"));
    const inner = await junctor(["check"], { cwd, env: { JUNCTOR_GUARD: "a mark" } });
    expect(inner.stderr).toContain("mcp.json was found here by a gateway that another gateway started");
    expect([inner.code, isStarted()]).toEqual([2, false]);
    const outer = await junctor(["check"], { cwd });
    expect([outer.code, isStarted()]).toEqual([1, true]);
  });

  test("--config is agreement", async () => {
    write("mcp.json");
    const { code, stdout } = await junctor(["check", "--config", "mcp.json"], { cwd });
    expect(stdout).toMatch(/^✓ mine +up /m);
    // One of its servers is off, because a variable is not set.
    expect(code).toBe(1);
  });

  test.skipIf(process.platform === "win32")("a config that every user may write starts nothing", async () => {
    write("mcp.json");
    chmodSync(join(cwd, "mcp.json"), 0o666);
    const { code, stderr } = await junctor(["check", "--config", "mcp.json"], { cwd });
    expect(stderr).toContain("may be written by every user, who could then start any program");
    expect([code, isStarted()]).toEqual([2, false]);
    const { stdout } = await junctor(["check", "--config", "mcp.json", "--unsafe-config"], { cwd });
    expect(stdout).toMatch(/^✓ mine +up /m);
  });

  test("serve without a config has the demo tools, and check says what it looked for", async () => {
    const list = { jsonrpc: "2.0", id: 1, method: "tools/list" };
    const hello = {
      ...list,
      method: "initialize",
      params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } },
    };
    const stdin = `${JSON.stringify(hello)}\n${JSON.stringify({ ...list, id: 2 })}\n`;
    expect((await junctor(["serve", "--stdio"], { cwd, stdin })).stdout).toContain('"countdown"');
    expect((await junctor(["check"], { cwd })).stderr).toContain(
      "there is no junctor.json, .mcp.json, mcp.json here",
    );
  });
});

describe.runIf(hasScript)("at a terminal", () => {
  /** Answers the question, and ends a gateway that is up. */
  function run(args: readonly string[], answer: string): Promise<Run> {
    const typed = new Set<string>();
    const onOutput: RunOptions["onOutput"] = (output, child) => {
      const type = (cue: string, keys: string): void => {
        if (typed.has(cue) || !output.includes(cue)) return;
        typed.add(cue);
        child.stdin?.write(keys);
      };
      type("(y/N): ", answer);
      type("1 of 1 server is up", "\u0003");
    };
    return junctorOnTerminal(args, { cwd, onOutput, columns: 400 });
  }

  test("the person sees what would be started, without secrets, and is asked once for each text", async () => {
    write("junctor.json");
    const asked = await run(["check"], "y\n");
    expect(asked.stdout).toContain(`Found ${join(cwd, "junctor.json")}`);
    expect(asked.stdout).toMatch(/mine {2}\S*node -e .*\(sets TOKEN\)/);
    expect(asked.stdout).not.toContain("a token that is not shown");
    expect(stripVTControlCharacters(asked.stdout)).toMatch(/^✓ mine +up /m);
    // A variable that is set later would start this one too.
    expect(asked.stdout).toContain('off   sh -c "echo off" (sets NEEDED)');
    expect(asked.code).toBe(1);

    const served = await run(["serve", "--port", "0"], "no question is expected");
    expect(served.stdout).not.toContain("(y/N)");
    expect(served.stdout).toContain('what they start or allow waits for "junctor reload"');

    write("junctor.json", "edited");
    const again = await run(["serve", "--port", "0"], "n\n");
    expect(again.stdout).toContain("junctor.json is not used; write --config junctor.json to use it");
    expect(again.code).toBe(2);
    expect(isStarted("edited")).toBe(false);
  });

  test.each([
    ["an empty line", "\n", 2],
    ["the end of input", "\u0004", 2],
    ["Ctrl-C", "\u0003", 130],
  ])("%s is not an agreement", async (_, keys, exitCode) => {
    write("mcp.json");
    const { code } = await run(["check"], keys);
    expect(code).toBe(exitCode);
    expect(isStarted()).toBe(false);
  });
});
