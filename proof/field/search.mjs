// `npm run proof -- field search`: real clients use a profile with a search, and results that are cut, as a model would have them do:
// list, search, describe, call. No server from npm takes part, so it needs no `npx`.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createGateway, createRegistry, listenHttp } from "../../packages/junctor/dist/index.js";
import { clients } from "./lib/clients.mjs";
import { installClients } from "./lib/install.mjs";
import { runClient } from "./lib/run-client.mjs";

const limitMs = 120_000;
const callMs = 60_000;
const wanted = (process.argv[2] ?? "sdk-v1,sdk-v2,inspector,ai-sdk,langchain").split(",");

/** What a model would ask for, one after the other, through a search. */
const searching = [
  { tool: "search_tools", arguments: { query: "erase a note" }, expect: "delete_note(" },
  { tool: "describe_tools", arguments: { names: ["delete_note"] }, expect: "inputSchema" },
  { tool: "call_tool", arguments: { name: "delete_note", arguments: { id: "7" } }, expect: "deleted 7" },
  { tool: "call_tool", arguments: { name: "long_text", arguments: {} }, expect: "are left out here" },
  { tool: "call_tool", arguments: { name: "long_table", arguments: {} }, expect: "are left out here" },
];
/** The same tools without a search, with and without an output schema. */
const calling = [
  { tool: "delete_note", arguments: { id: "8" }, expect: "deleted 8" },
  { tool: "long_text", arguments: {}, expect: "are left out here" },
  { tool: "long_table", arguments: {}, expect: "are left out here" },
  { tool: "short_table", arguments: {}, expect: "row 1" },
];

installClients();
const gateway = await createGateway(
  {
    mcpServers: {},
    junctor: {
      profiles: { search: { tools: "search", maxResultTokens: 1000 }, capped: { maxResultTokens: 1000 } },
    },
  },
  { local: { notes: createNotes() } },
);
const listener = await listenHttp(gateway.server, { port: 0, mounts: gateway.mounts });
await gateway.ready;
const run = mkdtempSync(join(tmpdir(), "junctor-search-"));
const world = /** @type {import("./lib/world.mjs").World} */ (
  /** @type {unknown} */ ({ run, env: () => ({ ...process.env, HOME: run }) })
);
let faults = 0;
try {
  for (const client of wanted) {
    if (!clients.some(({ name }) => name === client)) throw new TypeError(`there is no client ${client}`);
    await use(client, "search", searching, ["search_tools", "describe_tools", "call_tool", "read_result"]);
    await use(client, "capped", calling, [
      "delete_note",
      "long_text",
      "long_table",
      "short_table",
      "read_result",
    ]);
  }
} finally {
  await listener.close();
  await gateway.close();
  rmSync(run, { recursive: true, force: true });
}
console.log(`${faults} faults`);
process.exitCode = faults === 0 ? 0 : 1;

/** @param {string} client @param {string} profile @param {import("./clients/contract.mjs").Call[]} calls @param {string[]} names */
async function use(client, profile, calls, names) {
  const target = /** @type {const} */ ({ transport: "http", url: `${listener.url}/${profile}` });
  const task = { target, wanted: names, calls, patienceMs: 10_000, callMs };
  const report = await runClient(world, { client, cell: `${client}-${profile}`, task, cache: run, limitMs });
  const bad = report.calls.filter(({ ok }) => !ok);
  const missing = names.filter((name) => !report.listed.includes(name));
  const isGood =
    report.problem === undefined && bad.length === 0 && missing.length === 0 && report.calls.length > 0;
  faults += isGood ? 0 : 1;
  const done = `${report.listed.length} tools, ${report.calls.length - bad.length} of ${calls.length} calls`;
  console.log(`${isGood ? "ok    " : "NOT OK"} ${client} at /mcp/${profile}: ${done}`);
  for (const problem of [
    report.problem,
    ...missing.map((name) => `${name} is missing`),
    ...bad.map((each) => `${each.tool}: ${each.problem}`),
  ])
    if (problem !== undefined) console.log(`       ${problem.slice(0, 500)}`);
}

function createNotes() {
  const registry = createRegistry();
  const id = { type: "object", properties: { id: { type: "string" } }, required: ["id"] };
  const table = {
    type: "object",
    properties: { rows: { type: "array", items: { type: "string" } } },
    required: ["rows"],
    additionalProperties: false,
  };
  const rows = (/** @type {number} */ count) => ({
    rows: Array.from({ length: count }, (_, row) => `row ${row + 1} of the table`),
  });
  registry.register(
    "delete_note",
    { description: "Deletes a note for good.", input: id },
    (args) => `deleted ${/** @type {{ id: string }} */ (args).id}`,
  );
  registry.register("long_text", { description: "Prints a long log." }, () => rows(5000).rows.join("\n"));
  registry.register("long_table", { description: "Gives a long table.", output: table }, () => rows(5000));
  registry.register("short_table", { description: "Gives a short table.", output: table }, () => rows(3));
  for (let number = 0; number < 60; number++)
    registry.register(
      `other_${number}`,
      { description: `Does the other thing number ${number}.` },
      () => "done",
    );
  return registry;
}
