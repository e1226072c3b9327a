import { join } from "node:path";
import { defaultNaming } from "@junctor/core/compose";
import type { Caller } from "@junctor/core/mcp";
import { defined, suggest } from "@junctor/core/options";
import type { AccessReport } from "../../admin/index.ts";
import { toToolName } from "../../catalog/index.ts";
import { type GatewayConfig, cacheFolder } from "../../config/index.ts";
import { junctor } from "../../invocation/index.ts";
import { silentLog } from "../../log/index.ts";
import { explainAccess, compileRules } from "../../policy/index.ts";
import { ListMemory } from "../../servers/index.ts";
import { findConfigFile, usualFiles } from "../config/index.ts";
import { print, type Run, toSafeText, UsageError } from "../terminal/index.ts";

const verdicts = {
  allow: "may use",
  deny: "may not use",
  step_up: "may not use yet",
} as const;

/** `junctor why` */
export const why: Run<"why"> = async (parsed) => {
  const [name, tool, ...rest] = parsed.operands;
  if (name === undefined || tool === undefined || rest.length > 0)
    throw new UsageError(`write the name of a caller and of a tool: ${junctor("why")} CALLER TOOL`);
  const found = await findConfigFile(parsed);
  if (found === undefined)
    throw new UsageError(`name a config: --config FILE (there is no ${usualFiles.join(", ")} here)`);
  const { file, config } = found;
  await assertKnownTool(config, tool, file);
  const key = config.keys.find((each) => each.name === name);
  const issuer = config.issuers.find((each) => name.startsWith(`${each.name}:`));
  const caller: Caller = {
    name,
    ...defined({
      issuer: issuer?.issuer,
      subject: issuer === undefined ? undefined : name.slice(issuer.name.length + 1),
      clientId: parsed.flags.client,
      groups: toList(parsed.flags.groups) ?? key?.groups,
      scopes: toList(parsed.flags.scopes) ?? key?.scopes ?? issuer?.scopes,
    }),
  };
  const explained = explainAccess(config, await compileRules(config, file), caller, tool);
  const { decision, setting, reason } = explained;
  const report: AccessReport = { caller: name, tool, ...defined(explained) };
  if (parsed.flags.json) await print(`${JSON.stringify(report, undefined, 2)}\n`);
  else {
    const by = setting === undefined ? "" : `${setting}: `;
    await print(toSafeText(`${name} ${verdicts[decision]} ${tool}: ${by}${reason}\n`));
  }
  return decision === "allow" ? 0 : 1;
};

/** Refuses a tool that no server of the config can have, and one that its server did not list when it ran last. */
async function assertKnownTool(config: GatewayConfig, tool: string, file: string): Promise<void> {
  const { findOwners } = await import("../call/configured.ts");
  const memory = new ListMemory({
    folder: join(cacheFolder(), "lists"),
    hide: (text) => text,
    log: silentLog,
  });
  const naming = { ...defaultNaming, separator: config.separator };
  const names = findOwners(config, tool, file).flatMap((server) => {
    const listed = memory.recall(server);
    // Nothing is known of a server that never ran: it may have the tool.
    if (listed === undefined) return [tool];
    return [...listed.tools, ...listed.prompts].map(({ name }) => toToolName(server, name, naming));
  });
  if (!names.includes(tool))
    throw new UsageError(
      `no server of ${file} listed a tool ${JSON.stringify(tool)} when it ran last; ${suggest(tool, names, `${junctor(`tools --config ${file}`)} lists them`)}`,
    );
}

function toList(value: string | undefined): readonly string[] | undefined {
  return value?.split(",").flatMap((each) => (each.trim() === "" ? [] : [each.trim()]));
}
