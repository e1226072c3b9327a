import { existsSync, readdirSync, readFileSync } from "node:fs";
import { extname, join, relative, sep } from "node:path";

/** A file of the page, ready to be sent. */
export interface PageFile {
  readonly type: string;
  readonly body: Uint8Array;
  /** Whether its name changes with its content. */
  readonly isImmutable: boolean;
}

const types: { readonly [extension: string]: string } = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".ico": "image/x-icon",
  ".json": "application/json",
  ".woff2": "font/woff2",
};

/**
 * The files of the page by their paths, read once: what a request names is looked up among them and never opened. Undefined when
 * there is no page in the folder.
 */
export function readPage(folder: string): ReadonlyMap<string, PageFile> | undefined {
  if (!existsSync(join(folder, "index.html"))) return undefined;
  const files = new Map<string, PageFile>();
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const type = types[extname(entry.name)];
    if (!entry.isFile() || type === undefined) continue;
    const path = join(entry.parentPath, entry.name);
    const name = `/${relative(folder, path).split(sep).join("/")}`;
    const file = { type, body: readFileSync(path), isImmutable: name.startsWith("/assets/") };
    files.set(name, file);
    if (name === "/index.html") files.set("/", file);
  }
  return files;
}
