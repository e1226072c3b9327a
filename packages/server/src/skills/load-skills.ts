import { watch as watchFolder } from "node:fs";
import { type Clock, systemClock } from "@junctor/core/async";
import { NotFoundError } from "@junctor/core/errors";
import { RawJson } from "@junctor/core/json";
import { childrenOf, definitionOf, extensionIds, type Resource, type Skill } from "@junctor/core/mcp";
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
import { type ReadFile, readSkillFolder, type SkillSnapshot } from "./read-folder.ts";

export interface LoadSkillsOptions {
  /** The first part of every URI, such as the name of a company: `skill://acme/refunds/SKILL.md`. None when left out. */
  readonly prefix?: string;
  /** Whether the folder is read again when something in it changes; false. */
  readonly watch?: boolean;
  /** Called when a changed folder cannot be served; the skills stay as they were. The default writes it to the standard error stream. */
  readonly onError?: (error: unknown) => void;
  readonly clock?: Clock;
}

const optionKeys: KeysOf<LoadSkillsOptions> = keys("prefix watch onError clock");

/** A folder of skills in memory. Disposing it ends the watch. */
export interface LoadedSkills extends Provider, Disposable {
  /** Reads the folder again now. Rejects, and changes nothing, where it cannot be served. */
  reload(): Promise<void>;
}

/** Files are often written one after the other. */
const settleMs = 200;

const prefixSyntax = /^[A-Za-z0-9._~-]+(?:\/[A-Za-z0-9._~-]+)*$/;

/**
 * Reads a folder of skills, for `createRegistry({ skills })`. The files are kept as they were read, so digests describe what is served.
 * Rejects with a `SkillError` that names the file and says what to do.
 *
 * @example
 * const skills = await loadSkills("./skills", { prefix: "acme", watch: true });
 * await serveStdio(createServer(createRegistry({ skills }), { name: "acme", version: "1.0.0" }));
 */
export async function loadSkills(folder: string, options: LoadSkillsOptions = {}): Promise<LoadedSkills> {
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
    const isListedAnew = JSON.stringify(next.skills) !== JSON.stringify(snapshot.skills);
    snapshot = next;
    listings = toListings(next);
    if (isListedAnew) changes.report({ part: "skills" });
    changed.forEach(watches.report);
  };
  /** One after the other, so that an older snapshot never replaces a newer one. */
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

/** A list of resources has the `SKILL.md` of each skill; their files are found by those, or by reading folders. */
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
