import { describe, expect, test } from "vitest";
import { call } from "./call/call.ts";
import { parseTarget } from "./call/target.ts";
import { tools } from "./call/tools.ts";
import { describeCommand, parseCommandLine, runCommand, UsageError } from "./terminal/command.ts";
import type { ParsedOf } from "./terminal/commands.ts";

async function run([name = "", ...args]: readonly string[]): Promise<number> {
  return runCommand(name, name === "call" ? call : tools, args);
}

describe("a command line that makes no sense is refused with what to write instead", () => {
  test.each([
    [["tools", "--jsn"], "unknown flag --jsn; did you mean --json?"],
    [["tools", "-y", "pkg"], "unknown flag -y; flags of a server's own command go after --"],
    [["tools", "--server"], "--server needs a value: --server URL"],
    [["tools", "--server", "--json"], "--server needs a value: --server URL"],
    [["tools", "--json=1"], "--json takes no value"],
    [
      ["tools", "localhost:7780/mcp"],
      '"localhost:7780/mcp" is not a URL; did you mean http://localhost:7780/mcp?',
    ],
    [["tools", "example.com"], '"example.com" is not a URL; did you mean http://example.com?'],
    [
      ["tools", "github"],
      '"github" is not a URL; write one such as http://127.0.0.1:7780/mcp, the command of a server after --, or --config FILE to mean a server of that config',
    ],
    [["tools", "http://"], '"http://" is not a valid URL'],
    [["tools", "ws://localhost"], "ws:// is not spoken here; use http://, https:// or tcp://HOST:PORT"],
    [["tools", "tcp://localhost"], '"tcp://localhost" needs a port: tcp://localhost:PORT'],
    [
      ["tools", "https://me:pass@example.com/mcp"],
      'a name or password in the URL is not sent; use --header "Authorization: …"',
    ],
    [
      ["tools", "http://a.test", "npx"],
      'tools takes one URL, but got "npx" as well; the command of a server goes after --',
    ],
    [
      ["tools", "http://a.test", "--server", "http://b.test"],
      "name the server once: as the operand or with --server",
    ],
    [
      ["tools", "http://a.test", "--", "npx"],
      'name one server: "http://a.test" or the command npx, not both',
    ],
    [["tools", "--"], "after -- comes the command of a server, such as -- node server.mjs"],
    [["tools", "--timeout", "soon"], '--timeout needs a time such as 30, 500ms or 5m, not "soon"'],
    [["tools", "--timeout", "0"], '--timeout needs a time such as 30, 500ms or 5m, not "0"'],
    [
      ["tools", "--header", "secret"],
      '--header needs a name, a colon and a value, such as --header "Authorization: Bearer KEY"',
    ],
    [
      ["tools", "--header", "a: b", "--", "x"],
      "--header is for HTTP servers; a server that is started here takes --env",
    ],
    [["tools", "--env", "A=1"], "--env is for servers that are started here: put their command after --"],
    [
      ["tools", "--env", "=1", "--", "x"],
      "--env needs a name: --env NAME=VALUE, or --env NAME to pass ours on",
    ],
    [
      ["tools", "--env", "NO_SUCH_NAME", "--", "x"],
      "--env NO_SUCH_NAME: there is no such variable here; write --env NO_SUCH_NAME=VALUE",
    ],
    [["call"], "call needs the name of a tool: junctor call TOOL [KEY=VALUE…]; junctor tools lists them"],
    [
      ["call", "a=1"],
      'the name of a tool comes first, but got "a=1"; write junctor call TOOL [KEY=VALUE…] --server URL',
    ],
    [["call", "add", "http://a.test"], "the server is named by a flag: --server http://a.test"],
    [["call", "add", "a=1", "--args", "{}"], 'give the arguments as --args or as KEY=VALUE, not both: "a=1"'],
  ])("junctor %j", async (args, words) => {
    const refusal = (async () => run(args))();
    await expect(refusal).rejects.toThrow(UsageError);
    await expect(refusal).rejects.toThrow(words);
  });
});

describe("the server a command line means", () => {
  const destinationOf = (...args: readonly string[]): ReturnType<typeof parseTarget> => {
    const parsed = parseCommandLine(args, "call") as ParsedOf<"call">;
    return parseTarget(parsed, parsed.flags.server);
  };

  test("is the one of npm start, unless another is named", () => {
    expect(destinationOf().target).toBe("http://127.0.0.1:7780/mcp");
    expect(destinationOf("--server", "https://example.com/mcp").target).toBe("https://example.com/mcp");
  });

  test("is started by everything after the first --, flags and all", () => {
    const { target } = destinationOf("--env", "KEY=a=b", "--", "npx", "-y", "pkg", "--json", "--", "x");
    expect(target).toEqual({ command: "npx", args: ["-y", "pkg", "--json", "--", "x"], env: { KEY: "a=b" } });
  });

  test("gets every header", () => {
    const { headers } = destinationOf("--header", "Authorization: Bearer a:b", "--header=X-Team:red");
    expect(headers).toEqual({ authorization: "Bearer a:b", "x-team": "red" });
  });

  test.each([
    ["30", 30_000],
    ["1.5", 1500],
    ["250ms", 250],
    ["5m", 300_000],
  ])("is waited for %s", async (text, timeoutMs) => {
    await using destination = destinationOf("--timeout", text);
    expect(destination.deadline?.timeoutMs).toBe(timeoutMs);
  });
});

test.each(["tools", "call"])("the help of %s has its flags and examples", (name) => {
  const help = describeCommand(name);
  expect(help).toMatch(new RegExp(`^Usage: junctor ${name} .*\\[-- COMMAND ARGS…\\]\n`));
  for (const flag of ["--json", "--server URL", "--header NAME:VALUE", "-h, --help"])
    expect(help).toContain(flag);
  expect(help).toContain("Examples:\n  junctor ");
});
