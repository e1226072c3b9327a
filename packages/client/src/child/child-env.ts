const words = (text: string): readonly string[] => text.trim().split(/\s+/);

/** The variables that every child inherits: paths, the locale and the user. */
const posix = words("HOME LOGNAME PATH SHELL TERM USER LANG LC_ALL LC_CTYPE TMPDIR TZ");
const windows = words(`
  APPDATA COMSPEC HOMEDRIVE HOMEPATH LOCALAPPDATA PATH PATHEXT PROCESSOR_ARCHITECTURE PROGRAMFILES SYSTEMDRIVE SYSTEMROOT
  TEMP TMP USERNAME USERPROFILE
`);

/**
 * How programs of this machine reach the network, and where launchers (npx, uvx, docker, deno, bun) keep and find things:
 * behind a company's proxy a server that is started with one of them needs these before its first line runs. Names in any
 * case, because proxies and npm's settings are written in both.
 */
const network = words(`
  HTTP_PROXY HTTPS_PROXY ALL_PROXY NO_PROXY NODE_USE_ENV_PROXY
  NODE_EXTRA_CA_CERTS NODE_USE_SYSTEM_CA SSL_CERT_FILE SSL_CERT_DIR
  CURL_CA_BUNDLE REQUESTS_CA_BUNDLE PIP_CERT GIT_SSL_CAINFO DENO_CERT UV_NATIVE_TLS
  XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME XDG_RUNTIME_DIR
  NPM_CONFIG_CACHE NPM_CONFIG_CAFILE NPM_CONFIG_GLOBALCONFIG NPM_CONFIG_USERCONFIG
  NPM_CONFIG_PROXY NPM_CONFIG_HTTPS_PROXY NPM_CONFIG_NOPROXY NPM_CONFIG_PREFIX
  PIP_CACHE_DIR PIP_CONFIG_FILE UV_CACHE_DIR UV_CONFIG_FILE UV_PYTHON_INSTALL_DIR UV_TOOL_DIR
  DENO_DIR BUN_INSTALL BUN_INSTALL_CACHE_DIR
  DOCKER_CERT_PATH DOCKER_CONFIG DOCKER_CONTEXT DOCKER_HOST DOCKER_TLS_VERIFY CONTAINER_HOST
`);

/** Where packages come from. People put keys into these addresses; one with a user or password in it stays here. */
const packageSources = words(`
  NPM_CONFIG_REGISTRY PIP_INDEX_URL PIP_EXTRA_INDEX_URL UV_DEFAULT_INDEX UV_INDEX UV_INDEX_URL UV_EXTRA_INDEX_URL
`);

const inAnyCase = new Set([...network, ...packageSources]);
const withoutCredentials = new Set(packageSources);

/** A URL that names a user, somewhere in a value that may hold several. */
const userInUrl = /\/\/[^/\s]*@/;

/**
 * The environment of a child: a short list of ours, and what the user names. Everything else of ours stays here, because
 * that is where keys are kept.
 */
export function toChildEnv(
  own: NodeJS.ProcessEnv,
  named: { readonly [name: string]: string | undefined },
  platform: NodeJS.Platform,
): Record<string, string> {
  const isWindows = platform === "win32";
  const allowed = new Set(isWindows ? windows : posix);
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    const upper = name.toUpperCase();
    const isAllowed = allowed.has(isWindows ? upper : name) || inAnyCase.has(upper);
    // A value that begins like a shell function is one (CVE-2014-6271); no child needs ours.
    if (!isAllowed || value === undefined || value.startsWith("()")) continue;
    if (withoutCredentials.has(upper) && userInUrl.test(value)) continue;
    env[name] = value;
  }
  for (const [name, value] of Object.entries(named)) if (value !== undefined) env[name] = value;
  return env;
}
