import { createFileStore, type FileStore } from "../gateway/credentials/file-store.ts";
import { renewByProcess } from "../gateway/credentials/renew-process.ts";
import type { Logins } from "../gateway/credentials/server-authorizer.ts";
import { givenSecrets } from "./secrets.ts";

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
