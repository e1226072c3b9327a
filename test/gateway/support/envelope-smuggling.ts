import {
  type Case,
  escaped,
  inherited,
  type Member,
  quote,
  spellingsOf,
  withArguments,
} from "./envelope-cases.ts";

export function smuggleCases(): readonly Case[] {
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
export function facetCases(): readonly Case[] {
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
    add("completion/complete", ref, "", (nonce) => [
      ['"ref"', ref],
      ['"argument"', `{"name":"topic","value":"${nonce}"}`],
    ]);
  }
  const open = '{"type":"ref/prompt","name":"one__open"}';
  for (const key of ['"ref"', '"Ref"', '"r\\u0065f"'])
    add("completion/complete", `two references, the first as ${key}`, "", (nonce) => [
      [key, '{"type":"ref/prompt","name":"one__secret"}'],
      ['"ref"', open],
      ['"argument"', `{"name":"topic","value":"${nonce}"}`],
    ]);
  return cases;
}
