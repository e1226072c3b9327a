import { expect, test } from "vitest";
import { ConfigError } from "../../../core/src/errors/index.ts";
import { parseConfigValue } from "./parse-config.ts";

const section = (text: string): object => ({
  mcpServers: { x: { command: "a" } },
  junctor: JSON.parse(text) as object,
});

test.each([
  [
    section('{ "admin": true }'),
    'junctor.admin: must be an object, not a boolean: write "admin": { "port": 7781 }, or false for none',
  ],
  [
    section('{ "admin": { "key": "abc" } }'),
    'junctor.admin.key: must be an object, not a string: write { "env": "NAME_OF_A_VARIABLE" }',
  ],
  [
    section('{ "admin": { "key": { "value": "abc" } } }'),
    "junctor.admin.key.value: is not known here: write one of env, sha256",
  ],
  [
    section('{ "traces": { "endpoint": "collector:4318" } }'),
    'junctor.traces.endpoint: is not an http or https address: write "http://127.0.0.1:4318/v1/traces"',
  ],
  [
    section('{ "traces": { "percent": 101 } }'),
    "junctor.traces.percent: must be a whole number from 0 to 100: write 5",
  ],
  [
    section('{ "accessLog": 1 }'),
    'junctor.accessLog: must be an object, not a number: write "access.jsonl", or "stderr", or { "file": "access.jsonl", "keep": 5 }',
  ],
])("%j is refused: %s", (config, message) => {
  const parse = (): unknown => parseConfigValue(config, { file: "config", env: {} });
  expect(parse).toThrow(ConfigError);
  expect(parse).toThrow(message);
});

test("a key of the admin API is named by a variable or its hash, and not kept", () => {
  const key = "an-admin-key-0123456789";
  const config = section('{ "admin": { "key": { "env": "ADMIN_KEY" } } }');
  const { admin, secrets } = parseConfigValue(config, { file: "config", env: { ADMIN_KEY: key } });
  expect(JSON.stringify(admin)).not.toContain(key);
  expect(secrets).toContain(key);
});

test("values of headers to a collector are secrets", () => {
  const config = section('{ "traces": { "headers": { "api-key": "0123456789abcdef" } } }');
  expect(parseConfigValue(config, { file: "config", env: {} }).secrets).toContain("0123456789abcdef");
});
