import { isLoopback } from "@junctor/core/channel";
import { defined } from "@junctor/core/options";
import { type IssuerOptions, usualAlgorithms } from "../tokens/index.ts";
import { type ConfigObject, type ConfigValue, refuse } from "./config-value.ts";
import type { IssuerConfig } from "./config.ts";
import {
  readChoice,
  readFitting,
  readList,
  readObject,
  readObjectOrEmpty,
  readText,
  readTexts,
  refuseUnknownKeys,
} from "./value-readers.ts";

const issuerExample = '"https://id.example.com/realms/corp"';
const example = `{ "issuer": ${issuerExample} }`;
const askExample = '{ "clientId": "gateway", "clientSecret": "${SECRET}" }';
const known = "issuer audience scopes algorithms groupsClaim implies jwksUri introspection login".split(" ");

/** The issuers of `junctor.issuers`. `publicUrl` is the one of the config: tokens must be made for it. */
export function readIssuers(given: ConfigValue, publicUrl: string | undefined): readonly IssuerConfig[] {
  const object = readObject(given, `"issuers": { "corp": ${example} }`);
  const entries = object?.entries() ?? [];
  if (entries.length > 0 && publicUrl === undefined)
    refuse(
      given,
      'needs the URL that tokens are made for: write "http": { "publicUrl": "https://mcp.example.com/mcp" }',
    );
  const owners = new Map<string, string>();
  return entries.flatMap(([name, at]) => {
    const issuer = readIssuer(name, at);
    if (issuer === undefined) return [];
    const owner = owners.get(issuer.issuer);
    if (owner !== undefined) refuse(at, `is the same issuer as ${owner}: keep one of them`);
    owners.set(issuer.issuer, name);
    return [issuer];
  });
}

function readIssuer(name: string, given: ConfigValue): IssuerConfig | undefined {
  if (name === "cert")
    return refuse(given, "is what names of callers with certificates begin with: choose another");
  if (!/^[\w-]{1,32}$/.test(name))
    return refuse(given, "cannot be a name: write up to 32 letters, digits, - and _, such as corp");
  const object = readObject(given, example);
  if (object === undefined) return undefined;
  const isAllKnown = refuseUnknownKeys(object, known);
  if (!object.has("issuer")) return isAllKnown ? refuse(given, `has no issuer: write ${example}`) : undefined;
  const issuer = readIssuerUrl(object.get("issuer"));
  const settings = defined({
    audience: readAudience(object.get("audience")),
    scopes: object.has("scopes") ? readScopes(object.get("scopes"), '"scopes": ["mcp:use"]') : undefined,
    algorithms: object.has("algorithms") ? readAlgorithms(object.get("algorithms")) : undefined,
    groupsClaim: readText(object.get("groupsClaim"), '"realm_access.roles"'),
    implies: object.has("implies") ? readImplied(object.get("implies")) : undefined,
    jwksUri: readUrl(object.get("jwksUri"), '"https://id.example.com/keys"'),
    introspection: readIntrospection(object),
    login: readLogin(object.get("login")),
  });
  return issuer === undefined ? undefined : { name, issuer, ...settings };
}

/** Kept exactly as it is written: tokens name their issuer, and every character counts. */
function readIssuerUrl(given: ConfigValue): string | undefined {
  const text = readUrl(given, issuerExample);
  if (text === undefined) return undefined;
  if (new URL(text).hostname === "accounts.google.com")
    return refuse(
      given,
      "gives access tokens that only Google can read: put a broker such as Keycloak, Auth0 or Dex before it, and name that",
    );
  return text;
}

function readUrl(given: ConfigValue, written: string): string | undefined {
  const text = readText(given, written);
  if (text === undefined) return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isLocal = url?.protocol === "http:" && isLoopback(url.hostname.replaceAll(/[[\]]/g, ""));
  if (url === undefined || url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    return refuse(given, `is not the URL of an issuer: write ${written}`);
  return url.protocol === "https:" || isLocal
    ? text
    : refuse(given, `must begin with https: write ${written}`);
}

function readAudience(given: ConfigValue): string | readonly string[] | undefined {
  if (Array.isArray(given.value)) {
    const list = readTexts(given, '"audience": ["api://mcp"]');
    return list.length === 0 ? refuse(given, 'is empty: leave it out, or write "api://mcp"') : list;
  }
  return readText(given, '"api://mcp"');
}

/** Names of scopes as RFC 6749 has them: without spaces, quotes and backslashes. */
export function readScopes(given: ConfigValue, written: string): readonly string[] {
  const problem = `is no name of a scope: write ${written}, without spaces and quotes`;
  return readList(given, written, (item) => readFitting(item, written, /^[!#-[\]-~]+$/, problem));
}

function readAlgorithms(given: ConfigValue): readonly string[] | undefined {
  const list = readList(given, '"algorithms": ["RS256"]', (item) => readChoice(item, usualAlgorithms));
  return list.length === 0 ? refuse(given, 'is empty: leave it out, or write ["RS256"]') : list;
}

function readImplied(given: ConfigValue): { readonly [scope: string]: readonly string[] } {
  const object = readObjectOrEmpty(given, '"implies": { "mcp:admin": ["mcp:write"] }');
  return Object.fromEntries(
    object.entries().map(([scope, at]) => [scope, readScopes(at, '["mcp:write"]')] as const),
  );
}

/** The client that asks the issuer who visits a connect page. */
function readLogin(given: ConfigValue): IssuerConfig["login"] {
  const object = readObject(given, `"login": ${askExample}`);
  if (object === undefined) return undefined;
  refuseUnknownKeys(object, ["clientId", "clientSecret"]);
  const clientId = readText(object.get("clientId"), '"gateway"');
  const clientSecret = readText(object.get("clientSecret"), '"${SECRET}"');
  if (clientSecret !== undefined) given.findings.hide(clientSecret);
  if (clientId === undefined) return refuse(given, `needs a clientId: write ${askExample}`);
  return { clientId, ...defined({ clientSecret }) };
}

function readIntrospection(issuer: ConfigObject): IssuerOptions["introspection"] {
  const given = issuer.get("introspection");
  const object = readObject(given, `"introspection": ${askExample}`);
  if (object === undefined) return undefined;
  refuseUnknownKeys(object, ["clientId", "clientSecret", "url"]);
  const clientId = readText(object.get("clientId"), '"gateway"');
  const clientSecret = readText(object.get("clientSecret"), '"${SECRET}"');
  const url = readUrl(object.get("url"), '"https://id.example.com/introspect"');
  if (clientSecret !== undefined) given.findings.hide(clientSecret);
  if (clientId !== undefined && clientSecret !== undefined)
    return { clientId, clientSecret, ...defined({ url }) };
  if (!object.has("clientId") || !object.has("clientSecret"))
    refuse(given, `needs clientId and clientSecret: write ${askExample}`);
  return undefined;
}
