// Commands of this machine as tools of a gateway.
import { existsSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { type Client, connect } from "../../packages/client/src/index.ts";
import { toAgreedPart } from "../../packages/junctor/src/config/edits.ts";
import { parseConfig } from "../../packages/junctor/src/config/index.ts";
import { createGateway, type Gateway } from "../../packages/junctor/src/gateway/index.ts";
import { isAlive } from "../support/processes.ts";
import { until } from "../support/until.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "junctor-commands-")));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const node = process.execPath;
/** A program that prints its arguments as JSON. */
const echo = join(folder, "echo.cjs");
writeFileSync(echo, "process.stdout.write(JSON.stringify(process.argv.slice(2)));");
const script = (name: string, code: string): string => {
  const file = join(folder, `${name}.cjs`);
  writeFileSync(file, code);
  return file;
};

interface Opened extends AsyncDisposable {
  readonly gateway: Gateway;
  readonly client: Client;
}

async function open(tools: object, entry: object = {}, settings: object = {}): Promise<Opened> {
  const gateway = await createGateway({
    mcpServers: { local: { tools, ...entry } },
    junctor: { remember: false, servers: { local: settings } },
  });
  await gateway.ready;
  const client = await connect({ server: gateway.server });
  return {
    gateway,
    client,
    [Symbol.asyncDispose]: async () => {
      await client[Symbol.asyncDispose]();
      await gateway.close();
    },
  };
}

const textInput = { type: "object", properties: { text: { type: "string" } }, required: ["text"] };
const textOf = (result: { readonly content: readonly object[] }): string =>
  result.content.map((block) => ("text" in block ? String(block.text) : "")).join("");

describe("arguments of a command", () => {
  test("arrive as one word, unchanged, or are refused; nothing else runs", async () => {
    const trap = join(folder, "trap");
    const tools = {
      after: { run: [node, echo, "--", "{text}"], input: textInput },
      inside: { run: [node, echo, "--text={text}"], input: textInput },
      bare: { run: [node, echo, "{text}"], input: textInput },
      all: {
        run: [node, echo, "--", "{texts}"],
        input: { type: "object", properties: { texts: { type: "array", items: { type: "string" } } } },
      },
    };
    await using opened = await open(tools);
    const pieces = fc.constantFrom(
      "'",
      '"',
      "\n",
      "\r\n",
      "$(touch TRAP)",
      "`touch TRAP`",
      "; touch TRAP",
      "| touch TRAP",
      "&& touch TRAP",
      "\0",
      "-",
      "--",
      "{text}",
      "{{text}}",
      "$HOME",
      "%PATH%",
      "*",
      "~",
      "\\",
      " ",
      "\t",
      "é",
      "😀",
      "a",
    );
    const word = fc.array(pieces, { maxLength: 6 }).map((all) => all.join("").replaceAll("TRAP", trap));
    const words = fc.sample(word, { numRuns: 1000, seed: 35 });
    const name = fc.sample(fc.constantFrom("after", "inside", "bare"), { numRuns: words.length, seed: 35 });
    let refused = 0;
    const one = async (text: string, tool: string): Promise<void> => {
      const result = await opened.client.callTool(`local__${tool}`, { text });
      const isRefused = text.includes("\0") || (tool === "bare" && text.startsWith("-"));
      expect(result.isError === true, `${tool} ${JSON.stringify(text)}`).toBe(isRefused);
      if (isRefused) refused++;
      else {
        const expected = tool === "after" ? ["--", text] : tool === "inside" ? [`--text=${text}`] : [text];
        expect(JSON.parse(textOf(result))).toEqual(expected);
      }
    };
    // A list gives as many words.
    const singles = words.splice(0, 200);
    const sound = words.filter((text) => !text.includes("\0"));
    const all = await opened.client.callTool("local__all", { texts: sound });
    expect(JSON.parse(textOf(all))).toEqual(["--", ...sound]);
    const unsound = await opened.client.callTool("local__all", { texts: words });
    expect(textOf(unsound)).toContain("NUL");
    for (let index = 0; index < singles.length; index += 4)
      await Promise.all(
        singles.slice(index, index + 4).map((text, nth) => one(text, name[index + nth] ?? "after")),
      );
    expect(refused).toBeGreaterThan(10);
    expect(existsSync(trap)).toBe(false);
  });

  test("that are not given leave their word, or their group of words, out", async () => {
    const run = [node, echo, "log", ["-n", "{count}"], "--since={since}", "{paths}", "{{text}}"];
    const properties = {
      count: { type: "integer" },
      since: { type: "string", default: "yesterday" },
      paths: { type: "array", items: { type: "string" } },
    };
    await using opened = await open({ log: { run, input: { type: "object", properties } } });
    const call = async (args: object): Promise<unknown> =>
      JSON.parse(textOf(await opened.client.callTool("local__log", { ...args })));
    expect(await call({})).toEqual(["log", "--since=yesterday", "{text}"]);
    expect(await call({ count: 3, since: "now", paths: ["a b", "c"] })).toEqual([
      "log",
      "-n",
      "3",
      "--since=now",
      "a b",
      "c",
      "{text}",
    ]);
  });

  test("that are too long, or could be options, are refused", async () => {
    await using opened = await open({ say: { run: [node, echo, "{text}"], input: textInput } });
    const refusal = async (args: object): Promise<string> => {
      const result = await opened.client.callTool("local__say", { ...args });
      expect(result.isError).toBe(true);
      return textOf(result);
    };
    expect(await refusal({ text: "x".repeat(120_000) })).toContain("longer than 102400 bytes");
    expect(await refusal({ text: "-rf" })).toContain('begins with "-"');
  });
});

describe("what a command prints", () => {
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

  test("is text, JSON or an image; anything else is an error", async () => {
    const print = (name: string, base64: string): readonly string[] => [
      node,
      script(name, `process.stdout.write(Buffer.from(${JSON.stringify(base64)}, "base64"))`),
    ];
    await using opened = await open({
      text: { run: print("text", btoa("plain")), readOnly: true },
      json: { run: print("json", btoa('{"a":[1]}')), json: true },
      wrong: { run: print("wrong", btoa("{a")), json: true },
      image: { run: print("image", png) },
      binary: { run: print("binary", btoa("\u00ff\u00fe\u0000\u0001")) },
      endless: { run: [node, script("endless", "for (;;) require('fs').writeSync(1, 'y'.repeat(65536));")] },
    });
    const call = (name: string) => opened.client.callTool(`local__${name}`, {});
    expect(await call("text")).toMatchObject({ content: [{ type: "text", text: "plain" }] });
    expect(await call("json")).toMatchObject({ structuredContent: { a: [1] } });
    expect(textOf(await call("wrong"))).toBe("The command did not print JSON: {a");
    expect(await call("image")).toMatchObject({
      content: [{ type: "image", mimeType: "image/png", data: png }],
    });
    expect(textOf(await call("binary"))).toBe(
      "The command printed 4 bytes that are neither text nor an image",
    );
    expect(textOf(await call("endless"))).toContain("printed more than 8388608 bytes");
    const listed = await opened.client.listTools();
    const hints = listed.map(({ name, annotations }) => [name, annotations?.readOnlyHint]);
    expect(hints.slice(0, 2)).toEqual([
      ["local__text", true],
      ["local__json", false],
    ]);
  });

  test("to its standard error stream is progress and log, and with its exit code an error", async () => {
    const code = `console.error("begin\\r10% done\\r 60 % done\\n100%\\nend"); process.stdout.write(require("fs").readFileSync(0)); process.exitCode = Number(process.argv[2]);`;
    const file = script("loud", code);
    const input = { type: "object", properties: { code: { type: "integer" } }, required: ["code"] };
    await using opened = await open({
      loud: { run: [node, file, "{code}"], input, stdin: "got {code}", exitCodes: [0, 1] },
    });
    const progress: number[] = [];
    const call = (value: number) =>
      opened.client.callTool(
        "local__loud",
        { code: value },
        {
          onEvent: (event) => {
            if (event.kind === "progress") progress.push(event.progress ?? 0);
          },
        },
      );
    expect(await call(1)).toMatchObject({ content: [{ text: "got 1" }] });
    expect(progress).toEqual([10, 60, 100]);
    const failed = await call(3);
    expect(failed.isError).toBe(true);
    expect(textOf(failed)).toBe(
      "The command exited with code 3\nbegin\n10% done\n60 % done\n100%\nend\ngot 3",
    );
  });
});

describe("the process of a command", () => {
  test("runs in its folder, with the variables it is given and no others", async () => {
    process.env["JUNCTOR_TEST_KEY"] = "secret";
    const file = script(
      "env",
      "console.log(JSON.stringify([process.cwd(), process.env.MINE, process.env.JUNCTOR_TEST_KEY ?? null]))",
    );
    await using opened = await open(
      { env: { run: [node, file], json: true } },
      { cwd: folder, env: { MINE: "yes" } },
    );
    const { structuredContent } = await opened.client.callTool("local__env", {});
    expect(structuredContent).toEqual([folder, "yes", null]);
  });

  test("is ended with all it started when its time is over, also one that ignores TERM", async () => {
    const pids = join(folder, "pids");
    const stubborn = `process.on("SIGTERM", () => {}); require("fs").appendFileSync(${JSON.stringify(pids)}, process.pid + "\\n"); setInterval(() => {}, 1000);`;
    const child = script("stubborn-child", stubborn);
    const file = script(
      "stubborn",
      `require("child_process").spawn(process.execPath, [${JSON.stringify(child)}], { stdio: "inherit" }); ${stubborn}`,
    );
    await using opened = await open({ stay: { run: [node, file], timeoutMs: 1500 } });
    const result = await opened.client.callTool("local__stay", {});
    expect(textOf(result)).toContain("The command was ended after 1500 ms");
    const started = readFileSync(pids, "utf8").trim().split("\n").map(Number);
    expect(started).toHaveLength(2);
    await until(() => started.every((pid) => !isAlive(pid)));
  });

  test("that is not there, or whose caller hangs up, leaves the others alone", async () => {
    const mark = join(folder, "started");
    const wait = script(
      "wait",
      `require("fs").writeFileSync(${JSON.stringify(mark)}, String(process.pid)); setInterval(() => {}, 1000);`,
    );
    await using opened = await open({
      gone: { run: ["junctor-no-such-program"] },
      wait: { run: [node, wait] },
    });
    const gone = await opened.client.callTool("local__gone", {});
    expect(gone.isError).toBe(true);
    expect(textOf(gone)).toContain("there is no program");
    const controller = new AbortController();
    const call = opened.client.callTool("local__wait", {}, { signal: controller.signal });
    await until(() => existsSync(mark) && readFileSync(mark, "utf8") !== "");
    controller.abort();
    await expect(call).rejects.toThrow("given up");
    const pid = Number(readFileSync(mark, "utf8"));
    await until(() => !isAlive(pid));
  });
});

describe("the config of commands", () => {
  const parse = (tools: object, source = "{}") =>
    parseConfig(JSON.stringify({ mcpServers: { local: { tools } } }), {
      file: "mcp.json",
      env: {},
      folder: source,
    });

  test.each([
    [
      { a: { run: [] } },
      'mcpServers.local.tools.a.run: must be a list of words: write "run": ["git", "log", "-n", "{count}"]',
    ],
    [{ a: {} }, "mcpServers.local.tools.a: has no command"],
    [{ a: { run: ["git", "{x}"] } }, 'has {x}, which is not in "input"'],
    [{ a: { run: ["{x}"], input: { type: "object", properties: { x: {} } } } }, "must begin with a program"],
    [
      { a: { run: ["sh", "-c", "echo {x}"], input: { type: "object", properties: { x: {} } } } },
      "runs as a program",
    ],
    [
      { a: { run: ["python3", "-c", "print('{x}')"], input: { type: "object", properties: { x: {} } } } },
      "runs as a program",
    ],
    [{ a: { run: ["git"], input: { properties: {} } } }, "must be the JSON Schema of an object"],
    [{ "a b": { run: ["git"] } }, "cannot be the name of a tool"],
    [{ a: { run: ["git"], timeout: 3 } }, "did you mean timeoutMs?"],
    [{ a: { run: ["git", "\0"] } }, "has a NUL character"],
    [{}, "has no tools"],
  ])("refuses %j", (tools, message) => {
    expect(() => parse(tools)).toThrow(message);
  });

  test("waits for a person when a command is new or another", () => {
    const before = parse({ a: { run: ["git", "log"] } });
    const after = parse({ a: { run: ["git", "push"] }, b: { run: ["rm", "-r", "x"] } });
    const { waiting, config } = toAgreedPart(after, before, {});
    expect(waiting).toEqual(["local (tools: git push; rm -r x)"]);
    expect(config.servers).toEqual(before.servers);
  });

  test("tools that are a list stay a filter of another client", () => {
    const text = JSON.stringify({ mcpServers: { local: { command: "x", tools: ["a"] } } });
    expect(parseConfig(text, { file: "mcp.json", env: {} }).servers[0]?.onlyTools).toEqual(["a"]);
  });
});
