import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import { guardVariable } from "@junctor/client/internal";
import { junctor } from "../../invocation/index.ts";
import { isAccepted } from "../config/index.ts";
import { showUnseen, findGateways, takeEdit, type WaitingGateway } from "../serve/index.ts";
import { note, print, refuseOperands, type Run, toSafeLine, UsageError } from "../terminal/index.ts";

/** `junctor reload` */
export const reload: Run<"reload"> = async (parsed) => {
  refuseOperands("reload", parsed);
  // A server that may run commands could run this one.
  if (process.env[guardVariable] !== undefined)
    throw new UsageError("a server of a gateway cannot agree for you; run this from a terminal of your own");
  if (process.platform === "win32")
    throw new UsageError("reload does not work on Windows; start serve again, or with --reload trust");
  const chosen = choose(await findGateways(), parsed.flags.config);
  let exitCode = 0;
  for (const gateway of chosen) if (!(await take(gateway, parsed.flags.yes))) exitCode = 1;
  return exitCode;
};

function choose(running: readonly WaitingGateway[], file: string | undefined): readonly WaitingGateway[] {
  const wanted = file === undefined ? undefined : toRealPath(file);
  const chosen = running.filter((gateway) => wanted === undefined || toRealPath(gateway.file) === wanted);
  if (chosen.length === 0)
    throw new UsageError(
      `no gateway of yours runs with ${file ?? "a config"}; ${junctor("serve")} starts one`,
    );
  const waiting = chosen.filter((gateway) => gateway.wrong !== "" || gateway.waiting.length > 0);
  if (wanted === undefined && waiting.length > 1)
    throw new UsageError(
      `several gateways have edits that wait; write --config with one of ${waiting.map(({ file: one }) => one).join(", ")}`,
    );
  return waiting.length === 0 ? chosen.slice(0, 1) : waiting;
}

async function take(gateway: WaitingGateway, isSure: boolean): Promise<boolean> {
  const { file, wrong, waiting } = gateway;
  if (wrong !== "") return fail(`${file} is not used: ${wrong}`);
  if (waiting.length === 0) {
    await print(`${toSafeLine(file)}: nothing waits\n`);
    return true;
  }
  await note(`Waits in ${toSafeLine(file)}:\n${waiting.map((one) => `  ${showUnseen(one)}\n`).join("")}`);
  if (!isSure && !(process.stdin.isTTY && process.stderr.isTTY))
    return fail("nothing was taken: on a terminal you are asked, and --yes takes it");
  if (!isSure && !(await isAccepted("Take it? (y/N): "))) return fail("nothing was taken");
  const problem = await takeEdit(gateway);
  if (problem !== undefined) return fail(`nothing was taken: ${problem}`);
  await print(`${toSafeLine(file)}: taken\n`);
  return true;
}

async function fail(text: string): Promise<boolean> {
  await note(`junctor: ${toSafeLine(text)}\n`);
  return false;
}

export function toRealPath(file: string): string {
  try {
    return realpathSync(file);
  } catch {
    return resolve(file); // It was removed meanwhile.
  }
}
