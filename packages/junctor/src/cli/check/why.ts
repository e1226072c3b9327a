import { join } from "node:path";
import { defaultNaming } from "@junctor/core/compose";
import type { Caller } from "@junctor/core/mcp";
import { defined, suggest } from "@junctor/core/options";
import type { AccessReport } from "../../admin/index.ts";
import { toToolName } from "../../catalog/index.ts";
import { type GatewayConfig, cacheFolder } from "../../config/index.ts";
import { silentLog } from "../../log/index.ts";
import { explainAccess, compileRules } from "../../policy/index.ts";
import { openListMemory } from "../../servers/index.ts";
import { findConfigFile, usualFiles } from "../config/index.ts";
import { type Command, configFlags, type Parsed, UsageError, print, toSafeText } from "../terminal/index.ts";

const verdicts = {
  allow: "may use",
  deny: "may not use",
  step_up: "may not use yet",
} as const;

/** `junctor why` */
export const why: Command = {
  name: "why",
  summary: "Say whether a caller may use a tool, and which setting of the config decides. Starts no server.",
  operands: "CALLER TOOL",
  flags: {
    ...configFlags,
    groups: { value: "LIST", help: "groups that the caller has, with commas between them" },
    scopes: { value: "LIST", help: "scopes of its token, with commas between them" },
    client: { value: "ID", help: "the OAuth client that acts for it" },
    json: { help: "the same as one JSON object: caller, tool, decision, setting, reason, scopes" },
  },
  examples: [
    "junctor why alice github__search                        the key alice",
    "junctor why corp:42 github__delete_repo --groups eng    a caller with a token of the issuer corp",
  ],
  run: async (parsed) => {
    const [name, tool, ...rest] = parsed.operands;
    if (name === undefined || tool === undefined || rest.length > 0)
      throw new UsageError("write the name of a caller and of a tool: junctor why CALLER TOOL");
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
        clientId: parsed.valueOf("client"),
        groups: listOf(parsed, "groups") ?? key?.groups,
        scopes: listOf(parsed, "scopes") ?? key?.scopes ?? issuer?.scopes,
      }),
    };
    const explained = explainAccess(config, await compileRules(config, file), caller, tool);
    const { decision, setting, reason } = explained;
    const report: AccessReport = { caller: name, tool, ...defined(explained) };
    if (parsed.has("json")) await print(`${JSON.stringify(report, undefined, 2)}\n`);
    else {
      const by = setting === undefined ? "" : `${setting}: `;
      await print(toSafeText(`${name} ${verdicts[decision]} ${tool}: ${by}${reason}\n`));
    }
    return decision === "allow" ? 0 : 1;
  },
};

/** Refuses a tool that no server of the config can have, and one that its server did not list when it ran last. */
async function assertKnownTool(config: GatewayConfig, tool: string, file: string): Promise<void> {
  const { findOwners } = await import("../call/configured.ts");
  const memory = openListMemory({
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
      `no server of ${file} listed a tool ${JSON.stringify(tool)} when it ran last; ${suggest(tool, names, `junctor tools --config ${file} lists them`)}`,
    );
}

function listOf(parsed: Parsed, flag: string): readonly string[] | undefined {
  const value = parsed.valueOf(flag);
  return value?.split(",").flatMap((each) => (each.trim() === "" ? [] : [each.trim()]));
}
