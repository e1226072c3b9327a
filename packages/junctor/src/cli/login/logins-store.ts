import { createFileStore, type FileStore, renewByProcess, type Logins } from "../../credentials/index.ts";
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
