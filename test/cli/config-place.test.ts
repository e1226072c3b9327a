import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  checkConfigPlace,
  checkPlaces,
  findExposed,
} from "../../packages/junctor/src/cli/config/config-file.ts";
import { parseConfigValue } from "../../packages/junctor/src/config/parse-config.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "junctor-place-")));
  mkdirSync(join(folder, "inner"));
  file = join(folder, "inner", "mcp.json");
  writeFileSync(file, "{}");
  chmodSync(file, 0o644);
});
afterEach(() => rmSync(folder, { recursive: true }));

describe.skipIf(process.platform === "win32")("a config", () => {
  test("of this user, in folders of its own below a sticky one, is used", () => {
    expect(checkConfigPlace(file, false)).toEqual([]);
  });

  test.each([
    ["file", 0o666],
    ["folder", 0o777],
    ["folder above", 0o777],
  ])("whose %s every user may write is refused, and used if the person says so", (what, mode) => {
    const path = { file, folder: join(folder, "inner"), "folder above": folder }[what] ?? "";
    chmodSync(path, mode);
    const message = `${what === "file" ? path : `its folder ${path}`} may be written by every user, who could then start any program: run chmod o-w ${path}, or write --unsafe-config`;
    expect(() => checkConfigPlace(file, false)).toThrow(`${file}: ${message}`);
    expect(checkConfigPlace(file, true)).toEqual([]);
  });

  test("in a folder for everybody with the sticky bit is used", () => {
    chmodSync(join(folder, "inner"), 0o1777);
    expect(checkConfigPlace(file, false)).toEqual([]);
  });

  test("that is a link is judged by what it leads to", () => {
    const link = join(folder, "link.json");
    symlinkSync(file, link);
    expect(checkConfigPlace(link, false)).toEqual([]);
    chmodSync(file, 0o666);
    expect(() => checkConfigPlace(link, false)).toThrow(`${file} may be written by every user`);
  });

  test("that is a link to a link is judged by every folder on the way", () => {
    const open = join(folder, "open");
    mkdirSync(open);
    symlinkSync(file, join(open, "hop.json"));
    symlinkSync("open/../open/hop.json", join(folder, "named.json"));
    expect(checkConfigPlace(join(folder, "named.json"), false)).toEqual([]);
    chmodSync(open, 0o777);
    expect(() => checkConfigPlace(join(folder, "named.json"), false)).toThrow(`its folder ${open} may be`);
  });

  test("whose authorities for client certificates every user may write is refused", () => {
    const ca = join(folder, "inner", "ca.pem");
    writeFileSync(ca, "");
    const tls = { cert: "cert.pem", key: "key.pem", clientCa: ca };
    const config = parseConfigValue({ junctor: { http: { tls } } }, { file, env: {} });
    expect(checkPlaces(file, config, false)).toEqual([]);
    chmodSync(ca, 0o666);
    const message = `${ca} may be written by every user, who could then come in as any caller`;
    expect(() => checkPlaces(file, config, false)).toThrow(message);
    expect(checkPlaces(file, config, true)).toEqual([]);
  });

  test("that does not exist, or is a pipe, is left to the code that reads it", () => {
    expect(checkConfigPlace(join(folder, "missing"), false)).toEqual([]);
    expect(checkConfigPlace("/dev/null/x", false)).toEqual([]);
  });

  const isRoot = process.getuid?.() === 0;
  test.runIf(isRoot)("of another user is refused, and of another group it is a warning", () => {
    chownSync(file, 0, 12_345);
    chmodSync(file, 0o664);
    expect(checkConfigPlace(file, false)).toEqual([
      `${file} may be written by the users of its group, who could then start any program: run chmod g-w ${file}`,
    ]);
    chownSync(file, 12_345, 0);
    expect(() => checkConfigPlace(file, false)).toThrow(`${file} belongs to another user`);
    expect(() => checkConfigPlace(file, true)).not.toThrow();
  });
});

test("a server whose folder has the config in it is a warning, unless it has a sandbox", () => {
  const warned = (args: readonly string[], sandbox = false): readonly string[] => {
    const mcpServers = { x: { command: "a", args, cwd: folder } };
    const given = { mcpServers, junctor: { servers: { x: { sandbox } } } };
    return findExposed(file, parseConfigValue(given, { file, env: {} })).map(({ path }) => path);
  };
  for (const args of [["."], ["-y", folder], ["inner/"], ["/"], ["inner"]])
    expect(warned(args)).toEqual(["x.args"]);
  expect([warned(["./notes"]), warned(["server.mjs"]), warned([""]), warned([file])]).toEqual([
    [],
    [],
    [],
    [],
  ]);
  expect(warned(["."], true)).toEqual([]);
});
