import { createHash } from "node:crypto";

export const meta = (name: string): string => `io.modelcontextprotocol/${name}`;

export type Member = readonly [key: string, value: string];

/** One message, in pieces that are joined at the last moment. Keys and values are JSON text. */
export interface Case {
  readonly name: string;
  /** `refused`: nothing of it may arrive. `harmless`: it may arrive, but only as a call of `open` with these arguments. */
  readonly verdict: "refused" | "harmless";
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

export const quote = (text: string): string => JSON.stringify(text);
export const joinMembers = (members: readonly Member[]): string =>
  `{${members.map(([k, v]) => `${k}:${v}`).join(",")}}`;

/** The key with one character escaped that need not be. */
export function escaped(name: string, at = 1): string {
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

export function duplicateCases(): readonly Case[] {
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

export function variantCases(): readonly Case[] {
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

export const inherited: readonly string[] = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "__defineGetter__",
];

export function prototypeCases(): readonly Case[] {
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

export const withArguments = (members: readonly Member[], args: string): readonly Member[] =>
  members.map(([k, v]) => [k, k === '"arguments"' ? args : v]);

/** Other ways to write the name of what is forbidden. */
export function spellingsOf(publicName: string, ownName: string): readonly (readonly [string, string])[] {
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

export function toolCases(): readonly Case[] {
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

export function headerCases(): readonly Case[] {
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
