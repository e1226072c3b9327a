import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { cliServer, makeConfigFolder } from "../support/config-file.ts";
import { junctor, type Run } from "../support/junctor-bin.ts";

/** Calls a tool of a config in which another server hangs; tells whether that one was started. */
async function callBeside(
  name: string,
  settings: object = {},
  ...flags: readonly string[]
): Promise<Run & { readonly isOtherStarted: boolean }> {
  await using folder = await makeConfigFolder();
  const mark = join(folder.path, "started");
  const file = await folder.write({
    mcpServers: { a: cliServer({ tools: ["x"] }), other: cliServer({ silent: "all", mark }) },
    junctor: { servers: settings },
  });
  const run = await junctor(["call", name, "--args", "{}", "--config", file, ...flags]);
  return { ...run, isOtherStarted: existsSync(mark) };
}

test.each([
  ["a__x", {}],
  ["y", { a: { tools: { x: { name: "y" } } } }],
  ["x", { a: { prefix: false } }],
  ["a__x", { other: { prefix: false } }],
  ["y", { a: { tools: { x: { name: "y" } } }, other: { prefix: false } }],
])("a call of %s starts only the servers that may have it", async (name, settings) => {
  const run = await callBeside(name, settings);
  expect(run).toEqual({ code: 0, stdout: "x {}\n", stderr: "", isOtherStarted: false });
});

test("a call of a name that no server can have starts none, and says how names begin", async () => {
  const { code, stderr, isOtherStarted } = await callBeside("b__x");
  expect({ code, isOtherStarted }).toEqual({ code: 2, isOtherStarted: false });
  expect(stderr).toMatch(/^junctor: no server of \S+ can have a tool "b__x"; .*a__, other__.*\n$/);
  expect((await callBeside("otehr__x")).stderr).toContain("did you mean other__x?");
});

test("a call of a tool whose server does not start in time says what is wrong with it", async () => {
  const { code, stdout, stderr } = await callBeside("other__x", {}, "--timeout", "1");
  expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
  expect(stderr).toMatch(/^junctor: other: it is still starting/);
  expect(stderr).toContain("--timeout SECONDS waits longer");
});

test("all tools of a config are listed as far as they are known when the time is over", async () => {
  await using folder = await makeConfigFolder();
  const file = await folder.write({
    mcpServers: { a: { url: "http://127.0.0.1:9/mcp" }, b: cliServer({ silent: "all" }) },
  });
  const { code, stdout, stderr } = await junctor(["tools", "--config", file, "--timeout", "1"]);
  expect({ code, stdout }).toEqual({ code: 0, stdout: "" });
  expect(stderr).toContain("warning: a is missing: ");
  expect(stderr).toContain("b is missing: it is still starting");
});

test("a server that is up and does not list its tools is said to be missing", async () => {
  await using folder = await makeConfigFolder();
  const file = await folder.write({
    mcpServers: { a: cliServer({ tools: ["x"] }), b: cliServer({ silent: ["tools/list"] }) },
  });
  const { code, stderr } = await junctor(["tools", "--config", file, "--timeout", "5"]);
  expect(code).toBe(0);
  // On a busy machine the time may be over before it is up.
  expect(stderr).toMatch(
    /warning: b is missing: (its tools are still being listed|it is still starting|it did not)/,
  );
});

test("one server of a config that does not start is reported without its command", async () => {
  await using folder = await makeConfigFolder();
  const script = "console.error('the key s3cret-s3cret is wrong'); process.exitCode = 1; 's3cret-s3cret'";
  const file = await folder.write({
    mcpServers: { a: { command: process.execPath, args: ["-e", script], env: { KEY: "s3cret-s3cret" } } },
  });
  const { code, stderr } = await junctor(["tools", "a", "--config", file]);
  expect({ code, stderr }).toEqual({
    code: 3,
    stderr:
      "junctor: a: it exited with code 1.\n  It wrote:\n    the key [secret] is wrong\n  Run its command by hand to see why it ends.\n",
  });
});

test("--timeout ends a call that is not done, and the wait for a list", async () => {
  await using folder = await makeConfigFolder();
  const file = await folder.write({
    mcpServers: {
      call: cliServer({ tools: ["x"], silent: ["tools/call"] }),
      list: cliServer({ silent: ["tools/list"] }),
    },
  });
  const [called, listed] = await Promise.all([
    junctor(["call", "x", "--server", "call", "--config", file, "--timeout", "5"]),
    junctor(["tools", "list", "--config", file, "--timeout", "5"]),
  ]);
  // On a busy machine the time may be over before the server has started.
  const late =
    /^junctor: (it was not done after 5 s, so it was cancelled; --timeout SECONDS waits longer|\w+: it did not answer within 5000 ms)/;
  for (const { code, stdout, stderr } of [called, listed]) {
    expect({ code, stdout }).toEqual({ code: 3, stdout: "" });
    expect(stderr).toMatch(late);
  }
});
