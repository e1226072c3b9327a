import { nearest } from "@junctor/core/options";
import { type ConfigObject, type ConfigValue, refuse, warn } from "./config-value.ts";

/** Which tools of a server another client's file leaves, by their exact names. */
export interface EntryTools {
  /** Undefined means all. */
  readonly onlyTools: readonly string[] | undefined;
  readonly withoutTools: readonly string[];
}

export const allTools: EntryTools = { onlyTools: undefined, withoutTools: [] };

/** The names of an allow list, as clients spell it: Gemini CLI, Copilot, Codex and others. */
const allowKeys: readonly string[] = [
  "includeTools",
  "enabledTools",
  "enabled_tools",
  "allowedTools",
  "tools",
];

/** The names of a deny list: Windsurf, Roo Code, Kiro, Gemini CLI, Codex and others. */
const denyKeys: readonly string[] = ["disabledTools", "excludeTools", "disabled_tools", "excludedTools"];

/** Filters that are not understood here. They give a warning, because their author believes that something is hidden. */
const otherFilters: readonly string[] = ["toolFilter", "toolNames", "disabledPrompts", "disabledResources"];

/** The keys that are read here. */
const entryToolKeys: readonly string[] = [...allowKeys, ...denyKeys, ...otherFilters];

/** Reads the filters of tools in an entry. What cannot be applied is a warning: the file is another program's. */
export function readEntryTools(entry: ConfigObject): EntryTools {
  for (const key of otherFilters) if (entry.has(key)) warn(entry.get(key), `is not applied here: ${instead}`);
  const lists = (keys: readonly string[]): readonly (readonly string[])[] =>
    keys.flatMap((key) => {
      const names = entry.has(key) ? readNames(entry.get(key)) : undefined;
      return names === undefined ? [] : [names];
    });
  const allowed = lists(allowKeys).filter((names) => !names.includes("*"));
  const denied = lists(denyKeys).flat();
  // Of several allow lists, a tool must be in each.
  const [first, ...others] = denied.includes("*") ? [[]] : allowed;
  return {
    onlyTools: first?.filter((name) => others.every((names) => names.includes(name))),
    withoutTools: denied.filter((name) => name !== "*"),
  };
}

const instead = 'write "junctor": { "servers": { "NAME": { "allow": […], "deny": […] } } }';

/** Names of tools. `*` alone means all; a name is never a pattern otherwise. */
function readNames(given: ConfigValue): readonly string[] | undefined {
  const { value } = given;
  if (!Array.isArray(value) || !value.every((name) => typeof name === "string")) {
    warn(given, `is not a list of names and is not applied here: ${instead}`);
    return undefined;
  }
  const pattern = value.find((name) => name !== "*" && /[*?]/.test(name));
  if (pattern !== undefined)
    warn(given, `has ${JSON.stringify(pattern)}, which is taken as an exact name: ${instead}`);
  return value;
}

/** What an entry may say and we act on. */
const used = wordsOf(
  "command args env envFile cwd url serverUrl httpUrl headers type transport disabled enabled",
);

/** What other clients keep in their entries, for themselves. */
const foreign = wordsOf(`
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
`);

function wordsOf(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

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
 * Looks at unknown keys: one that is nearly ours is a mistake, which would go unnoticed if it were passed over;
 * any other is probably some client's own. Gives the keys that were meant.
 */
export function checkEntryKeys(entry: ConfigObject): ReadonlySet<string> {
  const allMeant = new Set<string>();
  for (const [key, given] of entry.entries()) {
    if (used.includes(key) || entryToolKeys.includes(key) || foreign.includes(key)) continue;
    const meant = Object.hasOwn(synonyms, key) ? synonyms[key] : nearest(key, used);
    if (meant === undefined) {
      warn(given, "is not known here and is not used: remove it if it is yours");
      continue;
    }
    refuse(given, `is not known here: did you mean ${meant}?`);
    allMeant.add(meant);
  }
  return allMeant;
}
