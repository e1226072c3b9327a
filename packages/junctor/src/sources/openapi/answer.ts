import type { ApiAnswer } from "@junctor/client/internal";
import { audio, embedResource, failure, image, structured, text, type ToolResult } from "@junctor/server";
import { type Fields, isFields } from "./documents.ts";
import { prune } from "./schemas.ts";

/** The most characters of the body of an error. */
const maxError = 8 * 1024;
const maxPages = 3;

/** The answer of an API as a result. `output` is the listed schema of the tool, if it has one. */
export function toResult(answer: ApiAnswer, output: Fields | undefined, advice: string): ToolResult {
  const { status, headers, body, url } = answer;
  const type = (headers.get("content-type") ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (status < 200 || status >= 300) {
    const said = isTextual(type, body)
      ? decode(body).slice(0, maxError).trim()
      : `${body.length} bytes of ${type}`;
    const wait = headers.get("retry-after");
    const notes = [
      wait === null ? "" : `It may be tried again after ${wait}${/^\d+$/.test(wait) ? " seconds" : ""}.`,
      status === 401 || status === 403 ? advice : "",
      status >= 300 && status < 400
        ? `It leads to ${headers.get("location") ?? "nowhere"}, which is not followed.`
        : "",
    ];
    return failure([`The API answered with status ${status}.`, ...notes, said].filter(Boolean).join("\n"));
  }
  const more = toPages(headers, url);
  if (body.length === 0)
    return withOutput({ content: [text(`Status ${status}, without a body.`), ...more] }, output);
  if (/[/+]json$/.test(type) || type === "") {
    const parsed = parse(decode(body));
    if (parsed !== undefined) {
      const value = isFields(parsed.value) ? parsed.value : { result: parsed.value };
      const kept = output === undefined ? value : prune(value, output, (output["$defs"] ?? {}) as Fields);
      return structured(isFields(kept) ? kept : {}, [text(decode(body)), ...more]);
    }
  }
  const bytes = body;
  if (/^image\/(?:png|jpeg|gif|webp|svg\+xml)$/.test(type))
    return withOutput({ content: [image(bytes, type)] }, output);
  if (type.startsWith("audio/")) return withOutput({ content: [audio(bytes, type)] }, output);
  if (isTextual(type, body)) return withOutput({ content: [text(decode(body)), ...more] }, output);
  const address = new URL(url.href);
  // The query may hold a key.
  address.search = "";
  return withOutput({ content: [embedResource(address.href, bytes, type)] }, output);
}

/** A tool that lists a schema has structured content in every result. */
function withOutput(result: ToolResult, output: Fields | undefined): ToolResult {
  return output === undefined ? result : { ...result, structuredContent: {} };
}

/** The query parameters of the next, previous and last page, by the header `Link` (RFC 8288). */
function toPages(headers: Headers, at: URL): readonly ReturnType<typeof text>[] {
  const found = [
    ...(headers.get("link") ?? "").slice(0, 4096).matchAll(/<([^>]*)>[^,]*\brel="?(next|prev|last)"?/g),
  ];
  const pages = found.slice(0, maxPages).flatMap(([, target = "", relation]) => {
    if (!URL.canParse(target, at.href)) return [];
    const { searchParams } = new URL(target, at.href);
    const own = [...searchParams].filter(([name, value]) => at.searchParams.get(name) !== value);
    return own.length === 0 ? [] : [`${relation}: ${own.map((pair) => pair.join("=")).join(", ")}`];
  });
  return pages.length === 0 ? [] : [text(`More pages: ${pages.join("; ")}`)];
}

function isTextual(type: string, body: Uint8Array): boolean {
  if (/^text\/|[/+](?:json|xml|javascript|yaml|x-www-form-urlencoded)$/.test(type)) return true;
  return type === "" && !body.subarray(0, 1024).includes(0);
}

const decode = (body: Uint8Array): string => new TextDecoder().decode(body);

function parse(json: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(json) };
  } catch {
    return undefined;
  }
}
