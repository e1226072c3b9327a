import { chmodSync, mkdtempSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  createReload,
  type ReloadChoice,
  type WaitingEdit,
} from "../../packages/junctor/src/cli/serve/follow-config.ts";
import { readConfig } from "../../packages/junctor/src/config/config-file.ts";
import type { GatewayConfig } from "../../packages/junctor/src/config/config.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "junctor-follow-"));
  file = join(folder, "mcp.json");
});
afterEach(() => rmSync(folder, { recursive: true }));

const one = { mcpServers: { a: { command: "a" } } };
const two = { mcpServers: { a: { command: "a" }, b: { command: "b" } } };
let minute = 0;

/** Writes the file as an editor does, at another time each time. */
function save(config: unknown, spaces = 0): void {
  const text = typeof config === "string" ? config : JSON.stringify(config, undefined, spaces);
  writeFileSync(`${file}.new`, text);
  minute += 1;
  utimesSync(`${file}.new`, minute * 60, minute * 60);
  renameSync(`${file}.new`, file);
}

/** Writes other content into the same file, which keeps its time. */
function rewrite(path: string, text: string): void {
  const { atime, mtime } = statSync(path);
  writeFileSync(path, text);
  utimesSync(path, atime, mtime);
}

interface Followed {
  readonly reload: () => Promise<void>;
  readonly agree: (version?: string) => Promise<string | undefined>;
  readonly inspect: () => WaitingEdit;
  readonly applied: readonly (readonly string[])[];
  readonly lines: readonly string[];
}

async function follow(
  apply: (config: GatewayConfig, keepsModules?: boolean) => void = () => {},
  choice: ReloadChoice = "trust",
  host = "127.0.0.1",
): Promise<Followed> {
  const applied: string[][] = [];
  const lines: string[] = [];
  const note = (_: object, text: string): void => void lines.push(text);
  const gateway = {
    apply: async (config: GatewayConfig, keepsModules?: boolean) => {
      apply(config, keepsModules);
      applied.push(config.servers.map(({ name }) => name));
    },
  };
  const log = { debug: note, info: note, warn: note, error: note };
  const config = await readConfig(file, {});
  const { look, ...rest } = createReload({
    file,
    config,
    isTrusted: false,
    choice,
    gateway,
    host,
    log,
  });
  return { reload: look, ...rest, applied, lines };
}

const readAgain = "the config was read again";
const notUsed = "the edited config is not used; the last good one stays";

test("an edit that is announced several times is applied once", async () => {
  save(one);
  const { reload, applied, lines } = await follow();
  save(two);
  for (let time = 0; time < 3; time++) await reload();
  expect(applied).toEqual([["a", "b"]]);
  expect(lines).toEqual([readAgain]);
});

test("an edit that changes nothing is neither applied nor logged", async () => {
  save(one);
  const { reload, applied, lines } = await follow();
  await reload();
  save(one);
  await reload();
  save(one, 2);
  await reload();
  expect([applied, lines]).toEqual([[], []]);
});

test.each([
  [
    "issuers",
    { http: { publicUrl: "https://x.example/mcp" }, issuers: { corp: { issuer: "https://id.example" } } },
  ],
  ["client certificates", { http: { tls: { cert: "c.pem", key: "k.pem", clientCa: "ca.pem" } } }],
])("an edit is used at an address that others reach, where %s let callers in", async (_, junctor) => {
  save({ ...one, junctor });
  const denied: (readonly string[])[] = [];
  const { reload, lines } = await follow(({ deny }) => void denied.push(deny), "safe", "0.0.0.0");
  save({ ...one, junctor: { ...junctor, deny: ["*__erase"] } });
  await reload();
  expect([denied, lines]).toEqual([[["*__erase"]], [readAgain]]);
});

test("an edit that would let everyone in is not used at an address that others reach", async () => {
  const keys = { ada: { sha256: "a".repeat(64) } };
  save({ ...one, junctor: { keys } });
  const { reload, applied, lines } = await follow(() => {}, "trust", "0.0.0.0");
  // Certificates are asked for from the next start on.
  save({ ...one, junctor: { http: { tls: { cert: "c.pem", key: "k.pem", clientCa: "ca.pem" } } } });
  await reload();
  expect([applied, lines]).toEqual([[], [notUsed]]);
});

test("a mistake is logged once, and so is its correction", async () => {
  save(one);
  const { reload, applied, lines } = await follow();
  save("{");
  for (let time = 0; time < 2; time++) await reload();
  expect(lines).toEqual([notUsed]);
  save(one);
  await reload();
  save(one);
  await reload();
  expect(lines).toEqual([notUsed, "the config is right again, and as it was"]);
  expect(applied).toEqual([]);
});

test("a file that is gone is logged once", async () => {
  save(one);
  const { reload, lines } = await follow();
  rmSync(file);
  for (let time = 0; time < 2; time++) await reload();
  expect(lines).toEqual([notUsed]);
});

test("an edit that could not be applied is tried again when the file is saved again", async () => {
  save(one);
  let isBroken = true;
  const { reload, applied, lines } = await follow(() => {
    if (isBroken) throw new Error("there is no such folder");
  });
  save(two);
  for (let time = 0; time < 2; time++) await reload();
  isBroken = false;
  save(two);
  await reload();
  expect(lines).toEqual([notUsed, readAgain]);
  expect(applied).toEqual([["a", "b"]]);
});

const waits = (what: string): string =>
  `part of the edited config waits for you: ${what}. To take it, run "junctor reload" or send SIGHUP to process ${process.pid}`;

test("an edit that adds a server waits until a person agrees, and the rest of it applies", async () => {
  const deniedOf: (readonly string[])[] = [];
  save(one);
  const { reload, agree, applied, lines } = await follow((config) => void deniedOf.push(config.deny), "safe");
  save({ ...two, junctor: { deny: ["x"] } });
  await reload();
  expect([applied, deniedOf]).toEqual([[["a"]], [["x"]]]);
  expect(lines).toEqual([readAgain, waits("b (new: b)")]);
  expect(await agree()).toBeUndefined();
  expect([applied.at(-1), lines.at(-1)]).toEqual([["a", "b"], readAgain]);
  save({ ...one, junctor: { deny: ["x"] } });
  await reload();
  save({ ...two, junctor: { deny: ["x"] } });
  await reload();
  // It was agreed to before, so it may come back.
  expect([applied.at(-1), lines.length]).toEqual([["a", "b"], 5]);
});

test("a person sees all of what waits, with its odd characters; the log has the beginning", async () => {
  save(one);
  const { reload, inspect, lines } = await follow(undefined, "safe");
  const script = `${"x".repeat(2000)}\u202eevil`;
  save({ mcpServers: { ...one.mcpServers, b: { command: "b", args: [script] } } });
  await reload();
  expect(inspect().waiting).toEqual([`b (new: b "${"x".repeat(2000)}\\u202eevil")`]);
  expect(lines.at(-1)).toContain("characters more");
});

test("a person takes what was shown, not a later edit", async () => {
  save(one);
  const { reload, agree, inspect, applied } = await follow(undefined, "safe");
  save(two);
  await reload();
  const { waiting, version } = inspect();
  expect(waiting).toEqual(["b (new: b)"]);
  save({ mcpServers: { ...two.mcpServers, c: { command: "c" } } });
  expect(await agree(version)).toBe("the config was edited meanwhile");
  expect(applied.flat()).not.toContain("c");
  expect(await agree(inspect().version)).toBeUndefined();
  expect(applied.at(-1)).toEqual(["a", "b", "c"]);
});

test("a changed file of variables waits, though the config names the same file", async () => {
  const environments: (string | undefined)[] = [];
  const heard = ({ servers: [first] }: GatewayConfig): void =>
    void environments.push(first?.launch.kind === "command" ? first.launch.env["X"] : undefined);
  const config = { mcpServers: { a: { command: "a", envFile: ".env" } } };
  writeFileSync(join(folder, ".env"), "X=1");
  save(config);
  const { reload, agree, lines } = await follow(heard, "safe");
  writeFileSync(join(folder, ".env"), "X=2");
  save(config);
  await reload();
  expect(lines.at(-1)).toBe(waits(`a (env X: a (reads ${join(folder, ".env")}) (sets X))`));
  expect(environments).toEqual([]);
  await agree();
  expect(environments).toEqual(["2"]);
});

test("a module that changed is not loaded again before a person agrees", async () => {
  const kept: (boolean | undefined)[] = [];
  writeFileSync(join(folder, "mine.mjs"), "export default {};");
  const config = { ...one, junctor: { middleware: ["./mine.mjs"] } };
  save(config);
  const { reload, agree, lines } = await follow((_, keepsModules) => void kept.push(keepsModules), "safe");
  rewrite(join(folder, "mine.mjs"), "export default { };");
  save({ ...config, junctor: { ...config.junctor, deny: ["x"] } });
  await reload();
  expect(lines).toEqual([readAgain, waits("junctor.middleware (files)")]);
  await agree();
  expect(kept).toEqual([true, false]);
});

test("a lock that changed is not read again before a person agrees", async () => {
  const kept: (boolean | undefined)[] = [];
  const lock = join(folder, "junctor.lock");
  writeFileSync(lock, "");
  const config = { ...one, junctor: { lock: "enforce" } };
  save(config);
  const { reload, agree, lines } = await follow((_, keepsModules) => void kept.push(keepsModules), "safe");
  rewrite(lock, " ");
  save({ ...config, junctor: { ...config.junctor, deny: ["x"] } });
  await reload();
  save({ ...one, junctor: { lock: "off", deny: ["x"] } });
  await reload();
  expect(lines).toEqual([readAgain, waits("junctor.lock (file)"), waits("junctor.lock")]);
  await agree();
  expect(kept).toEqual([true, false]);
});

test.skipIf(process.platform === "win32")(
  "an edit that other users could have made is not used",
  async () => {
    writeFileSync(join(folder, ".env"), "X=1");
    save(one);
    const { reload, agree, applied, lines } = await follow();
    chmodSync(join(folder, ".env"), 0o666);
    save({ mcpServers: { a: { command: "a", envFile: ".env" } } });
    await reload();
    expect([applied, lines]).toEqual([[], [notUsed]]);
    expect(await agree()).toContain("may be written by every user");
  },
);

test("what is wrong with a config is shown to the person who agrees", async () => {
  save(one);
  const { agree, applied, lines } = await follow(undefined, "off");
  save("{");
  expect(await agree()).toContain("mcp.json");
  expect([applied, lines]).toEqual([[], [notUsed]]);
});

test("a middleware that changed is loaded again when the config is saved", async () => {
  const module = join(folder, "mine.mjs");
  writeFileSync(module, "export default {};");
  const config = { ...one, junctor: { middleware: ["./mine.mjs"] } };
  save(config);
  const { reload, applied } = await follow();
  rewrite(module, "export default { };");
  save(config);
  await reload();
  expect(applied).toHaveLength(1);
});
