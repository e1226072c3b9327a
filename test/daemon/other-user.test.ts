import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createDaemonHome, notedServers } from "../support/daemon-home.ts";

const isRoot = process.getuid?.() === 0;

// Another account: 65534 is "nobody" on every Linux. Only root may become it.
test.runIf(process.platform === "linux" && isRoot)(
  "another user of the machine cannot reach the socket, read the key, or enter the folder",
  async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const front = home.attach();
    await front.shake();
    const run = join(home.folder, ".junctor", "run");
    chmodSync(home.folder, 0o755);
    chmodSync(join(home.folder, ".junctor"), 0o755);
    const [socket = ""] = readdirSync(run).filter((name) => name.endsWith(".sock"));
    const code = `
      const path = ${JSON.stringify(join(run, socket))};
      require("node:net").connect(path).on("connect", () => console.log("connected")).on("error", ({ code }) => console.log(code));
      try { require("node:fs").readFileSync(${JSON.stringify(join(run, "key"))}); console.log("read"); } catch ({ code }) { console.log(code); }
      try { require("node:fs").readdirSync(${JSON.stringify(run)}); console.log("listed"); } catch ({ code }) { console.log(code); }`;
    const other = {
      uid: 65534,
      gid: 65534,
      encoding: "utf8" as const,
      cwd: "/",
      env: { PATH: process.env["PATH"] },
    };
    const { stdout } = spawnSync(process.execPath, ["--eval", code], other);
    expect(stdout.trim().split("\n")).toEqual(["EACCES", "EACCES", "EACCES"]);
  },
);

test.skipIf(isRoot)(
  "another user cannot connect (skipped: only root can start a program as another user)",
  () => {
    expect(isRoot).toBe(false);
  },
);

test.runIf(process.platform === "linux")(
  "a program that says no hello gets nothing and is left",
  async () => {
    await using home = createDaemonHome({ mcpServers: notedServers(["a"]) });
    const front = home.attach();
    await front.shake();
    const run = join(home.folder, ".junctor", "run");
    const [socket = ""] = readdirSync(run).filter((name) => name.endsWith(".sock"));
    for (const words of [
      "POST /mcp HTTP/1.1\r\nHost: x\r\n\r\n",
      '{"jsonrpc":"2.0","id":1,"method":"ping"}\n',
    ]) {
      const stream = connect(join(run, socket));
      let said = "";
      stream.setEncoding("utf8").on("data", (text: string) => (said += text));
      stream.on("error", () => {});
      const closed = new Promise((resolve) => stream.once("close", resolve));
      stream.write(words);
      await closed;
      expect(said).not.toContain('"result"');
      expect(said).not.toContain("proof");
    }
    expect(await front.call("a__note", { key: "still here" })).toBe("still here");
  },
);
