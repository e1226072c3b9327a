import { type RunningGateway, startGateway } from "../gateway/gateway.ts";
import type { ServerStatus } from "../gateway/status.ts";
import { adviseOn } from "./advice.ts";
import type { Command } from "./command.ts";
import { findConfigFile, usualFiles } from "./config-file.ts";
import { configFlag } from "./config-flag.ts";
import { watchInterrupt } from "./interrupt.ts";
import { describeFaults } from "./list-faults.ts";
import { note, print } from "./print.ts";
import { toRows } from "./rows.ts";
import { toMs } from "./target.ts";
import { toSafeText } from "./terminal-text.ts";
import { UsageError } from "./usage-error.ts";

/** A server, and how long it takes to answer. */
interface Checked extends ServerStatus {
  readonly latencyMs?: number;
}

/** `junctor check` */
export const check: Command = {
  name: "check",
  summary:
    "Check a config: start or reach every server, and say what each speaks, offers, and what is wrong.",
  flags: {
    config: configFlag,
    json: { help: "the same as JSON" },
    timeout: { value: "SECONDS", help: "wait so long for servers that do not answer (default 30)" },
  },
  examples: ["junctor check --config .mcp.json", "junctor check --config mcp.json --json | jq ."],
  run: async (parsed) => {
    const [stray] = parsed.operands;
    if (stray !== undefined)
      throw new UsageError(
        `check takes no operand, but got ${JSON.stringify(stray)}; write --config ${stray}`,
      );
    const found = await findConfigFile(parsed);
    if (found === undefined)
      throw new UsageError(`name a config: --config FILE (there is no ${usualFiles.join(", ")} here)`);
    const { file, config } = found;
    const timeoutMs = toMs(parsed.valueOf("timeout") ?? "30");
    const servers = config.servers.map((server) => ({
      ...server,
      start: "eager" as const,
      startTimeoutMs: Math.min(server.startTimeoutMs, timeoutMs),
    }));
    using interruption = watchInterrupt();
    await using gateway = await startGateway(
      { ...config, servers, audit: undefined },
      { file, firstListMs: timeoutMs },
    );
    await untilReady(gateway, interruption.signal);
    const checked = await Promise.all(gateway.status().map((status) => measure(gateway, status)));
    const trouble = checked.filter(({ trouble: text }) => text !== undefined);
    if (parsed.has("json")) await print(`${JSON.stringify(checked, undefined, 2)}\n`);
    else await show(file, checked, gateway);
    return trouble.length === 0 ? 0 : 1;
  },
};

function untilReady({ ready }: RunningGateway, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
    ready.then(resolve, reject);
  });
}

async function measure(gateway: RunningGateway, status: ServerStatus): Promise<Checked> {
  const latencyMs = await gateway.measure(status.name);
  return latencyMs === undefined ? status : { ...status, latencyMs: Math.round(latencyMs * 10) / 10 };
}

async function show(file: string, checked: readonly Checked[], gateway: RunningGateway): Promise<void> {
  const head = ["server", "state", "era", "revision", "tools", "start", "latency", "it says it is"];
  await print(`${toRows([head, ...checked.map(toRow)]).join("\n")}\n`);
  for (const { name, trouble, said = "" } of checked) {
    if (trouble === undefined) continue;
    const advice = adviseOn(trouble);
    const quoted = said === "" ? "" : `\n  It wrote:\n${tail(said).replaceAll(/^/gm, "    ")}`;
    await print(
      toSafeText(`\n${name}: ${trouble}.${quoted}\n${advice === undefined ? "" : `  ${advice}\n`}`),
    );
  }
  for (const status of checked) await print(toSafeText(describeFaults(status)));
  for (const { key, owner, others } of gateway.collisions()) {
    const text = `\n${key} is offered by ${owner} and ${others.join(", ")}; ${owner} has it. Give the others a prefix, or rename or hide theirs.\n`;
    await print(toSafeText(text));
  }
  const up = checked.filter(({ trouble }) => trouble === undefined).length;
  await note(`${file}: ${up} of ${checked.length} servers are fine\n`);
}

function toRow(status: Checked): readonly string[] {
  const { name, era = "–", revision = "–", tools, connectMs, latencyMs, says = "" } = status;
  const ms = (value: number | undefined): string => (value === undefined ? "–" : `${value} ms`);
  return [name, status.status, era, revision, String(tools), ms(connectMs), ms(latencyMs), says];
}

function tail(text: string): string {
  return text.split("\n").slice(-10).join("\n");
}
