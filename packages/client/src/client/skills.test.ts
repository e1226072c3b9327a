import { createHash } from "node:crypto";
import { afterEach, describe, expect, test } from "vitest";
import { NotFoundError } from "../../../core/src/errors/index.ts";
import { RawJson } from "../../../core/src/json/raw.ts";
import type { Skill } from "../../../core/src/mcp/skill.ts";
import { type CallContext, createCallContext } from "../../../core/src/provider/context.ts";
import { emptyListing, Listing } from "../../../core/src/provider/listing.ts";
import type { Operation, Outcome, Provider } from "../../../core/src/provider/provider.ts";
import { connectForTest } from "../../../junctor/src/testing/connect-for-test.ts";
import { createVirtualClock } from "../../../junctor/src/testing/virtual-clock.ts";
import { createRegistry } from "../../../server/src/registry/registry.ts";

const uri = "skill://acme/pdf/SKILL.md";
const forms = "skill://acme/pdf/references/FORMS.md";
const manifest = "---\nname: pdf\ndescription: Fills in forms\n---\nBody\n";
const digestOf = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`;
const fileOf = (at: string, text: string) => ({ uri: at, digest: digestOf(text), size: text.length });
const entry: Skill = {
  uri,
  frontmatter: { name: "pdf", description: "Fills in forms" },
  resources: [fileOf(uri, manifest), fileOf(forms, "Forms.\n")],
};

/** A server of skills that may lie, and the files that were read. */
function serveSkills(
  listed: unknown,
  files: { readonly [uri: string]: string },
  more: { readonly [method: string]: (operation: Operation, context: CallContext) => Promise<object> } = {},
) {
  const reads: string[] = [];
  const answer = async (operation: Operation, context: CallContext): Promise<object> => {
    const { method, name } = operation;
    const own = more[method];
    if (own !== undefined) return own(operation, context);
    if (method === "skills/get") throw new NotFoundError("skill", name);
    reads.push(name);
    const text = files[name];
    if (text === undefined) throw new NotFoundError("resource", name);
    return { contents: [{ uri: name, text }] };
  };
  const served = new Set([
    "skills/list",
    "skills/get",
    "resources/list",
    "resources/read",
    ...Object.keys(more),
  ]);
  const directory = served.has("resources/directory/read") ? { directoryRead: true } : {};
  const skills: Provider = {
    list: (part) =>
      part === "skills" ? (new Listing(listed as readonly Skill[]) as Listing<never>) : emptyListing,
    call: async (operation, context): Promise<Outcome> => ({
      kind: "complete",
      result: RawJson.fromValue(await answer(operation, context)),
    }),
    offers: () => ({
      serves: (method) => served.has(method),
      extensions: { "io.modelcontextprotocol/skills": directory },
    }),
  };
  return { reads, registry: createRegistry({ skills }) };
}

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each[Symbol.asyncDispose]()));
});
async function open(provider: Provider, revision?: "2025-06-18") {
  const client = await connectForTest(provider, revision === undefined ? {} : { revision });
  opened.push(client);
  return client;
}

describe.each([[undefined], ["2025-06-18" as const]])("a client of revision %s", (revision) => {
  test("lists skills without reading a file, loads one, and reads its files when asked", async () => {
    const { registry, reads } = serveSkills([entry], { [uri]: manifest, [forms]: "Forms.\n" });
    const client = await open(registry, revision);
    const listed: string[] = [];
    for await (const skill of client.skills.list()) listed.push(skill.uri);
    expect([listed, reads]).toEqual([[uri], []]);
    const skill = await client.skills.load(uri);
    expect(skill).toMatchObject({ uri, text: manifest, isVerified: true });
    expect(skill.origin).not.toBe("");
    expect(reads).toEqual([uri]);
    expect(await skill.read("references/FORMS.md")).toBe("Forms.\n");
    expect(await skill.read(forms)).toBe("Forms.\n");
  });

  test("refuses files that the skill does not list, before anything is sent", async () => {
    const { registry, reads } = serveSkills([entry], { [uri]: manifest, "skill://acme/pdf/more.md": "x" });
    const client = await open(registry, revision);
    const skill = await client.skills.load(entry);
    for (const file of ["more.md", "../other/SKILL.md", "file:///etc/passwd", "/etc/passwd", ""])
      await expect(skill.read(file)).rejects.toMatchObject({ code: "skill.unlisted" });
    expect(reads).toEqual([uri]);
  });

  test("a server without skills lists none", async () => {
    const client = await open(createRegistry(), revision);
    expect(await client.skills.listSkills()).toEqual([]);
    await expect(client.skills.getSkill(uri)).rejects.toThrow("Skill not found");
  });
});

test.each([
  ["another size", { ...entry, resources: [{ ...fileOf(uri, manifest), size: 3 }] }, "3"],
  [
    "another digest",
    { ...entry, resources: [{ ...fileOf(uri, manifest), digest: digestOf("x") }] },
    "digest",
  ],
  [
    "another front matter",
    { ...entry, frontmatter: { ...entry.frontmatter, allowed: true } },
    "front matter",
  ],
])("a SKILL.md with %s is not used", async (_, listed, reason) => {
  const { registry, reads } = serveSkills([listed], { [uri]: manifest });
  const client = await open(registry);
  const [skill] = await client.skills.listSkills();
  await expect(client.skills.load(skill ?? "")).rejects.toThrow(reason);
  await expect(client.skills.load(uri)).rejects.toMatchObject({ code: "skill.unverified" });
  expect(new Set(reads)).toEqual(new Set([uri]));
});

test.each([
  [{ ...entry, uri: "skill://acme/other/SKILL.md" }],
  [{ ...entry, uri: "skill://acme/pdf" }],
  [{ ...entry, frontmatter: { name: "pdf" } }],
  [{ ...entry, resources: "none" }],
  [{ ...entry, resources: [fileOf(forms, "x")] }],
  [{ ...entry, resources: [fileOf(uri, manifest), fileOf(uri, manifest)] }],
  [{ ...entry, resources: [fileOf(uri, manifest), fileOf("skill://acme/pdf/../x/SKILL.md", "x")] }],
  [{ ...entry, resources: [fileOf(uri, manifest), fileOf("skill://acme/pdf/%2e%2e/x", "x")] }],
  [
    {
      ...entry,
      resources: Array.from({ length: 600 }, (_, index) => fileOf(`skill://acme/pdf/${index}`, "x")),
    },
  ],
  [{ ...entry, resources: [{ ...fileOf(uri, manifest), size: 17 * 1024 * 1024 }] }],
  [{ ...entry, resources: [{ uri, digest: "md5:1", size: 1 }] }],
])("an entry that is not a skill is left out: %j", async (wrong) => {
  const { registry } = serveSkills([wrong, entry], {});
  const client = await open(registry);
  expect((await client.skills.listSkills()).map(({ resources }) => resources)).toEqual([entry.resources]);
});

test("a skill whose files are made when they are read is loaded without digests, and says so", async () => {
  const dynamic: Skill = { ...entry, resources: "dynamic" };
  const files = { [uri]: manifest, "skill://acme/pdf/today.md": "now" };
  const { registry } = serveSkills([], files, { "skills/get": async () => ({ skill: dynamic }) });
  const client = await open(registry);
  const skill = await client.skills.load(uri);
  expect(skill.isVerified).toBe(false);
  expect(await skill.read("today.md")).toBe("now");
  await expect(skill.read("../secret")).rejects.toMatchObject({ code: "skill.unlisted" });
});

test("a filter of resources takes away the skills that have one of those it takes", async () => {
  const { registry } = serveSkills(
    [entry],
    { [uri]: manifest },
    { "skills/get": async () => ({ skill: entry }) },
  );
  const { withMiddleware } = await import("../../../core/src/provider/middleware.ts");
  const guarded = withMiddleware(registry, [
    {
      filterTools: (items, _, part) =>
        part === "resources" ? items.filter((item) => !("uri" in item) || item.uri !== forms) : items,
    },
  ]);
  const client = await open(guarded);
  expect(await client.skills.listSkills()).toEqual([]);
  await expect(client.skills.getSkill(uri)).rejects.toThrow("Skill not found");
});

test("redaction takes away a skill that says a secret", async () => {
  const { registry } = serveSkills([entry], {}, { "skills/get": async () => ({ skill: entry }) });
  const [{ withMiddleware }, { redact }] = await Promise.all([
    import("../../../core/src/provider/middleware.ts"),
    import("../../../server/src/middleware/redact.ts"),
  ]);
  const client = await open(withMiddleware(registry, [redact({ patterns: [/Fills/] })]));
  expect(await client.skills.listSkills()).toEqual([]);
});

test("a request for a skill or a folder that is given up is cancelled at the server", async () => {
  const underway = new Set<string>();
  const never = (what: string, { signal }: CallContext): Promise<never> => {
    underway.add(what);
    return new Promise((_, reject) => {
      signal.addEventListener("abort", () => {
        underway.delete(what);
        reject(signal.reason as Error);
      });
    });
  };
  const { registry } = serveSkills(
    [],
    {},
    {
      "skills/get": (_, context) => never("skill", context),
      "resources/directory/read": (_, context) => never("folder", context),
    },
  );
  // Time stands still, so no limit ends the requests.
  await using client = await connectForTest(registry, { clock: createVirtualClock() });
  const stopping = new AbortController();
  const context = createCallContext({ signal: stopping.signal });
  const asked = [client.skills.getSkill(uri, context), client.skills.readDirectory("skill://acme", context)];
  const ended = Promise.allSettled(asked);
  await expect.poll(() => [...underway].toSorted()).toEqual(["folder", "skill"]);
  stopping.abort(new Error("The caller is gone"));
  expect((await ended).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  await expect.poll(() => [...underway]).toEqual([]);
});
