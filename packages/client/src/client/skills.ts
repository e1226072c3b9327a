import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { type Clock, waitFor, createSlices } from "@junctor/core/async";
import { NotFoundError, SkillError } from "@junctor/core/errors";
import { fitResource } from "@junctor/core/fit";
import { joinJson, prependMembers, type RawJson, withoutMembers } from "@junctor/core/json";
import {
  declaredExtension,
  definitionOf,
  extensionIds,
  type FrontMatter,
  maxSkillBytes,
  parseSkill,
  type Skill,
  skillFolderOf,
  type Resource,
  type ResourceContents,
  type ServerCapabilities,
  readFrontMatter,
} from "@junctor/core/mcp";
import { createOperation, type Operation, type Outcome, toParams } from "@junctor/core/provider";
import { type Fetched, KeptList, type PlainRequest, walkPages } from "./lists.ts";
import type { ReadOptions, Reads } from "./reads.ts";

/** The skills of a server. The list of a server without skills is empty. */
export interface ClientSkills {
  listSkills(options?: ReadOptions): Promise<readonly Skill[]>;
  /** The entry of the skill whose `SKILL.md` has this URI. */
  getSkill(uri: string, options?: ReadOptions): Promise<Skill>;
  /** The direct children of a folder. */
  readDirectory(uri: string, options?: ReadOptions): Promise<readonly Resource[]>;
  /** Every usable skill that the server lists. Reads no file. */
  list(options?: ReadOptions): AsyncIterable<Skill>;
  /**
   * Reads the `SKILL.md` of a skill, and no other file. Pass the listed entry, or its URI. Rejects with a `SkillError` if size,
   * digest or front matter differ from the entry.
   *
   * @example
   * for await (const { uri } of client.skills.list()) console.log(uri);
   * const skill = await client.skills.load("skill://acme/refunds/SKILL.md");
   * await skill.read("references/FORMS.md");
   */
  load(skill: string | Skill, options?: ReadOptions): Promise<LoadedSkill>;
}

/** A skill whose `SKILL.md` was read and matches its entry. */
export interface LoadedSkill {
  readonly uri: string;
  readonly frontmatter: FrontMatter;
  /** The whole of its `SKILL.md`. */
  readonly text: string;
  /** The server it comes from: a URL or a command. */
  readonly origin: string;
  /** Whether its files are checked by digests; false for a skill whose files are made when they are read. */
  readonly isVerified: boolean;
  /**
   * Reads one of its files, by the path from its folder or by its URI: text if the server sent text, else bytes. Rejects with a
   * `SkillError` for a file that the skill does not list, before anything is sent, and for one that differs from its entry.
   */
  read(file: string, options?: ReadOptions): Promise<string | Uint8Array>;
}

interface SkillsOptions {
  readonly request: PlainRequest;
  readonly capabilities: () => Promise<ServerCapabilities>;
  readonly readResource: Reads["readResource"];
  /** The name of the server in messages. */
  readonly target: string;
  readonly clock: Clock;
  readonly onWarning: (text: string) => void;
}

const limits = { maxPages: 1000, maxItems: 10_000, maxBytes: 8 * 1024 * 1024 };

/** A list of more bytes than this is expensive to read: it is fetched again only after `longMs`, whatever its server says. */
const longBytes = 256 * 1024;
const longMs = 10_000;

/** The skills of a server: for programs that use it, and for compositions. */
export class ServerSkills {
  readonly #options: SkillsOptions;
  readonly kept: KeptList<Skill>;
  /** The last list that was long, or failed after much of it was read. */
  #long: { readonly list: Promise<Fetched<Skill>>; readonly until: number } | undefined;

  constructor(options: SkillsOptions) {
    this.#options = options;
    this.kept = new KeptList<Skill>(() => this.#fetch(), options.clock);
  }

  readonly skills: ClientSkills = {
    listSkills: async (given = {}) => (await waitFor(this.kept.get(), given)).items,
    getSkill: (uri, given) => this.#getSkill(uri, given),
    readDirectory: async (uri, given) => {
      const operation = createOperation("resources/directory/read", uri);
      return (await this.#readFolder(operation, this.#requestWith(given))).children;
    },
    load: (skill, given = {}) => this.#load(skill, given),
    list: (given = {}) => this.#list(given),
  };

  /** Serves `skills/get` and `resources/directory/read` by requests that `ask` sends. Returns all pages of a folder at once. */
  async call(operation: Operation, ask: PlainRequest): Promise<Outcome> {
    if (operation.method === "skills/get") {
      const result = await this.#get(operation, ask);
      toSkill(result); // Throws for an entry that cannot be used.
      return { kind: "complete", result };
    }
    const { children, answer } = await this.#readFolder(operation, ask);
    const listed = children.flatMap((child, index) => [index === 0 ? "" : ",", definitionOf(child)]);
    return { kind: "complete", result: answer ?? joinJson(['{"resources":[', ...listed, "]}"]) };
  }

  async #settings(): Promise<{ readonly directoryRead?: unknown } | undefined> {
    const { extensions } = await this.#options.capabilities();
    return declaredExtension(extensions === undefined ? {} : { extensions }, extensionIds.skills);
  }

  #requestWith({ signal }: ReadOptions = {}): PlainRequest {
    return (method, params) => this.#options.request(method, params, { signal });
  }

  async #fetch(): Promise<Fetched<Skill>> {
    if ((await this.#settings()) === undefined) return noSkills;
    if (this.#long !== undefined && this.#options.clock.now() < this.#long.until) return this.#long.list;
    const { request, clock, onWarning } = this.#options;
    let bytes = 0;
    const ask = async (params: RawJson | undefined): Promise<RawJson> => {
      const page = await request("skills/list", params);
      bytes += page.byteLength;
      return page;
    };
    const walk = async (): Promise<Fetched<Skill>> => {
      const { items, hints } = await walkPages(ask, "skills", limits);
      return { items: await parseSkills(items, onWarning), faults: [], ttlMs: hints.ttlMs, hints };
    };
    const list = walk();
    const error = await list.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (bytes <= longBytes) return list;
    this.#long = { list, until: clock.now() + longMs };
    if (error instanceof Error) onWarning(`The list of skills cannot be used: ${error.message}`);
    return list;
  }

  async *#list(given: ReadOptions): AsyncIterable<Skill> {
    yield* (await waitFor(this.kept.get(), given)).items;
  }

  async #get(operation: Operation, ask: PlainRequest): Promise<RawJson> {
    if ((await this.#settings()) === undefined) throw new NotFoundError("skill", operation.name);
    return ask(operation.method, toParams(operation));
  }

  /** Gets the entry of a skill. Behind a gateway the entry's own URI may differ from `uri`. */
  async #getSkill(uri: string, given?: ReadOptions): Promise<Skill> {
    return toSkill(await this.#get(createOperation("skills/get", uri), this.#requestWith(given)));
  }

  /** All children of a folder, and the answer that they came in if it can be passed on unchanged. */
  async #readFolder(
    operation: Operation,
    send: PlainRequest,
  ): Promise<{ readonly children: readonly Resource[]; readonly answer: RawJson | undefined }> {
    const { method, name } = operation;
    if ((await this.#settings())?.directoryRead !== true) throw new NotFoundError("directory", name);
    const first = withoutMembers(toParams(operation), ["cursor"]);
    const answers: RawJson[] = [];
    const ask = async (next: RawJson | undefined): Promise<RawJson> => {
      const cursor = next?.at("cursor");
      const params = cursor === undefined ? first : prependMembers(`"cursor":${cursor.text}`, first);
      const answer = await send(method, params);
      answers.push(answer);
      return answer;
    };
    const { items } = await walkPages(ask, "resources", limits);
    const fits = items.map(fitResource);
    const isWhole = answers.length === 1 && fits.every((fit) => fit.kind === "fit" && fit.notes.length === 0);
    const children = fits.flatMap((fit) => (fit.kind === "unfit" ? [] : [fit.item]));
    return { children, answer: isWhole ? answers[0] : undefined };
  }

  /** Reads a file of a skill. Checks it against its entry, if the skill lists its files. */
  async #readFile(skill: Skill, uri: string, given: ReadOptions): Promise<string | Uint8Array> {
    const { resources } = skill;
    const entry = resources === "dynamic" ? undefined : resources.find((file) => file.uri === uri);
    if (entry === undefined && resources !== "dynamic")
      throw new SkillError(
        "skill.unlisted",
        uri,
        `${uri} was not read: the skill ${skill.uri} does not list it`,
      );
    const { contents } = await this.#options.readResource(uri, given);
    const content = contents.length === 1 ? contents[0] : contents.find((candidate) => candidate.uri === uri);
    const bytes = toBytes(content);
    if (bytes === undefined) throw unverified(uri, "the server sent no content");
    if (bytes.length > maxSkillBytes) throw unverified(uri, `it has more than ${maxSkillBytes} bytes`);
    if (entry?.size !== undefined && bytes.length !== entry.size)
      throw unverified(uri, `it has ${bytes.length} bytes, and the skill says ${entry.size}`);
    const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
    if (entry !== undefined && digest !== entry.digest)
      throw unverified(uri, `its digest is ${digest}, and the skill says ${entry.digest}`);
    return content !== undefined && "text" in content && typeof content.text === "string"
      ? content.text
      : bytes;
  }

  async #load(skillOrUri: string | Skill, readOptions: ReadOptions): Promise<LoadedSkill> {
    const known = typeof skillOrUri === "string" ? this.kept.last?.get(skillOrUri) : parseSkill(skillOrUri);
    const skill = known ?? (await this.#getSkill(skillOrUri as string));
    const { uri, frontmatter } = skill;
    const content = await this.#readFile(skill, uri, readOptions);
    const text = typeof content === "string" ? content : Buffer.from(content).toString("utf8");
    if (!isDeepStrictEqual(await readFrontMatter(text, uri), frontmatter))
      throw unverified(uri, "its front matter is another than the one listed");
    const folder = skillFolderOf(uri) ?? uri;
    return {
      uri,
      frontmatter,
      text,
      origin: this.#options.target,
      isVerified: skill.resources !== "dynamic",
      read: async (file, more = {}) => this.#readFile(skill, toFileUri(file, folder), more),
    };
  }
}

const noSkills: Fetched<Skill> = {
  items: [],
  faults: [],
  ttlMs: 0,
  hints: { ttlMs: 0, cacheScope: "private" },
};

function toSkill(answer: RawJson): Skill {
  return parseSkill(answer.at("skill")?.value);
}

/** At most this many omitted entries of one list are reported. */
const maxReportedFaults = 100;

/** The usable entries, the first of each URI. Other work has its turn while a long list is read. */
async function parseSkills(
  items: readonly RawJson[],
  onWarning: (text: string) => void,
): Promise<readonly Skill[]> {
  const skills = new Map<string, Skill>();
  const pause = createSlices();
  let faults = 0;
  for (const item of items) {
    const turn = pause();
    if (turn !== undefined) await turn;
    try {
      const skill = parseSkill(item.value);
      if (!skills.has(skill.uri)) skills.set(skill.uri, skill);
    } catch (error) {
      if (!(error instanceof SkillError)) throw error;
      if (faults++ < maxReportedFaults) onWarning(`Left out of skills/list: ${error.message}`);
    }
  }
  return [...skills.values()];
}

/** The URI of a path in the folder of a skill. Throws for a path that leads out of the folder. */
function toFileUri(file: string, folder: string): string {
  if (file.startsWith(`${folder}/`)) return file;
  const steps = file.replace(/^\.\//, "").split("/");
  const isPath = !/^[a-z][a-z0-9+.-]*:/i.test(file) && !steps.some((step) => /^\.{0,2}$/.test(step));
  if (isPath) return `${folder}/${steps.map(encodeURIComponent).join("/")}`;
  throw new SkillError(
    "skill.unlisted",
    file,
    `${file} was not read: it is not a file of the skill in ${folder}`,
  );
}

function toBytes(content: ResourceContents | undefined): Uint8Array | undefined {
  const { text, blob } = (content ?? {}) as { readonly text?: unknown; readonly blob?: unknown };
  if (typeof text === "string") return Buffer.from(text, "utf8");
  return typeof blob === "string" ? Buffer.from(blob, "base64") : undefined;
}

function unverified(uri: string, why: string): SkillError {
  const text = `${uri} must not be used: ${why}. List the skills again; if it stays so, do not trust the server`;
  return new SkillError("skill.unverified", uri, text);
}
