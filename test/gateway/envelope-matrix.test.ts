import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGateway } from "../../src/gateway/gateway.ts";
import { encodeHeaderValue } from "../../src/mcp/mirrored-headers.ts";
import { listenHttp } from "../../src/transports/http/server/node.ts";
import { serveStream } from "../../src/transports/stream.ts";
import { both, initializeOf, json } from "../support/http-wire.ts";
import { RawSocket } from "../support/raw-http.ts";

// Invariants 2 and 7. Every case is a message that one reader may take for something harmless and another for something
// forbidden, or that names what is forbidden in another way. The upstreams write down all they get: nothing forbidden may
// be among it, and what does arrive must say what the gateway's reading of it says.

const fixture = fileURLToPath(new URL("../fixtures/gateway-echo.mjs", import.meta.url));
/** Begins the nonce of calls that nobody could mind. */
const honest = "honest";
const key = "a-key-of-more-than-sixteen-characters";
const meta = (name: string): string => `io.modelcontextprotocol/${name}`;

type Member = readonly [key: string, value: string];

/** One message, in pieces that are joined at the last moment. Keys and values are JSON text. */
interface Case {
  readonly name: string;
  /**
   * `refused`: nothing of it may arrive. `harmless`: it may arrive, but only as a call of `open` with these arguments.
   * `rebuilt`: it may arrive, and has nothing secret in it then.
   */
  readonly verdict: "refused" | "harmless" | "rebuilt";
  readonly method?: string;
  readonly envelope?: (members: readonly Member[]) => readonly Member[];
  readonly params?: (members: readonly Member[], nonce: string) => readonly Member[];
  readonly meta?: (members: readonly Member[]) => readonly Member[];
  /** The members of the params of this method, instead of the name and arguments of a call. */
  readonly subject?: (nonce: string) => readonly Member[];
  readonly headers?: (
    headers: readonly (readonly [string, string])[],
  ) => readonly (readonly [string, string])[];
  /** What `Mcp-Name` says. */
  readonly named?: string;
  /** Instead of the whole message. */
  readonly body?: (message: string) => string;
  readonly onlyOn?: "http" | "legacy" | "modern-http";
}

const quote = (text: string): string => JSON.stringify(text);
const join_ = (members: readonly Member[]): string => `{${members.map(([k, v]) => `${k}:${v}`).join(",")}}`;

/** The key with one character escaped that need not be. */
function escaped(name: string, at = 1): string {
  const code = name.charCodeAt(at).toString(16).padStart(4, "0");
  return `"${name.slice(0, at)}\\u${code}${name.slice(at + 1)}"`;
}

/** Other spellings of a key that some reader takes for it. */
function variantsOf(name: string): readonly string[] {
  const capital = name.replace(/[a-z]/, (letter) => letter.toUpperCase());
  const all = [
    capital,
    name.toUpperCase(),
    name.replaceAll("s", "\u017f"),
    name.replaceAll("k", "\u212a"),
    name.replaceAll("i", "\u0131"),
    name.replaceAll("i", "\u0130"),
  ];
  return [...new Set(all)].filter((variant) => variant !== name);
}

/** The given member put in every place among the others. */
function everyPlace(count: number): readonly number[] {
  return Array.from({ length: count + 1 }, (_, place) => place);
}

const insert = (members: readonly Member[], at: number, member: Member): readonly Member[] =>
  members.toSpliced(Math.min(at, members.length), 0, member);

/** Another value for each key: what an attacker would have it read as. */
const evil: { readonly [key: string]: string } = {
  jsonrpc: '"1.0"',
  id: "7",
  method: '"tools/list"',
  params: '{"name":"one__secret","arguments":{}}',
  name: '"one__secret"',
  arguments: '{"evil":true}',
  _meta: "{}",
  uri: '"note://secret"',
  requestState: '"x"',
  inputResponses: "{}",
  cursor: '"x"',
  progressToken: '"evil"',
};

function duplicateCases(): readonly Case[] {
  const cases: Case[] = [];
  for (const name of ["jsonrpc", "id", "method", "params"]) {
    for (const place of everyPlace(4)) {
      for (const [how, spelled] of [
        ["twice", quote(name)],
        ["twice, once escaped", escaped(name)],
      ] as const)
        cases.push({
          name: `${name} ${how}, the other at ${place}`,
          verdict: "refused",
          envelope: (members) => insert(members, place, [spelled, evil[name]!]),
        });
    }
    cases.push({
      name: `${name} twice, the same`,
      verdict: "refused",
      envelope: (members) => [...members, members.find(([k]) => k === quote(name))!],
    });
  }
  for (const name of ["name", "arguments", "_meta"]) {
    for (const place of everyPlace(3)) {
      for (const [how, spelled] of [
        ["twice", quote(name)],
        ["twice, once escaped", escaped(name)],
      ] as const)
        cases.push({
          name: `params.${name} ${how}, the other at ${place}`,
          verdict: "refused",
          params: (members) => insert(members, place, [spelled, evil[name]!]),
        });
    }
  }
  for (const name of ["uri", "requestState", "inputResponses", "cursor"]) {
    cases.push({
      name: `params.${name} twice`,
      verdict: "refused",
      params: (members) => [...members, [quote(name), evil[name]!], [quote(name), evil[name]!]],
    });
  }
  for (const name of ["protocolVersion", "clientCapabilities", "clientInfo", "logLevel"]
    .map(meta)
    .concat("progressToken")) {
    const value = name.endsWith("nfo") || name.endsWith("ies") ? "{}" : '"2025-11-25"';
    for (const spelled of [quote(name), escaped(name)]) {
      cases.push({
        name: `_meta.${spelled} twice`,
        verdict: "refused",
        meta: (members) => [
          [quote(name), value],
          ...members.filter(([k]) => k !== quote(name)),
          [spelled, value],
        ],
      });
    }
  }
  return cases;
}

function variantCases(): readonly Case[] {
  const cases: Case[] = [];
  const add = (path: string, name: string, edit: "envelope" | "params" | "meta"): void => {
    for (const variant of variantsOf(name)) {
      for (const spelled of [quote(variant), escaped(variant, 0)]) {
        for (const at of ["first", "last"] as const) {
          cases.push({
            name: `${path}${spelled} beside ${name}, ${at}`,
            verdict: "refused",
            [edit]: (members: readonly Member[]) =>
              insert(members, at === "first" ? 0 : members.length, [spelled, evil[name] ?? '"x"']),
          });
        }
      }
      cases.push({
        name: `${path}${variant} instead of ${name}`,
        verdict: "refused",
        [edit]: (members: readonly Member[]) =>
          members.some(([k]) => k === quote(name))
            ? members.map(([k, v]): Member => [k === quote(name) ? quote(variant) : k, v])
            : [...members, [quote(variant), evil[name] ?? '"x"'] as const],
      });
    }
  };
  for (const name of ["jsonrpc", "id", "method", "params"]) add("", name, "envelope");
  for (const name of ["name", "arguments", "_meta"]) add("params.", name, "params");
  for (const name of ["progressToken", meta("protocolVersion"), meta("clientCapabilities")])
    add("_meta.", name, "meta");
  return cases;
}

const inherited = ["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "__defineGetter__"];

function prototypeCases(): readonly Case[] {
  const forged =
    '{"name":"one__secret","arguments":{"evil":true},"method":"tools/list","hide":false,"allow":["*"]}';
  const cases: Case[] = [];
  for (const name of inherited) {
    for (const spelled of [quote(name), escaped(name, 2)]) {
      const own = [spelled, forged] as const;
      cases.push(
        { name: `${spelled} in the message`, verdict: "harmless", envelope: (members) => [own, ...members] },
        { name: `${spelled} in params`, verdict: "harmless", params: (members) => [own, ...members] },
        { name: `${spelled} in _meta`, verdict: "harmless", meta: (members) => [...members, own] },
        {
          name: `${spelled} in arguments`,
          verdict: "harmless",
          params: (members, nonce) => withArguments(members, `{"nonce":"${nonce}",${spelled}:${forged}}`),
        },
      );
    }
    cases.push({
      name: `params without a name, which ${name} has`,
      verdict: "refused",
      params: (members) => [...members.filter(([k]) => k !== '"name"'), [quote(name), forged]],
    });
  }
  return cases;
}

const withArguments = (members: readonly Member[], args: string): readonly Member[] =>
  members.map(([k, v]) => [k, k === '"arguments"' ? args : v]);

/** Other ways to write the name of what is forbidden. */
function spellingsOf(publicName: string, ownName: string): readonly (readonly [string, string])[] {
  const [prefix = ""] = publicName.split("__");
  const plain: readonly string[] = [
    publicName,
    ownName,
    ...["_", "___", "-", ".", "/", ":", "::", " ", "", "\u2017", "\uff3f\uff3f"].map(
      (s) => `${prefix}${s}${ownName}`,
    ),
    `__${ownName}`,
    `${prefix}__${prefix}__${ownName}`,
    `two__${ownName}`,
    `two__${publicName}`,
    `/${publicName}`,
    `../${publicName}`,
    `./${publicName}`,
    `tools/${publicName}`,
    `mcp__${publicName}`,
    ...[" ", "\t", "\n", "\r\n", "\u0000", "\u200b", "\u00a0", "\ufeff", "\u0301", "#", "?x=1", ";", "*"].map(
      (s) => `${publicName}${s}`,
    ),
    ...[" ", "\u0000", "\u200b", "\ufeff", "*"].map((s) => `${s}${publicName}`),
    `${publicName}\u0000open`,
    `one__open\u0000${ownName}`,
    `one__open,${publicName}`,
    publicName.toUpperCase(),
    publicName[0]!.toUpperCase() + publicName.slice(1),
    `${prefix}__${ownName.toUpperCase()}`,
    `${prefix}__${ownName[0]!.toUpperCase()}${ownName.slice(1)}`,
    publicName.replace("s", "\u017f"),
    publicName.replace("o", "\u043e"),
    publicName.replaceAll("e", "\u0435"),
    publicName.replace(/[a-z]/, (c) => String.fromCodePoint(c.charCodeAt(0) + 0xfee0)),
    publicName.replaceAll("_", "%5F"),
    publicName.replace(/[a-z]$/, (c) => `%${c.charCodeAt(0).toString(16)}`),
    encodeURIComponent(`${publicName} `),
    `=?base64?${Buffer.from(publicName).toString("base64")}?=`,
    `*${ownName.slice(1)}`,
    `${prefix}__*`,
    `\u202e${Array.from(publicName).toReversed().join("")}`,
    createHash("sha256").update(publicName).digest("hex").slice(0, 8),
  ];
  const spelled = plain.map((name): readonly [string, string] => [name, quote(name)]);
  // The same name, written otherwise in JSON: it is forbidden as that name.
  const escapes = [
    Array.from(publicName)
      .map((c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`)
      .join(""),
    Array.from(publicName)
      .map((c) => `\\u${c.charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")}`)
      .join(""),
  ].map((text): readonly [string, string] => [publicName, `"${text}"`]);
  const all = [
    ...spelled,
    ...escapes,
    [publicName, escaped(publicName, 3)],
    [publicName, escaped(publicName, 0)],
  ] as const;
  // Not every name has the letters that some of these are about.
  return [...new Map(all.map((one) => [one[1], one])).values()];
}

function toolCases(): readonly Case[] {
  const cases: Case[] = [];
  for (const [publicName, ownName] of [
    ["one__secret", "secret"],
    ["one__rm_all", "rm_all"],
    ["one__old", "old"],
  ] as const) {
    for (const [name, spelled] of spellingsOf(publicName, ownName)) {
      cases.push({
        name: `tool ${publicName} as ${spelled}`,
        verdict: "refused",
        named: name,
        params: (members) => members.map(([k, v]) => [k, k === '"name"' ? spelled : v]),
      });
    }
  }
  for (const name of inherited) {
    cases.push({
      name: `tool ${name}`,
      verdict: "refused",
      named: name,
      params: (members) => members.map(([k, v]) => [k, k === '"name"' ? quote(name) : v]),
    });
  }
  for (const [what, value] of [
    ["a number", "1"],
    ["null", "null"],
    ["an array", '["one__secret"]'],
    ["an object", '{"toString":"one__secret"}'],
  ] as const) {
    cases.push({
      name: `tool whose name is ${what}`,
      verdict: "refused",
      params: (members) => members.map(([k, v]) => [k, k === '"name"' ? value : v]),
    });
  }
  return cases;
}

function headerCases(): readonly Case[] {
  const swap =
    (name: string, ...values: readonly string[]): NonNullable<Case["headers"]> =>
    (headers) => [...headers.filter(([k]) => k !== name), ...values.map((value) => [name, value] as const)];
  const secretBody: NonNullable<Case["params"]> = (members) =>
    members.map(([k, v]) => [k, k === '"name"' ? '"one__secret"' : v]);
  const encoded = `=?base64?${Buffer.from("one__secret").toString("base64")}?=`;
  const onlyOn = "modern-http";
  return [
    {
      name: "Mcp-Name of an open tool, body of a secret one",
      headers: swap("mcp-name", "one__open"),
      params: secretBody,
    },
    { name: "Mcp-Name of a secret tool, body of an open one", headers: swap("mcp-name", "one__secret") },
    { name: "Mcp-Name of a secret tool in base64", headers: swap("mcp-name", encoded) },
    { name: "Mcp-Name twice, the secret one last", headers: swap("mcp-name", "one__open", "one__secret") },
    { name: "Mcp-Name twice, the secret one first", headers: swap("mcp-name", "one__secret", "one__open") },
    { name: "no Mcp-Name", headers: swap("mcp-name") },
    { name: "no Mcp-Name, secret body", headers: swap("mcp-name"), params: secretBody },
    { name: "Mcp-Name in other case", headers: swap("mcp-name", "ONE__OPEN") },
    { name: "Mcp-Method of a list", headers: swap("mcp-method", "tools/list") },
    {
      name: "Mcp-Method of a list, secret body",
      headers: swap("mcp-method", "tools/list"),
      params: secretBody,
    },
    { name: "Mcp-Method twice", headers: swap("mcp-method", "tools/list", "tools/call") },
    { name: "no Mcp-Method", headers: swap("mcp-method") },
    { name: "MCP-Protocol-Version of the other era", headers: swap("mcp-protocol-version", "2025-11-25") },
    { name: "no MCP-Protocol-Version", headers: swap("mcp-protocol-version") },
  ].map((given) => ({ verdict: "refused", onlyOn, ...given }) as const);
}

function smuggleCases(): readonly Case[] {
  const call = '{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"secret","arguments":{}}}';
  const cases: Case[] = [];
  for (const [what, end] of [
    ["LF", "\n"],
    ["CR", "\r"],
    ["CR LF", "\r\n"],
    ["LF LF", "\n\n"],
  ] as const) {
    const list = `[1,${end}${call}${end},2]`;
    cases.push(
      {
        name: `a call on a line of its own in arguments, after ${what}`,
        verdict: "harmless",
        params: (members, nonce) => withArguments(members, `{"nonce":"${nonce}","x":${list}}`),
      },
      {
        name: `a call on a line of its own in _meta, after ${what}`,
        verdict: "harmless",
        meta: (members) => [...members, ['"x/list"', list]],
      },
      {
        name: `a call on a line of its own in a foreign member of params, after ${what}`,
        verdict: "harmless",
        params: (members) => [...members, ['"x-list"', list]],
      },
      {
        name: `a call on a line of its own beside the message's members, after ${what}`,
        verdict: "harmless",
        envelope: (members) => [...members, ['"x-list"', list]],
      },
    );
  }
  const secret = (nonce: string): string => `{"name":"one__secret","arguments":{"nonce":"${nonce}"}}`;
  cases.push(
    {
      name: "a batch with a secret call in it",
      verdict: "refused",
      onlyOn: "legacy",
      body: (m) => `[${toSecret(m)}]`,
    },
    { name: "a batch of a batch", verdict: "refused", onlyOn: "legacy", body: (m) => `[[${toSecret(m)}]]` },
    {
      name: "the message twice, one secret",
      verdict: "refused",
      onlyOn: "http",
      body: (m) => `${m}${toSecret(m)}`,
    },
    { name: "a BOM before a secret call", verdict: "refused", body: (m) => `\ufeff${toSecret(m)}` },
    {
      name: "a request that is a response too",
      verdict: "refused",
      envelope: (members) => [...members, ['"result"', "{}"]],
    },
    {
      name: "a request that is an error too",
      verdict: "refused",
      envelope: (members) => [...members, ['"error"', '{"code":1,"message":"x"}']],
    },
    {
      name: "params that are an array",
      verdict: "refused",
      envelope: (m) => replace(m, "params", '["one__secret",{}]'),
    },
    {
      name: "params that are a string",
      verdict: "refused",
      envelope: (m) => replace(m, "params", quote(secret("x"))),
    },
    {
      name: "arguments that are an array",
      verdict: "refused",
      params: (m) => replace(m, "arguments", "[1]"),
    },
    {
      name: "arguments that are a string",
      verdict: "refused",
      params: (m) => replace(m, "arguments", '"{}"'),
    },
    {
      name: "a method with a space",
      verdict: "refused",
      envelope: (m) => replace(m, "method", '"tools/call "'),
    },
    {
      name: "a method in capitals",
      verdict: "refused",
      envelope: (m) => replace(m, "method", '"TOOLS/CALL"'),
    },
    {
      name: "a method with a slash before it",
      verdict: "refused",
      envelope: (m) => replace(m, "method", '"/tools/call"'),
    },
    {
      name: "the method __proto__",
      verdict: "refused",
      envelope: (m) => replace(m, "method", '"__proto__"'),
    },
    {
      name: "the method constructor",
      verdict: "refused",
      envelope: (m) => replace(m, "method", '"constructor"'),
    },
  );
  return cases;
}

const replace = (members: readonly Member[], name: string, value: string): readonly Member[] =>
  members.map(([k, v]) => [k, k === quote(name) ? value : v]);

const toSecret = (message: string): string => message.replace('"one__open"', '"one__secret"');

/** Prompts, resources, templates and completion, which a policy of the gateway or of a key is about too. */
function facetCases(): readonly Case[] {
  const cases: Case[] = [];
  const add = (
    method: string,
    what: string,
    named: string,
    subject: NonNullable<Case["subject"]>,
    more: Partial<Case> = {},
  ): void =>
    void cases.push({ name: `${method} of ${what}`, verdict: "refused", method, named, subject, ...more });
  for (const [name, spelled] of spellingsOf("one__secret", "secret"))
    add("prompts/get", `prompt ${spelled}`, name, () => [['"name"', spelled]]);
  for (const name of inherited) add("prompts/get", `prompt ${name}`, name, () => [['"name"', quote(name)]]);
  const uris = [
    "note://secret",
    "NOTE://secret",
    "Note://secret",
    "note://secret/",
    "note://secret#x",
    "note://secret?x",
    "note://%73ecret",
    "note://secre%74",
    "note://%73%65%63%72%65%74",
    "note://./%73ecret",
    "note://x/../%73ecret",
    "note:///%73ecret",
    "note:%2F%2Fsecret",
    " note://secret",
    "note://secret ",
    "note://secret\u0000",
    "note://one__secret",
    "one__note://secret",
    "secret://x",
    "SECRET://x",
    "secret:x",
    "two__note://secret",
    ...inherited,
  ];
  for (const uri of uris) {
    add("resources/read", `resource ${quote(uri)}`, uri, () => [['"uri"', quote(uri)]]);
    add("resources/subscribe", `resource ${quote(uri)}`, uri, () => [['"uri"', quote(uri)]], {
      onlyOn: "legacy",
    });
  }
  add("resources/read", "resource note://secret, escaped", "note://secret", () => [
    ['"uri"', escaped("note://secret", 7)],
  ]);
  const refs = [
    '{"type":"ref/prompt","name":"one__secret"}',
    '{"type":"ref/prompt","name":"secret"}',
    '{"type":"ref/prompt","name":"one__open","name":"one__secret"}',
    '{"type":"ref/prompt","name":"one__secret","name":"one__open"}',
    '{"type":"ref/resource","uri":"note://secret"}',
    '{"type":"ref/resource","uri":"secret://{name}"}',
    '{"type":"ref/resource","uri":"secret://x"}',
    '{"type":"ref/prompt","__proto__":{"name":"one__secret"}}',
  ];
  for (const ref of refs) {
    // What is read last is what is meant, and what is sent on is written anew.
    const verdict = ref.endsWith('"one__open"}') ? "rebuilt" : "refused";
    add(
      "completion/complete",
      ref,
      "",
      (nonce) => [
        ['"ref"', ref],
        ['"argument"', `{"name":"topic","value":"${nonce}"}`],
      ],
      { verdict },
    );
  }
  return cases;
}

const callCases = [
  ...duplicateCases(),
  ...variantCases(),
  ...prototypeCases(),
  ...toolCases(),
  ...headerCases(),
  ...smuggleCases(),
];

/** How something is forbidden. */
interface PolicySpec {
  readonly name: string;
  readonly junctor: object;
  readonly headers: readonly (readonly [string, string])[];
  readonly caller?: string;
  readonly hasFacets: boolean;
}

const hidden = { secret: { hide: true }, rm_all: { hide: true }, old: { name: "renamed" } };
const renamed = { old: { name: "renamed" } };
const policies: readonly PolicySpec[] = [
  {
    name: "hidden by the config",
    junctor: { servers: { one: { tools: hidden }, two: { tools: hidden } } },
    headers: [],
    hasFacets: false,
  },
  {
    name: "denied by a glob of the server",
    junctor: {
      servers: {
        one: { deny: ["sec*", "rm_*"], tools: renamed },
        two: { deny: ["s?cret", "*_all"], tools: hidden },
      },
    },
    headers: [],
    hasFacets: false,
  },
  {
    name: "denied by a glob of the gateway",
    junctor: { deny: ["*secret*", "*rm_*"], servers: { one: { tools: renamed }, two: { tools: hidden } } },
    headers: [],
    hasFacets: true,
  },
  {
    name: "denied to a key",
    junctor: {
      keys: { alice: { env: "ALICE", deny: ["*secret*", "*rm_*"] } },
      servers: { one: { tools: renamed }, two: { tools: hidden } },
    },
    headers: [["authorization", `Bearer ${key}`]],
    caller: "alice",
    hasFacets: true,
  },
];

/** A client at one front of the gateway, in one era: sends text, resolves with the text of the answer. */
interface Front {
  readonly name: string;
  readonly isModern: boolean;
  readonly isHttp: boolean;
  send(body: string, headers: readonly (readonly [string, string])[]): Promise<string>;
}

interface Stage {
  readonly fronts: ReadonlyMap<string, Front>;
  /** What arrived behind the gateway since it was last asked. */
  arrived(): readonly string[];
  close(): Promise<void>;
}

async function setStage(policy: PolicySpec): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "junctor-matrix-"));
  const files = ["one", "two"].map((name) => join(folder, name));
  for (const file of files) writeFileSync(file, "");
  const http = spawn(process.execPath, [fixture, "--http", "--era=modern", `--record=${files[1]}`], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [port] = (await once(http.stdout, "data")) as [Buffer];
  const gateway = await createGateway(
    {
      mcpServers: {
        one: { command: process.execPath, args: [fixture, `--record=${files[0]}`] },
        two: { url: `http://127.0.0.1:${Number(port.toString())}/mcp` },
      },
      junctor: policy.junctor,
    },
    { env: { ALICE: key } },
  );
  const { authenticate } = gateway;
  const listener = await listenHttp(gateway.server, {
    port: 0,
    ...(authenticate === undefined ? {} : { authenticate }),
  });
  await gateway.ready;
  expect(gateway.status().map(({ status }) => status)).toEqual(["up", "up"]);

  const sockets: RawSocket[] = [];
  const pipes: PassThrough[] = [];
  const fronts = [
    httpFront("http modern", true, undefined),
    await legacyHttpFront(),
    pipeFront("stdio modern", true),
    await legacyPipeFront(),
  ];
  const offsets = files.map(() => 0);
  return {
    fronts: new Map(fronts.map((front) => [front.name, front])),
    arrived: () =>
      files.flatMap((file, index) => {
        const { text, end } = readFrom(file, offsets[index]!);
        offsets[index] = end;
        const raw = text
          .split("\n")
          .flatMap((line) => (line === "" ? [] : [(JSON.parse(line) as { raw: string }).raw]));
        return raw.filter((message) => !message.includes(`"nonce":"${honest}-`));
      }),
    close: async () => {
      for (const socket of sockets) socket[Symbol.dispose]();
      for (const pipe of pipes) pipe.end();
      await listener.close();
      await gateway.close();
      http.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };

  function httpFront(name: string, isModern: boolean, session: string | undefined): Front {
    return {
      name,
      isModern,
      isHttp: true,
      send: async (body, headers) => {
        const socket = new RawSocket(listener.port);
        sockets.push(socket);
        const own = session === undefined ? [] : ([["mcp-session-id", session]] as const);
        const usual = [["content-type", json] as const, ["accept", both] as const, ...policy.headers, ...own];
        const reply = await socket.send({ headers: [...usual, ...headers], body }).complete;
        socket[Symbol.dispose]();
        sockets.pop();
        return reply.isStream ? reply.events.map(({ data }) => data ?? "").join("\n") : reply.body;
      },
    };
  }

  async function legacyHttpFront(): Promise<Front> {
    const socket = new RawSocket(listener.port);
    sockets.push(socket);
    const headers = [["content-type", json] as const, ["accept", both] as const, ...policy.headers];
    const body = JSON.stringify(initializeOf("2025-03-26"));
    const reply = await socket.send({ headers, body }).complete;
    return httpFront("http legacy", false, reply.headers["mcp-session-id"]);
  }

  function pipeFront(name: string, isModern: boolean): Front {
    const input = new PassThrough();
    const output = new PassThrough();
    pipes.push(input);
    void serveStream(
      gateway.server,
      input,
      output,
      policy.caller === undefined ? {} : { caller: policy.caller },
    );
    let text = "";
    let heard = (): void => {};
    output.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      heard();
    });
    let marks = 0;
    return {
      name,
      isModern,
      isHttp: false,
      // Not everything is answered. When honest calls that were sent after it are, it has been dealt with.
      send: async (body) => {
        text = "";
        input.write(`${body}\n`);
        const _meta = isModern
          ? { [meta("protocolVersion")]: "2026-07-28", [meta("clientCapabilities")]: {} }
          : {};
        // Several times, because what goes over HTTP may be overtaken.
        const own = /"id":(\d+)/.exec(body)?.[1];
        for (let round = 0; round < 4 && !text.includes(`"id":${own},`); round++) {
          for (const server of ["one", "two"]) {
            const id = `${honest}-${++marks}`;
            const params = { name: `${server}__open`, arguments: { nonce: id }, _meta };
            input.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params })}\n`);
            await new Promise<void>((resolve) => {
              heard = () => text.includes(`"id":"${id}"`) && resolve();
              heard();
            });
          }
        }
        const lines = text.split("\n");
        // The answer to what was sent before may come only now.
        const isForeign = (line: string): boolean => {
          const id = /"id":("?[\w-]+)/.exec(line)?.[1];
          return id !== undefined && !body.includes(`:${id}`);
        };
        return lines.filter((line) => !isForeign(line)).join("\n");
      },
    };
  }

  async function legacyPipeFront(): Promise<Front> {
    const front = pipeFront("stdio legacy", false);
    await front.send(JSON.stringify(initializeOf("2025-03-26")), []);
    return front;
  }
}

function readFrom(file: string, offset: number): { readonly text: string; readonly end: number } {
  const descriptor = openSync(file, "r");
  try {
    const pieces: Buffer[] = [];
    let end = offset;
    for (;;) {
      const piece = Buffer.alloc(64 * 1024);
      const length = readSync(descriptor, piece, 0, piece.length, end);
      if (length === 0) return { text: Buffer.concat(pieces).toString("utf8"), end };
      pieces.push(piece.subarray(0, length));
      end += length;
    }
  } finally {
    closeSync(descriptor);
  }
}

let nextId = 1000;

/** The message of a case as a client of this front would write it. */
function write(
  given: Case,
  { isModern, isHttp }: Front,
  nonce: string,
): {
  readonly body: string;
  readonly headers: readonly (readonly [string, string])[];
  readonly args: string;
} {
  // Each its own: what is still being worked on would have its id refused for that reason alone.
  const id = nextId++;
  const own: readonly Member[] = isModern
    ? [
        [quote(meta("protocolVersion")), '"2026-07-28"'],
        [quote(meta("clientCapabilities")), "{}"],
      ]
    : [];
  const inMeta = given.meta === undefined ? own : given.meta(own);
  const subject: readonly Member[] = given.subject?.(nonce) ?? [
    ['"name"', '"one__open"'],
    ['"arguments"', `{"nonce":"${nonce}"}`],
  ];
  const base: readonly Member[] = [...subject, ['"_meta"', join_(inMeta)]];
  const params = given.params === undefined ? base : given.params(base, nonce);
  const args = params.find(([k]) => k === '"arguments"')?.[1] ?? "";
  const method = given.method ?? "tools/call";
  const message: readonly Member[] = [
    ['"jsonrpc"', '"2.0"'],
    ['"id"', String(id)],
    ['"method"', quote(method)],
    ['"params"', join_(params)],
  ];
  const whole = join_(given.envelope === undefined ? message : given.envelope(message));
  const body = given.body === undefined ? whole : given.body(whole);
  const usual =
    isModern && isHttp
      ? [
          ["mcp-protocol-version", "2026-07-28"] as const,
          ["mcp-method", method] as const,
          ...(method === "completion/complete"
            ? []
            : [["mcp-name", encodeHeaderValue(given.named ?? "one__open")] as const]),
        ]
      : [];
  return { body, headers: given.headers === undefined ? usual : given.headers(usual), args };
}

function fits({ onlyOn }: Case, { isModern, isHttp }: Pick<Front, "isModern" | "isHttp">): boolean {
  if (onlyOn === "http") return isHttp;
  if (onlyOn === "legacy") return !isModern;
  return onlyOn === undefined || (isModern && isHttp);
}

const frontSpecs = [
  { name: "http modern", isModern: true, isHttp: true },
  { name: "http legacy", isModern: false, isHttp: true },
  { name: "stdio modern", isModern: true, isHttp: false },
  { name: "stdio legacy", isModern: false, isHttp: false },
] as const;

const matrix = policies.flatMap((policy) =>
  frontSpecs.flatMap((front) =>
    [...callCases, ...(policy.hasFacets ? facetCases() : [])].filter((given) => fits(given, front)),
  ),
);

test(`the matrix has ${matrix.length} cases`, () => {
  expect(matrix.length).toBeGreaterThanOrEqual(1000);
  const names = [...callCases, ...facetCases()].map(({ name }) => name);
  expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
});

/** What the upstream's own business is, and not a caller's. */
const housekeeping = new Set([
  "initialize",
  "notifications/initialized",
  "server/discover",
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "subscriptions/listen",
  "ping",
  "logging/setLevel",
]);

interface Arrived {
  readonly method?: string;
  readonly params?: { readonly name?: string; readonly arguments?: unknown; readonly uri?: string };
}

for (const policy of policies) {
  describe(`what is ${policy.name}`, () => {
    let stage: Stage;
    beforeAll(async () => {
      stage = await setStage(policy);
      stage.arrived();
    });
    afterAll(() => stage?.close());

    for (const spec of frontSpecs) {
      describe(`at ${spec.name}`, () => {
        test("an honest call arrives", async () => {
          const front = stage.fronts.get(spec.name)!;
          const { body, headers } = write({ name: "a call", verdict: "harmless" }, front, "nonce-1");
          expect(await front.send(body, headers)).toContain("called open");
          expect(stage.arrived().filter((raw) => raw.includes("nonce-1"))).toHaveLength(1);
        });

        const cases = [...callCases, ...(policy.hasFacets ? facetCases() : [])].filter((given) =>
          fits(given, spec),
        );
        test.for(cases.map((given): [string, Case] => [given.name, given]))("%s", async ([, given]) => {
          const front = stage.fronts.get(spec.name)!;
          const nonce = `nonce-${Math.random()}`;
          const { body, headers, args } = write(given, front, nonce);
          const answer = await front.send(body, headers);
          const arrived = stage
            .arrived()
            .filter((raw) => !housekeeping.has((JSON.parse(raw) as Arrived).method ?? ""));
          if (given.verdict === "refused") {
            expect(arrived, `sent ${body}; answered ${answer}`).toEqual([]);
            expect(answer).not.toContain('"result"');
            return;
          }
          if (given.verdict === "rebuilt") return expect(arrived.join()).not.toContain("secret");
          for (const raw of arrived) {
            const { method, params } = JSON.parse(raw) as Arrived;
            expect({ method, name: params?.name }, `sent on: ${raw}`).toEqual({
              method: "tools/call",
              name: "open",
            });
            expect(raw).toContain(`"arguments":${args.replaceAll(/[\n\r]/g, " ")}`);
            expect(
              Object.keys(params ?? {}).filter((name) => !["_meta", "arguments", "name"].includes(name)),
            ).toEqual([]);
          }
          expect(arrived.length).toBeLessThanOrEqual(1);
        });
      });
    }
  });
}
