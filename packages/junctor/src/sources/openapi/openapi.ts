import { createApiFetch } from "@junctor/client/internal";
import type { Clock } from "@junctor/core/async";
import { ToolError } from "@junctor/core/errors";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import { createRegistry, type Registry, type ToolContext, type ToolResult } from "@junctor/server";
import { createGlobs } from "@junctor/server/internal";
import { toResult } from "./answer.ts";
import { Documents, type Fields, isFields, type Located, toSpecUrl } from "./documents.ts";
import {
  type ApiOperation,
  type IsWanted,
  type LeftOut,
  nameOperations,
  readOperations,
} from "./operations.ts";
import { type Argument, buildRequest } from "./request.ts";
import { SchemaWriter, shorten } from "./schemas.ts";

/** Which operations of an API become tools, and how they are called. */
export interface OpenApiOptions {
  /** The address of the API; what the specification says when left out. Headers and the query are sent there and nowhere else. */
  readonly server?: string | undefined;
  /** Sent with every request, such as `authorization`. */
  readonly headers?: { readonly [name: string]: string };
  /** Added to the query of every request, for keys that are sent there. */
  readonly query?: { readonly [name: string]: string };
  /** Arguments that every call has and callers do not see, by their names. */
  readonly fixed?: Fields;
  /** Only operations with one of these tags. */
  readonly tags?: readonly string[] | undefined;
  /** Only operations whose path fits one of these globs. */
  readonly paths?: readonly string[] | undefined;
  /** Only operations with one of these methods. */
  readonly methods?: readonly string[] | undefined;
  /** Only operations with this member, such as `x-public`, unless it is `false`. */
  readonly having?: string | undefined;
  /** Deprecated operations too. */
  readonly deprecated?: boolean;
  /** Further hosts that may be asked though their addresses are private. */
  readonly hosts?: readonly string[];
  /** How long one request may take; 60 s. */
  readonly timeoutMs?: number;
  /** Ends the reading of the description. */
  readonly signal?: AbortSignal;
  /** The clock that times are measured by; the system's by default. */
  readonly clock?: Clock;
  /** Called for each operation that is described wrongly, and so is not a tool. */
  readonly onWarning?: (text: string) => void;
  /** Called for every error that was not meant for the caller; the default writes it to the standard error stream. */
  readonly onError?: (error: unknown, tool: string) => void;
}

const optionKeys: KeysOf<OpenApiOptions> = {
  ...keys("server headers query fixed tags paths methods having deprecated hosts timeoutMs signal clock"),
  ...keys("onWarning onError"),
};

const maxSpecBytes = 32 * 1024 * 1024;
const maxAnswerBytes = 8 * 1024 * 1024;
const maxOperations = 20_000;
/** The most characters of the description of a tool. */
const maxDescription = 1000;
/** Longest schema of the arguments of one tool. */
const maxInput = 48 * 1024;
/** A read that was refused for now is tried once more if it has to wait no longer than this. */
const maxRetryMs = 5000;

/**
 * Makes a tool of each operation of an API that OpenAPI 3 or Swagger 2 describes: in a file, at a URL, or as an object. Rejects when the
 * specification cannot be used at all; an operation that is described wrongly is left out, and reported to `onWarning`.
 *
 * @example
 * const registry = await fromOpenApi("./petstore.json", { headers: { authorization: `Bearer ${process.env.TOKEN}` } });
 */
export async function fromOpenApi(
  spec: string | URL | object,
  options: OpenApiOptions = {},
): Promise<Registry> {
  assertKnownKeys("fromOpenApi", options, optionKeys);
  const { signal = new AbortController().signal, onWarning = () => {}, clock, timeoutMs = 60_000 } = options;
  const given = typeof spec === "object" && !(spec instanceof URL) ? spec : undefined;
  const root =
    given === undefined
      ? spec instanceof URL
        ? spec
        : toSpecUrl(spec as string)
      : toSpecUrl("openapi.json");
  const named = [
    ...(options.hosts ?? []),
    ...hostOf(options.server),
    ...(root.protocol === "file:" ? [] : [root.host]),
  ];
  const limits = { timeoutMs, ...(clock === undefined ? {} : { clock }) };
  const fetchSpec = await createApiFetch({ named, maxBytes: maxSpecBytes, ...limits });
  const documents = new Documents(async (url, reading) => {
    const answer = await fetchSpec(url, { method: "GET", signal: reading }, {});
    if (answer.status !== 200) throw new Error(`${url.host} answered with status ${answer.status}`);
    return new TextDecoder().decode(answer.body);
  });
  const document = await documents.load(root, signal, given);
  const where = given === undefined ? root.href : "the specification";
  assertSpec(document, where);
  const { operations, leftOut } = readOperations(document, documents, wanted(options));
  if (operations.length > maxOperations)
    throw new Error(
      `${where} has ${operations.length} operations: at most ${maxOperations} may be tools. Choose some by tags or paths`,
    );
  const base = toBase(document as Located<Fields>, options, root);
  const advice = adviseOnKey(document.value as Fields);
  const api: Api = {
    documents,
    base,
    secrets: toSecrets(base, root, options),
    advice,
    fixed: options.fixed ?? {},
    ask: await createApiFetch({ named, maxBytes: maxAnswerBytes, ...limits }),
  };
  const registry = createRegistry(options.onError === undefined ? {} : { onError: options.onError });
  for (const [name, operation] of nameOperations(operations)) {
    try {
      register(registry, name, operation, api);
    } catch (error) {
      const { method, path } = operation;
      warn(onWarning, { operation: `${method.toUpperCase()} ${path}`, reason: (error as Error).message });
    }
  }
  for (const each of leftOut) warn(onWarning, each);
  return registry;
}

function warn(onWarning: (text: string) => void, { operation, reason }: LeftOut): void {
  onWarning(`Left out ${operation}: ${shorten(reason, 500)}`);
}

function hostOf(server: string | undefined): readonly string[] {
  return server === undefined || !URL.canParse(server) ? [] : [new URL(server).host];
}

function assertSpec({ value }: Located, where: string): void {
  const spec = isFields(value) ? value : {};
  const version = toWord(spec["openapi"] ?? spec["swagger"] ?? "");
  if (!/^(?:3\.[0-2](?:\.|$)|2\.0)/.test(version))
    throw new Error(
      `${where} is not OpenAPI 3.0, 3.1, 3.2 or Swagger 2.0${version === "" ? "" : `, but says version ${version.slice(0, 20)}`}`,
    );
}

function toWord(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function wanted({ tags, paths, methods, having, deprecated = false }: OpenApiOptions): IsWanted {
  const globs = paths === undefined ? undefined : createGlobs(paths);
  const ofMethods = methods?.map((method) => method.toLowerCase());
  return (operation) =>
    (deprecated || !operation.isDeprecated) &&
    (tags === undefined || operation.tags.some((tag) => tags.includes(tag))) &&
    (globs === undefined || globs(operation.path)) &&
    (ofMethods === undefined || ofMethods.includes(operation.method)) &&
    (having === undefined || (operation.fields[having] !== undefined && operation.fields[having] !== false));
}

/** An API as its tools need it. */
interface Api {
  readonly documents: Documents;
  readonly base: URL | undefined;
  /** What is sent to the origin of `base` alone. */
  readonly secrets: {
    readonly headers: { readonly [name: string]: string };
    readonly query: { readonly [name: string]: string };
  };
  readonly advice: string;
  readonly fixed: Fields;
  readonly ask: Awaited<ReturnType<typeof createApiFetch>>;
}

/** The address of the API: as the options say, or else as the specification does; relative ones count from its own address. */
function toBase({ value, at }: Located<Fields>, { server }: OpenApiOptions, root: URL): URL | undefined {
  if (server !== undefined) return new URL(server);
  const { servers, host, basePath, schemes } = value;
  if (Array.isArray(servers) && servers.length > 0) return toServer({ value: servers, at });
  if (typeof host === "string" && host !== "") {
    const all = Array.isArray(schemes) ? schemes.map(String) : [];
    const scheme = all.includes("https") || all.length === 0 ? "https" : all[0];
    const text = `${scheme}://${host}${typeof basePath === "string" ? basePath : ""}`;
    return URL.canParse(text) ? new URL(text) : undefined;
  }
  if (root.protocol === "file:") return undefined;
  return new URL(typeof basePath === "string" ? basePath : "/", root);
}

/** The first server, with the defaults of its variables. */
function toServer({ value, at }: Located<readonly unknown[]>): URL | undefined {
  const [first] = value;
  if (!isFields(first) || typeof first["url"] !== "string") return undefined;
  const variables = isFields(first["variables"]) ? first["variables"] : {};
  const text = first["url"].replaceAll(/\{([^{}]*)\}/g, (_, name: string) => {
    const variable = variables[name];
    return isFields(variable) && "default" in variable ? toWord(variable["default"]) : "";
  });
  if (!URL.canParse(text, at.href)) return undefined;
  const url = new URL(text, at.href);
  return url.protocol === "file:" ? undefined : url;
}

/**
 * Credentials go where the person who wrote them said. A specification from elsewhere may name any address, now or after its next edit.
 */
function toSecrets(
  base: URL | undefined,
  root: URL,
  { server, headers = {}, query = {} }: OpenApiOptions,
): Api["secrets"] {
  const has = Object.keys(headers).length + Object.keys(query).length > 0;
  if (has && server === undefined && base?.origin !== root.origin)
    throw new Error(
      `its headers are for an address that only the specification names: write "server": "${base?.href ?? "https://api.example.com"}" if they may be sent there`,
    );
  return { headers, query };
}

/** What to write when the API wants a key. */
function adviseOnKey(spec: Fields): string {
  const components = isFields(spec["components"]) ? spec["components"] : {};
  const schemes = spec["securityDefinitions"] ?? components["securitySchemes"];
  const wants = Object.values(isFields(schemes) ? schemes : {}).flatMap((scheme) => {
    if (!isFields(scheme)) return [];
    const { type, in: place, name, scheme: kind } = scheme;
    if (type === "apiKey" && place === "query") return [`"query": { "${String(name)}": "\${KEY}" }`];
    if (type === "apiKey" && place === "header") return [`"headers": { "${String(name)}": "\${KEY}" }`];
    const isBasic = type === "basic" || String(kind).toLowerCase() === "basic";
    return [`"headers": { "Authorization": "${isBasic ? "Basic" : "Bearer"} \${TOKEN}" }`];
  });
  const [first] = wants;
  return first === undefined
    ? ""
    : `Who runs this server gives it a key in the config, such as ${shorten(first, 200)}.`;
}

function register(registry: Registry, name: string, operation: ApiOperation, api: Api): void {
  const { documents, fixed } = api;
  const { args, bodyArgument, hidden } = toArguments(operation, fixed);
  const writer = new SchemaWriter(documents, "request");
  const input = toInput(operation, { args, bodyArgument, hidden }, writer);
  const output = toOutput(operation, documents);
  const { method, path, summary, description } = operation;
  const isRead = method === "get" || method === "head" || method === "options" || method === "query";
  const words = [summary, description === summary ? "" : description].filter(Boolean).join("\n\n");
  registry.register(
    name,
    {
      description: words === "" ? `${method.toUpperCase()} ${path}` : cut(words),
      ...(summary === "" || summary.length > 100 ? {} : { title: summary }),
      input,
      ...(output === undefined ? {} : { output: output }),
      annotations: {
        readOnlyHint: isRead,
        ...(isRead
          ? {}
          : { destructiveHint: method !== "post", idempotentHint: method === "put" || method === "delete" }),
        openWorldHint: true,
      },
    },
    async (given: object, context: ToolContext): Promise<ToolResult> => {
      const base = operation.servers === undefined ? api.base : toServer(operation.servers);
      if (base === undefined)
        throw new ToolError(
          'The specification does not say where the API is: write "server": "https://api.example.com" in the config',
        );
      const isOwn = base.origin === api.base?.origin;
      const { headers, query } = isOwn ? api.secrets : { headers: {}, query: {} };
      const building = { operation, args, bodyArgument, base, query };
      const { url, headers: own, body } = buildRequest({ ...given, ...hidden }, building);
      const request = { method: method.toUpperCase(), headers: own, body, signal: context.signal };
      const send = (): ReturnType<Api["ask"]> =>
        api.ask(url, request, headers).catch((error: unknown) => {
          context.signal.throwIfAborted();
          throw new ToolError(
            `The API gave no answer: ${error instanceof Error ? error.message : String(error)}`,
          );
        });
      const answer = await send();
      const waitMs = isRead ? retryMs(answer.status, answer.headers) : undefined;
      if (waitMs === undefined) return toResult(answer, output, api.advice);
      await new Promise((resolve) => setTimeout(resolve, waitMs));
      context.signal.throwIfAborted();
      return toResult(await send(), output, api.advice);
    },
  );
}

/** How long to wait before a read is tried again; undefined when it is not, or not so soon. */
function retryMs(status: number, headers: Headers): number | undefined {
  const seconds = headers.get("retry-after") ?? "";
  if ((status !== 429 && status !== 503) || !/^\d+$/.test(seconds)) return undefined;
  const ms = Number(seconds) * 1000;
  return ms <= maxRetryMs ? ms : undefined;
}

interface ToolArguments {
  readonly args: readonly Argument[];
  readonly bodyArgument: string;
  /** The values of arguments that callers do not see. */
  readonly hidden: Fields;
}

/** Arguments have the names of parameters where these are names that every client takes, and are free. */
function toArguments({ parameters, body }: ApiOperation, fixed: Fields): ToolArguments {
  const taken = new Set<string>();
  const claim = (wantedName: string, place: string): string => {
    const plain =
      wantedName
        .replaceAll(/[^A-Za-z0-9_.-]+/g, "_")
        .replaceAll(/^_+|_+$/g, "")
        .slice(0, 60) || place;
    let name = taken.has(plain) ? `${place}_${plain}`.slice(0, 60) : plain;
    for (let index = 2; taken.has(name); index++) name = `${plain.slice(0, 55)}_${index}`;
    taken.add(name);
    return name;
  };
  const args = parameters.map((parameter) => ({
    argument: claim(parameter.name, parameter.place),
    parameter,
  }));
  const bodyArgument = body === undefined ? "body" : claim("body", "request");
  const hidden = args.flatMap(({ argument, parameter }) => {
    const key = [argument, parameter.name].find((each) => Object.hasOwn(fixed, each));
    return key === undefined ? [] : [[argument, fixed[key]] as const];
  });
  return { args, bodyArgument, hidden: Object.fromEntries(hidden) };
}

function toInput(
  { body }: ApiOperation,
  { args, bodyArgument, hidden }: ToolArguments,
  writer: SchemaWriter,
): { readonly [keyword: string]: unknown } & { readonly type: "object" } {
  const shown = args.filter(({ argument }) => !Object.hasOwn(hidden, argument));
  const properties: { [name: string]: object } = {};
  for (const { argument, parameter } of shown) {
    const schema = writer.write(parameter.schema);
    const description = shorten(parameter.description, 300);
    properties[argument] = description === "" ? schema : { ...schema, description };
  }
  if (body !== undefined) {
    const schema = writer.write(body.schema);
    const isLong = JSON.stringify(schema).length > maxInput;
    const description = shorten(body.description, 300);
    const described = description === "" ? {} : { description };
    properties[bodyArgument] = isLong
      ? { description: "The body, which is too long to be described here." }
      : { ...schema, ...described };
  }
  const required = shown.filter(({ parameter }) => parameter.isRequired).map(({ argument }) => argument);
  if (body?.isRequired === true) required.push(bodyArgument);
  const definitions = writer.definitions();
  return {
    type: "object",
    properties,
    ...(required.length === 0 ? {} : { required }),
    additionalProperties: false,
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: definitions }),
  };
}

/** Nothing for an answer that is long to describe, or wrongly described: its structured content is there all the same. */
function toOutput({ answer }: ApiOperation, documents: Documents): Fields | undefined {
  if (answer === undefined) return undefined;
  try {
    const writer = new SchemaWriter(documents, "response");
    const { value } = documents.follow(answer);
    const isObject = isFields(value) && (value["type"] === "object" || isFields(value["properties"]));
    const schema = writer.write(isObject ? { ...answer, value } : answer);
    const definitions = writer.definitions();
    const defs = Object.keys(definitions).length === 0 ? {} : { $defs: definitions };
    const isPlain = schema["type"] === "object";
    const output = isPlain
      ? { ...schema, ...defs }
      : { type: "object", properties: { result: schema }, ...defs };
    return writer.isCut || JSON.stringify(output).length > maxOutput ? undefined : output;
  } catch {
    return undefined;
  }
}

const maxOutput = 6 * 1024;

function cut(words: string): string {
  return words.length <= maxDescription ? words : `${words.slice(0, maxDescription - 1).trimEnd()}…`;
}
