import { Buffer } from "node:buffer";
import { randomUUID } from "node:crypto";
import { ToolError } from "@junctor/core/errors";
import { type Fields, isFields } from "./documents.ts";
import type { ApiOperation, Body, Parameter } from "./operations.ts";

/** An argument of a tool, and the parameter that it is sent as. */
export interface Argument {
  readonly argument: string;
  readonly parameter: Parameter;
}

interface BuiltRequest {
  readonly url: URL;
  readonly headers: { readonly [name: string]: string };
  readonly body: string | Uint8Array | undefined;
}

interface Building {
  readonly operation: Pick<ApiOperation, "path" | "body">;
  readonly args: readonly Argument[];
  /** The argument that is the body. */
  readonly bodyArgument: string;
  readonly base: URL;
  /** Added to the query of every request. */
  readonly query: { readonly [name: string]: string };
}

/** The request of a call. Throws a `ToolError` for an argument that cannot be sent. */
export function buildRequest(
  given: Fields,
  { operation, args, bodyArgument, base, query }: Building,
): BuiltRequest {
  // What follows a "#" tells operations of one path apart, and is not sent.
  let path = operation.path.replace(/#.*$/s, "");
  const search: string[] = [];
  const cookies: string[] = [];
  const headers: { [name: string]: string } = { accept: "application/json, text/*;q=0.9, */*;q=0.8" };
  for (const { argument, parameter } of args) {
    const value = given[argument];
    const { name, place } = parameter;
    if (value === undefined || (value === null && place !== "path")) continue;
    if (place === "path") path = path.replaceAll(`{${name}}`, () => toPathPart(parameter, value, argument));
    else if (place === "query") search.push(...toQuery(parameter, value));
    else if (place === "header") headers[name.toLowerCase()] = toHeader(parameter, value, argument);
    else
      cookies.push(
        ...toQuery({ ...parameter, style: "form" }, value).map((each) => each.replace(/;.*/s, "")),
      );
  }
  if (cookies.length > 0) headers["cookie"] = cookies.join("; ");
  for (const [name, value] of Object.entries(query)) search.push(`${encode(name)}=${encode(value)}`);
  const url = new URL(base);
  url.pathname = url.pathname.replace(/\/$/, "") + path;
  url.search = [url.search.slice(1), ...search].filter(Boolean).join("&");
  const { body } = operation;
  const content = given[bodyArgument];
  if (body === undefined || content === undefined) return { url, headers, body: undefined };
  const sent = toBody(body, content);
  return { url, headers: { ...headers, "content-type": sent.type }, body: sent.data };
}

const encode = (text: string): string =>
  encodeURIComponent(text.replaceAll(/\p{Surrogate}/gu, "\ufffd")).replaceAll(
    /[!'()*]/g,
    (each) => `%${each.charCodeAt(0).toString(16).toUpperCase()}`,
  );

function toText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The pairs of an object, with each value as a text. */
function pairsOf(value: Fields): readonly (readonly [string, string])[] {
  return Object.entries(value)
    .filter(([, each]) => each !== undefined)
    .map(([key, each]) => [key, toText(each)]);
}

/** RFC 6570 in the part that OpenAPI uses: `simple`, `label` and `matrix`. */
function toPathPart(parameter: Parameter, value: unknown, argument: string): string {
  const { name, style, isExploded, isJson } = parameter;
  const part = (text: string): string => {
    const encoded = encode(text);
    // A URL is normalised before it is sent: such a part would lead to another path.
    if (/^(?:\.|%2e){1,2}$/i.test(encoded))
      throw new ToolError(`${argument} cannot be ${JSON.stringify(text)}, which means another path`);
    return encoded;
  };
  if (value === null || value === "" || (Array.isArray(value) && value.length === 0))
    throw new ToolError(`${argument} is empty, and is a part of the path: send a value`);
  if (isJson) return part(JSON.stringify(value));
  const [begin, between] =
    style === "label"
      ? [".", isExploded ? "." : ","]
      : style === "matrix"
        ? [";", isExploded ? ";" : ","]
        : ["", ","];
  const label = style === "matrix" ? `${encode(name)}=` : "";
  if (Array.isArray(value)) {
    const texts = value.map((each) => part(toText(each)));
    if (style === "matrix" && isExploded) return texts.map((each) => `;${label}${each}`).join("");
    return `${begin}${label}${texts.join(between)}`;
  }
  if (isFields(value)) {
    const pairs = pairsOf(value).map(([key, each]) => [part(key), part(each)] as const);
    if (isExploded)
      return `${begin}${pairs.map((pair) => pair.join("=")).join(style === "simple" ? "," : between)}`;
    return `${begin}${label}${pairs.flat().join(",")}`;
  }
  return `${begin}${label}${part(toText(value))}`;
}

function toQuery(parameter: Parameter, value: unknown): readonly string[] {
  const { name, style, isExploded, isJson, allowsReserved } = parameter;
  const key = encode(name);
  const part = (text: string): string =>
    allowsReserved
      ? encode(text).replaceAll(/%(?:3A|2F|3F|40|21|24|27|28|29|2A|2C|3B)/g, (each) =>
          decodeURIComponent(each),
        )
      : encode(text);
  if (isJson) return [`${key}=${part(JSON.stringify(value))}`];
  if (style === "deepObject" && typeof value === "object")
    return toDeep(name, value).map(
      ([at, each]) => `${encode(at).replaceAll("%5B", "[").replaceAll("%5D", "]")}=${part(each)}`,
    );
  if (Array.isArray(value)) {
    const texts = value.map((each) => part(toText(each)));
    if (isExploded) return texts.map((each) => `${key}=${each}`);
    const between = { spaceDelimited: "%20", pipeDelimited: "%7C", tabDelimited: "%09" }[style] ?? ",";
    return texts.length === 0 ? [] : [`${key}=${texts.join(between)}`];
  }
  if (isFields(value)) {
    const pairs = pairsOf(value).map(([at, each]) => [encode(at), part(each)] as const);
    return isExploded ? pairs.map((pair) => pair.join("=")) : [`${key}=${pairs.flat().join(",")}`];
  }
  return [`${key}=${part(toText(value))}`];
}

/** `filter[a][b]=1` */
function toDeep(name: string, value: unknown): readonly (readonly [string, string])[] {
  if (Array.isArray(value)) return value.map((each) => [`${name}[]`, toText(each)]);
  if (!isFields(value)) return value === undefined ? [] : [[name, toText(value)]];
  return Object.entries(value).flatMap(([key, each]) => toDeep(`${name}[${key}]`, each));
}

function toHeader({ name, isExploded, isJson }: Parameter, value: unknown, argument: string): string {
  const text = isJson
    ? JSON.stringify(value)
    : Array.isArray(value)
      ? value.map(toText).join(",")
      : isFields(value)
        ? pairsOf(value)
            .map((pair) => pair.join(isExploded ? "=" : ","))
            .join(",")
        : toText(value);
  if (!/^[\t\u0020-\u007e\u0080-\u00ff]*$/.test(text))
    throw new ToolError(`${argument} has a line break or a character that the header ${name} cannot carry`);
  return text;
}

interface SentBody {
  readonly type: string;
  readonly data: string | Uint8Array;
}

function toBody({ mediaType, encoding, files, kind }: Body, content: unknown): SentBody {
  const type = mediaType.includes("*") ? "application/octet-stream" : mediaType;
  switch (kind) {
    case "json":
      return { type, data: JSON.stringify(content) };
    case "form":
      return { type, data: toForm(content, encoding) };
    case "parts":
      return toMultipart(type.split(";", 1)[0] ?? type, content, encoding, files);
    case "text":
      return { type, data: toText(content) };
    case "bytes":
      return { type, data: toBytes(content) };
  }
}

function toForm(content: unknown, encoding: Fields): string {
  if (!isFields(content)) throw new ToolError("The body is a form: send an object");
  return Object.entries(content)
    .flatMap(([name, value]) => {
      const {
        style = "form",
        explode = style === "form",
        contentType,
      } = isFields(encoding[name]) ? encoding[name] : {};
      const isJson = typeof contentType === "string" && /json/i.test(contentType);
      const isExploded = explode === true;
      const isNested = Array.isArray(value) && value.some((each) => typeof each === "object");
      const parameter = {
        name,
        place: "query",
        isRequired: false,
        allowsReserved: false,
        description: "",
        schema: { value: {}, at: nowhere },
      } as const;
      return toQuery(
        {
          ...parameter,
          style: String(style),
          isExploded,
          isJson: isJson || (isNested && style !== "deepObject"),
        },
        value,
      );
    })
    .join("&")
    .replaceAll("%20", "+");
}

const nowhere = new URL("about:blank");

function toMultipart(type: string, content: unknown, encoding: Fields, files: readonly string[]): SentBody {
  if (!isFields(content)) throw new ToolError("The body is a form: send an object");
  const boundary = `junctor-${randomUUID()}`;
  const parts: Buffer[] = [];
  for (const [name, value] of Object.entries(content)) {
    for (const each of Array.isArray(value) ? (value as unknown[]) : [value]) {
      const { contentType } = isFields(encoding[name]) ? encoding[name] : {};
      const isFile = files.includes(name);
      const declared =
        typeof contentType === "string" && !/[\r\n,*]/.test(contentType) ? contentType : undefined;
      const kind =
        declared ??
        (isFile ? "application/octet-stream" : typeof each === "object" ? "application/json" : undefined);
      const label = name.replaceAll(/[\r\n"\\]/g, (mark) => encodeURIComponent(mark));
      const head = [
        `--${boundary}`,
        `content-disposition: form-data; name="${label}"${isFile ? `; filename="${label}"` : ""}`,
      ];
      if (kind !== undefined) head.push(`content-type: ${kind}`);
      parts.push(
        Buffer.from(`${head.join("\r\n")}\r\n\r\n`),
        isFile ? toBytes(each) : Buffer.from(toText(each)),
        Buffer.from("\r\n"),
      );
    }
  }
  parts.push(Buffer.from(`--${boundary}--\r\n`));
  return { type: `${type}; boundary=${boundary}`, data: Buffer.concat(parts) };
}

/** Bytes come as base64. */
function toBytes(content: unknown): Buffer {
  if (typeof content !== "string" || !/^[A-Za-z0-9+/\s_-]*={0,2}\s*$/.test(content))
    throw new ToolError("The body is a file: send its bytes as base64");
  return Buffer.from(content, "base64");
}
