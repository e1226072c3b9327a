// What an entry of a registry (`server.json`, 2025-12-11) runs or reaches.

/** A server as an entry of a config. */
export type RegistryLaunch =
  | {
      readonly command: string;
      readonly args: readonly string[];
      readonly env: { readonly [name: string]: string };
    }
  | { readonly url: string; readonly headers: { readonly [name: string]: string }; readonly type?: "sse" };

/** A value that must be given. */
export interface Needed {
  readonly name: string;
  readonly kind: "env" | "header" | "value";
  readonly description: string;
  readonly isSecret: boolean;
}

interface JsonObject {
  readonly [member: string]: unknown;
}

interface Launched {
  readonly launch: RegistryLaunch;
  readonly missing: readonly Needed[];
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** How packages of each kind are run. Their version is part of what is run, so that a later one is not. */
const kinds: { readonly [kind: string]: PackageKind } = {
  npm: {
    identifier: /^(?:@[a-z0-9~][\w.~-]*\/)?[a-z0-9~][\w.~-]*$/i,
    sources: ["https://registry.npmjs.org"],
    toCommand: (id, version, before, after) => ["npx", "-y", ...before, `${id}@${version}`, ...after],
  },
  pypi: {
    identifier: /^[a-z0-9][\w.-]*$/i,
    sources: ["https://pypi.org", "https://pypi.org/simple"],
    toCommand: (id, version, before, after) => ["uvx", ...before, `${id}@${version}`, ...after],
  },
  oci: {
    identifier: /^[a-z0-9][\w.-]*(?::\d+)?(?:\/[\w.-]+)*(?::[\w.-]+)?(?:@sha256:[0-9a-f]{64})?$/i,
    sources: ["https://docker.io", "https://ghcr.io", "https://index.docker.io"],
    toCommand: (id, version, before, after, env) => [
      "docker",
      "run",
      "-i",
      "--rm",
      ...env.flatMap((name) => ["-e", name]),
      ...before,
      /[:@][^/]*$/.test(id) || version === "" ? id : `${id}:${version}`,
      ...after,
    ],
  },
  nuget: {
    identifier: /^[a-z0-9][\w.-]*$/i,
    sources: ["https://api.nuget.org", "https://api.nuget.org/v3/index.json"],
    toCommand: (id, version, before, after) => ["dnx", ...before, `${id}@${version}`, "--yes", ...after],
  },
};

interface PackageKind {
  readonly identifier: RegExp;
  /** Where packages of the kind come from unless its program was told otherwise. */
  readonly sources: readonly string[];
  readonly toCommand: (
    identifier: string,
    version: string,
    before: readonly string[],
    after: readonly string[],
    env: readonly string[],
  ) => readonly string[];
}

/** The first package that can be run here, or else the first address. Throws an error that names why there is neither. */
export function launchOf(server: JsonObject, values: ReadonlyMap<string, string>): Launched {
  const problems: string[] = [];
  for (const [list, read] of [
    ["packages", readPackage],
    ["remotes", readRemote],
  ] as const) {
    const all = server[list];
    for (const each of Array.isArray(all) ? (all as unknown[]) : []) {
      if (!isObject(each)) continue;
      const found = read(each, values);
      if (typeof found !== "string") return found;
      problems.push(found);
    }
  }
  const why = problems.length === 0 ? "its entry names no package and no address" : problems.join("; ");
  throw new Error(`it cannot be used here: ${why}`);
}

/** A text says why the package cannot be used. */
function readPackage(given: JsonObject, values: ReadonlyMap<string, string>): Launched | string {
  const { registryType, identifier, version = "", transport, registryBaseUrl } = given;
  const kind =
    typeof registryType === "string" && Object.hasOwn(kinds, registryType) ? kinds[registryType] : undefined;
  if (kind === undefined) return `packages of the kind ${JSON.stringify(registryType)} cannot be run here`;
  if (isObject(transport) && transport["type"] !== "stdio")
    return `its ${String(registryType)} package is a server over ${JSON.stringify(transport["type"])}, which would have to be started first`;
  if (typeof identifier !== "string" || identifier.length > 300 || !kind.identifier.test(identifier))
    return `${JSON.stringify(identifier)} is not the name of a package of the kind ${String(registryType)}`;
  if (
    typeof version !== "string" ||
    !(version === "" ? registryType === "oci" : /^\w[\w.+-]{0,100}$/.test(version)) ||
    version === "latest"
  )
    return `${identifier} has no exact version, so what runs could change`;
  const base = typeof registryBaseUrl === "string" ? registryBaseUrl.replace(/\/$/, "") : undefined;
  if (base !== undefined && !kind.sources.includes(base))
    return `${identifier} is from ${base}, and not from where ${String(registryType)} packages come from`;
  const missing: Needed[] = [];
  const before = readArguments(given["runtimeArguments"], values, missing);
  const after = readArguments(given["packageArguments"], values, missing);
  const env = readNamed(given["environmentVariables"], "env", values, missing);
  const [command = "", ...args] = kind.toCommand(identifier, version, before, after, Object.keys(env));
  return { launch: { command, args, env }, missing };
}

function readRemote(given: JsonObject, values: ReadonlyMap<string, string>): Launched | string {
  const { type, url } = given;
  if (type !== "streamable-http" && type !== "sse")
    return `an address of the kind ${JSON.stringify(type)} is not known here`;
  const missing: Needed[] = [];
  const filled = fill(typeof url === "string" ? toLiteral(url) : "", given["variables"], values, missing);
  // A value that is missing leaves its `{name}` in place.
  if (!/^https:\/\/[^/@\s]+/.test(filled) || !URL.canParse(filled))
    return `${JSON.stringify(url)} is not an https:// address`;
  const headers = readNamed(given["headers"], "header", values, missing);
  return { launch: { url: filled, headers, ...(type === "sse" ? { type } : {}) }, missing };
}

/** Variables of the environment, or headers. */
function readNamed(
  given: unknown,
  kind: "env" | "header",
  values: ReadonlyMap<string, string>,
  missing: Needed[],
): { readonly [name: string]: string } {
  const named: { [name: string]: string } = {};
  for (const each of Array.isArray(given) ? (given as unknown[]) : []) {
    if (!isObject(each) || typeof each["name"] !== "string" || !/^[\w-]{1,200}$/.test(each["name"])) continue;
    const { name } = each;
    const value = valueOf(each, name, kind, values, missing);
    if (value !== undefined) named[name] = value;
  }
  return named;
}

function readArguments(
  given: unknown,
  values: ReadonlyMap<string, string>,
  missing: Needed[],
): readonly string[] {
  return (Array.isArray(given) ? (given as unknown[]) : []).flatMap((each) => {
    if (!isObject(each)) return [];
    const isNamed = each["type"] === "named";
    const label = isNamed ? each["name"] : each["valueHint"];
    const name = typeof label === "string" ? label : "value";
    const isFlag =
      isNamed && each["value"] === undefined && each["default"] === undefined && each["isRequired"] !== true;
    const key = name.replace(/^-+/, "");
    if (isFlag && !values.has(key)) return [];
    const value = valueOf(each, key, "value", values, missing);
    if (value === undefined) return [];
    return isNamed ? (value === "" ? [name] : [name, value]) : [value];
  });
}

/** What a person gave, what the entry says, or its default. */
function valueOf(
  input: JsonObject,
  name: string,
  kind: Needed["kind"],
  values: ReadonlyMap<string, string>,
  missing: Needed[],
): string | undefined {
  const given = values.get(name);
  if (given !== undefined) return given;
  const preset = input["value"] ?? input["default"];
  if (preset !== undefined && preset !== null)
    return fill(toLiteral(preset), input["variables"], values, missing);
  if (input["isRequired"] === true) missing.push(toNeeded(input, name, kind));
  return undefined;
}

/** A text with its `{name}` filled in. */
function fill(
  text: string,
  variables: unknown,
  values: ReadonlyMap<string, string>,
  missing: Needed[],
): string {
  const known = isObject(variables) ? variables : {};
  return text.replaceAll(/\{([\w.-]+)\}/g, (mark, name: string) => {
    const input = known[name];
    const given = values.get(name);
    if (given !== undefined) return given;
    const value = isObject(input) ? (input["value"] ?? input["default"]) : undefined;
    if (value !== undefined && value !== null) return toLiteral(value);
    if (isObject(input)) missing.push(toNeeded(input, name, "value"));
    return mark;
  });
}

function toNeeded(input: JsonObject, name: string, kind: Needed["kind"]): Needed {
  const { description } = input;
  return {
    name,
    kind,
    description: typeof description === "string" ? description : "",
    isSecret: input["isSecret"] === true,
  };
}

/** A value of the entry. In a config `${NAME}` would stand for a variable of the user, which a server could read there. */
function toLiteral(value: unknown): string {
  return (typeof value === "string" ? value : JSON.stringify(value)).replaceAll("${", () => "$${");
}
