import { createHmac, randomBytes } from "node:crypto";
import { statSync } from "node:fs";
import { join } from "node:path";
import { createPrivateFile, readPrivateFile, stateFolder } from "../../config/index.ts";
import { createFileStore, type FileStore, type Logins, renewByProcess } from "../../credentials/index.ts";
import { UsageError } from "../terminal/index.ts";

/** The credentials of this user. */
interface UserLogins extends Logins {
  readonly store: FileStore;
}

/** Opens the credentials of this user. Throws a `UsageError` for a `JUNCTOR_SECRET` that could be guessed. */
export function openLogins(env: NodeJS.ProcessEnv = process.env): UserLogins {
  const store = createFileStore({ secrets: givenSecrets(env) });
  const [node, script = ""] = process.argv;
  const command = [node ?? process.execPath, ...process.execArgv, script, "renew-login"] as const;
  return { store, renewElsewhere: renewByProcess(command) };
}

interface SecretsOptions {
  readonly env: { readonly [name: string]: string | undefined };
  /** Identifies the gateway, such as the path of its config: tokens of another gateway do not open. */
  readonly served: string;
  /** Called with the reason why sessions will not outlive this process, and the remedy. */
  readonly onWarning: (text: string) => void;
}

/** Shorter secrets could be guessed. */
const minLength = 32;

/**
 * The secrets of sessions and states: the first seals, all of them open. They come from `JUNCTOR_SECRET`, separated by commas, the new one
 * first; without it, from a file in the user's state folder, which is made when it is missing. A file that cannot be trusted or made is
 * left alone, and the secret is good for this process only.
 */
export function readSecrets({ env, served, onWarning }: SecretsOptions): readonly string[] {
  const given = givenSecrets(env);
  if (given.length > 0) return given;
  if ((env["JUNCTOR_SECRET"] ?? "") !== "") onWarning("JUNCTOR_SECRET holds no secret, and is not used");
  const path = join(stateFolder(env), "secret");
  const kept = keep(path);
  if (kept.ok) return [createHmac("sha256", kept.secret).update(served).digest("base64url")];
  onWarning(`sessions end with this process: ${path} ${kept.problem}, or set JUNCTOR_SECRET`);
  return [newSecret()];
}

/** The secrets of `JUNCTOR_SECRET`. Throws a `UsageError` for one that could be guessed. */
export function givenSecrets(env: SecretsOptions["env"]): readonly string[] {
  const given = (env["JUNCTOR_SECRET"] ?? "")
    .split(",")
    .map((secret) => secret.trim())
    .filter((secret) => secret !== "");
  const short = given.findIndex((secret) => secret.length < minLength);
  if (short !== -1) {
    const which = given.length === 1 ? "" : `, part ${short + 1} of ${given.length} between commas,`;
    throw new UsageError(
      `JUNCTOR_SECRET${which} needs ${minLength} characters or more: openssl rand -hex 32 makes one`,
    );
  }
  return given;
}

type Kept = { readonly ok: true; readonly secret: string } | { readonly ok: false; readonly problem: string };

const newSecret = (): string => randomBytes(32).toString("base64url");

/** The secret in a file, which is made when it is missing. */
function keep(path: string): Kept {
  try {
    const kept = readKept(path);
    if (kept !== undefined) return kept;
    createPrivateFile(path, `${newSecret()}\n`);
    // Another process may have been first; then its secret is ours too.
    return readKept(path) ?? { ok: false, problem: "leads nowhere: remove the link" };
  } catch (error) {
    const { code = "why is not known" } = error as NodeJS.ErrnoException;
    return { ok: false, problem: `cannot be made (${code}): make its folder writable` };
  }
}

/** Undefined when there is no file. */
function readKept(path: string): Kept | undefined {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return undefined;
  if (!stats.isFile()) return { ok: false, problem: "is not a file: remove it" };
  if (process.platform !== "win32" && (stats.mode & 0o077) !== 0)
    return { ok: false, problem: "may be read or written by other users: remove it" };
  const secret = readPrivateFile(path, 1024)?.trim();
  if (secret === undefined) return { ok: false, problem: "cannot be read by this user: remove it" };
  if (/^[\w-]{43}$/.test(secret)) return { ok: true, secret };
  return { ok: false, problem: "holds no secret of ours: remove it" };
}
