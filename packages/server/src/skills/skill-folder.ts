import { watch as watchFolder, constants } from "node:fs";
import { open, readdir, realpath, stat } from "node:fs/promises";
import { basename, extname, join, sep } from "node:path";
import { type Clock, systemClock } from "@junctor/core/async";
import { NotFoundError, SkillError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import {
  childrenOf,
  definitionOf,
  extensionIds,
  type Resource,
  type Skill,
  maxSkillBytes,
  maxSkillFiles,
  readFrontMatter,
} from "@junctor/core/mcp";
import { assertKnownKeys, keys, type KeysOf } from "@junctor/core/options";
import {
  createChanges,
  createWatches,
  emptyListing,
  Listing,
  type Offers,
  type Provider,
  toResourceContents,
} from "@junctor/core/provider";
import { resourceOffers } from "../registry/index.ts";

export interface LoadSkillsOptions {
  /** The first part of every URI, such as the name of a company: `skill://acme/refunds/SKILL.md`. None when left out. */
  readonly prefix?: string;
  /** Whether the folder is read again when something in it changes; false. */
  readonly watch?: boolean;
  /** Called when a changed folder cannot be served; the skills stay as they were. The default writes it to the standard error stream. */
  readonly onError?: (error: unknown) => void;
  readonly clock?: Clock;
}

/** A folder of skills in memory. Disposing it ends the watch. */
export interface LoadedSkills extends Provider, Disposable {
  /** Reads the folder again now. Rejects, and changes nothing, where it cannot be served. */
  reload(): Promise<void>;
}

const optionKeys: KeysOf<LoadSkillsOptions> = keys("prefix watch onError clock");

/** The folder is read again this long after the last change, because files are often written one after the other. */
const settleMs = 200;

const prefixSyntax = /^[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*$/;

/** Reads a folder of skills into memory, and again whenever something in it changes. */
export async function openSkillFolder(folder: string, options: LoadSkillsOptions): Promise<LoadedSkills> {
  assertKnownKeys("loadSkills", options, optionKeys);
  const { prefix = "", watch = false, onError = writeError, clock = systemClock } = options;
  if (prefix !== "" && (!prefixSyntax.test(prefix) || prefix.split("/").some((step) => /^\.+$/.test(step))))
    throw new TypeError(
      `loadSkills: prefix must be a name such as "acme" or "acme/team", but is ${JSON.stringify(prefix)}`,
    );
  let snapshot = await readSkillFolder(folder, prefix);
  let listings = toListings(snapshot);
  const changes = createChanges();
  const watches = createWatches();
  let underway: Promise<void> = Promise.resolve();
  const readAgain = async (): Promise<void> => {
    const next = await readSkillFolder(folder, prefix);
    const changed = findChanged(snapshot, next);
    if (changed.length === 0) return;
    const isListedAgain = JSON.stringify(next.skills) !== JSON.stringify(snapshot.skills);
    snapshot = next;
    listings = toListings(next);
    if (isListedAgain) changes.report({ part: "skills" });
    changed.forEach(watches.report);
  };
  // One after the other, so that an older snapshot never replaces a newer one.
  const reload = (): Promise<void> => (underway = underway.catch(() => {}).then(readAgain));
  const stop = watch ? follow(folder, clock, () => void reload().catch(onError)) : () => {};
  const fileAt = (uri: string): ReadFile => {
    const file = snapshot.files.get(uri);
    if (file === undefined) throw new NotFoundError("resource", uri);
    return file;
  };
  return {
    list: (part) => {
      if (part === "skills") return listings.skills as never;
      return part === "resources" ? (listings.resources as never) : emptyListing;
    },
    call: ({ method, name }) => {
      if (method === "skills/get") {
        const skill = listings.skills.get(name);
        if (skill === undefined) throw new NotFoundError("skill", name);
        return { kind: "complete", result: RawJson.fromText(`{"skill":${definitionOf(skill).text}}`) };
      }
      if (method === "resources/directory/read") {
        const files = Array.from(snapshot.files.values(), ({ resource }) => resource);
        const children = childrenOf(name, files);
        if (children === undefined) throw new NotFoundError("directory", name);
        return { kind: "complete", result: RawJson.fromValue({ resources: children }) };
      }
      const { resource, content } = fileAt(name);
      const contents = [toResourceContents(name, content, resource.mimeType)];
      return { kind: "complete", result: RawJson.fromValue({ contents }) };
    },
    watch: ({ name }, context, listener) => {
      fileAt(name);
      return watches.add(name, context, listener);
    },
    offers: () => skillOffers,
    onChange: changes.onChange,
    reload,
    [Symbol.dispose]: stop,
  };
}

const skillOffers: Offers = {
  serves: (method) =>
    resourceOffers.serves(method) ||
    method === "skills/list" ||
    method === "skills/get" ||
    method === "resources/directory/read",
  extensions: { [extensionIds.skills]: { directoryRead: true } },
};

interface Listings {
  readonly skills: Listing<Skill>;
  readonly resources: Listing<Resource>;
}

/** The resources are the `SKILL.md` of each skill. Clients find its other files in its entry, or by reading folders. */
function toListings({ skills, files }: SkillSnapshot): Listings {
  const resources = Object.freeze(skills.flatMap(({ uri }) => files.get(uri)?.resource ?? []));
  return { skills: new Listing(skills), resources: new Listing(resources) };
}

function findChanged(before: SkillSnapshot, after: SkillSnapshot): readonly string[] {
  const uris = new Set([...before.files.keys(), ...after.files.keys()]);
  return [...uris].filter((uri) => before.files.get(uri)?.digest !== after.files.get(uri)?.digest);
}

function follow(folder: string, clock: Clock, onChanged: () => void): () => void {
  let stopTimer: (() => void) | undefined;
  const watcher = watchFolder(folder, { recursive: true, persistent: false }, () => {
    stopTimer?.();
    stopTimer = clock.timer(settleMs, onChanged);
  });
  watcher.on("error", () => {}); // The folder is gone; its skills stay as they were.
  return () => {
    stopTimer?.();
    watcher.close();
  };
}

function writeError(error: unknown): void {
  console.error("Reading the skills again failed:", error);
}

/** One file in memory. */
interface ReadFile {
  readonly resource: Resource;
  readonly digest: string;
  /** Text for a file in UTF-8, else bytes. Both have exactly the bytes of the file. */
  readonly content: string | Uint8Array;
}

/** A folder of skills at one moment. */
interface SkillSnapshot {
  readonly skills: readonly Skill[];
  /** By URI. */
  readonly files: ReadonlyMap<string, ReadFile>;
}

/** Limits for all skills of one folder, which are kept in memory. */
const maxFiles = 8192;
const maxBytes = 256 * 1024 * 1024;
const maxDepth = 16;

interface FoundFile {
  /** Where it is, links resolved. */
  readonly path: string;
  /** From the folder of skills, with slashes. */
  readonly place: string;
}

/**
 * Reads a folder of skills: each folder with a `SKILL.md` is a skill, with everything below. Names that begin with a dot are left
 * out, and so is everything that is neither a file nor a folder. Rejects with a `SkillError` for a skill that cannot be served, and for a link that
 * leads out of the folder.
 */
async function readSkillFolder(folder: string, prefix: string): Promise<SkillSnapshot> {
  const root = await realpath(folder).catch((error: unknown) => {
    throw new SkillError("skill.invalid", folder, `There is no folder of skills at ${folder}`, error);
  });
  const found = await findFiles(root);
  // A folder that is itself a skill is served under its own name.
  const isSkill = found.some(({ place }) => place === "SKILL.md");
  const head = [...prefix.split("/"), ...(isSkill ? [basename(root)] : [])].filter((step) => step !== "");
  const toUri = (place: string): string =>
    `skill://${[...head, ...place.split("/")].map(encodeURIComponent).join("/")}`;
  const skillPlaces = found
    .filter(({ place }) => place === "SKILL.md" || place.endsWith("/SKILL.md"))
    .map(({ place }) => place.slice(0, -"SKILL.md".length));
  const isOfSkill = ({ place }: FoundFile): boolean => skillPlaces.some((skill) => place.startsWith(skill));
  const files = new Map<string, ReadFile>();
  const budget = { bytes: maxBytes };
  for (const skill of skillPlaces) assertFileCount(skill, found);
  for (const file of found.filter(isOfSkill))
    files.set(toUri(file.place), await readOne(file, toUri(file.place), budget));
  const skills: Skill[] = [];
  for (const place of skillPlaces) {
    const own = [...files.values()].filter(({ resource }) => resource.uri.startsWith(toUri(place)));
    skills.push(await toSkill(place === "" ? basename(root) : place, toUri(`${place}SKILL.md`), own, files));
  }
  return { skills: Object.freeze(skills), files };
}

function assertFileCount(skill: string, found: readonly FoundFile[]): void {
  const count = found.filter(({ place }) => place.startsWith(skill)).length;
  if (count <= maxSkillFiles) return;
  const text = `The skill in ${skill || "this folder"} has ${count} files; a skill may have ${maxSkillFiles}`;
  throw new SkillError("skill.too_large", skill, text);
}

async function toSkill(
  place: string,
  uri: string,
  own: readonly ReadFile[],
  files: Map<string, ReadFile>,
): Promise<Skill> {
  const manifest = files.get(uri);
  if (manifest === undefined || typeof manifest.content !== "string")
    throw new SkillError("skill.invalid", place, `SKILL.md in ${place} is not in UTF-8`);
  const bytes = own.reduce((sum, { resource: { size = 0 } }) => sum + size, 0);
  if (bytes > maxSkillBytes) {
    const text = `The skill in ${place} has ${bytes} bytes; a skill may have ${maxSkillBytes}`;
    throw new SkillError("skill.too_large", place, text);
  }
  const frontmatter = await readFrontMatter(manifest.content, `${place.replace(/\/$/, "")}/SKILL.md`);
  const { name, description } = frontmatter;
  if (basename(place) !== name) {
    const text = `The skill in ${place} is named ${name}: give its folder that name, or the skill that of its folder`;
    throw new SkillError("skill.invalid", place, text);
  }
  files.set(uri, { ...manifest, resource: { ...manifest.resource, name, description } });
  const resources = own.map(({ resource, digest }) => ({
    uri: resource.uri,
    digest,
    size: resource.size ?? 0,
  }));
  return Object.freeze({ uri, frontmatter, resources: Object.freeze(resources) });
}

/** Every regular file below a folder, in a fixed order. */
async function findFiles(root: string): Promise<readonly FoundFile[]> {
  const found: FoundFile[] = [];
  const walk = async (folder: string, place: string, above: readonly string[]): Promise<void> => {
    const all = await readdir(folder, { withFileTypes: true });
    const shown = all.filter(({ name }) => !name.startsWith("."));
    for (const entry of shown.toSorted((one, other) => (one.name < other.name ? -1 : 1))) {
      const below = `${place}${entry.name}`;
      const own = join(folder, entry.name);
      const path = entry.isSymbolicLink() ? await resolveInside(root, own, below) : own;
      const facts = entry.isSymbolicLink() ? await stat(path) : entry;
      if (facts.isFile()) found.push({ path, place: below });
      // A link to a folder above would be followed forever.
      else if (facts.isDirectory() && !above.includes(path) && above.length < maxDepth)
        await walk(path, `${below}/`, [...above, path]);
      if (found.length > maxFiles) {
        const text = `There are more than ${maxFiles} files in ${root}: serve fewer skills, or several folders`;
        throw new SkillError("skill.too_large", root, text);
      }
    }
  };
  await walk(root, "", [root]);
  return found;
}

async function resolveInside(root: string, path: string, place: string): Promise<string> {
  const real = await realpath(path).catch((error: unknown) => {
    throw new SkillError("skill.invalid", place, `${place} cannot be read: it leads nowhere`, error);
  });
  if (real === root || real.startsWith(root + sep)) return real;
  const text = `${place} is a link that leads out of the folder of skills: copy the file into it`;
  throw new SkillError("skill.outside", place, text);
}

async function readOne(
  { path, place }: FoundFile,
  uri: string,
  budget: { bytes: number },
): Promise<ReadFile> {
  // `path` is resolved, so it was not a link. A link that replaced it since is not followed.
  const file = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0));
  try {
    const { size } = await file.stat();
    if (size > maxSkillBytes) {
      const text = `${place} has ${size} bytes; a skill may have ${maxSkillBytes}`;
      throw new SkillError("skill.too_large", place, text);
    }
    const bytes = await file.readFile();
    if ((budget.bytes -= bytes.length) < 0) {
      const text = `The folder has more than ${maxBytes} bytes in its skills: serve fewer, or several folders`;
      throw new SkillError("skill.too_large", place, text);
    }
    const content = toText(bytes) ?? bytes;
    const resource: Resource = {
      uri,
      name: basename(place),
      mimeType: toMimeType(place, typeof content === "string"),
      size: bytes.length,
    };
    return {
      resource,
      digest: `sha256:${process.getBuiltinModule("node:crypto").createHash("sha256").update(bytes).digest("hex")}`,
      content,
    };
  } finally {
    await file.close();
  }
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of a file; undefined if it is not in UTF-8, because decoding would change its bytes. */
function toText(bytes: Uint8Array): string | undefined {
  try {
    const text = decoder.decode(bytes);
    return text.includes("\0") ? undefined : text;
  } catch {
    return undefined;
  }
}

const mimeTypes: { readonly [extension: string]: string } = {
  ".md": "text/markdown",
  ".json": "application/json",
  ".html": "text/html",
  ".css": "text/css",
  ".csv": "text/csv",
  ".js": "text/javascript",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".jpg": "image/jpeg",
  ".pdf": "application/pdf",
};

function toMimeType(place: string, isText: boolean): string {
  const known = mimeTypes[extname(place).toLowerCase()];
  return known ?? (isText ? "text/plain" : "application/octet-stream");
}
