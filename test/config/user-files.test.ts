import { chmodSync, mkdtempSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  cacheFolder,
  createPrivateFile,
  readPrivateFile,
  stateFolder,
  writePrivateFile,
} from "../../packages/junctor/src/config/user-files.ts";

const makeFolder = (): string => mkdtempSync(join(tmpdir(), "junctor-user-files-"));

describe.skipIf(process.platform === "win32")("private files", () => {
  test("are written into folders that are made for them, readable by their owner only", () => {
    const path = join(makeFolder(), "a", "b", "secret");
    writePrivateFile(path, "one");
    writePrivateFile(path, "two");
    expect(readPrivateFile(path, 100)).toBe("two");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(statSync(join(path, "..")).mode & 0o777).toBe(0o700);
    expect(readdirSync(join(path, ".."))).toEqual(["secret"]);
  });

  test("that others may write are not read", () => {
    const path = join(makeFolder(), "secret");
    writeFileSync(path, "planted");
    chmodSync(path, 0o666);
    expect(readPrivateFile(path, 100)).toBeUndefined();
  });

  test("that are missing or too large are not read", () => {
    const folder = makeFolder();
    expect(readPrivateFile(join(folder, "none"), 100)).toBeUndefined();
    writePrivateFile(join(folder, "large"), "x".repeat(101));
    expect(readPrivateFile(join(folder, "large"), 100)).toBeUndefined();
  });

  test("are created once, by the first that tries", () => {
    const path = join(makeFolder(), "a", "secret");
    expect([createPrivateFile(path, "one"), createPrivateFile(path, "two")]).toEqual([true, false]);
    expect(readPrivateFile(path, 100)).toBe("one");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(path, ".."))).toEqual(["secret"]);
  });

  test("that cannot be moved into place leave nothing behind", () => {
    const folder = makeFolder();
    writePrivateFile(join(folder, "taken", "file"), "x");
    expect(() => writePrivateFile(join(folder, "taken"), "y")).toThrow(/EISDIR|ENOTEMPTY|EEXIST/);
    expect(readdirSync(folder)).toEqual(["taken"]);
  });
});

describe.skipIf(process.platform !== "linux")("the folders of a user", () => {
  test("follow the XDG variables, if these are absolute", () => {
    expect(cacheFolder({ XDG_CACHE_HOME: "/c" })).toBe("/c/junctor");
    expect(stateFolder({ XDG_STATE_HOME: "/s" })).toBe("/s/junctor");
    expect(cacheFolder({ XDG_CACHE_HOME: "relative" })).toBe(join(homedir(), ".cache", "junctor"));
    expect(stateFolder({})).toBe(join(homedir(), ".local", "state", "junctor"));
  });
});
