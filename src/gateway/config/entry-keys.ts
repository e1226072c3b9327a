import { nearest } from "../../errors/nearest.ts";
import type { Group } from "./config-value.ts";
import { entryToolKeys } from "./entry-tools.ts";

/** What an entry may say and we act on. */
const used = [
  "command",
  "args",
  "env",
  "envFile",
  "cwd",
  "url",
  "serverUrl",
  "httpUrl",
  "headers",
  "type",
  "transport",
  "disabled",
  "enabled",
];

/** What other clients keep in their entries, for themselves. */
const foreign = new Set(
  `
  $schema _comment comment comments id name title displayName label description icon icons iconPath iconUrl logo tags
  category categories version registryUrl homepage repository documentation license author metadata gallery source
  sourcePath provider providerUrl installed isActive active
  autoApprove alwaysAllow autoAllow trust trusted alwaysLoad approval permissions
  deferTools defer capabilities roots sampling elicitation notifications instructions
  timeout timeoutMs timeoutSeconds startupTimeout startupTimeoutSec startup_timeout_sec tool_timeout_sec initTimeout
  initializationTimeout connectTimeout requestTimeout toolTimeout callTimeout networkTimeout longRunning
  autoStart autostart autoConnect start_on_launch startOnLaunch lifecycle required retries retry reconnect restart
  dev watchPaths sandbox sandboxEnabled inputs presentation shell runtime platform settings priority scope bundled
  auth oauth oauthClientId oauthScopes authorization authProvider authProviderType oidc scopes targetAudience
  targetServiceAccount headersHelper requestInit bearerTokenEnvVar bearer_token_env_var envHeaders env_http_headers
  http_headers env_vars
  `
    .trim()
    .split(/\s+/),
);

/** Words that mean a key of ours and are not spelt like it. */
const synonyms: { readonly [key: string]: string } = {
  cmd: "command",
  arguments: "args",
  argv: "args",
  environment: "env",
  workingDirectory: "cwd",
  workdir: "cwd",
  uri: "url",
  endpoint: "url",
  baseUrl: "url",
};

/**
 * Looks at keys nobody knows: one that is nearly ours is a mistake, which would go unnoticed if it were passed over;
 * any other is probably some client's own. Gives the keys that were meant.
 */
export function checkEntryKeys(entry: Group): ReadonlySet<string> {
  const allMeant = new Set<string>();
  for (const [key, { path }] of entry.entries()) {
    if (used.includes(key) || entryToolKeys.includes(key) || foreign.has(key)) continue;
    const meant = Object.hasOwn(synonyms, key) ? synonyms[key] : nearest(key, used);
    if (meant === undefined)
      entry.reading.warn(path, "is not known here and is not used: remove it if it is yours");
    else entry.reading.issue(path, `is not known here: did you mean ${meant}?`);
    if (meant !== undefined) allMeant.add(meant);
  }
  return allMeant;
}
