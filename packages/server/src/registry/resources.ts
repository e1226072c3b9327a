import { NotFoundError } from "@junctor/core/errors";
import { assertDefinition } from "@junctor/core/fit";
import { RawJson } from "@junctor/core/json";
import {
  type Resource,
  type ResourceContents,
  type ResourceTemplate,
  parseUriTemplate,
  type UriTemplate,
} from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import {
  type AnswerReader,
  isInputRequired,
  noAnswers,
  readAnswers,
  createWatches,
  emptyListing,
  isResourceContents,
  toResourceContents,
  type CallContext,
  withContext,
  type InputRequired,
  type Outcome,
  type Provider,
} from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import { createNamedEntries, resourceOffers } from "./members.ts";
import { assertHandler, assertSpec } from "./tool-spec.ts";

/** What a reader returns: text, bytes, or contents in the protocol's own form. */
export type ReadResult = string | Uint8Array | ResourceContents | readonly ResourceContents[] | InputRequired;

/** The context of a read. */
export interface ReadContext extends CallContext {
  readonly uri: string;
  /** The values of a template's variables; empty for a plain resource. */
  readonly variables: { readonly [name: string]: string };
  readonly answers: AnswerReader;
  readonly state: unknown;
}

/** Reads the contents of one resource. */
export type ResourceReader = (context: ReadContext) => ReadResult | Promise<ReadResult>;

/** The resources of this process. Made by {@link createResourceRegistry}. */
export interface ResourceRegistry extends Provider {
  /**
   * Adds a resource at one URI. Throws at once for a URI that is taken or not absolute, a missing name, a key of the spec
   * that is unknown or has a wrong value, and a missing reader.
   *
   * @example
   * resources.register("config://app", { name: "Settings", mimeType: "application/json" }, () => readSettings());
   */
  register(uri: string, spec: Omit<Resource, "uri">, read: ResourceReader): void;
  /** Adds all resources whose URIs fit an RFC 6570 template. Plain resources win over templates, earlier over later. */
  registerTemplate(
    uriTemplate: string,
    spec: Omit<ResourceTemplate, "uriTemplate">,
    read: ResourceReader,
  ): void;
  /** Removes a resource or a template; false when there was none. */
  unregister(uriOrTemplate: string): boolean;
  /** Notifies the subscribers of a resource that it changed. */
  updated(uri: string): void;
}

interface ResourceEntry {
  readonly resource: Resource;
  readonly read: ResourceReader;
}

interface TemplateEntry {
  readonly template: ResourceTemplate;
  readonly pattern: UriTemplate;
  readonly read: ResourceReader;
}

const specKeys: KeysOf<Omit<ResourceTemplate, "uriTemplate">> = keys(
  "name title description mimeType icons annotations _meta",
);

/** An empty registry of resources; pass it to `createRegistry({ resources })`. */
export function createResourceRegistry(): ResourceRegistry {
  const plain = createNamedEntries("The resource", "resources", (entry: ResourceEntry) => entry.resource);
  const templates = createNamedEntries(
    "The resource template",
    "templates",
    (entry: TemplateEntry) => entry.template,
  );
  const watches = createWatches();

  const find = (
    uri: string,
  ): { read: ResourceReader; variables: ReadContext["variables"]; mimeType?: string } => {
    const entry = plain.entries.get(uri);
    if (entry !== undefined) return { read: entry.read, variables: {}, ...mimeTypeOf(entry.resource) };
    for (const { pattern, read, template } of templates.entries.values()) {
      const variables = pattern.match(uri);
      if (variables !== undefined) return { read, variables, ...mimeTypeOf(template) };
    }
    throw new NotFoundError("resource", uri);
  };

  return {
    list: (part) => {
      if (part === "resources") return plain.list() as never;
      return part === "templates" ? (templates.list() as never) : emptyListing;
    },
    call: async ({ name, round }, context): Promise<Outcome> => {
      const { read, variables, mimeType } = find(name);
      const answers = round === undefined ? noAnswers : readAnswers(round);
      const value = await read(withContext(context, { uri: name, variables, answers, state: round?.state }));
      if (isInputRequired(value)) return value;
      return { kind: "complete", result: RawJson.fromValue({ contents: toContents(value, name, mimeType) }) };
    },
    watch: ({ name }, context, listener) => {
      find(name);
      return watches.add(name, context, listener);
    },
    offers: () => resourceOffers,
    onChange: (listener) => {
      const stops = [plain, templates].map((source) => source.onChange(listener));
      return () => stops.forEach((stop) => stop());
    },
    register: (uri, spec, read) => {
      const what = `Resource ${JSON.stringify(uri)}`;
      if (typeof uri !== "string" || !URL.canParse(uri))
        throw new TypeError(`${what}: the URI must be an absolute one, such as config://app`);
      assertSpec(what, spec, "register(uri, { name }, read)");
      assertKnownKeys(what, spec, { ...specKeys, size: true });
      assertHandler(what, read);
      const resource: Resource = Object.freeze({ uri, ...spec });
      assertDefinition("resources", what, resource);
      plain.add(uri, { resource, read });
    },
    registerTemplate: (uriTemplate, spec, read) => {
      const what = `Resource template ${JSON.stringify(uriTemplate)}`;
      if (typeof uriTemplate !== "string")
        throw new TypeError(`${what}: the template must be a string, such as users://{id}`);
      assertSpec(what, spec, "registerTemplate(uriTemplate, { name }, read)");
      assertKnownKeys(what, spec, specKeys);
      assertHandler(what, read);
      const template: ResourceTemplate = Object.freeze({ uriTemplate, ...spec });
      assertDefinition("templates", what, template);
      templates.add(uriTemplate, { template, pattern: parseUriTemplate(uriTemplate), read });
    },
    unregister: (uriOrTemplate) => plain.remove(uriOrTemplate) || templates.remove(uriOrTemplate),
    updated: watches.report,
  };
}

function toContents(
  value: Exclude<ReadResult, InputRequired>,
  uri: string,
  mimeType?: string,
): readonly ResourceContents[] {
  if (typeof value === "string" || value instanceof Uint8Array)
    return [toResourceContents(uri, value, mimeType)];
  const contents: readonly unknown[] = Array.isArray(value) ? value : [value];
  const wrong = contents.findIndex((one) => !isResourceContents(one));
  if (wrong === -1) return contents as readonly ResourceContents[];
  const place = Array.isArray(value) ? ` at [${wrong}]` : "";
  throw new TypeError(
    `Resource ${JSON.stringify(uri)}: the reader gave ${describeValue(contents[wrong])}${place}; it must give a string, a Uint8Array, or ` +
      "contents such as { uri, text } or { uri, blob } with base64. For JSON, write JSON.stringify(value)",
  );
}

function mimeTypeOf(spec: { readonly mimeType?: string }): { mimeType?: string } {
  return spec.mimeType === undefined ? {} : { mimeType: spec.mimeType };
}
