import { createHash } from "node:crypto";
import { type Documents, type Fields, isFields, type Located } from "./documents.ts";

const methods = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"] as const;
export type Method = (typeof methods)[number];

/** Where a parameter is sent. */
export type Place = "path" | "query" | "header" | "cookie";

/** One parameter, in the words of OpenAPI 3. */
export interface Parameter {
  readonly name: string;
  readonly place: Place;
  readonly isRequired: boolean;
  readonly style: string;
  readonly isExploded: boolean;
  readonly allowsReserved: boolean;
  /** The value is sent as JSON. */
  readonly isJson: boolean;
  readonly description: string;
  readonly schema: Located;
}

/** What is sent as the body of a request. */
export interface Body {
  readonly mediaType: string;
  readonly isRequired: boolean;
  readonly description: string;
  readonly schema: Located;
  /** For a form: how members are sent. */
  readonly encoding: Fields;
  /** How the whole is sent. */
  readonly kind: "json" | "form" | "parts" | "text" | "bytes";
  /** Members that are files. */
  readonly files: readonly string[];
}

/** One operation of an API, whichever version of OpenAPI describes it. */
export interface ApiOperation {
  readonly method: Method;
  readonly path: string;
  readonly id: string | undefined;
  readonly summary: string;
  readonly description: string;
  readonly isDeprecated: boolean;
  readonly tags: readonly string[];
  readonly fields: Fields;
  readonly parameters: readonly Parameter[];
  readonly body: Body | undefined;
  /** The schema of the JSON of a successful answer. */
  readonly answer: Located | undefined;
  /** Servers that serve this operation alone; relative ones count from the document. */
  readonly servers: Located<readonly unknown[]> | undefined;
}

/** An operation that cannot be a tool. */
export interface LeftOut {
  readonly operation: string;
  readonly reason: string;
}

interface Found {
  readonly operations: readonly ApiOperation[];
  readonly leftOut: readonly LeftOut[];
}

/** Which operations are wanted. */
export type IsWanted = (
  operation: Pick<ApiOperation, "method" | "path" | "tags" | "fields" | "isDeprecated">,
) => boolean;

/** The operations of a specification. Those that are described wrongly are left out, each with the reason. */
export function readOperations(root: Located, documents: Documents, isWanted: IsWanted): Found {
  const spec = root.value as Fields;
  const isOld = typeof spec["swagger"] === "string";
  const operations: ApiOperation[] = [];
  const leftOut: LeftOut[] = [];
  const paths = isFields(spec["paths"]) ? spec["paths"] : {};
  for (const [path, given] of Object.entries(paths)) {
    if (!path.startsWith("/")) continue;
    let item: Located<Fields>;
    try {
      item = documents.follow<Fields>({ value: given, at: root.at });
    } catch (error) {
      leftOut.push({ operation: path, reason: (error as Error).message });
      continue;
    }
    if (!isFields(item.value)) continue;
    for (const method of methods) {
      const fields = item.value[method];
      if (!isFields(fields)) continue;
      const tags = Array.isArray(fields["tags"]) ? fields["tags"].map(String) : [];
      const about = { method, path, tags, fields, isDeprecated: fields["deprecated"] === true };
      if (!isWanted(about)) continue;
      try {
        const shared = { value: item.value["parameters"], at: item.at };
        const context = { spec, documents, at: item.at, shared };
        const read = isOld ? readOld(about, context) : readNew(about, context);
        operations.push({ ...about, ...textsOf(fields), ...read, servers: serversOf(fields, item) });
      } catch (error) {
        leftOut.push({ operation: `${method.toUpperCase()} ${path}`, reason: (error as Error).message });
      }
    }
  }
  return { operations, leftOut };
}

interface Context {
  readonly spec: Fields;
  readonly documents: Documents;
  readonly at: URL;
  /** Parameters of all operations of the path. */
  readonly shared: Located;
}

type About = Pick<ApiOperation, "path" | "fields">;
type Read = Pick<ApiOperation, "parameters" | "body" | "answer">;

function textsOf(fields: Fields): Pick<ApiOperation, "id" | "summary" | "description"> {
  const id = fields["operationId"];
  return {
    id: typeof id === "string" && id.trim() !== "" ? id : undefined,
    summary: toText(fields["summary"]),
    description: toText(fields["description"]),
  };
}

function serversOf(fields: Fields, { value, at }: Located<Fields>): ApiOperation["servers"] {
  const own = [fields["servers"], value["servers"]].find((each) => Array.isArray(each) && each.length > 0);
  return own === undefined ? undefined : { value: own as readonly unknown[], at };
}

/** The parameters of a path and of an operation; those of the operation take precedence. */
function listParameters(
  { path, fields }: About,
  { documents, at, shared }: Context,
): readonly Located<Fields>[] {
  const found = new Map<string, Located<Fields>>();
  for (const list of [shared.value, fields["parameters"]])
    for (const given of Array.isArray(list) ? (list as unknown[]) : []) {
      const parameter = documents.follow<Fields>({ value: given, at });
      if (!isFields(parameter.value) || typeof parameter.value["name"] !== "string") continue;
      found.set(`${String(parameter.value["in"])} ${parameter.value["name"]}`, parameter);
    }
  // A name in the path that nothing describes is a text.
  for (const [, name = ""] of path.matchAll(/\{([^{}]+)\}/g))
    if (!found.has(`path ${name}`))
      found.set(`path ${name}`, {
        value: { name, in: "path", required: true, type: "string", schema: { type: "string" } },
        at,
      });
  return [...found.values()].filter(
    ({ value }) => value["in"] !== "path" || path.includes(`{${String(value["name"])}}`),
  );
}

const ignoredHeaders = new Set(["accept", "content-type", "authorization"]);
const usualStyles = { path: "simple", query: "form", header: "simple", cookie: "form" } as const;

function isPlace(place: unknown): place is Place {
  return typeof place === "string" && Object.hasOwn(usualStyles, place);
}

function readNew(about: About, context: Context): Read {
  const { documents, at } = context;
  const parameters = listParameters(about, context).flatMap(({ value, at: own }): readonly Parameter[] => {
    const { name, in: place } = value;
    if (!isPlace(place) || (place === "header" && ignoredHeaders.has(String(name).toLowerCase()))) return [];
    const content = isFields(value["content"]) ? Object.values(value["content"])[0] : undefined;
    const style = typeof value["style"] === "string" ? value["style"] : usualStyles[place];
    return [
      {
        name: String(name),
        place,
        isRequired: place === "path" || value["required"] === true,
        style,
        isExploded: typeof value["explode"] === "boolean" ? value["explode"] : style === "form",
        allowsReserved: value["allowReserved"] === true,
        isJson: content !== undefined,
        description: toText(value["description"]),
        schema: { value: (isFields(content) ? content["schema"] : value["schema"]) ?? {}, at: own },
      },
    ];
  });
  return {
    parameters,
    body: readBody(about.fields, context),
    answer: readAnswer(about.fields, documents, at),
  };
}

/** Kinds of body, those first that a caller writes best in JSON. */
const bodyKinds = [
  /^application\/json\b/,
  /^(?:application\/(?:.*\+)?json|text\/json)\b/,
  /^application\/x-www-form-urlencoded\b/,
  /^multipart\//,
  /^text\//,
  /./,
];

function readBody({ requestBody }: Fields, { documents, at }: Context): Body | undefined {
  if (requestBody === undefined) return undefined;
  const { value, at: own } = documents.follow<Fields>({ value: requestBody, at });
  if (!isFields(value) || !isFields(value["content"])) return undefined;
  const { content } = value;
  const kinds = Object.keys(content);
  const mediaType = bodyKinds.flatMap((kind) => kinds.find((each) => kind.test(each.toLowerCase())) ?? [])[0];
  if (mediaType === undefined) return undefined;
  const chosen = documents.follow<Fields>({ value: content[mediaType], at: own });
  const fields = isFields(chosen.value) ? chosen.value : {};
  const given = { value: fields["schema"] ?? {}, at: chosen.at };
  const kind = kindOf(mediaType, documents.follow(given).value);
  const schema = kind === "text" ? { ...given, value: { type: "string" } } : given;
  return {
    kind,
    mediaType: kind === "json" && mediaType.includes("*") ? "application/json" : mediaType,
    isRequired: value["required"] === true,
    description: toText(value["description"]),
    schema,
    encoding: isFields(fields["encoding"]) ? fields["encoding"] : {},
    files: filesOf(given, documents),
  };
}

/** A wildcard such as `application/*` is sent as JSON; what is neither JSON nor a form is sent as the caller gives it. */
function kindOf(mediaType: string, schema: unknown): Body["kind"] {
  const type = mediaType.toLowerCase();
  if (/[/+](?:json|\*)/.test(type)) return "json";
  if (type.startsWith("application/x-www-form-urlencoded")) return "form";
  if (type.startsWith("multipart/")) return "parts";
  const isBinary = isFields(schema) && (schema["format"] === "binary" || schema["format"] === "byte");
  const isText = /^text\/|[/+](?:xml|yaml|jwt|graphql|javascript)\b/.test(type);
  const isTextSchema = isFields(schema) && schema["type"] === "string";
  return !isBinary && (isText || isTextSchema) ? "text" : "bytes";
}

/** The members of a form that are files, or lists of files. */
function filesOf(schema: Located, documents: Documents): readonly string[] {
  const { value, at } = documents.follow<Fields>(schema);
  const properties = isFields(value) && isFields(value["properties"]) ? value["properties"] : {};
  return Object.entries(properties).flatMap(([name, given]) => {
    const { value: member } = documents.follow<Fields>({ value: given, at });
    const items = isFields(member) ? member["items"] : undefined;
    return [member, items].some(
      (each) =>
        isFields(each) &&
        (each["format"] === "binary" ||
          each["type"] === "file" ||
          each["contentMediaType"] === "application/octet-stream"),
    )
      ? [name]
      : [];
  });
}

/** Swagger 2: bodies and fields of forms are parameters, and the schema of a parameter is among its own members. */
function readOld(about: About, context: Context): Read {
  const { spec, documents, at } = context;
  const consumes = listOf(about.fields["consumes"]) ?? listOf(spec["consumes"]) ?? [];
  const parameters: Parameter[] = [];
  const form: Located<Fields>[] = [];
  let body: Body | undefined;
  for (const parameter of listParameters(about, context)) {
    const { value, at: own } = parameter;
    const { name, in: place, collectionFormat = "csv" } = value;
    const isRequired = value["required"] === true;
    const description = toText(value["description"]);
    if (place === "formData") form.push(parameter);
    if (place === "body") {
      const mediaType = consumes.find((each) => /json/i.test(each)) ?? consumes[0] ?? "application/json";
      const given = { value: value["schema"] ?? {}, at: own };
      const kind = kindOf(mediaType, documents.follow(given).value);
      const schema = kind === "text" ? { ...given, value: { type: "string" } } : given;
      body = { mediaType, isRequired, description, schema, encoding: {}, files: [], kind };
    }
    if (!isPlace(place) || (place === "header" && ignoredHeaders.has(String(name).toLowerCase()))) continue;
    const isMulti = collectionFormat === "multi";
    const styles: { readonly [format: string]: string } = {
      ssv: "spaceDelimited",
      tsv: "tabDelimited",
      pipes: "pipeDelimited",
    };
    parameters.push({
      name: String(name),
      place,
      isRequired: place === "path" || isRequired,
      style: styles[String(collectionFormat)] ?? usualStyles[place],
      isExploded: isMulti,
      allowsReserved: false,
      isJson: false,
      description,
      schema: { value: withoutNames(value), at: own },
    });
  }
  if (form.length > 0) {
    const isFile = form.some(({ value }) => value["type"] === "file");
    const wantsParts = isFile || consumes.some((each) => /^multipart/i.test(each));
    body = toFormBody(form, wantsParts ? "multipart/form-data" : "application/x-www-form-urlencoded", at);
  }
  return { parameters, body, answer: readAnswer(about.fields, documents, at) };
}

function toFormBody(form: readonly Located<Fields>[], mediaType: string, at: URL): Body {
  const properties = Object.fromEntries(
    form.map(({ value }) => [
      String(value["name"]),
      { ...withoutNames(value), description: value["description"] },
    ]),
  );
  const required = form.filter(({ value }) => value["required"] === true).map(({ value }) => value["name"]);
  const schema = { type: "object", properties, required };
  const files = form
    .filter(({ value }) => value["type"] === "file")
    .map(({ value }) => String(value["name"]));
  const isRequired = required.length > 0;
  const kind = mediaType.startsWith("multipart") ? "parts" : "form";
  return { mediaType, isRequired, description: "", schema: { value: schema, at }, encoding: {}, files, kind };
}

/** The schema of a parameter of Swagger 2, where it stands among the parameter's own members. */
function withoutNames(value: Fields): Fields {
  const { name: _name, in: _in, required: _required, description: _description, ...schema } = value;
  return schema;
}

function readAnswer(fields: Fields, documents: Documents, at: URL): Located | undefined {
  const { responses } = fields;
  if (!isFields(responses)) return undefined;
  const status = ["200", "201", "202", "2XX", "2xx", "default"].find((each) => isFields(responses[each]));
  if (status === undefined) return undefined;
  try {
    const { value, at: own } = documents.follow<Fields>({ value: responses[status], at });
    if (value["schema"] !== undefined) return { value: value["schema"], at: own };
    const content = isFields(value["content"]) ? value["content"] : {};
    const json = Object.keys(content).find((each) => /^application\/(?:.*\+)?json\b/i.test(each));
    if (json === undefined) return undefined;
    const chosen = documents.follow<Fields>({ value: content[json], at: own });
    return isFields(chosen.value["schema"]) ? { value: chosen.value["schema"], at: chosen.at } : undefined;
  } catch {
    return undefined; // An answer need not be described.
  }
}

function listOf(value: unknown): readonly string[] | undefined {
  return Array.isArray(value) && value.length > 0 ? value.map(String) : undefined;
}

function toText(value: unknown): string {
  return typeof value === "string" ? value.trim() : "";
}

/** Names of tools are at most this long, so that a prefix fits in front. */
const maxName = 48;

/**
 * A name for each operation: its id, or its method and path, of characters that every client takes. One that is long, or that another has
 * already, ends with a hash of its method and path, so that it stays the same when others come and go.
 */
export function nameOperations<T extends Pick<ApiOperation, "id" | "method" | "path">>(
  operations: readonly T[],
): ReadonlyMap<string, T> {
  const names = new Map<string, T>();
  const taken = new Set<string>();
  for (const operation of operations) {
    const { id, method, path } = operation;
    const mark = createHash("sha256").update(`${method} ${path}`).digest("hex");
    let name = toName(id ?? "") || toName(`${method} ${path}`) || method;
    if (name.length > maxName) name = `${name.slice(0, maxName - 7)}_${mark.slice(0, 6)}`;
    if (taken.has(name.toLowerCase())) name = `${name.slice(0, maxName - 7)}_${mark.slice(0, 6)}`;
    if (taken.has(name.toLowerCase())) name = `${name.slice(0, maxName - 17)}_${mark.slice(0, 16)}`;
    taken.add(name.toLowerCase());
    names.set(name, operation);
  }
  return names;
}

function toName(text: string): string {
  return text
    .normalize("NFKD")
    .replaceAll(/[^A-Za-z0-9_-]+/g, "_")
    .replaceAll(/^_+|_+$/g, "");
}
