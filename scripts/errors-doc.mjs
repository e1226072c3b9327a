// Writes docs/reference/errors.md from the catalogue in scripts/error-catalogue.ts.
//
//   node scripts/errors-doc.mjs           writes the page
//   node scripts/errors-doc.mjs --check   exit code 1 when the page is not what it would write

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runnerImport } from "vite";
import { root } from "./setup.mjs";

const { errorCatalogue } = await importSource("scripts/error-catalogue.ts");
const { rpcCodes } = await importSource("packages/core/src/errors/rpc-error.ts");

const head = `<!-- Made by scripts/errors-doc.mjs from scripts/error-catalogue.ts. Change that, then run the script. -->

# Errors

Every error has a \`code\` that does not change, the facts as fields, and a message that says what was wrong and what to
do. Tell them apart by class or by code, never by message:

\`\`\`js
try {
  await client.callTool("search", { query: "fox" });
} catch (error) {
  if (error instanceof ValidationError) console.error(error.issues);
  else if (error.delivery === "not_sent") tryAgainLater();
  else throw error;
}
\`\`\`

What can happen to a call has a \`delivery\`: \`not_sent\` (try again), \`outcome_unknown\` (it may have been carried out), or
\`answered\` (the server said no). A tool that ran and failed is no error but a result with \`isError: true\`, unless you ask
for a \`ToolError\` with \`throwOnToolError\`. Numbers are those of JSON-RPC.
`;

const page = join(root, "docs/reference/errors.md");
const text = describe();
if (!process.argv.includes("--check")) writeFileSync(page, text);
else if (readFileSync(page, "utf8") !== text) {
  console.error("docs/reference/errors.md is not up to date: run node scripts/errors-doc.mjs");
  process.exitCode = 1;
}

/** The exports of a TypeScript file, which Node 20 cannot load itself. */
async function importSource(file) {
  return (await runnerImport(join(root, file), { configFile: false, logLevel: "error" })).module;
}

function describe() {
  const sections = Object.entries(errorCatalogue).map(([name, codes]) => {
    const rows = Object.entries(codes).map(([code, { meaning, advice }]) => {
      const number = rpcCodes[code] ? ` ${rpcCodes[code]}` : "";
      return `| \`${code}\`${number} | ${meaning} | ${advice} |`;
    });
    return [`## ${name}`, "", "| code | means | what to do |", "|---|---|---|", ...rows, ""].join("\n");
  });
  return `${head}\n${sections.join("\n")}`;
}
