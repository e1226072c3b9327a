import {
  allowed,
  anyText,
  as,
  byName,
  choice,
  converted,
  either,
  fitting,
  flag,
  isText,
  type JsonSchema,
  list,
  ms,
  named,
  number,
  object,
  type Of,
  path,
  restarts,
  row,
  secret,
  text,
  texts,
  type Type,
  usualOf,
} from "./rows.ts";
import { type ConfigObject, type ConfigValue, joinPath, readObject, refuse } from "./value-readers.ts";

// Servers in the gateway's own process: their tools are commands of this machine, or operations of an API.

/** A word of a command, or several that are left out together. */
export type CommandWord = string | readonly string[];

const runExample = '"run": ["git", "log", "-n", "{count}"]';
const inputExample = '"input": { "type": "object", "properties": { "count": { "type": "integer" } } }';

const run: Type<readonly CommandWord[]> = as(readRun, {
  type: "array",
  minItems: 1,
  items: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
});

const input: Type<JsonSchema> = as(readInput, { type: ["object", "null"] });

export const commandRows = {
  run: row({
    type: run,
    isRequired: true,
    ...restarts,
    doc: "the program and its words. `{NAME}` in a word is the argument of that name, `{{NAME}}` is the text `{NAME}`. A word, or a list of words in the list, is left out when an argument in it is not given",
  }),
  input: row({
    type: input,
    ...restarts,
    byDefault: "no arguments",
    doc: 'the arguments, as JSON Schema with `"type": "object"`; a `default` is used where an argument is not given',
  }),
  description: row({ type: text('"Shows commits"'), ...restarts, doc: "what the tool does, for the model" }),
  stdin: row({
    type: anyText('"{text}"'),
    ...restarts,
    byDefault: "empty",
    doc: "what the program reads from its standard input; `{NAME}` is an argument",
  }),
  json: row({
    type: flag,
    usual: false,
    ...restarts,
    doc: "the program prints one JSON value, which is given as structured content too",
  }),
  exitCodes: row({
    type: list(number({ min: 0, max: 255, example: 1 }), '"exitCodes": [0, 1]'),
    usual: [0],
    ...restarts,
    doc: "the exit codes that are not failures, such as 1 of `grep`",
  }),
  readOnly: row({
    type: flag,
    usual: false,
    ...restarts,
    doc: "the program changes nothing: clients are told so by `readOnlyHint`",
  }),
  timeoutMs: row({
    type: ms(60_000),
    usual: 60_000,
    ...restarts,
    doc: "how long the program may run. Then it and all that it started are ended",
  }),
};

/** A program of this machine as a tool. */
export interface CommandTool extends Of<typeof commandRows> {
  readonly name: string;
}

/** Programs by the names of their tools. */
export const commands: Type<readonly CommandTool[]> = named(
  object(commandRows, {
    example: `{ ${runExample} }`,
    missing: `has no command: write ${runExample}`,
    check,
  }),
  {
    example: `"tools": { "NAME": { ${runExample} } }`,
    name: {
      pattern: /^[A-Za-z0-9_.-]{1,64}$/,
      problem: "cannot be the name of a tool: use up to 64 letters, digits, _ - and .",
    },
    check: (tools, given) => {
      if (tools.length > maxTools) refuse(given, `has ${tools.length} tools: ${maxTools} may be there`);
    },
  },
);

const maxTools = 1000;

/** The arguments that a word names, in their order. */
export function argumentsIn(word: string): readonly string[] {
  return [...word.matchAll(placeholder)].flatMap(([, , name]) => name ?? []);
}

/** A word with its arguments filled in. They are not looked at again, so braces in them mean nothing. */
export function fillWord(word: string, valueOf: (name: string) => string): string {
  return word.replaceAll(placeholder, (_, braced: string | undefined, name: string) =>
    braced === undefined ? valueOf(name) : `{${braced}}`,
  );
}

/** A name in doubled braces, which is text, or the name of an argument. */
const placeholder = /\{\{([A-Za-z_][\w-]*)\}\}|\{([A-Za-z_][\w-]*)\}/g;

const specExample = '"openapi": "./petstore.json"';

/** A file, by its absolute path, or an address. */
const spec: Type<string> = as((given) => {
  const written = text(specExample).read(given);
  if (written === undefined) return undefined;
  const isUrl = /^[a-z][a-z\d+.-]+:\/\//i.test(written);
  if (!isUrl) return path.read(given);
  return /^https?:\/\//i.test(written) && URL.canParse(written)
    ? written
    : refuse(given, `is neither a file nor an https:// address: write ${specExample}`);
});

const address = fitting(
  '"server": "https://api.example.com/v1"',
  /^https?:\/\/[^\s@?#]+$/,
  'must be an address without a query: write "https://api.example.com/v1"',
);

const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"] as const;

export const openApiRows = {
  spec: row({
    type: spec,
    isRequired: true,
    ...restarts,
    doc: "the description of the API: a file, relative to the folder of the config, or a URL. JSON or YAML; OpenAPI 3.0 to 3.2 or Swagger 2.0",
  }),
  server: row({
    type: address,
    ...restarts,
    byDefault: "what the description says",
    doc: "the address of the API. `headers` of the entry and `query` are sent there and nowhere else; with them it must be given, unless the description is at the same origin. Its host may be private",
  }),
  query: row({
    type: byName(secret('"${KEY}"'), '"query": { "api_key": "${KEY}" }'),
    ...restarts,
    byDefault: "`{}`",
    doc: "added to the query of every request, for keys that are sent there",
  }),
  fixed: row({
    type: as<{ readonly [name: string]: unknown }>(
      (given) =>
        readObject(given, '"fixed": { "api-version": "2024-01-01" }') &&
        (given.value as { readonly [name: string]: unknown }),
      { type: ["object", "null"] },
    ),
    ...restarts,
    byDefault: "`{}`",
    doc: "values of parameters that every call has, and callers do not see",
  }),
  tags: row({
    type: texts('"tags": ["pets"]'),
    ...restarts,
    byDefault: "all",
    doc: "only operations with one of these tags",
  }),
  paths: row({
    type: allowed('"paths": ["/pets*"]'),
    ...restarts,
    byDefault: "all",
    doc: "only operations whose path fits one of these globs",
  }),
  methods: row({
    type: list(choice(...methods), '"methods": ["get"]'),
    ...restarts,
    byDefault: "all",
    doc: 'only operations with these methods: `["get"]` for an API that is only read',
  }),
  having: row({
    type: text('"having": "x-public"'),
    ...restarts,
    doc: "only operations with this member, unless it is `false`",
  }),
  deprecated: row({ type: flag, usual: false, ...restarts, doc: "deprecated operations too" }),
  hosts: row({
    type: texts('"hosts": ["api.internal"]'),
    usual: [],
    ...restarts,
    doc: "further hosts of descriptions and of single operations that may be asked though they are private",
  }),
  timeoutMs: row({
    type: ms(60_000),
    usual: 60_000,
    ...restarts,
    doc: "how long one request to the API may take",
  }),
};

/** An API, and which of its operations become tools. */
export interface ApiConfig extends Of<typeof openApiRows> {}

/** The file or address alone, or with settings. */
export const openApi: Type<ApiConfig> = either(
  isText,
  converted(spec, (found) => ({ ...usualOf(openApiRows), spec: found })),
  object(openApiRows, {
    example: `${specExample}, or "openapi": { "spec": "./petstore.json", "tags": ["pets"] }`,
    missing: 'does not say where the description is: write "spec": "./petstore.json"',
  }),
);

export const graphQlRows = {
  server: row({
    type: address,
    isRequired: true,
    ...restarts,
    doc: "the address of the API, to which `headers` of the entry are sent. Its host may be private",
  }),
  schema: row({
    type: path,
    ...restarts,
    byDefault: "the API is asked",
    doc: "a file with its schema, as definitions (SDL) or as the answer of an introspection. Relative to the folder of the config",
  }),
  tools: row({
    type: choice("fields", "query"),
    usual: "fields",
    ...restarts,
    doc: "`fields`: a tool for each query and mutation. `query`: one tool that takes any document, and one that searches the schema",
  }),
  mutations: row({ type: flag, usual: true, ...restarts, doc: "`false`: queries only" }),
  depth: row({
    type: number({ min: 0, max: 5, example: 1 }),
    usual: 1,
    ...restarts,
    doc: "how deep objects in objects are asked for; lists in pages do not count",
  }),
  hosts: row({
    type: texts('"hosts": ["api.internal"]'),
    usual: [],
    ...restarts,
    doc: "further hosts that may be asked though they are private",
  }),
  timeoutMs: row({
    type: ms(60_000),
    usual: 60_000,
    ...restarts,
    doc: "how long one request to the API may take",
  }),
};

/** A GraphQL API, and how it becomes tools. */
export interface GraphQlConfig extends Of<typeof graphQlRows> {}

/** The address alone, or with settings. */
export const graphQl: Type<GraphQlConfig> = either(
  isText,
  converted(address, (server) => ({ ...usualOf(graphQlRows), server })),
  object(graphQlRows, {
    example: '"graphql": "https://api.example.com/graphql"',
    missing: 'does not say where the API is: write "server": "https://api.example.com/graphql"',
  }),
);

function readRun(given: ConfigValue): readonly CommandWord[] | undefined {
  const { value, path, findings } = given;
  if (!Array.isArray(value) || value.length === 0)
    return refuse(given, `must be a list of words: write ${runExample}`);
  const words = value.map((each: unknown, index): CommandWord | undefined => {
    const at = { value: each, path: joinPath(path, index), findings };
    if (!Array.isArray(each)) return readWord(at);
    const group = each.map((word: unknown, inner) =>
      readWord({ value: word, path: joinPath(at.path, inner), findings }),
    );
    return group.filter((word) => word !== undefined);
  });
  return words.filter((word) => word !== undefined);
}

const readWord = (at: ConfigValue): string | undefined => {
  const word = anyText('"-n"').read(at);
  if (at.value === undefined || at.value === null) return refuse(at, 'must be a string: write "-n"');
  return word?.includes("\0") === true ? refuse(at, "has a NUL character, which no command can take") : word;
};

function readInput(given: ConfigValue): JsonSchema | undefined {
  const schema = readObject(given, inputExample);
  if (schema === undefined) return undefined;
  if (schema.get("type").value !== "object")
    return refuse(given, `must be the JSON Schema of an object: write ${inputExample}`);
  const { properties = {} } = given.value as { readonly properties?: unknown };
  if (typeof properties !== "object" || properties === null || Array.isArray(properties))
    return refuse(given, `has properties that are not an object: write ${inputExample}`);
  return given.value as JsonSchema;
}

/** Programs that run one of their arguments as code. */
const interpreters =
  /(?:^|[\\/])(?:(?:ba|da|z|k|a|fi|tc|c)?sh|cmd|powershell|pwsh|node|bun|deno|python[\d.]*|perl|ruby|php|lua)(?:\.exe)?$/i;
const codeFlags = /^(?:-[a-z]*[ceEr]|--eval|--execute|-command|\/[ck])$/i;

function check(tool: Of<typeof commandRows>, given: ConfigObject): Of<typeof commandRows> | undefined {
  const at = { ...given, path: joinPath(given.path, "run") };
  const words = tool.run.flat();
  const [program] = tool.run;
  if (typeof program !== "string" || program.trim() === "" || argumentsIn(program).length > 0)
    return refuse(at, 'must begin with a program, which is never an argument: write ["git", …]');
  const known = Object.keys((tool.input?.["properties"] as object | undefined) ?? {});
  for (const name of [...words, tool.stdin ?? ""].flatMap(argumentsIn))
    if (!known.includes(name))
      refuse(at, `has {${name}}, which is not in "input": add it there, or write {{${name}}} for braces`);
  const index = words.findIndex(
    (word, place) => place > 1 && argumentsIn(word).length > 0 && isCode(words, place),
  );
  if (index >= 0)
    refuse(
      at,
      `puts an argument into a text that ${program} runs as a program: pass it as a word of its own, such as ["sh", "-c", "echo \\"$1\\"", "sh", "{text}"]`,
    );
  return tool;
}

/** Whether a word is the program of an interpreter: what follows `-c` or the like. */
function isCode(words: readonly string[], place: number): boolean {
  const [program = ""] = words;
  return interpreters.test(program) && codeFlags.test(words[place - 1] ?? "");
}
