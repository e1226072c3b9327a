// Schemas made to hurt those who compile, follow or apply them. `node bombs.mjs --serve NAME` is a legacy server on standard streams
// with one tool of that name and schema.

import { createInterface } from "node:readline";

const nest = (depth, inner) => {
  let schema = inner;
  for (let level = 0; level < depth; level++) schema = { type: "object", properties: { a: schema } };
  return schema;
};
const doubling = (depth) => {
  const definitions = {};
  for (let level = 0; level < depth; level++)
    definitions[`d${level}`] = {
      anyOf: [{ $ref: `#/$defs/d${level + 1}` }, { $ref: `#/$defs/d${level + 1}` }],
    };
  definitions[`d${depth}`] = { type: "string" };
  return definitions;
};
const many = (count, toSchema) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, toSchema(index)]));

/** Each schema, and the text of arguments that go with it. */
export const bombs = {
  nested: [nest(5000, { type: "string" }), "{}"],
  wide: [{ type: "object", properties: many(20_000, () => ({ type: "string" })) }, "{}"],
  required: [{ type: "object", required: Array.from({ length: 20_000 }, (_, index) => `p${index}`) }, "{}"],
  enumeration: [
    {
      type: "object",
      properties: { a: { enum: Array.from({ length: 50_000 }, (_, index) => `v${index}`) } },
    },
    '{"a":"v49999"}',
  ],
  redos: [
    { type: "object", properties: { a: { type: "string", pattern: "^(a+)+$" } } },
    `{"a":"${"a".repeat(40)}!"}`,
  ],
  "redos-keys": [{ type: "object", patternProperties: { "^(a|a)*$": {} } }, `{"${"a".repeat(40)}!":1}`],
  doubling: [{ type: "object", properties: { a: { $ref: "#/$defs/d0" } }, $defs: doubling(30) }, '{"a":1}'],
  recursion: [{ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } }, "{}"],
  self: [{ type: "object", properties: { a: { $ref: "#" } } }, `${'{"a":'.repeat(200)}{}${"}".repeat(200)}`],
  remote: [{ type: "object", properties: { a: { $ref: "http://127.0.0.1:9/schema.json" } } }, '{"a":1}'],
  "all-of": [
    {
      type: "object",
      allOf: Array.from({ length: 5000 }, () => ({ properties: { a: { type: "string" } } })),
    },
    '{"a":"x"}',
  ],
  "one-of": [
    {
      type: "object",
      properties: { a: { oneOf: Array.from({ length: 5000 }, (_, index) => ({ minimum: index })) } },
    },
    '{"a":4000}',
  ],
  unique: [
    { type: "object", properties: { a: { type: "array", uniqueItems: true } } },
    JSON.stringify({ a: Array.from({ length: 20_000 }, (_, index) => ({ index })) }),
  ],
  dynamic: [{ $dynamicRef: "#meta", $defs: { meta: { $dynamicAnchor: "meta", type: "object" } } }, "{}"],
  prototype: [
    JSON.parse(
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"object"}}}',
    ),
    '{"constructor":{}}',
  ],
  code: [{ type: "object", properties: { 'a");process.exit(7);("': { type: "string" } } }, "{}"],
  format: [
    { type: "object", properties: { a: { type: "string", format: "regex" } } },
    `{"a":"${"(".repeat(5000)}"}`,
  ],
  dialect: [{ $schema: "http://example.com/unknown-dialect", type: "object" }, "{}"],
};

const served = process.argv[process.argv.indexOf("--serve") + 1];
if (process.argv.includes("--serve")) {
  const write = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  createInterface({ input: process.stdin }).on("line", (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    const serverInfo = { name: "bombs", version: "1.0.0" };
    if (method === "initialize")
      return write({
        id,
        result: { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo },
      });
    if (method === "tools/list")
      return write({
        id,
        result: { tools: [{ name: served, inputSchema: bombs[served][0] }] },
      });
    if (method === "tools/call")
      return write({ id, result: { content: [{ type: "text", text: "called" }] } });
    if (method === "ping") return write({ id, result: {} });
    write({ id, error: { code: -32601, message: "Method not found" } });
  });
}
