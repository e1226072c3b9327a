import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { stateFolder, writePrivateFile } from "../../config/index.ts";
import { junctor } from "../../invocation/index.ts";
import { note, openAddress, print, refuseOperands, type Run, UsageError } from "../terminal/index.ts";
import { findRunning, nothingRuns, onlyOne, pageOf, type Running } from "./running.ts";

/** `junctor open` */
export const open: Run<"open"> = async (parsed) => {
  refuseOperands("open", parsed);
  const wanted = { config: parsed.flags.config, pid: parsed.flags.pid };
  const found = await findRunning(wanted);
  if (found.length === 0) throw nothingRuns(wanted);
  const paged = found.filter((running) => pageOf(running) !== undefined);
  // Each worker has a page; the first one's is as good as any.
  const [first] = onlyOne(paged);
  const page = first && pageOf(first);
  if (page === undefined) throw noPage(found);
  if (!parsed.flags.print && hasBrowser() && (await openAddress(toSafeAddress(page)))) {
    await note(
      `Opened ${page.replace(/#.*/s, "")} in your browser; ${junctor("open")} --print shows its address.\n`,
    );
    return 0;
  }
  await print(`${page}\n`);
  return 0;
};

/**
 * The key of a page must not be an argument of a program, which every user of the machine can read. So the browser is given a file that leads
 * there. Whoever can read that can use the socket of the gateway beside it.
 */
function toSafeAddress(page: string): string {
  if (!page.includes("#")) return page;
  const file = join(stateFolder(), "gateways", "open.html");
  const target = page.replaceAll("&", "&amp;").replaceAll('"', "&quot;");
  writePrivateFile(
    file,
    `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><meta http-equiv="refresh" content="0; url=${target}"><a href="${target}">Junctor</a>\n`,
  );
  return pathToFileURL(file).href;
}

/** Over SSH there is usually no screen. */
function hasBrowser({ env, platform } = process): boolean {
  if (platform === "darwin" || platform === "win32") return true;
  return ["DISPLAY", "WAYLAND_DISPLAY", "BROWSER"].some((name) => (env[name] ?? "") !== "");
}

function noPage([running]: readonly Running[]): UsageError {
  const { kind, status } = running ?? { kind: "gateway", status: { pid: 0 } };
  const why =
    kind === "daemon"
      ? "the daemon has no page"
      : 'its config says "admin": false, or it serves stdio or TCP';
  return new UsageError(
    `the ${kind} that runs (process ${status.pid}) has no page: ${why}; write "junctor": { "admin": { "port": 7781 } } in its config, and start it again`,
  );
}
