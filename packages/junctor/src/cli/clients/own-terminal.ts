import { homedir } from "node:os";
import { resolve } from "node:path";
import { guardVariable } from "@junctor/client/internal";
import { suggest } from "@junctor/core/options";
import { userConfig } from "../../attach/index.ts";
import { type ClientProgram, type ClientPlace, clients } from "../../install/index.ts";
import { isAccepted } from "../config/index.ts";
import { findGateways, takeEdit } from "../serve/index.ts";
import { note, type Parsed, type SharedValues, toSafeLine, UsageError } from "../terminal/index.ts";

/** A server that may run commands could run ours, and so decide what is started next. */
export function assertOwnTerminal(): void {
  if (process.env[guardVariable] !== undefined)
    throw new UsageError(
      "a server of a gateway cannot change your config; run this from a terminal of your own",
    );
}

export const thisMachine = (): ClientPlace => ({
  home: homedir(),
  platform: process.platform,
  env: process.env,
});

export function configOf(parsed: Parsed<SharedValues<"own">>): string {
  return resolve(parsed.flags.config ?? userConfig());
}

/** The client of a name. Throws a `UsageError` that names the one that was meant. */
export function clientOf(name: string): ClientProgram {
  const found = clients.find(({ id, aliases = [] }) => id === name || aliases.includes(name));
  if (found !== undefined) return found;
  const ids = clients.map(({ id }) => id);
  throw new UsageError(
    `no client is called ${JSON.stringify(name)}; ${suggest(name, ids, `there are ${ids.join(", ")}`)}`,
  );
}

/** Whether the person wants what was shown. */
export async function mayWrite(parsed: Parsed<SharedValues<"write">>, question: string): Promise<boolean> {
  if (parsed.flags["dry-run"]) {
    await note("Nothing was written.\n");
    return false;
  }
  if (parsed.flags.yes) return true;
  if (!(process.stdin.isTTY && process.stderr.isTTY))
    throw new UsageError("nothing was written: on a terminal you are asked, and --yes writes without asking");
  return isAccepted(`${question} (y/N): `);
}

/** Has running gateways take our config as it is now: the person who ran this command agreed to it. */
export async function tellGateways(config: string): Promise<void> {
  if (process.platform === "win32") return;
  for (const gateway of await findGateways()) {
    if (resolve(gateway.file) !== config || gateway.waiting.length === 0) continue;
    const wrong = await takeEdit(gateway);
    await note(
      wrong === undefined
        ? `The gateway that runs (process ${gateway.pid}) took it.\n`
        : `junctor: warning: process ${gateway.pid} did not take it: ${toSafeLine(wrong)}\n`,
    );
  }
}
