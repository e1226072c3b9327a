/** What a child may know of our environment without being told: where things are and who is at the keyboard. */
const posix = [
  "HOME",
  "LOGNAME",
  "PATH",
  "SHELL",
  "TERM",
  "USER",
  "LANG",
  "LC_ALL",
  "LC_CTYPE",
  "TMPDIR",
  "TZ",
];
const windows = [
  "APPDATA",
  "COMSPEC",
  "HOMEDRIVE",
  "HOMEPATH",
  "LOCALAPPDATA",
  "PATH",
  "PATHEXT",
  "PROCESSOR_ARCHITECTURE",
  "PROGRAMFILES",
  "SYSTEMDRIVE",
  "SYSTEMROOT",
  "TEMP",
  "TMP",
  "USERNAME",
  "USERPROFILE",
];

type Environment = { readonly [name: string]: string | undefined };

/**
 * The environment of a child: a short list of ours, and what the user names. Everything else of ours stays here, because
 * that is where keys are kept.
 */
export function toChildEnv(
  own: Environment,
  named: Environment,
  platform: NodeJS.Platform,
): Record<string, string> {
  const isWindows = platform === "win32";
  const allowed = new Set(isWindows ? windows : posix);
  const env: Record<string, string> = {};
  for (const [name, value] of Object.entries(own)) {
    const isAllowed = allowed.has(isWindows ? name.toUpperCase() : name);
    // A value that begins like a shell function is one (CVE-2014-6271); no child needs ours.
    if (isAllowed && value !== undefined && !value.startsWith("()")) env[name] = value;
  }
  for (const [name, value] of Object.entries(named)) if (value !== undefined) env[name] = value;
  return env;
}
