import type { Tool } from "@junctor/core/mcp";
import { junctor } from "../../invocation/index.ts";
import { toSafeLine, toSafeText } from "../terminal/index.ts";
import { argumentsOf, synopsisOf } from "./tool-arguments.ts";

/** What a tool takes, for people who are about to call it. */
export function describeTool(tool: Tool): string {
  const { title, description, annotations = {} } = tool;
  const rows = argumentsOf(tool).map(({ name, type, isRequired, schema }) => {
    const { description: about, default: standard } = schema;
    const more = [
      ...(isRequired ? ["required"] : []),
      ...(typeof about === "string" ? [about] : []),
      ...(standard === undefined ? [] : [`(default ${JSON.stringify(standard)})`]),
    ];
    return [
      toSafeLine(`${name}=${type}`),
      toSafeLine(more.join("; ").replace("; (default", " (default")),
    ] as const;
  });
  const width = Math.max(0, ...rows.map(([argument]) => argument.length));
  const hints = [
    ...(annotations.readOnlyHint === true ? ["changes nothing"] : []),
    ...(annotations.destructiveHint === true ? ["may delete or overwrite"] : []),
    ...(annotations.idempotentHint === true ? ["may be called again with the same arguments"] : []),
  ];
  return [
    `Usage: ${junctor("call")} ${toSafeLine(tool.name)} ${synopsisOf(tool)}`.trimEnd(),
    ...(title === undefined ? [] : ["", toSafeLine(title)]),
    ...(description === undefined ? [] : ["", toSafeText(description).trim()]),
    "",
    ...(rows.length === 0 ? ["It takes no arguments."] : ["Arguments:"]),
    ...rows.map(([argument, more]) => `  ${argument.padEnd(width)}  ${more}`.trimEnd()),
    ...(hints.length === 0 ? [] : ["", `Its server says that it ${hints.join(", and ")}.`]),
    "",
    `${junctor("call")} --help shows the flags.`,
    "",
  ].join("\n");
}
