import { expect, test } from "vitest";
import type { ServerLaunch } from "../../config/entry-rows.ts";
import { adviseOn, describeTrouble, findVariable } from "./server-trouble.ts";

const launch: ServerLaunch = {
  kind: "command",
  command: "server",
  args: [],
  env: { API_KEY: "x" },
  cwd: "/x",
};
const web: ServerLaunch = { kind: "http", url: "http://host/mcp", headers: {}, transport: "auto" };

test("what is wrong with a server comes with what it wrote and what to do", () => {
  const status = {
    name: "a",
    trouble: "it is still starting, since 6 s",
    code: "starting",
    said: Array.from({ length: 12 }, (_, index) => `line ${index + 1}`).join("\n"),
    stray: "Listening on port 3000",
  } as const;
  expect(describeTrouble({ ...status, advice: "Do this." }).split("\n")).toEqual([
    "a: it is still starting, since 6 s.",
    "  It wrote:",
    ...Array.from({ length: 10 }, (_, index) => `    line ${index + 3}`),
    "  It wrote to its standard output, where only MCP messages belong:",
    "    Listening on port 3000",
    "  Do this.",
  ]);
  expect(adviseOn({ ...status, launch })).toContain("it must write only MCP messages there");
});

test.each([
  ["no_program", launch, 'Install "server"'],
  ["no_folder", launch, 'Its "cwd" is "/x"'],
  ["not_executable", launch, "chmod +x"],
  ["exited", launch, "Run its command by hand"],
  ["no_answer", launch, "--timeout SECONDS"],
  ["starting", launch, '"startTimeoutMs" under junctor.servers.a'],
  ["refused", web, "Start that server"],
  ["no_host", web, "no such host"],
  ["unreachable", web, "firewall"],
  ["certificate", web, "NODE_EXTRA_CA_CERTS=FILE"],
  ["no_tls", web, "http://"],
  ["lost", web, "https://"],
  ["lost", launch, "Run its command by hand"],
  ["unauthorized", web, '"headers"'],
  ["no_endpoint", web, "/mcp"],
  ["not_mcp", web, "/mcp"],
  ["redirected", web, "the address that it leads to"],
  ["too_many", web, "later"],
  ["server_fault", web, "its own log"],
] as const)("%s of %j is advised: %s", (code, how, advice) => {
  expect(adviseOn({ name: "a", code, launch: how })).toContain(advice);
});

test.each([
  ["Error: GITHUB_TOKEN environment variable is required", "GITHUB_TOKEN"],
  ["starting\nPlease set DATABASE_URL.", "DATABASE_URL"],
  ["API_KEY and API_SECRET are required", "API_SECRET"],
  ["Error [ERR_MODULE_NOT_FOUND]: a required module is missing", undefined],
  ["NO_COLOR output", undefined],
  ["", undefined],
])("of %j the variable that is missing is %s", (said, variable) => {
  expect(findVariable(said, { API_KEY: "x" })).toBe(variable);
});
