import { expect, test } from "vitest";
import { ConfigError } from "../../../core/src/errors/index.ts";
import { parseConfigValue } from "./parse-config.ts";

const http = { publicUrl: "https://mcp.example.com/mcp" };
const issuer = "https://id.example.com";
const env = { KEY: "0123456789abcdefXYZ", SECRET: "not-to-be-shown" };

function complaintOf(junctor: object): string {
  try {
    parseConfigValue({ mcpServers: {}, junctor }, { file: "f", env });
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replaceAll(/^f: /gm, "");
    throw error;
  }
  return "nothing is wrong";
}

const ofCorp = (settings: object): object => ({ http, issuers: { corp: { issuer, ...settings } } });

test.each([
  [
    { issuers: { corp: { issuer } } },
    'junctor.issuers: needs the URL that tokens are made for: write "http": { "publicUrl": "https://mcp.example.com/mcp" }',
  ],
  [
    { http, issuers: { "a b": { issuer } } },
    'junctor.issuers["a b"]: cannot be a name: write up to 32 letters, digits, - and _, such as corp',
  ],
  [
    { http, issuers: { corp: {} } },
    'junctor.issuers.corp: has no issuer: write { "issuer": "https://id.example.com/realms/corp" }',
  ],
  [
    { http, issuers: { corp: { isuer: issuer } } },
    "junctor.issuers.corp.isuer: is not known here: did you mean issuer? (There may be issuer, audience, scopes, algorithms, groupsClaim, implies, jwksUri, introspection, login.)",
  ],
  [
    { http, issuers: { a: { issuer }, b: { issuer } } },
    "junctor.issuers.b: is the same issuer as a: keep one of them",
  ],
  [
    ofCorp({ issuer: "http://id.example.com" }),
    'junctor.issuers.corp.issuer: must begin with https: write "https://id.example.com/realms/corp"',
  ],
  [
    ofCorp({ issuer: "https://accounts.google.com" }),
    "junctor.issuers.corp.issuer: gives access tokens that only Google can read: put a broker such as Keycloak, Auth0 or Dex before it, and name that",
  ],
  [
    ofCorp({ issuer: "id.example.com" }),
    'junctor.issuers.corp.issuer: is not the URL of an issuer: write "https://id.example.com/realms/corp"',
  ],
  [ofCorp({ algorithms: ["none"] }), /^junctor\.issuers\.corp\.algorithms\[0\]: must be one of "RS256", /],
  [ofCorp({ algorithms: ["HS256"] }), /^junctor\.issuers\.corp\.algorithms\[0\]: must be one of "RS256", /],
  [
    ofCorp({ scopes: ["a b"] }),
    'junctor.issuers.corp.scopes[0]: is not a name of a scope: write "scopes": ["mcp:use"], without spaces and quotes',
  ],
  [
    ofCorp({ introspection: { clientId: "gate" } }),
    'junctor.issuers.corp.introspection: needs clientId and clientSecret: write { "clientId": "gateway", "clientSecret": "${SECRET}" }',
  ],
  [
    { ...ofCorp({}), keys: { "corp:alice": { env: "KEY" } } },
    'junctor.keys["corp:alice"]: could be the name of a caller with a token or a certificate (corp:): choose another',
  ],
] as const)("%j is refused", (junctor, message) => {
  if (typeof message === "string") expect(complaintOf(junctor)).toBe(message);
  else expect(complaintOf(junctor)).toMatch(message);
});

test("an issuer on this machine needs no https, and keeps its spelling", () => {
  const { issuers } = parseConfigValue(
    { mcpServers: {}, junctor: { http, issuers: { local: { issuer: "http://127.0.0.1:3000/" } } } },
    { file: "f", env },
  );
  expect(issuers).toEqual([{ name: "local", issuer: "http://127.0.0.1:3000/" }]);
});

test("everything that may be said of an issuer is taken, and its secret is hidden", () => {
  const corp = {
    issuer: "https://id.example.com/realms/corp",
    audience: ["api://mcp"],
    scopes: ["mcp:use"],
    algorithms: ["RS256"],
    groupsClaim: "realm_access.roles",
    implies: { "mcp:admin": ["mcp:write"] },
    jwksUri: "https://id.example.com/keys",
    introspection: { clientId: "gate", clientSecret: "introspect-me", url: "https://id.example.com/ask" },
  };
  const config = parseConfigValue(
    { mcpServers: {}, junctor: { http, issuers: { corp } } },
    { file: "f", env },
  );
  expect(config.issuers).toEqual([{ name: "corp", ...corp }]);
  expect(config.secrets).toEqual(["introspect-me"]);
});
