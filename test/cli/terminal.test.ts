import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";
import { demoServer, junctorOnTerminal, type Run, type RunOptions } from "../support/junctor-bin.ts";
import { createOddRegistry } from "../support/odd-tools.ts";

const hasScript = spawnSync("script", ["--version"]).status === 0;

let http: HttpListener;
beforeAll(async () => {
  const server = createServer(createOddRegistry(), { name: "odd", version: "1.0.0" });
  http = await listenHttp(server, { port: 0 });
});
afterAll(() => http[Symbol.asyncDispose]());

const call = (tool: string, options: RunOptions): Promise<Run> =>
  junctorOnTerminal(["call", tool, "--server", http.url], options);

/** Types each answer when its question has appeared. */
function typist(...steps: readonly (readonly [question: string, keys: string])[]): RunOptions {
  let next = 0;
  return {
    onOutput: (output, child) => {
      const step = steps[next];
      if (step === undefined || !output.includes(step[0])) return;
      next++;
      child.stdin?.write(step[1]);
    },
  };
}

describe.runIf(hasScript)("at a terminal", () => {
  test("text appears as it comes, and once", async () => {
    const seen: string[] = [];
    const onOutput = (output: string): void => void seen.push(output);
    const { code, stdout } = await junctorOnTerminal(["call", "countdown", "from=2", "--", ...demoServer], {
      onOutput,
    });
    expect({ code, stdout }).toEqual({ code: 0, stdout: "2 1 liftoff\r\n" });
    expect(seen[0]).toBe("2 ");
  });

  test("what was shown and is not part of the result stands above it", async () => {
    const { stdout } = await call("mutter", { stdin: "" });
    expect(stdout).toBe("Using tool: other\r\nthe result\r\n");
  });

  test("control characters of a server are not let through", async () => {
    const { stdout } = await call("hostile", { stdin: "" });
    expect(stdout).toBe("]52;c;cHduZWQ=safe\r\n");
  });

  test("a form is filled in field by field, and asked again until it fits", async () => {
    const answers = typist(
      ["Dish (string): ", "x\n"],
      ["fewer than 2", "soup\n"],
      ["table (integer): ", "four\n"],
      ["that is not an integer", "4\n"],
      ["spicy (boolean) [false]: ", "yes\n"],
      ["sauce (r|g) [leave empty to skip]: ", "\n"],
    );
    const { code, stdout } = await call("order", answers);
    expect(code).toBe(0);
    expect(stdout).toContain("The server asks: What may I bring?");
    expect(stdout).toContain("  r: Red\r\n  g: Green\r\n");
    expect(stdout).toMatch(/\{"dish":"soup","table":4,"spicy":true\}\r\n$/);
  });

  test("answers pasted ahead wait for their questions", async () => {
    const { stdout } = await call("order", typist(["Dish", "soup\n4\n\ng\n"]));
    expect(stdout).toMatch(/\{"dish":"soup","table":4,"spicy":false,"sauce":"g"\}\r\n$/);
  });

  test("Ctrl-D declines", async () => {
    const { code, stdout } = await call("order", typist(["Dish", "\u0004"]));
    expect(code).toBe(0);
    expect(stdout).toMatch(/The user said decline\.\r\n$/);
  });

  test("a page is shown in full and never opened", async () => {
    const { stdout } = await call("visit", typist(["(yes|no)", "yes\n"]));
    expect(stdout).toContain("https://example.com/sign-in?next=%2Fa\r\n");
    expect(stdout).toContain("It is at example.com.");
    expect(stdout).toMatch(/accept\r\n$/);
  });

  test("what is not a web address is refused unseen", async () => {
    const { code, stdout } = await call("lure", { stdin: "" });
    expect(code).toBe(3);
    expect(stdout).toMatch(/sends the user to an address that is not http or https/);
    expect(stdout).not.toContain("alert");
  });

  test("Ctrl-C cancels a call and ends with 130", async () => {
    const { code, stdout } = await call("slow", typist(["[5/9]", "\u0003"]));
    expect(code).toBe(130);
    expect(stdout).toBe("begun \r\n[5/9]\r\n\r\n");
  });

  test("Ctrl-C at a question cancels the call too", async () => {
    const { code } = await call("order", typist(["Dish", "\u0003"]));
    expect(code).toBe(130);
  });
});
