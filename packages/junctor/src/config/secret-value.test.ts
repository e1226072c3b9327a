import { expect, test } from "vitest";
import { secrecyOf } from "./findings.ts";

const random = "9f8e7d6c5b4a39281706";

test.each([
  ["a name that says so", "DB_PASSWORD", "Tr0ub4dor&3"],
  ["a name in another style", "x-api-key", random],
  ["a number after a name that says so", "PIN_CODE", "98765432109876"],
  ["a GitHub token, whatever its name", "A", `ghp_${"a1".repeat(18)}`],
  ["a JWT that looks like a host", "A", "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZGEifQ.signature"],
  ["a URL with a password", "DATABASE_URL", "postgres://ada:lovelace@db.example.com/notes"],
  ["a UUID", "INSTANCE", "3f2b8c1d-9a7e-4c5b-8d6f-0e1a2b3c4d5e"],
  ["a run of letters and digits", "A", `env-token-${random}`],
  ["base64 that begins with a slash", "AWS_SECRET_ACCESS_KEY", "/bPxRfiCYEXAMPLE8KEYwJalrXUtnFEMI"],
])("%s is hidden everywhere", (_, name, value) => {
  expect(secrecyOf({ value, names: [name], isLikely: false })).toBe("everywhere");
});

test.each([
  ["POSTGRES_PASSWORD", "postgres"],
  ["API_KEY", "change-me"],
  ["PIN", "987654"],
])("a secret that reads like ordinary words is hidden at its own server: %s=%s", (name, value) => {
  expect(secrecyOf({ value, names: [name], isLikely: true })).toBe("own");
});

test.each([
  ["MYSQL_HOST", "127.0.0.1"],
  ["MYSQL_HOST", "db-01.internal.example.com"],
  ["REDIS", "cache.example.com:6379"],
  ["LISTEN", "[::1]:8080"],
  ["MAX_TOKENS", "100000"],
  ["MYSQL_USER", "inventory-reader"],
  ["GIT_AUTHOR", "ada@example.com"],
  ["HOME", "/home/ada/projects/notes-2024"],
  ["STORE", "/nix/store/0c7gk2lhx8a1xzbmv5j6pqrs9w3y4d8f-node/bin"],
  ["PWD", "/srv/gateway"],
  ["FOLDER", "C:\\Users\\ada\\notes"],
  ["API_KEY_FILE", "/run/secrets/api_key"],
  ["TOKEN_URL", "https://login.example.com/oauth2/v2/token"],
  ["AWS_REGION", "eu-central-1"],
  ["MODEL", "gpt-4o-mini-2024-08-06"],
  ["LOG_FORMAT", "pretty"],
  ["READ_ONLY", "enabled"],
  ["AUTH_MODE", "interactive"],
])("an ordinary value is shown, also one of the environment: %s=%s", (name, value) => {
  expect(secrecyOf({ value, names: [name], isLikely: true })).toBeUndefined();
});

test("a value without a telling name is hidden where secrets usually are, unless it is ordinary", () => {
  const value = "from the file";
  expect(secrecyOf({ value, names: ["GREETING"], isLikely: true })).toBe("everywhere");
  expect(secrecyOf({ value, names: ["GREETING"], isLikely: false })).toBeUndefined();
});

test("nothing short is hidden", () => {
  expect(secrecyOf({ value: "a1B2c", names: ["PASSWORD"], isLikely: true })).toBeUndefined();
});
