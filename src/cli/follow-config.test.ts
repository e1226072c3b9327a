import { mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readConfig } from "../gateway/config/config-file.ts";
import type { GatewayConfig } from "../gateway/config/config.ts";
import { rememberAgreement } from "./agreements.ts";
import { createReload } from "./follow-config.ts";

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

interface Followed {
  readonly reload: () => Promise<void>;
  readonly applied: readonly (readonly string[])[];
  readonly lines: readonly string[];
}

async function follow(apply: (config: GatewayConfig) => void = () => {}, isNamed = true): Promise<Followed> {
  const applied: string[][] = [];
  const lines: string[] = [];
  const note = (_: object, text: string): void => void lines.push(text);
  const gateway = {
    apply: async (config: GatewayConfig) => {
      apply(config);
      applied.push(config.servers.map(({ name }) => name));
    },
  };
  const log = { debug: note, info: note, warn: note, error: note };
  const config = await readConfig(file, {});
  const reload = createReload({ file, config, isNamed, gateway, host: "127.0.0.1", log });
  return { reload, applied, lines };
}

const readAgain = "the config was read again";
const notUsed = "the edited config is not used; the last good one stays";

test("an edit that is told several times is applied once", async () => {
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

test("a mistake is told once, and that it is gone", async () => {
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

test("a file that is gone is told once", async () => {
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

test("an edit of a config that was found is applied once a person agreed to it", async () => {
  save(one);
  const { reload, applied, lines } = await follow(undefined, false);
  save(two);
  await reload();
  expect([applied, lines]).toEqual([[], [notUsed]]);
  rememberAgreement(file, JSON.stringify(two));
  save(two);
  await reload();
  expect([applied, lines]).toEqual([[["a", "b"]], [notUsed, readAgain]]);
});

test("a middleware that changed is loaded again when the config is saved", async () => {
  const module = join(folder, "mine.mjs");
  writeFileSync(module, "export default {};");
  const config = { ...one, junctor: { middleware: ["./mine.mjs"] } };
  save(config);
  const { reload, applied } = await follow();
  utimesSync(module, 1, 1);
  save(config);
  await reload();
  expect(applied).toHaveLength(1);
});
