import { describe, expect, test } from "vitest";
import type { GatewayConfig } from "./config.ts";
import { parseConfigValue } from "./parse-config.ts";

const env = { TOKEN: "ghp_secret_token", EMPTY: "" };
const parse = (mcpServers: object, junctor: object = {}): GatewayConfig =>
  parseConfigValue({ mcpServers, junctor }, { file: "config", env });
const fine = { command: "a" };

describe("a server that needs a variable without a value is disabled:", () => {
  test.each([
    [{ command: "${NO}" }, "a variable it needs is not set: set NO, or write ${NO:-}"],
    [
      { command: "a", args: ["${NO}", "${env:NO}"], env: { A: "${NO}" } },
      "a variable it needs is not set: set NO, or write ${NO:-}",
    ],
    [{ url: "${NO}/mcp" }, "a variable it needs is not set: set NO, or write ${NO:-}"],
    [
      { url: "http://a", headers: { A: "Bearer ${NO}", B: "${TOKEN}", C: "${NEITHER}" } },
      "variables it needs are not set: set NO, or write ${NO:-}; set NEITHER, or write ${NEITHER:-}",
    ],
    [
      { command: "${input:github-token}" },
      "a variable it needs is not set: ${input:…} is asked for by an editor only: set an environment variable and write ${GITHUB_TOKEN}",
    ],
    [
      { command: "${input:1}" },
      "a variable it needs is not set: ${input:…} is asked for by an editor only: set an environment variable and write ${NAME}",
    ],
    [
      { command: "a", cwd: "${workspaceFolder}" },
      "a variable it needs is not set: ${workspaceFolder} is not known here: write the folder itself",
    ],
  ])("%j", (entry, reason) => {
    const config = parse({ one: fine, two: entry, three: fine });
    expect(config.servers.map(({ name }) => name)).toEqual(["one", "three"]);
    expect(config.disabled).toEqual([{ name: "two", prefix: "two", tools: {}, audit: {}, reason }]);
  });
});

test("a variable that is empty, or has a default, disables nothing", () => {
  const config = parse({ a: { command: "a", args: ["${EMPTY}", "${NO:-}"] } });
  expect(config.disabled).toEqual([]);
  expect(config.servers).toMatchObject([{ launch: { args: ["", ""] } }]);
});

test("the variables of one server do not disable another that needs the same", () => {
  const config = parse({ a: { command: "${NO}" }, b: { command: "${NO}" } });
  expect(config.disabled.map(({ name }) => name)).toEqual(["a", "b"]);
});

test("elsewhere a variable without a value is a mistake, also when a server needs it", () => {
  const server = { command: "${NO}" };
  expect(() => parse({ a: server }, { audit: "${NO}" })).toThrow("junctor.audit: NO is not set");
  expect(() => parse({ a: server }, { servers: { a: { timeoutMs: "${NO}" } } })).toThrow("NO is not set");
  expect(() => parse({ a: server }, { keys: { al: { env: "NO" } } })).toThrow("NO is not set");
});

test("what is wrong with a disabled server is still reported", () => {
  expect(() => parse({ a: { command: "${NO}", args: 1 } })).toThrow("mcpServers.a.args: must be an array");
  expect(() => parse({ a: { command: "${NO}" } }, { servers: { a: { start: 1 } } })).toThrow(
    "servers.a.start",
  );
  // Setting the variable must not make the config wrong.
  expect(() => parse({ "a b": fine, "a-b": { command: "${NO}" } })).toThrow("has the same prefix");
});

test("a server that is switched off is neither there nor disabled", () => {
  const config = parse({ a: { command: "${NO}", disabled: true }, b: { command: "${NO}", enabled: false } });
  expect(config).toMatchObject({ servers: [], disabled: [] });
});
