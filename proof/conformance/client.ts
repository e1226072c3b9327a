import { type QuestionHandlers, type Client, connect, SkillError, type ToolResult } from "junctor";
import { type AuthorizationBrief, authorizationFor, isRefusalExpected } from "./authorization.ts";

/** What a scenario tells its client beyond the URL. */
interface Brief extends AuthorizationBrief {
  readonly toolCalls?: readonly { readonly name: string; readonly arguments: object }[];
}

/** One of everything a server may ask for, so that a client that declares much is looked at, not one that declares nothing. */
const handlers: QuestionHandlers = {
  elicit: ({ requestedSchema }) => ({ action: "accept", content: fillIn(requestedSchema) }),
  sample: () => ({ role: "assistant", content: { type: "text", text: "Yes." }, model: "none" }),
  roots: () => [],
};

const region = "us-west1";

/** What the client of each scenario does, by the scenario's name. */
const scenarios: Readonly<Record<string, (client: Client, brief: Brief) => Promise<unknown>>> = {
  initialize: (client) => client.listTools(),

  tools_call: async (client) => {
    const names = (await client.listTools()).map(({ name }) => name);
    if (!names.includes("add_numbers")) throw new Error(`add_numbers is not among ${names.join(", ")}`);
    await call(client, "add_numbers", { a: 5, b: 3 });
  },

  // Sent whatever the server says it offers: the scenario looks at the requests, and offers nothing.
  "request-metadata": async (client) => {
    await client.request("tools/list");
    await client.request("tools/call", { name: "any", arguments: {} });
  },

  "http-standard-headers": async (client) => {
    for (const { name } of await client.listTools()) await call(client, name);
    for (const { uri } of await client.listResources()) await client.readResource(uri);
    for (const { name } of await client.listPrompts()) await client.getPrompt(name);
  },

  "http-custom-headers": async (client, { toolCalls = [] }) => {
    // Unchecked, because one call has null where the schema wants a boolean: it must arrive, without a header.
    for (const { name, arguments: args } of toolCalls) await call(client, name, args, false);
  },

  // Calls all it sees: a tool that should have been left out is found out by being called.
  "http-invalid-tool-headers": async (client) => {
    for (const { name } of await client.listTools()) await call(client, name, { region }, false);
  },

  // Calls the tool too, because arguments are checked before: no schema is fetched for that either. The server can only
  // list, so it is known to refuse.
  "json-schema-ref-no-deref": async (client) => {
    for (const { name } of await client.listTools())
      await call(client, name, { id: "someone", profile: {} }).catch(() => {});
  },

  "json-schema-2020-12-preservation": async (client) => {
    const tool = (await client.listTools()).find(({ name }) => name === "json_schema_2020_12_tool");
    if (tool === undefined) throw new Error("json_schema_2020_12_tool is not listed");
    await call(client, "json_schema_echo", { schema: tool.inputSchema });
  },

  // At once, so that the rounds of one call come between those of another.
  "sep-2322-client-request-state": (client) =>
    Promise.all(
      ["echo_state", "no_state", "unrelated", "no_result_type"].map((name) =>
        call(client, `test_mrtr_${name}`),
      ),
    ),

  "sep-2640-client-no-prefetch": listSkills,
  "sep-2640-client-verify-digest": loadSkill,
  "sep-2640-client-verify-size": loadSkill,
  "sep-2640-client-verify-frontmatter": loadSkill,

  "elicitation-sep1034-client-defaults": (client) => call(client, "test_client_elicitation_defaults"),
  "sse-retry": (client) => call(client, "test_reconnection"),
};

const {
  MCP_CONFORMANCE_SCENARIO: name = "",
  MCP_CONFORMANCE_PROTOCOL_VERSION: revision,
  MCP_CONFORMANCE_CONTEXT: brief = "{}",
} = process.env;
const [url] = process.argv.slice(2);
const act = name.startsWith("auth/") ? useEverything : scenarios[name];
if (url === undefined || act === undefined) {
  console.error(`Started by the conformance suite. Scenarios: ${Object.keys(scenarios).join(", ")}`);
  process.exit(2);
}

/** Those that sign in may be run beside others. */
const timeoutMs = name.startsWith("auth/") ? 12_000 : 5000;
const clientInfo = { name: "junctor-conformance", version: "1.0.0" };
await run(url, act).catch((error: unknown) => {
  if (!isRefusalExpected(name, error)) throw error;
});

async function run(target: string, use: NonNullable<typeof act>): Promise<void> {
  const given = JSON.parse(brief) as Brief;
  await using client = await connect(target, {
    clientInfo,
    handlers,
    connectTimeoutMs: timeoutMs,
    timeoutMs,
    onWarning: console.error,
    ...(name.startsWith("auth/") ? { authorization: authorizationFor(name, given) } : {}),
  });
  const { mode } = await client.agreement();
  // Scenarios of extensions and of older revisions are of no revision, whatever they are started with.
  const isFixed = !/^(?:sep-2640-|auth\/(?:2025-03-26|client-cred|enterprise))/.test(name);
  if (isFixed && mode.revision !== revision)
    throw new Error(`Settled on ${mode.revision} instead of ${revision}`);
  await use(client, given);
}

/** Where a server demands authorization, it may do so for any request. */
async function useEverything(client: Client): Promise<void> {
  for (const { name: tool } of await client.listTools()) await call(client, tool);
}

async function listSkills(client: Client): Promise<readonly string[]> {
  const uris: string[] = [];
  for await (const { uri } of client.skills.list()) uris.push(uri);
  if (uris.length === 0) throw new Error("No skill is listed");
  return uris;
}

/** Loads the first skill, and reads another file of it unless the skill is refused, as it must be. */
async function loadSkill(client: Client): Promise<void> {
  const [uri = ""] = await listSkills(client);
  try {
    const skill = await client.skills.load(uri);
    await skill.read("references/FORMS.md");
  } catch (error) {
    if (!(error instanceof SkillError)) throw error;
  }
}

function call(client: Client, name: string, args: object = {}, validate = true): Promise<ToolResult> {
  return client.callTool(name, args, { validate, throwOnToolError: true });
}

/** Fills in a form as a user does who agrees to everything: defaults stay, the rest is confirmed. */
function fillIn(schema: unknown): { readonly [field: string]: unknown } {
  const { properties = {} } = schema as { properties?: { readonly [field: string]: { default?: unknown } } };
  return Object.fromEntries(
    Object.entries(properties).map(([field, { default: value = true }]) => [field, value]),
  );
}
