import { once } from "node:events";
import { createServer as createTcpServer, connect, type AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import { readVersion } from "../packages/junctor/src/cli/version.ts";
import { runNode, spawnNode } from "./support/child.ts";
import { readFrames, toLine } from "./support/raw-wire.ts";

const main = "packages/junctor/dist/cli/main.js";

describe.concurrent("the command line", () => {
  test.each<[readonly string[]]>([
    [["--help"]],
    [["-h"]],
    [["help"]],
    [["--bogus", "--help"]],
    [["nonsense", "-h"]],
    [[]],
  ])("shows its commands: %j", async (args) => {
    const { code, stdout, stderr } = await runNode(main, ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toMatch(/^Usage: junctor COMMAND/);
    expect(stdout).toContain("serve");
  });

  test.each<[readonly string[]]>([
    [["serve", "--help"]],
    [["serve", "-h"]],
    [["serve", "--tcp", "--help"]],
    [["serve", "--tcp", "-h"]],
    [["serve", "--bogus", "--help"]],
    [["serve", "now", "--stdio", "--tcp", "x", "--help"]],
    [["help", "serve"]],
    [["--help", "serve"]],
  ])("shows the flags of a command: %j", async (args) => {
    const { code, stdout, stderr } = await runNode(main, ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const flag of ["--stdio", "--tcp PORT", "--host HOST", "--help", "--version"])
      expect(stdout).toContain(flag);
  });

  test.each<[readonly string[]]>([
    [["call", "--help"]],
    [["call", "add", "--args", "--help"]],
    [["help", "call"]],
    [["tools", "--timeout", "soon", "--help"]],
    [["help", "tools"]],
  ])("shows what a command that needs a server takes: %j", async (args) => {
    const { code, stdout, stderr } = await runNode(main, ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const name = args.includes("call") ? "call" : "tools";
    expect(stdout).toMatch(new RegExp(`^Usage: junctor ${name} `));
  });

  test("leaves the flags of a server's own command to it", async () => {
    const { code, stderr } = await runNode(main, "tools", "--jsn", "--", "server", "--help", "--version");
    expect({ code, stderr }).toEqual({
      code: 2,
      stderr: "junctor: unknown flag --jsn; did you mean --json?\n",
    });
  });

  test.each<[readonly string[]]>([
    [["--version"]],
    [["-v"]],
    [["--bogus", "--version"]],
    [["help", "--version"]],
    [["serve", "--version"]],
    [["serve", "--tcp", "--version"]],
    [["call", "--bogus", "-v"]],
  ])("shows its version: %j", async (args) => {
    await expect(runNode(main, ...args)).resolves.toMatchObject({ code: 0, stdout: `${readVersion()}\n` });
  });

  test.each([
    [["serv"], 'there is no command "serv"; did you mean junctor serve?'],
    [["nonsense"], "junctor help lists them"],
    [["hepl"], "did you mean junctor help?"],
    [["help", "serv"], "did you mean junctor serve?"],
    [["--verison"], "unknown flag --verison; did you mean --version?"],
    [["--hlep", "serve"], "unknown flag --hlep; did you mean --help?"],
    [["--stdio"], "the command comes before its flags: junctor COMMAND --stdio"],
    [["serve", "--stido"], "did you mean --stdio?"],
    [["serve", "--hosst", "x"], "did you mean --host?"],
    [["serve", "--zzzzzzzz"], "unknown flag --zzzzzzzz"],
    [["serve", "--stdio=yes"], "--stdio takes no value"],
    [["serve", "--tcp"], "--tcp needs a value: --tcp PORT"],
    [["serve", "--tcp", "http"], "--tcp needs a port number from 0 to 65535"],
    [["serve", "--tcp", "65536"], "--tcp needs a port number from 0 to 65535"],
    [["serve", "--tcp", "-1"], "--tcp"],
    [["serve", "--tcp=0x50"], "--tcp needs a port number from 0 to 65535"],
    [["serve", "--tcp", "1.5"], "--tcp needs a port number from 0 to 65535"],
    [["serve", "--stdio", "--tcp", "1"], "--stdio and --tcp"],
    [["serve", "--stdio", "--port", "1"], "--stdio and --port"],
    [["serve", "--stdio", "--host", "127.0.0.1"], "--stdio listens on no address; leave out --host"],
    [["serve", "now"], 'got "now"'],
  ])("refuses %j with one line that says what to do", async (args, advice) => {
    const { code, stdout, stderr } = await runNode(main, ...args);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toContain(advice);
    expect(stderr).toMatch(/^junctor: [^\n]+\n$/);
  });

  test.each([["--tcp"], ["--port"]])("refuses to serve where others can reach it: %s", async (flag) => {
    const { code, stderr } = await runNode(main, "serve", flag, "0", "--host", "0.0.0.0");
    expect(code).toBe(2);
    expect(stderr).toMatch(/^junctor: Refusing to listen on 0\.0\.0\.0: [^\n]+ Use 127\.0\.0\.1 or ::1\.\n$/);
  });

  test.each([["--tcp"], ["--port"]])("says that a port is taken and names the flag: %s", async (flag) => {
    const taken = createTcpServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const { code, stderr } = await runNode(main, "serve", flag, String(port));
    taken.close();
    expect(code).toBe(3);
    const advice = `; choose another port with ${flag} PORT`;
    expect(stderr).toMatch(new RegExp(`^junctor: [^\n]*EADDRINUSE[^\n]*${advice}\n$`));
  });

  test("serves the demo tools over TCP, says how to talk to it, and stops on SIGTERM", async () => {
    const child = spawnNode(main, "serve", "--tcp", "0");
    const exited = once(child, "close");
    let greeting = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (greeting += text));
    await expect.poll(() => greeting).toContain("Ctrl-C stops it.");
    const port = Number(/127\.0\.0\.1:(\d+)/.exec(greeting)?.[1]);
    const messages = [...greeting.matchAll(/'(\{[^']*\})'/g)].map(([, message]) => message ?? "");
    const socket = connect(port, "127.0.0.1");
    const reader = readFrames(socket);
    for (const message of messages) socket.write(toLine(message));
    await expect(reader.take(({ id }) => id === 2)).resolves.toMatchObject({
      result: { content: [{ text: "5" }] },
    });
    child.kill("SIGTERM");
    await expect(exited).resolves.toEqual([0, null]);
    socket.destroy();
  });
});
