import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { createDaemonHome, type DaemonHome, notedServer } from "../support/daemon-home.ts";
import { junctor, type Run } from "../support/junctor-bin.ts";

const linux = process.platform === "linux";
const isThere = (program: string): boolean =>
  (process.env["PATH"] ?? "").split(delimiter).some((folder) => existsSync(join(folder, program)));
const missing = ["dbus-daemon", "gnome-keyring-daemon", "secret-tool"].filter((each) => !isThere(each));

/** Adds a server whose variable is in the keychain, and calls it through the daemon. */
async function addAndCall(home: DaemonHome, env: { readonly [name: string]: string }): Promise<void> {
  const add = (...args: readonly string[]): Promise<Run> =>
    junctor(["add", ...args], { env: { ...home.env, ...env }, cwd: home.folder });
  const words = ["--keychain", "--env", "KEY=sk-secret 1", "--env", "REF=${HOME}", "--", ...notedServer];
  expect(await add("a", ...words)).toMatchObject({ code: 0 });
  const text = readFileSync(home.config, "utf8");
  expect(text).not.toContain("sk-secret");
  expect(JSON.parse(text)).toMatchObject({
    mcpServers: { a: { env: { KEY: "${keychain:a/KEY}", REF: "${HOME}" } } },
  });
  const front = home.attach({ env });
  await front.shake();
  expect(await front.call("a__value", { name: "KEY" })).toBe("sk-secret 1");
  // The way to the keychain is the daemon's.
  expect(await front.call("a__value", { name: "DBUS_SESSION_BUS_ADDRESS" })).toBe("none");
  expect(home.log()).not.toContain("sk-secret");
}

describe.runIf(linux)("a server whose secrets are in the keychain", () => {
  test("has them through the daemon, with a program that stands in for secret-tool", async () => {
    await using home = createDaemonHome({ mcpServers: {} });
    await addAndCall(home, { PATH: writeSecretTool(home.folder) });
  });

  test.skipIf(missing.length > 0)(
    `has them through the daemon, with a real keychain${missing.length > 0 ? ` (skipped: ${missing.join(", ")} not installed)` : ""}`,
    async () => {
      await using home = createDaemonHome({ mcpServers: {} });
      await using keychain = await startKeychain(home);
      await addAndCall(home, keychain.env);
      const name = ["lookup", "service", "junctor", "account", "a/KEY"];
      const options = { env: { ...process.env, ...home.env, ...keychain.env }, encoding: "utf8" } as const;
      expect(spawnSync("secret-tool", name, options).stdout.trim()).toBe("sk-secret 1");
    },
  );

  test("is not added where there is no keychain", async () => {
    await using home = createDaemonHome({ mcpServers: {} });
    const env = { ...home.env, PATH: home.folder };
    const words = ["add", "a", "--keychain", "--no-check", "--env", "KEY=x", "--", "/bin/true"];
    const failed = await junctor(words, { env, cwd: home.folder });
    expect(failed).toMatchObject({ code: 2 });
    expect(failed.stderr).toContain("secret-tool is not installed");
    expect(failed.stderr).toContain("--secrets keeps it in a file");
    expect(JSON.parse(readFileSync(home.config, "utf8"))).toEqual({ mcpServers: {} });
  });

  test("is off when the keychain has lost them, and its neighbours are not", async () => {
    const [command, ...args] = notedServer;
    await using home = createDaemonHome({
      mcpServers: {
        lost: { command, args, env: { KEY: "${keychain:lost/KEY}" } },
        here: { command, args },
      },
    });
    const front = home.attach({ env: { PATH: writeSecretTool(home.folder) } });
    await front.shake();
    expect(await front.call("here__note", { key: "k" })).toBe("k");
    const { stdout } = await home.junctor("status");
    expect(stdout).toContain("${keychain:lost/KEY} has no value: the keychain has no such secret");
  });

  test("of two clients with the same name keep a secret each", async () => {
    await using home = createDaemonHome({ mcpServers: {} });
    for (const flag of ["--secrets", "--keychain"])
      for (const [file, value] of [
        ["one.json", "first"],
        ["two.json", "second"],
      ] as const) {
        const from = join(home.folder, file);
        const name = `same${flag}`;
        writeFileSync(
          from,
          JSON.stringify({ mcpServers: { [name]: { command: "x", env: { KEY: value } } } }),
        );
        const env = { ...home.env, PATH: writeSecretTool(home.folder) };
        const words = ["import", from, flag, "--yes"];
        expect(await junctor(words, { env, cwd: home.folder })).toMatchObject({ code: 0 });
        expect((await junctor(words, { env, cwd: home.folder })).stdout).toBe("nothing is new\n");
      }
    const { mcpServers } = JSON.parse(readFileSync(home.config, "utf8")) as {
      mcpServers: { [name: string]: { envFile?: string; env?: { KEY: string } } };
    };
    const files = Object.values(mcpServers).flatMap(({ envFile }) => envFile ?? []);
    expect(files.map((file) => readFileSync(file, "utf8"))).toEqual(['KEY="second"\n', 'KEY="first"\n']);
    const names = Object.values(mcpServers).flatMap(({ env }) => env?.KEY ?? []);
    expect(new Set(names).size).toBe(2);
  });
});

/** A program that keeps secrets in a folder. Returns a search path in which it is found. */
function writeSecretTool(home: string): string {
  const folder = join(home, "fake");
  mkdirSync(join(folder, "kept"), { recursive: true });
  const file = join(folder, "secret-tool");
  const lines = [
    "#!/bin/sh",
    "for last; do :; done",
    `kept="${join(folder, "kept")}/$(printf %s "$last" | tr / _)"`,
    'case "$1" in',
    'store) cat > "$kept" ;;',
    'lookup) [ -f "$kept" ] && cat "$kept" ;;',
    "esac",
    "",
  ];
  writeFileSync(file, lines.join("\n"));
  chmodSync(file, 0o755);
  return `${folder}${delimiter}${dirname(process.execPath)}${delimiter}/usr/bin${delimiter}/bin`;
}

interface Keychain extends AsyncDisposable {
  readonly env: { readonly [name: string]: string };
}

/** A bus and a keyring of their own, unlocked. */
async function startKeychain(home: DaemonHome): Promise<Keychain> {
  const own = { ...process.env, ...home.env, XDG_DATA_HOME: join(home.folder, "data") };
  const bus = spawn("dbus-daemon", ["--session", "--nofork", "--print-address"], { env: own });
  bus.stderr.resume();
  const [address] = (await once(bus.stdout.setEncoding("utf8"), "data")) as [string];
  const env = { DBUS_SESSION_BUS_ADDRESS: address.trim() };
  // It goes on in the background, and ends with its bus.
  const unlock = ["--unlock", "--components=secrets"];
  const { status } = spawnSync("gnome-keyring-daemon", unlock, {
    env: { ...own, ...env },
    input: "password",
    stdio: ["pipe", "ignore", "ignore"],
  });
  expect(status).toBe(0);
  return {
    env,
    [Symbol.asyncDispose]: async () => {
      const ended = once(bus, "close");
      bus.kill();
      await ended;
    },
  };
}
