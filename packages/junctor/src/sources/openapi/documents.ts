import { readFile, realpath, stat } from "node:fs/promises";
import { dirname, relative, resolve, isAbsolute, sep } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** A JSON object of a specification: untrusted. */
export interface Fields {
  readonly [name: string]: unknown;
}

/** A value of a specification, and the document that its references are relative to. */
export interface Located<T = unknown> {
  readonly value: T;
  readonly at: URL;
}

/** Reads the text of an address that is not a file. */
type FetchText = (url: URL, signal: AbortSignal) => Promise<string>;

const maxBytes = 32 * 1024 * 1024;
/** YAML is a hundred times slower to read than JSON, and nothing else runs meanwhile. */
const maxYamlBytes = 2 * 1024 * 1024;
const maxDocuments = 500;
const maxHops = 32;

export function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The documents of a specification: the one it begins with, and those its references lead to. Files are read below the folder of the
 * first one only, wherever links lead.
 */
export class Documents {
  readonly #known = new Map<string, unknown>();
  readonly #problems = new Map<string, string>();
  readonly #fetchText: FetchText;
  #bytes = 0;
  #folder: string | undefined;

  constructor(fetchText: FetchText) {
    this.#fetchText = fetchText;
  }

  /** Reads a document and all that it refers to. Rejects when the document itself cannot be read. */
  async load(root: URL, signal: AbortSignal, given?: unknown): Promise<Located> {
    if (root.protocol === "file:") this.#folder = await realpath(dirname(fileURLToPath(root)));
    const value = given ?? (await this.#read(root, signal));
    this.#known.set(root.href, value);
    let waiting = this.#findOthers({ value, at: root });
    while (waiting.length > 0) {
      const next: Located[] = [];
      for (const url of waiting) {
        if (this.#known.has(url.href) || this.#problems.has(url.href)) continue;
        try {
          if (this.#known.size >= maxDocuments)
            throw new Error(`it refers to more than ${maxDocuments} documents`);
          const found = await this.#read(url, signal);
          this.#known.set(url.href, found);
          next.push({ value: found, at: url });
        } catch (error) {
          signal.throwIfAborted();
          this.#problems.set(url.href, error instanceof Error ? error.message : String(error));
        }
      }
      waiting = next.flatMap((each) => this.#findOthers(each));
    }
    return { value, at: root };
  }

  /** Where a reference leads, by way of other references too. Throws for one that leads nowhere. */
  follow<T = unknown>(located: Located): Located<T> {
    let current = located;
    for (let hops = 0; hops < maxHops; hops++) {
      const { value } = current;
      if (!isFields(value) || typeof value["$ref"] !== "string") return current as Located<T>;
      current = this.resolve(value["$ref"], current.at);
    }
    throw new Error(`its reference ${this.#nameOf(located)} leads in a circle`);
  }

  /** What one reference means. */
  resolve(reference: string, at: URL): Located {
    const url = toUrl(reference, at);
    const pointer = decode(url.hash.slice(1));
    url.hash = "";
    const problem = this.#problems.get(url.href);
    if (problem !== undefined) throw new Error(`its reference ${reference} cannot be read: ${problem}`);
    let value = this.#known.get(url.href);
    for (const part of pointer === "" ? [] : pointer.replace(/^\//, "").split("/")) {
      const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
      const isThere = typeof value === "object" && value !== null && Object.hasOwn(value, key);
      value = isThere ? (value as Fields)[key] : undefined;
    }
    if (value === undefined) throw new Error(`its reference ${reference} leads nowhere`);
    return { value, at: url };
  }

  #nameOf({ value }: Located): string {
    return isFields(value) ? String(value["$ref"]) : "";
  }

  /** The other documents that a document refers to. */
  #findOthers({ value, at }: Located): readonly URL[] {
    const found = new Map<string, URL>();
    const waiting: unknown[] = [value];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (typeof next !== "object" || next === null) continue;
      const { $ref } = next as { readonly $ref?: unknown };
      if (typeof $ref === "string" && !$ref.startsWith("#") && URL.canParse($ref, at.href)) {
        const url = toUrl($ref, at);
        url.hash = "";
        found.set(url.href, url);
      }
      for (const inner of Object.values(next))
        if (typeof inner === "object" && inner !== null) waiting.push(inner);
    }
    return [...found.values()];
  }

  async #read(url: URL, signal: AbortSignal): Promise<unknown> {
    const text = url.protocol === "file:" ? await this.#readFile(url) : await this.#fetchText(url, signal);
    this.#bytes += text.length;
    if (this.#bytes > maxBytes) throw new Error(`it has more than ${maxBytes} bytes, with all it refers to`);
    return parseText(text);
  }

  async #readFile(url: URL): Promise<string> {
    if (this.#folder === undefined) throw new Error("a file is not read for a specification from elsewhere");
    const path = await realpath(fileURLToPath(url));
    const way = relative(this.#folder, path);
    if (isAbsolute(way) || way.split(sep)[0] === "..")
      throw new Error("it is outside of the folder of the specification");
    const { size } = await stat(path);
    if (size > maxBytes) throw new Error(`it has ${size} bytes: at most ${maxBytes} are read`);
    return readFile(path, "utf8");
  }
}

/** The address of a specification that a person wrote: a URL, or a path. */
export function toSpecUrl(spec: string): URL {
  return /^https?:\/\//i.test(spec) ? new URL(spec) : pathToFileURL(resolve(spec));
}

function toUrl(reference: string, at: URL): URL {
  if (!URL.canParse(reference, at.href))
    throw new Error(`its reference ${reference.slice(0, 200)} is not an address`);
  return new URL(reference, at);
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function parseText(given: string): Promise<unknown> {
  // Comments above the JSON, as in a config.
  const text = given.replace(/^\ufeff?(?:\s*\/\/[^\n]*\n)*/, "");
  const trimmed = text.trimStart();
  if (trimmed.startsWith("{") || trimmed.startsWith("[")) {
    try {
      return JSON.parse(text) as unknown;
    } catch (error) {
      // YAML may begin like that too.
      if (text.length > maxYamlBytes) throw error;
    }
  }
  if (trimmed.startsWith("<")) throw new Error("it is HTML or XML, and not JSON or YAML");
  if (text.length > maxYamlBytes)
    throw new Error(
      `it is YAML of ${text.length} bytes: at most ${maxYamlBytes} are read. Convert it to JSON`,
    );
  const { parse } = await import("yaml");
  return parse(text, { maxAliasCount: 1000, logLevel: "silent", uniqueKeys: false }) as unknown;
}
