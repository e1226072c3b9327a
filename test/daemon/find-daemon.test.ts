import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import {
  findDaemon,
  openRunPlace,
  type RunPlace,
  type StartedDaemon,
} from "../../packages/junctor/src/attach/find-daemon.ts";
import { greetFront } from "../../packages/junctor/src/attach/hello.ts";

/** The number of a process that has ended: numbers of processes are smaller. */
const endedPid = 2 ** 22 + 1;
const introduction = { build: "1.0.0", pid: 1, id: "a" };
const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

function openFolder(): { readonly run: string; readonly openPlace: () => RunPlace } {
  const folder = mkdtempSync(join(tmpdir(), "jf-"));
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  const env = { XDG_RUNTIME_DIR: folder };
  return { run: join(folder, "junctor"), openPlace: () => openRunPlace("/c.json", env) };
}

/** A daemon that says hello with the key of its folder, and nothing else. */
function listenAt({ socket, key }: RunPlace): void {
  const server: Server = createServer((stream) => {
    stream.on("error", () => {});
    void greetFront(stream, { key, build: "1.0.0" })
      .then(async (front) => {
        await front.askFor([]);
        front.ready();
      })
      .catch(() => stream.destroy());
  });
  server.listen(socket);
  closers.push(() => server.close());
}

const never = new Promise<number | null>(() => {});

describe.runIf(process.platform === "linux")("a front that looks for the daemon", () => {
  test("takes the key of a folder that is removed and made again meanwhile", async () => {
    const { run, openPlace } = openFolder();
    const start = (): StartedDaemon => {
      rmSync(run, { recursive: true });
      listenAt(openPlace());
      return { pid: process.pid, ended: never };
    };
    const { socket, daemon } = await findDaemon({ openPlace, introduction, env: {}, start });
    expect(daemon.build).toBe("1.0.0");
    socket.destroy();
  });

  test("starts another daemon when the one it started is killed before it listens", async () => {
    const { openPlace } = openFolder();
    let starts = 0;
    const start = (): StartedDaemon => {
      if (++starts === 1) return { pid: endedPid, ended: Promise.resolve(null) };
      listenAt(openPlace());
      return { pid: process.pid, ended: never };
    };
    const { socket } = await findDaemon({ openPlace, introduction, env: {}, start });
    expect(starts).toBe(2);
    socket.destroy();
  });

  test("does not wait for a daemon that another front started and that was killed", async () => {
    const { run, openPlace } = openFolder();
    const { hash } = openPlace();
    // The note stays fresh, so that only the end of the process can be the reason to go on.
    const touch = (): void => writeFileSync(join(run, `starting-${hash}`), String(endedPid));
    touch();
    const timer = setInterval(touch, 50);
    closers.unshift(() => clearInterval(timer));
    let starts = 0;
    const start = (): StartedDaemon => {
      starts++;
      listenAt(openPlace());
      return { pid: process.pid, ended: never };
    };
    const { socket } = await findDaemon({ openPlace, introduction, env: {}, start });
    expect(starts).toBe(1);
    socket.destroy();
  });

  test("gives up after three daemons that were killed", async () => {
    const { openPlace } = openFolder();
    let starts = 0;
    const start = (): StartedDaemon => {
      starts++;
      return { pid: endedPid, ended: Promise.resolve(null) };
    };
    await expect(findDaemon({ openPlace, introduction, env: {}, start, patienceMs: 300 })).rejects.toThrow(
      "ENOENT",
    );
    expect(starts).toBeLessThanOrEqual(3);
  });
});
