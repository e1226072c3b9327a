import { type ChildProcess, execFile, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import type { ChildCommand } from "../../packages/client/src/child/child.ts";
import { createGuardian } from "../../packages/client/src/child/guardian.ts";
import { connect } from "../../packages/client/src/client/connect.ts";
import { isAlive } from "../support/processes.ts";

// The parents are processes of their own, so they run what was built: `node scripts/setup.mjs` first.
const pathOf = (name: string): string =>
  fileURLToPath(new URL(`../fixtures/children/${name}`, import.meta.url));
const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "junctor-orphans-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** How often a parent is killed; `ORPHAN_ROUNDS=50` for a long run. */
const rounds = Number(process.env["ORPHAN_ROUNDS"] ?? 5);

const node = process.execPath;
const server = `"${node}" "${pathOf("server.mjs")}"`;
const shell = (line: string): ChildCommand => ({ command: "sh", args: ["-c", line] });
const direct: ChildCommand = { command: node, args: [pathOf("server.mjs")] };
const stubborn: ChildCommand = { command: node, args: [...direct.args!, "--ignore-eof", "--ignore-term"] };
/** Ends for nothing but KILL. */
const deaf = `sh -c 'trap "" TERM HUP; exec sleep 1000'`;

/** Commands, and how many processes each is at least. */
const family: readonly (readonly [ChildCommand, number])[] = [
  [direct, 1],
  [stubborn, 1],
  [shell(`${server}; true`), 2],
  [shell(`${deaf} & ${server} --ignore-eof --ignore-term; true`), 3],
  [shell(`setsid ${deaf} & ${server}; true`), 3],
  // Nobody's child by the time we look: only its mark tells whose it was.
  [shell(`(setsid ${deaf} &); exec ${server}`), 2],
  // npm, a shell, and the server.
  [
    {
      command: "npx",
      args: ["--no-install", "mcp-server-memory"],
      cwd: root,
      env: { MEMORY_FILE_PATH: join(folder, "memory.jsonl") },
    },
    3,
  ],
];
const leastProcesses = family.reduce((sum, [, count]) => sum + count, 0);

/** A parent with children. Whatever is left of it after the test is killed. */
async function startParent(commands: readonly ChildCommand[]): Promise<ChildProcess> {
  const parent = fork(pathOf("parent.mjs"), [JSON.stringify(commands)]);
  onTestFinished(() => void parent.kill("SIGKILL"));
  await done(parent);
  return parent;
}

async function done(parent: ChildProcess): Promise<void> {
  const [message] = (await once(parent, "message")) as [unknown];
  expect(message).toBe("done");
}

async function tell(parent: ChildProcess, order: "close" | { readonly start: ChildCommand }): Promise<void> {
  const answered = done(parent);
  parent.send(order);
  await answered;
}

interface Process {
  readonly pid: number;
  readonly parent: number;
  readonly commandLine: string;
  readonly mark: string | undefined;
}

/** Every process that runs here and may be looked at. */
function listProcesses(): readonly Process[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const read = (file: string): string => readFileSync(`/proc/${name}/${file}`, "utf8");
        const parent = Number(/^PPid:\s*(\d+)/m.exec(read("status"))?.[1]);
        const mark = /JUNCTOR_GUARD=([^\0]+)/.exec(read("environ"))?.[1];
        return [{ pid: Number(name), parent, commandLine: read("cmdline"), mark }];
      } catch {
        return []; // It ended while we looked, or is another user's.
      }
    });
}

/** Its descendants, and whoever has the mark of one of them. */
function familyOf({ pid }: ChildProcess): { readonly guardians: number[]; readonly children: number[] } {
  const all = listProcesses();
  const below = (parent: number): readonly Process[] =>
    all.filter((one) => one.parent === parent).flatMap((one) => [one, ...below(one.pid)]);
  const descendants = below(pid!);
  const marks = new Set(descendants.flatMap(({ mark }) => mark ?? []));
  const isGuardian = ({ commandLine }: Process): boolean => commandLine.includes("\0junctor-guardian\0");
  const isMarked = ({ mark }: Process): boolean => mark !== undefined && marks.has(mark);
  const children = new Set(all.filter((one) => isMarked(one) || descendants.includes(one)));
  return {
    guardians: descendants.filter(isGuardian).map((one) => one.pid),
    children: [...children].filter((one) => !isGuardian(one)).map((one) => one.pid),
  };
}

/** A process of no concern to any guardian. */
function startBystander(): number {
  const bystander = spawn("sleep", ["1000"], { stdio: "ignore", detached: true });
  onTestFinished(() => void bystander.kill("SIGKILL"));
  return bystander.pid!;
}

async function gone(pids: readonly number[]): Promise<void> {
  await expect.poll(() => pids.filter(isAlive)).toEqual([]);
}

describe.runIf(process.platform === "linux")("with a guardian", () => {
  test(
    `nothing is left of a parent that is killed, ${rounds} times`,
    async () => {
      let slowestMs = 0;
      for (let round = 0; round < rounds; round++) {
        const parent = await startParent(family.map(([command]) => command));
        const { guardians, children } = familyOf(parent);
        expect(guardians).toHaveLength(1);
        expect(children.length).toBeGreaterThanOrEqual(leastProcesses);
        expect(children.filter(isAlive)).toEqual(children);
        const killedAt = performance.now();
        parent.kill("SIGKILL");
        await gone([...children, ...guardians]);
        slowestMs = Math.max(slowestMs, performance.now() - killedAt);
      }
      if ("ORPHAN_ROUNDS" in process.env)
        console.log(`${rounds} parents killed, nothing left after ${slowestMs.toFixed(0)} ms at most`);
    },
    rounds * 20_000,
  );

  test.each(["told", "untold"])("a parent killed when the guardian is %s leaves nothing", async (moment) => {
    const { stdout } = await new Promise<{ stdout: string }>((resolve) => {
      execFile(node, [pathOf("sudden-parent.mjs"), moment], (_, stdout) => resolve({ stdout }));
    });
    const pid = Number(stdout);
    expect(pid).toBeGreaterThan(1);
    await gone([pid]);
  });

  test.each(["SIGHUP", "SIGINT"] as const)("a parent that %s ends leaves nothing either", async (signal) => {
    const parent = await startParent([stubborn]);
    const { guardians, children } = familyOf(parent);
    parent.kill(signal);
    await gone([...children, ...guardians]);
  });

  test("a parent that exits without closing leaves nothing either", async () => {
    const parent = await startParent([stubborn]);
    const { guardians, children } = familyOf(parent);
    parent.send("exit");
    await gone([...children, ...guardians]);
  });

  test("a parent that closes its children is not kept alive, and no other process is ended", async () => {
    const bystander = startBystander();
    const parent = await startParent([direct, direct]);
    const { guardians, children } = familyOf(parent);
    await tell(parent, "close");
    await gone([...children, ...guardians]);
    expect(isAlive(parent.pid!)).toBe(true);
    const exited = once(parent, "exit");
    parent.send("leave");
    expect(await exited).toEqual([0, null]);
    expect(isAlive(bystander)).toBe(true);
  });

  test("a parent that closes on SIGTERM takes its guardian along", async () => {
    const bystander = startBystander();
    const parent = await startParent([direct]);
    const { guardians, children } = familyOf(parent);
    const exited = once(parent, "exit");
    parent.kill("SIGTERM");
    expect(await exited).toEqual([0, null]);
    expect(children.filter(isAlive)).toEqual([]);
    await gone(guardians);
    expect(isAlive(bystander)).toBe(true);
  });

  test("the children of a guardian that is killed get another one, which knows them all", async () => {
    const parent = await startParent([stubborn]);
    const [first] = familyOf(parent).guardians;
    process.kill(first!, "SIGKILL");
    await gone([first!]);
    await tell(parent, { start: stubborn });
    await expect.poll(() => familyOf(parent).guardians).toHaveLength(1);
    const { guardians, children } = familyOf(parent);
    expect(guardians).not.toContain(first);
    expect(children).toHaveLength(2);
    parent.kill("SIGKILL");
    await gone([...children, ...guardians]);
  });

  test("a guardian outlives the signals of a terminal, so a parent that is killed leaves nothing", async () => {
    const parent = await startParent([stubborn]);
    const { guardians, children } = familyOf(parent);
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.kill(guardians[0]!, signal);
    parent.kill("SIGKILL");
    await gone([...children, ...guardians]);
  });

  test("a child that does not start leaves no guardian behind", async () => {
    const guardian = createGuardian();
    await expect(connect({ command: "no-such-program-anywhere" }, { guardian })).rejects.toThrow(
      "there is no program",
    );
    expect(() => guardian.watch(() => expect.unreachable("as if spawn threw"))).toThrow("as if spawn threw");
    await expect.poll(() => familyOf({ pid: process.pid } as ChildProcess).guardians).toEqual([]);
  });
});

test("a guardian that cannot be started warns once, and children start without it", async () => {
  const warnings: string[] = [];
  const guardian = createGuardian({ shell: "/no/such/shell", onWarning: (text) => warnings.push(text) });
  for (let turn = 0; turn < 2; turn++) {
    await using client = await connect(direct, { guardian, revision: "2025-11-25" });
    expect(await client.listTools()).toHaveLength(1);
  }
  expect(warnings).toEqual([expect.stringContaining("/no/such/shell")]);
});
