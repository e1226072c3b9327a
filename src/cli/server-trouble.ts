import type { ServerStatus } from "../gateway/status.ts";

/** A server of a config that cannot be used, in words for a person. */
export class ServerTrouble extends Error {
  override readonly name = "ServerTrouble";
  readonly code = "cli.server_trouble";
}

/** How a server is, and what to do about it. */
export type Diagnosis = Pick<ServerStatus, "name" | "trouble" | "reason" | "said" | "stray"> & {
  readonly advice?: string;
};

/** What is wrong with a server, what it wrote, and what to do, on as many lines as that takes. */
export function describeTrouble({ name, trouble, reason, said, stray, advice }: Diagnosis): string {
  return [
    `${name}: ${reason ?? trouble ?? "it works"}.`,
    ...(said === undefined ? [] : ["  It wrote:", indent(tailOf(said))]),
    ...(stray === undefined
      ? []
      : ["  It wrote to its standard output, where only MCP messages belong:", indent(stray)]),
    ...(advice === undefined ? [] : [`  ${advice}`]),
  ].join("\n");
}

function indent(text: string): string {
  return text.replaceAll(/^/gm, "    ");
}

function tailOf(text: string): string {
  return text.split("\n").slice(-10).join("\n");
}
