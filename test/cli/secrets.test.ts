import { chmodSync, mkdirSync, mkdtempSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createSeal } from "../../packages/core/src/mcp/seal.ts";
import { readSecrets } from "../../packages/junctor/src/cli/login/logins-store.ts";

interface Read {
  readonly secrets: readonly string[];
  readonly warnings: readonly string[];
}

function read(env: { readonly [name: string]: string }, served = "mcp.json"): Read {
  const warnings: string[] = [];
  const secrets = readSecrets({ env, served, onWarning: (text) => void warnings.push(text) });
  return { secrets, warnings };
}

const makeState = (): string => mkdtempSync(join(tmpdir(), "junctor-secrets-"));
const old = "o".repeat(32);
const young = "y".repeat(32);

describe("JUNCTOR_SECRET", () => {
  test("has one secret, or several with commas between them", () => {
    expect(read({ JUNCTOR_SECRET: old }).secrets).toEqual([old]);
    expect(read({ JUNCTOR_SECRET: `${young}, ${old},` }).secrets).toEqual([young, old]);
  });

  test("may be rotated: what the old one sealed still opens, and the new one seals", () => {
    const before = createSeal({ secrets: read({ JUNCTOR_SECRET: old }).secrets });
    const between = createSeal({ secrets: read({ JUNCTOR_SECRET: `${young},${old}` }).secrets });
    const after = createSeal({ secrets: read({ JUNCTOR_SECRET: young }).secrets });
    expect(between.open(before.seal(1, "", 1000), "")).toEqual({ ok: true, payload: 1 });
    expect(after.open(between.seal(2, "", 1000), "")).toEqual({ ok: true, payload: 2 });
    expect(after.open(before.seal(3, "", 1000), "")).toMatchObject({ ok: false });
  });

  test("that is too short is refused", () => {
    expect(() => read({ JUNCTOR_SECRET: `${young},short` })).toThrow(
      "JUNCTOR_SECRET, part 2 of 2 between commas, needs 32 characters or more",
    );
  });
});

describe.skipIf(process.platform === "win32")("without JUNCTOR_SECRET", () => {
  test("a secret is made once and kept for this user only", () => {
    const state = makeState();
    const first = read({ XDG_STATE_HOME: state });
    expect(first.warnings).toEqual([]);
    expect(read({ XDG_STATE_HOME: state, JUNCTOR_SECRET: "" })).toEqual(first);
    const file = join(state, "junctor", "secret");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(first.secrets).not.toContain(readFileSync(file, "utf8").trim());
    expect(() => createSeal({ secrets: first.secrets })).not.toThrow();
  });

  test("each config has a secret of its own", () => {
    const env = { XDG_STATE_HOME: makeState() };
    expect(read(env, "/a/mcp.json").secrets).not.toEqual(read(env, "/b/mcp.json").secrets);
  });

  test.each([
    ["others may read", (file: string) => chmodSync(file, 0o644), "may be read or written by other users"],
    ["others may write", (file: string) => chmodSync(file, 0o602), "may be read or written by other users"],
    ["is empty", (file: string) => writeFileSync(file, ""), "holds no secret of ours"],
    ["is too short", (file: string) => writeFileSync(file, "abc"), "holds no secret of ours"],
    ["is too large", (file: string) => writeFileSync(file, "a".repeat(2000)), "cannot be read by this user"],
  ])("a file that %s is left alone and told", (_, spoil, problem) => {
    const env = { XDG_STATE_HOME: makeState() };
    const file = join(env.XDG_STATE_HOME, "junctor", "secret");
    const { secrets: good } = read(env);
    spoil(file);
    const text = readFileSync(file, "utf8");
    const [first, second] = [read(env), read(env)];
    expect(first.warnings).toEqual([
      `sessions end with this process: ${file} ${problem}: remove it, or set JUNCTOR_SECRET`,
    ]);
    expect(first.secrets).not.toEqual(second.secrets);
    expect(first.secrets).not.toEqual(good);
    expect(readFileSync(file, "utf8")).toBe(text);
  });

  test("a folder that cannot be made is reported", () => {
    const state = makeState();
    writeFileSync(join(state, "junctor"), "a file where the folder should be");
    const { secrets, warnings } = read({ XDG_STATE_HOME: state });
    expect(secrets).toHaveLength(1);
    expect(warnings[0]).toMatch(/cannot be made \((EEXIST|ENOTDIR)\): make its folder writable, or set/);
  });

  test("a folder in its place is reported", () => {
    const state = makeState();
    mkdirSync(join(state, "junctor", "secret"), { recursive: true, mode: 0o700 });
    expect(read({ XDG_STATE_HOME: state }).warnings).toHaveLength(1);
  });
});
