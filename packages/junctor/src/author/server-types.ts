import type { Prompt, Tool } from "@junctor/core/mcp";
import { describe, isRecord, printKey, printType } from "./print-type.ts";

/** The lists of a server that types are made from. */
export interface ListedServer {
  readonly name: string;
  readonly tools: readonly Tool[];
  readonly prompts: readonly Prompt[];
}

/**
 * A TypeScript module with one interface that says what a server takes and gives, for `connect<Server>()` of `@junctor/client`. The
 * same lists give the same text, in whatever order they came.
 */
export function printServerTypes({ name, tools, prompts }: ListedServer): string {
  const nameFor = createNames();
  const declarations: string[] = [];
  const print = (schema: unknown, wanted: string): string => {
    const printed = printType(schema, (more) => nameFor(`${wanted} ${more}`));
    declarations.push(...printed.declarations);
    return printed.text;
  };
  const printedTools = sorted(tools).map((tool) => {
    const args = isRecord(tool.inputSchema)
      ? print(tool.inputSchema, `${tool.name} args`)
      : "{ [name: string]: unknown }";
    const result =
      tool.outputSchema === undefined ? "undefined" : print(tool.outputSchema, `${tool.name} result`);
    return printMember(tool, [`args: ${args}`, `result: ${result}`]);
  });
  const printedPrompts = sorted(prompts).map((prompt) =>
    printMember(prompt, [`args: ${printArguments(prompt)}`]),
  );
  return [
    describe(
      {
        description: `What ${name} takes and gives. Junctor wrote this from its lists: do not edit it, write it again.`,
      },
      "",
    ),
    `export interface Server {\n`,
    `  tools: {\n${printedTools.join("")}  };\n`,
    `  prompts: {\n${printedPrompts.join("")}  };\n`,
    `}\n`,
    ...declarations.map((declaration) => `\n${declaration}\n`),
  ].join("");
}

function printMember(listed: Tool | Prompt, members: readonly string[]): string {
  const indented = members.map((member) => `      ${member.replaceAll("\n", "\n    ")};\n`);
  return `${describe(listed, "    ")}    ${printKey(listed.name)}: {\n${indented.join("")}    };\n`;
}

function printArguments({ arguments: listed = [] }: Prompt): string {
  if (listed.length === 0) return "{ [name: string]: never }";
  const byName = new Map(listed.map((each) => [each.name, each]));
  const members = [...byName.values()].map(
    (each) =>
      `${describe(each, "    ")}    ${printKey(each.name)}${each.required === true ? "" : "?"}: string;\n`,
  );
  return `{\n${members.join("")}  }`;
}

function sorted<Listed extends Tool | Prompt>(listed: readonly Listed[]): readonly Listed[] {
  const byName = new Map(listed.map((each) => [each.name, each]));
  return [...byName.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

/** Makes unique names of types, in the form `CreateIssueArgsLabel`. */
function createNames(): (wanted: string) => string {
  const taken = new Set(["Server"]);
  return (wanted) => {
    const words = wanted.split(/[^a-z\d]+/i).filter((word) => word !== "");
    const joined = words
      .map((word) => `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`)
      .join("")
      .slice(0, 80);
    const base = /^[a-z]/i.test(joined) ? joined : `Type${joined}`;
    let name = base;
    for (let count = 2; taken.has(name); count++) name = `${base}${count}`;
    taken.add(name);
    return name;
  };
}
