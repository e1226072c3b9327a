import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type ErrorEntry, loadErrorEntries } from "../packages/core/src/errors/index.ts";
import {
  type CommandName,
  commandNames,
  commonFlags,
  type FlagRow,
  flagsOf,
  rowOf,
} from "../packages/junctor/src/cli/terminal/commands.ts";
import { issuerRows, keyRows, profileRows } from "../packages/junctor/src/config/access-rows.ts";
import { entryRows } from "../packages/junctor/src/config/entry-rows.ts";
import { gatewayRows } from "../packages/junctor/src/config/gateway-rows.ts";
import type { Row, Rows } from "../packages/junctor/src/config/rows.ts";
import { createConfigSchema } from "../packages/junctor/src/config/schema.ts";
import { oauthRows, sandboxRows, serverRows } from "../packages/junctor/src/config/server-rows.ts";
import { commandRows, graphQlRows, openApiRows } from "../packages/junctor/src/config/source-rows.ts";
import { invocation } from "../packages/junctor/src/invocation/index.ts";

const errorsHead = `<!-- Made by scripts/reference.mjs from packages/core/src/errors/table.ts. Change that, then run the script. -->

# Errors

Every error has a \`code\` that does not change, the facts as fields, and a message that says what was wrong and what to
do. Tell errors apart by class or by code, never by message:

\`\`\`js
try {
  await client.callTool("search", { query: "fox" });
} catch (error) {
  if (error instanceof ValidationError) console.error(error.issues);
  else if (error.delivery === "not_sent") tryAgainLater();
  else throw error;
}
\`\`\`

\`instanceof\` holds across packages, and across copies of a package. \`junctor explain CODE\` prints a row of this page.

An error about a call has a \`delivery\`: \`not_sent\` (try again), \`outcome_unknown\` (it may have been carried out), or
\`answered\` (the server refused it or answered). A tool that ran and failed is not an error but a result with \`isError: true\`, unless you
ask for a \`ToolError\` with \`throwOnToolError\`.

Beside a code stands the number of its JSON-RPC error, and the HTTP status of a modern call if it is not 200. An error of a class that
does not say how it reaches a caller becomes "Internal error" (-32603) there, and the log has the rest. Commands end with exit code 3
because of an error, unless the code says otherwise.
`;

function describeErrors(entries: readonly ErrorEntry[]): string {
  const classes = [...new Set(entries.map(({ className }) => className))];
  const sections = classes.map((name) => {
    const rows = entries.filter(({ className }) => className === name);
    const { fields = {}, crossing } = rows[0] ?? {};
    const described = Object.entries(fields).map(([field, text]) => `\`${field}\` (${text})`);
    return [
      `## ${name}`,
      "",
      ...(described.length === 0 ? [] : [`Fields: ${described.join(", ")}.`, ""]),
      ...(crossing === undefined ? [] : [describeCrossing(crossing), ""]),
      "| code | means | what to do |",
      "|---|---|---|",
      ...rows.map((row) => `| ${describeCode(row)} | ${row.meaning} | ${row.advice} |`),
      "",
    ].join("\n");
  });
  return `${errorsHead}\n${sections.join("\n")}`;
}

function describeCrossing({ as, data }: NonNullable<ErrorEntry["crossing"]>): string {
  const fields = data.length === 0 ? "" : `, with ${data.map((field) => `\`data.${field}\``).join(", ")}`;
  return `It reaches a caller as \`${as}\`${fields}.`;
}

function describeCode({ code, number, status, exit }: ErrorEntry): string {
  const facts = [
    ...(number === undefined || number === 0 ? [] : [String(number)]),
    ...(status === undefined || status === 200 ? [] : [`HTTP ${status}`]),
    ...(exit === 3 ? [] : [`exit ${exit}`]),
  ];
  return [`\`${code}\``, ...facts].join(" · ");
}

const configTables: { readonly [name: string]: Rows } = {
  entry: entryRows,
  openapi: openApiRows,
  graphql: graphQlRows,
  command: commandRows,
  server: serverRows,
  oauth: oauthRows,
  sandbox: sandboxRows,
  gateway: flatten(gatewayRows),
  key: keyRows,
  profile: profileRows,
  issuer: issuerRows,
};

/** Settings of objects in their place, such as `http.port`. */
function flatten(rows: Rows, prefix = ""): Rows {
  const flat = Object.entries(rows).flatMap(([key, row]): (readonly [string, Row<unknown>])[] => [
    [`${prefix}${key}`, row],
    ...(row.type.rows === undefined ? [] : Object.entries(flatten(row.type.rows, `${prefix}${key}.`))),
  ]);
  return Object.fromEntries(flat);
}

function describeSettings(rows: Rows): string {
  const lines = Object.entries(rows).map(([key, row]) => {
    const since = row.since === undefined ? "" : ` (since ${row.since})`;
    return `| \`${key}\` | ${describeDefault(row)} | ${row.doc}${since} | ${describeEdit(row)} |`;
  });
  return ["| key | default | meaning | an edit |", "|---|---|---|---|", ...lines].join("\n");
}

function describeDefault({ byDefault, usual, isRequired }: Row<unknown>): string {
  if (byDefault !== undefined) return byDefault;
  if (isRequired) return "must be given";
  if (usual === undefined) return "";
  return typeof usual === "number" ? usual.toLocaleString("en-US") : `\`${JSON.stringify(usual)}\``;
}

const effects = {
  live: "",
  next: ", counts at its next start",
  server: ", restarts the server",
  gateway: ", counts at the next start of the gateway",
} as const;

function describeEdit({ consent, effect }: Row<unknown>): string {
  const asks = consent === "free" ? "at once" : consent === "asks" ? "asks" : "narrowing at once";
  return consent === "free" && effect !== "live" ? effects[effect].slice(2) : `${asks}${effects[effect]}`;
}

function fillTables(text: string): string {
  return text.replaceAll(
    /(<!-- settings: (\w+) -->\n)[^]*?(<!-- end -->)/g,
    (_, begin: string, name: string, end: string) => {
      const rows = configTables[name];
      if (rows === undefined) throw new Error(`there is no table ${name}`);
      return `${begin}${describeSettings(rows)}\n${end}`;
    },
  );
}

const configPage = fileURLToPath(new URL("../docs/reference/config.md", import.meta.url));

const cliHead = `<!-- Made by scripts/reference.mjs from packages/junctor/src/cli/terminal/commands.ts. Change that, then run the script. -->

# Commands

On this page write \`${invocation}\` for \`junctor\` where \`junctor\` is not in the PATH. \`junctor COMMAND --help\` prints the part of this page about a
command, and \`junctor call TOOL --help\` what a tool takes. \`junctor completion\` prints what completes commands, flags, servers and tools in a shell.

The exit code is 0 when the command did its work, 1 when it did and the result is a failure, 2 for a command line or a config that cannot be
used, 3 when a server could not be reached, and 128 and the number of the signal when it was interrupted (130 for Ctrl-C). The result alone is
written to the standard output; everything else goes to the standard error stream.
`;

function describeCommands(): string {
  const groups = [...new Set(commandNames.map((name) => rowOf(name)?.group ?? ""))];
  const sections = groups.map((group) => {
    const names = commandNames.filter((name) => rowOf(name)?.group === group);
    return [`## ${group}`, "", ...names.map(describeCommand)].join("\n");
  });
  return `${cliHead}\n${sections.join("\n")}`;
}

function describeCommand(name: CommandName): string {
  const row = rowOf(name);
  if (row === undefined) throw new Error(`there is no command ${name}`);
  const { summary, operands, takesCommand, examples, failure } = row;
  const usage = ["junctor", name, operands, "[flags]", takesCommand ? "[-- COMMAND ARGS…]" : undefined];
  const flags = Object.entries(flagsOf(row)).filter(([flag]) => !Object.hasOwn(commonFlags, flag));
  return [
    `### ${name}`,
    "",
    summary,
    "",
    "```text",
    usage.filter((word) => word !== undefined).join(" "),
    "```",
    "",
    ...(flags.length === 0 ? [] : ["| flag | |", "|---|---|", ...flags.map(describeFlag), ""]),
    "```text",
    ...examples.map((example) => {
      const [line = "", text] = example.split(/ {2,}/);
      return text === undefined ? `junctor ${line}` : `junctor ${line}  # ${text}`;
    }),
    "```",
    "",
    ...(failure === undefined ? [] : [`Exit code 1: ${failure}.`, ""]),
  ].join("\n");
}

function describeFlag([name, { value, short, help }]: readonly [string, FlagRow]): string {
  const flag = `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`;
  return `| \`${flag.replaceAll("|", "\\|")}\` | ${help.replaceAll("|", "\\|")} |`;
}

/** The reference pages that are derived from tables in the source: what each must be. `scripts/reference.mjs` writes them. */
export const pages: { readonly [file: string]: string } = {
  "docs/reference/cli.md": describeCommands(),
  "docs/reference/errors.md": describeErrors(await loadErrorEntries()),
  "docs/reference/config.md": fillTables(readFileSync(configPage, "utf8")),
  "packages/junctor/junctor.schema.json": `${JSON.stringify(createConfigSchema(), undefined, 2)}\n`,
};
