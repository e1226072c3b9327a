import { type Awaitable, andThen, settled } from "@junctor/core/async";
import { parseUriTemplate, type Resource } from "@junctor/core/mcp";
import { isInputRequired, isResourceContents, type Listing, type Provider } from "@junctor/core/provider";
import { describeValue } from "@junctor/core/schema";
import {
  assertSpec,
  type CompletionRegistry,
  type ReadResult,
  type ResourceReader,
  type ResourceRegistry,
} from "../registry/index.ts";
import { eachCompleter, type Handler, toHandler, toLook } from "./handler.ts";
import { assertTakes } from "./parameters.ts";
import type { AppResourceSpec, LookContext } from "./types.ts";

type List = (context: LookContext<unknown>) => Awaitable<readonly (string | Resource)[]>;

/** The resources of an app. */
export interface AppResources {
  readonly registry: ResourceRegistry;
  readonly completion: CompletionRegistry;
  /** The functions that list resources, by template. */
  readonly listers: Map<string, List>;
  readonly used: { resources: boolean; completion: boolean };
}

/** Adds a resource or, where the URI has variables, a template. */
export function addResource(
  { registry, completion, listers, used }: AppResources,
  uri: string,
  spec: AppResourceSpec<string, unknown>,
  read: Handler,
): void {
  const isTemplate = typeof uri === "string" && uri.includes("{");
  const what = `Resource ${isTemplate ? "template " : ""}${JSON.stringify(uri)}`;
  assertSpec(what, spec, "resource(uri, {}, read)");
  const { list, complete, ...about } = spec;
  if (!isTemplate && (list !== undefined || complete !== undefined))
    throw new TypeError(`${what}: only a template has list and complete`);
  if (list !== undefined && typeof list !== "function")
    throw new TypeError(`${what}: list must be a function that gives URIs, but is ${describeValue(list)}`);
  const named = { name: uri, ...about };
  const reader = toReader(read, about.mimeType);
  if (isTemplate) registry.registerTemplate(uri, named, reader);
  else registry.register(uri, named, reader);
  used.resources = true;
  const names = isTemplate ? parseUriTemplate(uri).variables : [];
  assertTakes(read, { what, plural: "variables", names });
  if (list !== undefined) listers.set(uri, list);
  eachCompleter(complete, (name, completer) => {
    completion.registerTemplate(uri, name, completer);
    used.completion = true;
  });
}

function toReader(read: Handler, mimeType: string | undefined): ResourceReader {
  if (typeof read !== "function") return read;
  const run = toHandler(read);
  return (context) =>
    andThen(settled(run(context.variables, context)), (value) => toContents(value, context.uri, mimeType));
}

/** Values that are not contents are sent as JSON. */
function toContents(value: unknown, uri: string, mimeType = "application/json"): ReadResult {
  const isContents =
    value === undefined ||
    typeof value === "string" ||
    value instanceof Uint8Array ||
    isInputRequired(value) ||
    (Array.isArray(value) ? value.length > 0 && value.every(isResourceContents) : isResourceContents(value));
  return isContents ? (value as ReadResult) : { uri, mimeType, text: JSON.stringify(value) };
}

/** The resources, together with those that the templates list for the caller. */
export function withListed({ registry, listers }: AppResources): Provider {
  return {
    ...registry,
    list: (part, context) => {
      const plain = registry.list(part, context);
      if (part !== "resources" || listers.size === 0) return plain;
      const join = async (): Promise<unknown> => {
        const listing: Listing<object> = await plain;
        const look = toLook(context, {});
        const listed = await Promise.all(
          [...listers].map(async ([template, list]) =>
            (await list(look)).map((one) => toResource(template, one)),
          ),
        );
        const items = Object.freeze([...listing.items, ...listed.flat()]);
        return listing.with(items, { hints: { ttlMs: 0, cacheScope: "private" } });
      };
      return join() as never;
    },
  };
}

function toResource(template: string, listed: string | Resource): Resource {
  const resource = typeof listed === "string" ? { uri: listed, name: listed } : listed;
  if (parseUriTemplate(template).match(resource.uri) === undefined)
    throw new TypeError(
      `Resource template ${JSON.stringify(template)}: list gave ${JSON.stringify(resource.uri)}, which does not fit it`,
    );
  return resource;
}
