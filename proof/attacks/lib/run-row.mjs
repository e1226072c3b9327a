import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { root } from "../../../scripts/setup.mjs";
import { pidsOf } from "../../bench/lib/processes.mjs";
import { output } from "./bundle.mjs";

/** The title, bound and limits of a row, without running it. */
export async function loadRow(name) {
  const { row } = await import(pathToFileURL(join(output, `rows/${name}.mjs`)).href);
  return row;
}

/** Runs one row in processes of its own, and ends all of them. A row that throws or takes too long is one red line. */
export async function runRow(name, { scale, seed, limitMinutes }) {
  const child = fork(join(output, "host.mjs"), [name, scale], {
    cwd: root,
    env: { ...process.env, SCORECARD_SEED: String(seed) },
    execArgv: ["--expose-gc", "--enable-source-maps"],
    stdio: ["ignore", "inherit", "pipe", "ipc"],
  });
  const end = () => child.kill("SIGKILL");
  process.once("exit", end);
  let stderr = "";
  child.stderr.setEncoding("utf8").on("data", (text) => (stderr = (stderr + text).slice(-4000)));
  let lines;
  child.on("message", (message) => (lines = message.lines));
  /** When each process of the row was started, by its number. */
  const family = new Map();
  const look = () => pidsOf({ pid: child.pid }).forEach((pid) => family.set(pid, startOf(pid)));
  const watch = setInterval(look, 1000);
  const limit = setTimeout(end, limitMinutes * 60_000);
  const startedAt = performance.now();
  const [code, signal] = await new Promise((resolve) => child.once("close", (...how) => resolve(how)));
  process.off("exit", end);
  clearInterval(watch);
  clearTimeout(limit);
  family.delete(child.pid);
  endAll(family);
  const seconds = (performance.now() - startedAt) / 1000;
  if (lines !== undefined) return { lines, seconds };
  const why = signal === "SIGKILL" ? `no end after ${limitMinutes} minutes` : `ended with ${code ?? signal}`;
  console.error(stderr);
  const figure = `${why}: ${lastWords(stderr)}`;
  return { lines: [{ what: "the row itself", count: "1", bound: "it ends", figure, isMet: false }], seconds };
}

/** Ends the processes that a row left behind. Another program may have the number of one that ended, so its start counts as well. */
function endAll(family) {
  for (const [pid, start] of family) {
    if (start === undefined || startOf(pid) !== start) continue;
    try {
      process.kill(pid, "SIGKILL");
    } catch {
      // It ended by itself.
    }
  }
}

/** When a process was started, in ticks since the system was; undefined if it is gone. */
function startOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    return text.slice(text.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

/** The page must not say where this checkout is. */
function lastWords(text) {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const said = lines.find((line) => /Error\b/.test(line)) ?? lines.at(-1) ?? "nothing said";
  return said.replaceAll(root, "").slice(0, 300);
}
