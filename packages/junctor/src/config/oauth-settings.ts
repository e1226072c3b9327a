import { defined } from "@junctor/core/options";
import { type ConfigValue, refuse } from "./config-value.ts";
import type { OAuthConfig } from "./oauth-config.ts";
import { readChoice, readFlag, readObject, readText, readTexts, refuseUnknownKeys } from "./value-readers.ts";

const example = '"oauth": { "clientId": "${CLIENT_ID}", "clientSecret": "${CLIENT_SECRET}" }';
const keys = ["clientId", "clientSecret", "privateKey", "issuer", "scopes", "resource", "grant"];

/** What `oauth` says of a server that wants OAuth; most servers need nothing of it. */
export function readOAuth(given: ConfigValue): OAuthConfig | undefined {
  const object = readObject(given, example);
  if (object === undefined) return undefined;
  refuseUnknownKeys(object, keys);
  const text = (key: string, sample: string): string | undefined =>
    object.has(key) ? readText(object.get(key), sample) : undefined;
  const clientId = text("clientId", '"${CLIENT_ID}"');
  const clientSecret = text("clientSecret", '"${CLIENT_SECRET}"');
  const privateKey = text("privateKey", '"${PRIVATE_KEY}"');
  const issuer = text("issuer", '"https://id.example.com"');
  for (const secret of [clientSecret, privateKey]) if (secret !== undefined) given.findings.hide(secret);
  if (issuer !== undefined && !(/^https?:\/\//.test(issuer) && URL.canParse(issuer)))
    refuse(object.get("issuer"), 'is not a URL: write "https://id.example.com", as the issuer writes itself');
  const grant = readChoice(object.get("grant"), ["authorization_code", "client_credentials"]);
  if (clientId === undefined && (clientSecret ?? privateKey) !== undefined)
    refuse(given, 'has a secret and no "clientId": write both');
  if (clientSecret !== undefined && privateKey !== undefined)
    refuse(object.get("privateKey"), 'and "clientSecret" mean the same: keep one of them');
  if (grant === "client_credentials" && (clientSecret ?? privateKey) === undefined)
    refuse(object.get("grant"), 'needs a "clientId", and a "clientSecret" or a "privateKey"');
  return {
    ...defined({ clientId, clientSecret, privateKey, issuer, grant }),
    ...(object.has("scopes") ? { scopes: readTexts(object.get("scopes"), '"scopes": ["read"]') } : {}),
    ...defined({ resource: readFlag(object.get("resource")) }),
  };
}
