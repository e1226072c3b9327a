// A server in a sandbox sees and reaches what its config says, and nothing else.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { readSecrets } from "../../packages/junctor/src/cli/login/logins-store.ts";
import { toTarget } from "../../packages/junctor/src/config/sandbox.ts";
import { stateFolder } from "../../packages/junctor/src/config/user-files.ts";
import { connectTo, textOf } from "./support/clients.ts";
import { startTestGateway } from "./support/gateway.ts";

const hasBwrap = spawnSync("bwrap", ["--unshare-all", "--ro-bind", "/", "/", "true"]).status === 0;
if (!hasBwrap) console.warn("bwrap cannot make a sandbox here: its tests are skipped");

const fixture = fileURLToPath(new URL("../fixtures/boxed-server.mjs", import.meta.url));
const project = dirname(dirname(dirname(fixture)));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(homedir(), ".junctor-sandbox-"));
  for (const name of ["read", "write", "hidden"]) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, "text"), `text of ${name}`);
  }
});
afterEach(() => rmSync(folder, { recursive: true }));

const inFolder = (...names: readonly string[]): string => join(folder, ...names);

const boxed = { command: process.execPath, args: [fixture] };
const folders = (): object => ({ read: [project, inFolder("read")], write: [inFolder("write")] });

const read = (path: string): string => `fs.readFileSync(${JSON.stringify(path)}, "utf8")`;
const write = (path: string): string => `fs.writeFileSync(${JSON.stringify(path)}, "new") ?? "done"`;

/** A page of this machine, and code that reads it. */
async function startPage(): Promise<Disposable & { readonly get: string }> {
  const page = createServer((_, response) => response.end("hello"));
  await new Promise<void>((done) => page.listen(0, "127.0.0.1", done));
  const { port } = page.address() as AddressInfo;
  const get = `(await fetch("http://127.0.0.1:${port}")).text()`;
  return { get, [Symbol.dispose]: () => void page.close() };
}

describe.runIf(hasBwrap)("a server in a sandbox", () => {
  test("has the folders, network and memory that are named, and sees no process of others", async () => {
    using page = await startPage();
    const secret = join(stateFolder(), "secret");
    readSecrets({ env: process.env, served: "x", onWarning: () => {} });
    expect(existsSync(secret)).toBe(true);
    const servers = {
      closed: { sandbox: folders() },
      // The project may be in /tmp, which is empty in a sandbox.
      open: { sandbox: { ...folders(), read: ["/", project], network: true } },
      small: { sandbox: { ...folders(), memoryMb: 256 } },
    };
    const mcpServers = { closed: boxed, open: boxed, small: boxed };
    await using at = await startTestGateway({ mcpServers, junctor: { servers } });
    await using client = await connectTo(at.url);
    const run = async (server: string, code: string): Promise<string> =>
      textOf(await client.call(`${server}__run`, { code }));
    const closed = async (...codes: readonly string[]): Promise<readonly string[]> => {
      const results: string[] = [];
      for (const code of codes) results.push(await run("closed", code));
      return results;
    };

    const ofRead = inFolder("read", "text");
    expect(await closed(read(ofRead), write(ofRead))).toEqual(["text of read", "EROFS"]);
    expect(await closed(write(inFolder("write", "text")), write("/tmp/scratch"))).toEqual(["done", "done"]);
    expect(readFileSync(inFolder("write", "text"), "utf8")).toBe("new");
    expect(existsSync("/tmp/scratch")).toBe(false);
    expect(await closed(read(inFolder("hidden", "text")), read(secret))).toEqual(["ENOENT", "ENOENT"]);
    expect(await closed(write("/etc/passwd"), page.get)).toEqual(["EROFS", "ECONNREFUSED"]);
    const setting = `fs.openSync("/proc/sys/kernel/core_pattern", "r+")`;
    expect((await closed(setting))[0]).toMatch(/^(EROFS|EACCES)$/);
    const first = `fs.readFileSync("/proc/1/cmdline", "utf8").split("\\0")[0]`;
    const others = `fs.readdirSync("/proc").filter((name) => /^\\d+$/.test(name)).length`;
    expect(await closed(first, `${others} < 5`)).toEqual([expect.stringMatching(/bwrap$/), "true"]);

    expect(await run("open", page.get)).toBe("hello");
    expect(await run("open", read(inFolder("hidden", "text")))).toBe("text of hidden");
    // The secret of the gateway is in no sandbox, though all folders may be read.
    expect(await run("open", read(secret))).toBe("ENOENT");

    const fill = `Array.from({ length: 400 }, () => Buffer.alloc(2 ** 20, 1)).length`;
    await expect(run("small", fill)).rejects.toThrow(/small/);
    expect(await run("closed", fill)).toBe("400");
  });

  test("has no memory to write files to but 64 MiB in each of its empty folders", () => {
    const script = `for path in /x /dev/x /run/x; do echo > $path; done 2> /dev/null; ls -d /x /dev/x /run/x
      for path in /tmp /dev/shm "$1"; do df -k --output=size $path | tail -n 1; done; echo > /tmp/x && echo > /dev/shm/x && echo written > /dev/null`;
    const sandbox = { network: false, read: [], write: [] };
    const args = ["-c", script, "sh", homedir()];
    const launch = { kind: "command", command: "sh", args, env: {}, cwd: undefined } as const;
    const target = toTarget(launch, sandbox);
    const { status, stdout } = spawnSync(target.command, [...(target.args ?? [])], { encoding: "utf8" });
    const sizes: unknown = target.args?.includes("--size")
      ? Array.from({ length: 3 }, () => "65536")
      : expect.anything();
    expect([status, stdout.trim().split(/\s+/)]).toEqual([0, sizes]);
  });

  test("has no more processes than its config says", () => {
    const sandbox = { network: false, read: [], write: [], processes: 20 };
    const script = "for n in $(seq 40); do sleep 30 & done; echo started 40";
    const launch = { kind: "command", command: "sh", args: ["-c", script], env: {}, cwd: undefined } as const;
    const { command, args = [] } = toTarget(launch, sandbox);
    // Root is not held to a number of processes.
    const asUser = ["--reuid", "65534", "--regid", "65534", "--clear-groups", command];
    const words = process.getuid?.() === 0 ? ["setpriv", ...asUser, ...args] : [command, ...args];
    const { stdout, stderr } = spawnSync(words[0]!, words.slice(1), { encoding: "utf8", cwd: "/" });
    expect([stdout, stderr]).toEqual(["", expect.stringContaining("fork")]);
  });
});

test("a server is disabled, and not run, where no sandbox can be made", async () => {
  const spawnSync = (): object => ({ error: new Error("there is no such program") });
  vi.doMock("node:child_process", async (load) => ({ ...(await load<object>()), spawnSync }));
  vi.resetModules();
  const { createGateway } = await import("../../packages/junctor/src/gateway/gateway.ts");
  const script = `require("node:fs").writeFileSync(${JSON.stringify(inFolder("mark"))}, "")`;
  const mcpServers = { boxed: { command: process.execPath, args: ["-e", script] } };
  await using gateway = await createGateway({ mcpServers, junctor: { defaults: { sandbox: true } } });
  await gateway.ready;
  const [status] = gateway.status();
  expect(status).toMatchObject({ name: "boxed", status: "disabled" });
  expect(status?.trouble).toMatch(/its sandbox needs (the program bwrap: install bubblewrap|Linux)/);
  expect(existsSync(inFolder("mark"))).toBe(false);
});
