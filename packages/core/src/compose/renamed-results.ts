import { andThen, type Awaitable } from "../async/index.ts";
import { joinJson, RawJson, scanElements, editMembers } from "../json/index.ts";
import { viewUriOf, withViewUri, type Meta } from "../mcp/index.ts";
import type { Outcome } from "../provider/index.ts";
import type { UriNames } from "./claims.ts";

type Rename = UriNames["toPublic"];

/** An outcome of an owner with the URIs that callers know. */
export function renameOutcome(outcome: Outcome, uris: Pick<UriNames, "toPublic">): Outcome {
  if (outcome.kind !== "complete") return outcome;
  const result = renameResult(outcome.result, uris);
  return result === outcome.result ? outcome : { ...outcome, result };
}

/**
 * A result with the URIs that callers know: of contents that were read, of links and embedded resources, and of the view that a result
 * names. All other bytes stay as they were; a result without such a URI is the same object.
 */
function renameResult(result: RawJson, { toPublic }: Pick<UriNames, "toPublic">): RawJson {
  // A letter of a scheme may be written as an escape.
  if (result.kind !== "object" || !/(?:ui|skill):|\\u00/i.test(result.text)) return result;
  return edit(result, {
    contents: (contents) =>
      eachElement(contents, (content) => edit(content, { uri: (uri) => renameUri(uri, toPublic) })),
    content: (blocks) => eachElement(blocks, (block) => renameBlock(block, toPublic)),
    messages: (messages) =>
      eachElement(messages, (message) => edit(message, { content: (block) => renameBlock(block, toPublic) })),
    _meta: (meta) => renameMeta(meta, toPublic),
  });
}

function renameBlock(block: RawJson, rename: Rename): RawJson {
  return edit(block, {
    uri: (uri) => renameUri(uri, rename),
    resource: (resource) => edit(resource, { uri: (uri) => renameUri(uri, rename) }),
  });
}

function renameUri(uri: RawJson, rename: Rename): RawJson {
  if (uri.kind !== "string") return uri;
  const own = uri.value as string;
  const renamed = rename(own);
  return renamed === own ? uri : RawJson.fromValue(renamed);
}

function renameMeta(meta: RawJson, rename: Rename): RawJson {
  if (meta.kind !== "object") return meta;
  const value = meta.value as Meta;
  const uri = viewUriOf({ _meta: value });
  if (uri === undefined || rename(uri) === uri) return meta;
  const { ui, "ui/resourceUri": flat } = withViewUri(value, rename(uri));
  return editMembers(meta, {
    ...(ui === undefined ? {} : { ui: RawJson.fromValue(ui) }),
    ...(flat === undefined ? {} : { "ui/resourceUri": RawJson.fromValue(flat) }),
  });
}

type Changes = { readonly [member: string]: (value: RawJson) => RawJson };

/** An object with some members changed; the same if nothing is. */
function edit(object: RawJson, changes: Changes): RawJson {
  if (object.kind !== "object") return object;
  const edits: { [member: string]: RawJson } = {};
  for (const [member, change] of Object.entries(changes)) {
    const value = object.at(member);
    const changed = value && change(value);
    if (changed !== undefined && changed !== value) edits[member] = changed;
  }
  return Object.keys(edits).length === 0 ? object : editMembers(object, edits);
}

function eachElement(array: RawJson, change: (element: RawJson) => RawJson): RawJson {
  if (array.kind !== "array") return array;
  const { bytes } = array;
  const elements = scanElements(bytes).map(({ start, end }) =>
    RawJson.fromChecked(bytes.subarray(start, end)),
  );
  const changed = elements.map(change);
  if (changed.every((element, index) => element === elements[index])) return array;
  return joinJson([
    "[",
    ...changed.flatMap((element, index) => (index === 0 ? [element] : [",", element])),
    "]",
  ]);
}

/** The same for code that was not converted. */
export function renamed<T>(made: Awaitable<T>, uris: Pick<UriNames, "toPublic">): Awaitable<T> {
  return andThen(made, (ended) => {
    const { kind, status, result } = ended as { kind?: unknown; status?: unknown; result?: unknown };
    const isComplete = (kind === "complete" || status === "completed") && result instanceof RawJson;
    return isComplete ? { ...ended, result: renameResult(result, uris) } : ended;
  });
}
