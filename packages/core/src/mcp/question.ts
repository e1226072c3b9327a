/**
 * All that is known of questions: their kinds, the capability each needs, the form each revision has for
 * them, what an acceptable answer is, and how one is refused. A question is a `Question`; other modules pass
 * it on without looking inside.
 */

import { RpcError } from "../errors/index.ts";
import { RawJson } from "../json/index.ts";
import { isAtLeast, type LegacyRevision } from "./revision.ts";
import type { Question, ClientCapabilities, Content } from "./types.ts";

export type AskParams = { readonly [name: string]: unknown };

/** Questions by the key they are asked under. */
export type Questions = { readonly [key: string]: Question };

/** What the user did with a form: filled it in, said no, or closed it. */
export type Elicited =
  | { readonly action: "accept"; readonly content: { readonly [field: string]: unknown } }
  | { readonly action: "decline" | "cancel" };

/** What the client's model wrote. */
export interface Sampled {
  readonly role: "assistant" | "user";
  readonly content: Content | readonly Content[];
  readonly model: string;
  readonly stopReason?: string;
}

export interface Root {
  readonly uri: string;
  readonly name?: string;
}

/**
 * The fields of a form by name, or a schema of an object: JSON Schema, or one of zod or arktype that
 * can give its JSON Schema.
 */
type FormSource =
  | { readonly [name: string]: object }
  | { readonly type: "object"; readonly properties: object; readonly required?: readonly string[] }
  | SelfDescribing;

/**
 * Asks the user to fill in a form. Its fields are flat: strings, numbers, booleans and choices. A schema only describes the form; check the
 * answer yourself where a field has more rules than clients know.
 *
 * @throws TypeError for a type of field that forms do not have, and for a name in
 * `required` that is not a field
 * @example
 * return inputRequired({ name: elicit("What is your name?", { name: { type: "string" } }, ["name"]) });
 * @example
 * return inputRequired({ name: elicit("What is your name?", z.object({ name: z.string() })) });
 */
export function elicit(message: string, fields: FormSource, required: readonly string[] = []): Question {
  if (typeof message !== "string")
    throw new TypeError(`elicit(message, fields): the message must be a string, but is ${typeof message}`);
  const requestedSchema = toForm(fields, required);
  return { method: "elicitation/create", params: { message, requestedSchema } };
}

/**
 * Asks the user to visit a page. Accepting means they agreed to open it, not that they are done there.
 *
 * @throws TypeError for an address that is not http or https: clients refuse it
 */
export function elicitUrl(message: string, url: string): Question {
  if (typeof message !== "string")
    throw new TypeError(`elicitUrl(message, url): the message must be a string, but is ${typeof message}`);
  if (!isWebUrl(url)) throw new TypeError(`${JSON.stringify(url)} is not an http or https address`);
  return { method: "elicitation/create", params: { mode: "url", message, url } };
}

/** Asks the client's model to write something. Throws a `TypeError` without messages or `maxTokens`. */
export function sample(params: {
  readonly messages: readonly {
    readonly role: "user" | "assistant";
    readonly content: Content | readonly Content[];
  }[];
  readonly maxTokens: number;
  readonly [option: string]: unknown;
}): Question {
  const { messages, maxTokens } = (params ?? {}) as { readonly [option: string]: unknown };
  const isMessage = (message: unknown): boolean => {
    const { role, content } = (message ?? {}) as { readonly [member: string]: unknown };
    return (role === "user" || role === "assistant") && typeof content === "object" && content !== null;
  };
  if (!Array.isArray(messages) || !messages.every(isMessage) || typeof maxTokens !== "number")
    throw new TypeError(
      'Write sample({ messages: [{ role: "user", content: { type: "text", text: "…" } }], maxTokens: 100 })',
    );
  return { method: "sampling/createMessage", params };
}

/** Asks the client which folders the user is working in. */
export function listRoots(): Question {
  return { method: "roots/list" };
}

/** Whether a text is the method of a question. */
export function isAskMethod(method: unknown): method is Question["method"] {
  return method === "elicitation/create" || method === "sampling/createMessage" || method === "roots/list";
}

/**
 * A legacy server's request as a question; undefined when it is not a question. Throws an `RpcError` for one that sends the user to an
 * address that is not http or https: `javascript:` runs in the page that shows the link, `file:` opens what is on the disk.
 */
export function toQuestion(
  method: string,
  params: RawJson | undefined,
  refusal: "rpc.invalid_params" | "rpc.other" = "rpc.invalid_params",
): Question | undefined {
  switch (method) {
    case "elicitation/create":
    case "sampling/createMessage": {
      const askParams = (params?.value ?? {}) as AskParams;
      if (method === "elicitation/create" && isUrl(askParams) && !isWebUrl(askParams["url"]))
        throw new RpcError(refusal, "The server sends the user to an address that is not http or https");
      return { method, params: askParams };
    }
    case "roots/list":
      return { method };
    default:
      return undefined;
  }
}

/**
 * Reads the questions of an `input_required` result. Throws for a kind of question that does not exist, and
 * where {@link toQuestion} does.
 */
export function parseAsks(requests: RawJson | undefined): Questions {
  const keys = requests?.kind === "object" ? Object.keys(requests.value as object) : [];
  return Object.fromEntries(
    keys.map((key) => {
      const request = requests?.at(key);
      const method = request?.at("method")?.value;
      const ask =
        typeof method === "string" ? toQuestion(method, request?.at("params"), "rpc.other") : undefined;
      if (ask !== undefined) return [key, ask];
      const text = `The server asked for ${JSON.stringify(method)}, which no client answers`;
      throw new RpcError("rpc.other", text);
    }),
  );
}

/** The capabilities that a client lacks for a question; undefined when it can be asked. A bare `elicitation: {}` means forms. */
export function lacking(ask: Question, declared: ClientCapabilities): ClientCapabilities | undefined {
  const { elicitation, sampling, roots } = declared;
  switch (ask.method) {
    case "elicitation/create": {
      const canShow = isDeclared(elicitation);
      if (isUrl(ask.params))
        return canShow && elicitation.url !== undefined ? undefined : { elicitation: { url: {} } };
      const canFill = canShow && (elicitation.form !== undefined || elicitation.url === undefined);
      return canFill ? undefined : { elicitation: { form: {} } };
    }
    case "sampling/createMessage": {
      const needsTools = usesTools(ask.params);
      const canSample = isDeclared(sampling) && (!needsTools || sampling.tools !== undefined);
      return canSample ? undefined : { sampling: needsTools ? { tools: {} } : {} };
    }
    case "roots/list":
      return isDeclared(roots) ? undefined : { roots: {} };
  }
}

/** The capabilities that a client lacks for several questions; undefined when it can be asked all of them. */
export function lackingAny(asks: Questions, declared: ClientCapabilities): ClientCapabilities | undefined {
  const required: { [name: string]: object } = {};
  for (const ask of Object.values(asks)) {
    for (const [name, detail] of Object.entries(lacking(ask, declared) ?? {}))
      required[name] = { ...required[name], ...(detail as object) };
  }
  return Object.keys(required).length === 0 ? undefined : required;
}

/** Clients write what they like; only an object declares a capability. */
function isDeclared<T extends object>(capability: T | undefined): capability is T {
  return typeof capability === "object" && capability !== null;
}

/** Content that is a list came with the use of tools, so only clients with that capability can read it. */
function usesTools({ tools, toolChoice, messages }: AskParams): boolean {
  if (tools !== undefined || toolChoice !== undefined) return true;
  return contentsOf(messages).some(
    (content) =>
      Array.isArray(content) || typeOf(content) === "tool_use" || typeOf(content) === "tool_result",
  );
}

function contentsOf(messages: unknown): readonly unknown[] {
  return Array.isArray(messages) ? messages.map((message) => (message as AskParams | null)?.["content"]) : [];
}

function typeOf(content: unknown): unknown {
  return (content as AskParams | null | undefined)?.["type"];
}

function isUrl(params: AskParams): boolean {
  return params["mode"] === "url";
}

/** Whether a browser would open it as a page of the web. */
function isWebUrl(value: unknown): boolean {
  return typeof value === "string" && URL.canParse(value) && /^https?:$/.test(new URL(value).protocol);
}

/** The error for a request that cannot be served without capabilities its sender did not declare. */
export function missingCapability(required: ClientCapabilities): RpcError {
  const { extensions = {}, ...others } = required;
  const names = [...Object.keys(others), ...Object.keys(extensions)].join(", ");
  return new RpcError("rpc.missing_capability", `This request needs the client capabilities: ${names}`, {
    data: { requiredCapabilities: required },
  });
}

/**
 * The error for a tool that failed because its caller could not be asked: undefined for a result that is not
 * an error. The tool's text is part of it.
 */
export function missingAfter(required: ClientCapabilities, result: RawJson): RpcError | undefined {
  if (result.at("isError")?.text !== "true") return undefined;
  const { content } = result.value as { readonly content?: unknown };
  const texts = (Array.isArray(content) ? content : []).flatMap((block: { readonly text?: unknown }) =>
    typeof block?.text === "string" ? [block.text] : [],
  );
  const { message, data } = missingCapability(required);
  return new RpcError("rpc.missing_capability", [message, ...texts].join(". "), { data });
}

/**
 * The error for a server whose question needs a capability that its client has not declared, or that the client's revision lacks:
 * `-32601` when no such question can be asked at all, `-32602` when this one cannot (2025-11-25, elicitation).
 */
export function notOffered(ask: Question, { elicitation, sampling, roots }: ClientCapabilities): RpcError {
  const capability = {
    "elicitation/create": elicitation,
    "sampling/createMessage": sampling,
    "roots/list": roots,
  };
  return isDeclared<object>(capability[ask.method])
    ? new RpcError("rpc.invalid_params", `The client does not offer this kind of ${ask.method}`)
    : new RpcError("rpc.method_not_found", `The client does not offer ${ask.method}`);
}

/**
 * A question in the form a legacy revision has for it; undefined when it has none. `elicitationId` names a visit of a
 * page, which 2025-11-25 wants and the modern form lacks.
 */
export function toLegacyQuestion(
  ask: Question,
  revision: LegacyRevision,
  elicitationId: string,
): Question | undefined {
  if (ask.method === "sampling/createMessage" && !isAtLeast(revision, "2025-03-26")) {
    const hasAudio = contentsOf(ask.params["messages"]).some((content) => typeOf(content) === "audio");
    return hasAudio ? undefined : ask;
  }
  if (ask.method !== "elicitation/create") return ask;
  if (!isAtLeast(revision, "2025-06-18")) return undefined;
  const { mode, ...params } = ask.params;
  if (isAtLeast(revision, "2025-11-25"))
    return mode === "url" ? { ...ask, params: { mode, elicitationId, ...params } } : ask;
  if (mode === "url") return undefined;
  const requestedSchema = projectForm(params["requestedSchema"]);
  return requestedSchema === undefined ? undefined : { ...ask, params: { ...params, requestedSchema } };
}

/** A legacy server's question in the modern form: without the members that matter only between that server and its client. */
export function toModernQuestion(ask: Question): Question {
  if (ask.method === "roots/list") return { method: ask.method };
  const { _meta: _, task: __, ...params } = ask.params;
  if (ask.method !== "elicitation/create" || !isUrl(params)) return { ...ask, params };
  const { elicitationId: ___, ...page } = params;
  return { ...ask, params: page };
}

/**
 * Whether an answer may be passed on to the server that asked: it must have the form of an answer
 * to such a question. The fields of an accepted form must be what was asked for: legacy servers
 * rely on their client for that.
 */
export function isAcceptable(ask: Question, answer: RawJson): boolean {
  if (answer.kind !== "object") return false;
  const { action, content, role, model, roots } = answer.value as AskParams;
  switch (ask.method) {
    case "elicitation/create":
      if (action !== "accept") return action === "decline" || action === "cancel";
      return isUrl(ask.params) || fitsForm(content, ask.params["requestedSchema"]);
    case "sampling/createMessage":
      return (
        typeof role === "string" &&
        typeof model === "string" &&
        typeof content === "object" &&
        content !== null
      );
    case "roots/list":
      return Array.isArray(roots);
  }
}

/** The answer to a form that its user closed, for a question that was refused; undefined for other kinds. */
export function closedForm(ask: Question): RawJson | undefined {
  return ask.method === "elicitation/create" ? RawJson.fromValue({ action: "cancel" }) : undefined;
}

/** The error for a legacy server whose question was not answered in time. */
export function unanswered({ method }: Question): RpcError {
  const isSampling = method === "sampling/createMessage";
  return new RpcError("rpc.other", "The caller did not answer in time", {
    rpcCode: isSampling ? -1 : -32603,
  });
}

/** The notification of 2025-11-25 that a user is done with a page; its param `elicitationId` names the visit. */
export const visitedMethod = "notifications/elicitation/complete";

/** The visit of a page that params ask for; undefined when they ask for none, or do not name it. */
export function visitIdOf(params: unknown): string | undefined {
  const { mode, elicitationId } = (params ?? {}) as AskParams;
  return mode === "url" && typeof elicitationId === "string" ? elicitationId : undefined;
}

/** The error code of 2025-11-25 for a request that cannot be served before the user has visited pages. 2026-07-28 does not have it. */
export const urlElicitationRequired = -32042;

/**
 * The pages a legacy server wants visited before it acts, each as the params of a question; undefined for any other error.
 * They are as the server wrote them, unchecked.
 */
export function pagesOf(error: unknown): readonly unknown[] | undefined {
  if (!(error instanceof RpcError) || error.rpcCode !== urlElicitationRequired) return undefined;
  const { elicitations } = (error.data ?? {}) as { readonly elicitations?: unknown };
  return Array.isArray(elicitations) ? (elicitations as readonly unknown[]) : [];
}

/** Questions that ask the user to visit pages; undefined when there is none, or one of them is not a web page. */
export function askVisits(pages: readonly unknown[]): Questions | undefined {
  const asks: { [key: string]: Question } = {};
  for (const [index, page] of pages.entries()) {
    const { message, url } = (page ?? {}) as AskParams;
    if (typeof message !== "string" || typeof url !== "string" || !isWebUrl(url)) return undefined;
    asks[`visit-${index + 1}`] = elicitUrl(message, url);
  }
  return pages.length === 0 ? undefined : asks;
}

/** The part of a Standard Schema that a form needs. Core depends on no package, not even for types. */
interface SelfDescribing {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly jsonSchema?: {
      input(options: { readonly target: "draft-2020-12" }): { readonly [name: string]: unknown };
    };
  };
}

/** The schema of a form, or of one field of it; also the content of a filled-in form. */
type FormFields = { readonly [name: string]: unknown };

/**
 * Whether the content of a form is what its schema asks for. The schemas of forms are flat and
 * have few keywords, all of which are checked here except `format`, which is advice to the
 * program that shows the form.
 */
function fitsForm(content: unknown = {}, schema: unknown): boolean {
  return isFields(content) && (!isFields(schema) || fitsFields(content, schema));
}

function fitsFields(content: FormFields, { properties, required }: FormFields): boolean {
  const wanted = Array.isArray(required) ? (required as readonly unknown[]) : [];
  if (wanted.some((name) => typeof name === "string" && !Object.hasOwn(content, name))) return false;
  if (!isFields(properties)) return true;
  return Object.entries(content).every(([name, value]) => {
    const field = Object.hasOwn(properties, name) ? properties[name] : undefined;
    return !isFields(field) || fitsField(value, field);
  });
}

function fitsField(value: unknown, field: FormFields): boolean {
  const choices = choicesOf(field);
  if (choices !== undefined && !choices.includes(value)) return false;
  switch (field["type"]) {
    case "string":
      return (
        typeof value === "string" &&
        isWithin(Array.from(value).length, field["minLength"], field["maxLength"])
      );
    case "integer":
      return Number.isInteger(value) && isWithin(value as number, field["minimum"], field["maximum"]);
    case "number":
      return typeof value === "number" && isWithin(value, field["minimum"], field["maximum"]);
    case "boolean":
      return typeof value === "boolean";
    case "array":
      return fitsArray(value, field);
    default:
      return true;
  }
}

function fitsArray(value: unknown, field: FormFields): boolean {
  if (!Array.isArray(value) || !isWithin(value.length, field["minItems"], field["maxItems"])) return false;
  const { items } = field;
  return !isFields(items) || value.every((item) => fitsField(item, items));
}

/** The values a field may have, where it names them. */
function choicesOf({ enum: listed, oneOf, anyOf }: FormFields): readonly unknown[] | undefined {
  if (Array.isArray(listed)) return listed as readonly unknown[];
  const titled = oneOf ?? anyOf;
  if (!Array.isArray(titled) || !titled.every((choice) => isFields(choice) && "const" in choice))
    return undefined;
  return titled.map((choice: FormFields) => choice["const"]);
}

function isWithin(size: number, least: unknown, most: unknown): boolean {
  return !(typeof least === "number" && size < least) && !(typeof most === "number" && size > most);
}

function isFields(value: unknown): value is FormFields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A form as 2025-06-18 knows it: single choices by `enum` and `enumNames`, no multiple choice, few defaults. */
function projectForm(schema: unknown): FormFields | undefined {
  const { $schema: _, properties, ...rest } = (schema ?? {}) as FormFields;
  const fields = Object.create(null) as Record<string, unknown>;
  for (const [name, field] of Object.entries((properties ?? {}) as FormFields)) {
    const projected = projectField((field ?? {}) as FormFields);
    if (projected === undefined) return undefined;
    fields[name] = projected;
  }
  return { ...rest, properties: fields };
}

function projectField(field: FormFields): FormFields | undefined {
  if (field["type"] === "array") return undefined;
  const { default: preset, oneOf, ...rest } = field;
  const kept = field["type"] === "boolean" && preset !== undefined ? { ...rest, default: preset } : rest;
  if (!Array.isArray(oneOf)) return kept;
  const choices = oneOf as readonly { readonly const: string; readonly title?: string }[];
  return {
    ...kept,
    enum: choices.map((choice) => choice.const),
    enumNames: choices.map(({ title, const: value }) => title ?? value),
  };
}

const example = 'write { city: { type: "string" } }, or z.object({ city: z.string() })';

/** The schema of a form, from its fields or from a schema of an object. Throws a `TypeError` that says what to write. */
function toForm(source: unknown, required: unknown): FormFields {
  const form = toFormSource(source);
  const { properties } = form;
  if (!isFields(properties)) throw new TypeError(`elicit: a form is an object of fields; ${example}`);
  for (const [name, field] of Object.entries(properties)) {
    const fault = findFieldFault(field);
    if (fault !== undefined) throw new TypeError(`elicit: the field ${JSON.stringify(name)} ${fault}`);
  }
  const listed: readonly unknown[] = Array.isArray(form["required"]) ? form["required"] : [];
  if (!Array.isArray(required))
    throw new TypeError('elicit: the names of required fields must be an array, such as ["city"]');
  const wanted = [...new Set([...listed, ...(required as readonly unknown[])])];
  const missing = wanted.find((name) => typeof name !== "string" || !Object.hasOwn(properties, name));
  if (missing !== undefined)
    throw new TypeError(
      `elicit: ${JSON.stringify(missing)} is required, but the fields are ${Object.keys(properties).join(", ")}`,
    );
  return { type: "object", properties, ...(wanted.length > 0 ? { required: wanted } : {}) };
}

/** A form as a JSON Schema. A field is an object, so a `type` that is a text, or `~standard`, tells a schema from fields. */
function toFormSource(source: unknown): FormFields {
  const isSchema = (typeof source === "object" || typeof source === "function") && source !== null;
  if (isSchema && "~standard" in source) {
    const { vendor, jsonSchema } = (source as SelfDescribing)["~standard"];
    if (jsonSchema === undefined)
      throw new TypeError(
        `elicit: this ${vendor} schema cannot say its own JSON Schema; write the fields: { city: { type: "string" } }`,
      );
    return jsonSchema.input({ target: "draft-2020-12" });
  }
  if (isFields(source) && typeof source["type"] === "string") return source;
  return { properties: source };
}

const fieldTypes = ["string", "number", "integer", "boolean", "array"];

/** Why clients cannot show a field; undefined when they can (2025-11-25, elicitation: requested schema). */
function findFieldFault(field: unknown): string | undefined {
  if (!isFields(field)) return `must be an object such as { type: "string" }; ${example}`;
  if ("~standard" in field) return "is a schema of a library: put z.object({ … }) around all fields";
  const { type, items } = field;
  if (!fieldTypes.includes(type as string))
    return `has the type ${JSON.stringify(type)}; forms have strings, numbers, integers, booleans and choices`;
  if (type !== "array" || (isFields(items) && choicesOf(items) !== undefined)) return undefined;
  return 'is an array; a choice of several is written { type: "array", items: { type: "string", enum: ["a", "b"] } }';
}
