// GraphQL APIs as tools: documents that fit every schema, typed arguments, and answers.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildSchema, graphql, type GraphQLSchema, parse, validate } from "graphql";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { type Client, connect } from "../../packages/client/src/index.ts";
import { parseConfig } from "../../packages/junctor/src/config/index.ts";
import { createGateway, type Gateway } from "../../packages/junctor/src/gateway/index.ts";
import { writeDocument } from "../../packages/junctor/src/sources/graphql/graphql.ts";
import { toInputSchema } from "../../packages/junctor/src/sources/graphql/schemas.ts";
import { toSchema } from "../../packages/server/src/internal.ts";
import { root } from "../source-graph.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-graphql-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const shop = `
  scalar Money
  enum Kind { BOOK GAME }
  interface Item { id: ID! title: String related(first: Int!): [Item] }
  type Book implements Item { id: ID! title: String related(first: Int!): [Item] pages: Int size: String author: Author }
  type Game implements Item { id: ID! title: String related(first: Int!): [Item] size: Int! author: String }
  type Author { name: String friend: Author books: BookConnection old: String @deprecated }
  type BookConnection { edges: [BookEdge] pageInfo: PageInfo! totalCount: Int }
  type BookEdge { node: Book cursor: String }
  type PageInfo { endCursor: String hasNextPage: Boolean! }
  union Found = Book | Game | Author
  input Filter { kind: Kind = BOOK text: String! and: [Filter!] price: Money }
  type Query {
    "Finds things."
    find(filter: Filter!, limit: Int = 10): [Found!]!
    item(id: ID!): Item
    author(name: String): Author
    version: String!
    gone: Int @deprecated
  }
  type Mutation { addBook(title: String!): Book! }
`;

function documentsOf(schema: GraphQLSchema, depth: number): readonly string[] {
  const queries = Object.values(schema.getQueryType()?.getFields() ?? {});
  const mutations = Object.values(schema.getMutationType()?.getFields() ?? {});
  return [
    ...queries.map((field) => writeDocument(schema, "query", field, depth)),
    ...mutations.map((field) => writeDocument(schema, "mutation", field, depth)),
  ];
}

describe("documents", () => {
  const github = join(root, "node_modules/@octokit/graphql-schema/schema.graphql");

  test.each([0, 1, 2, 3])("of GitHub's schema fit it at depth %i", (depth) => {
    const schema = buildSchema(readFileSync(github, "utf8"), { assumeValid: true, assumeValidSDL: true });
    const documents = documentsOf(schema, depth);
    expect(documents.length).toBeGreaterThan(200);
    expect(documents.flatMap((document) => validate(schema, parse(document)).map(String))).toEqual([]);
    // So does what is said of their arguments, which every validator can compile.
    for (const type of [schema.getQueryType(), schema.getMutationType()])
      for (const field of Object.values(type?.getFields() ?? {}))
        toSchema(toInputSchema(field.args), { what: field.name });
  });

  test.each([0, 1, 2, 3, 5])("of a schema with unions that disagree fit it at depth %i", (depth) => {
    const schema = buildSchema(shop);
    expect(documentsOf(schema, depth).flatMap((each) => validate(schema, parse(each)).map(String))).toEqual(
      [],
    );
  });

  test("ask for values first, then for what is in objects; pages are as deep as their list", () => {
    const schema = buildSchema(shop);
    const { author } = schema.getQueryType()?.getFields() ?? {};
    expect(author && writeDocument(schema, "query", author, 1)).toBe(
      "query author($name: String) { author(name: $name) { name friend { name } books { totalCount edges { cursor node { id title pages size } } pageInfo { endCursor hasNextPage } } } }",
    );
  });
});

const open: (Server | Gateway | Client)[] = [];
afterEach(async () => {
  for (const each of open.splice(0).toReversed())
    if ("listen" in each) each.close();
    else if ("callTool" in each) await each[Symbol.asyncDispose]();
    else await each.close();
});

interface Seen {
  readonly query: string;
  readonly key: unknown;
}

async function startApi(isOpen = true): Promise<{ readonly url: string; readonly seen: Seen[] }> {
  const schema = buildSchema(shop);
  const rootValue = {
    version: "7",
    author: ({ name }: { readonly name: string }) => ({ name, friend: { name: "Bob" } }),
    find: () => {
      throw new Error("out of order");
    },
    addBook: ({ title }: { readonly title: string }) => ({ id: "1", title }),
  };
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { query, variables } = JSON.parse(Buffer.concat(chunks).toString("utf8")) as {
        readonly query: string;
        readonly variables: { readonly [name: string]: unknown };
      };
      seen.push({ query, key: request.headers["x-key"] });
      response.setHeader("content-type", "application/json");
      if (!isOpen && query.includes("__schema")) return void response.writeHead(403).end("<html>no");
      void graphql({ schema, source: query, variableValues: variables, rootValue }).then((answer) =>
        response.end(JSON.stringify(answer)),
      );
    });
  });
  open.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`, seen };
}

async function start(graphqlEntry: unknown): Promise<{ readonly gateway: Gateway; readonly client: Client }> {
  const gateway = await createGateway({
    mcpServers: { shop: { graphql: graphqlEntry, headers: { "X-Key": "secret-key-9" } } },
    junctor: { remember: false },
  });
  await gateway.ready;
  const client = await connect({ server: gateway.server });
  open.push(gateway, client);
  return { gateway, client };
}

const textOf = (result: { readonly content: readonly object[] }): string =>
  result.content.map((block) => ("text" in block ? String(block.text) : "")).join("\n");

describe("a GraphQL API", () => {
  test("is a tool for each query and mutation, with typed arguments", async () => {
    const api = await startApi();
    const { client } = await start(api.url);
    const tools = await client.listTools();
    expect(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint])).toEqual([
      ["shop__find", true],
      ["shop__item", true],
      ["shop__author", true],
      ["shop__version", true],
      ["shop__addBook", false],
    ]);
    expect(tools[0]).toMatchObject({
      description: "Finds things.",
      inputSchema: {
        required: ["filter"],
        properties: { filter: { $ref: "#/$defs/Filter" }, limit: { type: ["integer", "null"], default: 10 } },
        $defs: {
          Filter: {
            required: ["text"],
            properties: { and: { type: ["array", "null"], items: { $ref: "#/$defs/Filter" } } },
          },
        },
      },
    });
    expect(await client.callTool("shop__author", { name: "Ada" })).toMatchObject({
      structuredContent: { author: { name: "Ada", friend: { name: "Bob" } } },
    });
    expect(await client.callTool("shop__addBook", { title: '"} x' })).toMatchObject({
      structuredContent: { addBook: { id: "1", title: '"} x' } },
    });
    const failed = await client.callTool("shop__find", { filter: { text: "x" } });
    expect([failed.isError, textOf(failed)]).toEqual([true, "out of order (at find)"]);
    expect(new Set(api.seen.map(({ key }) => key))).toEqual(new Set(["secret-key-9"]));
  });

  test("is one tool for any document that fits, and a search of its schema", async () => {
    const api = await startApi();
    const { client } = await start({ server: api.url, tools: "query", mutations: false });
    expect((await client.listTools()).map(({ name }) => name)).toEqual([
      "shop__query",
      "shop__search_schema",
    ]);
    const query = async (text: string): Promise<string> =>
      textOf(await client.callTool("shop__query", { query: text }));
    expect(await query("{ version }")).toBe('{"version":"7"}');
    const asked = api.seen.length;
    expect(await query("{ versio }")).toContain('Did you mean "version"');
    expect(await query("{")).toContain("Syntax Error");
    expect(await query('mutation { addBook(title: "x") { id } }')).toBe("This API can be read only");
    expect(await query("query a { version } query b { version }")).toBe("Send one operation in a document");
    expect(await query(`{ ${"version ".repeat(6000)} }`)).toContain("token");
    expect(api.seen).toHaveLength(asked);
    expect(textOf(await client.callTool("shop__search_schema", { words: "author" }))).toContain(
      "type Author {",
    );
  });

  test("that does not disclose its schema needs a file of it", async () => {
    const api = await startApi(false);
    const { gateway } = await start(api.url);
    expect(gateway.status()[0]?.reason).toContain('write "schema": "./schema.graphql"');
    const file = join(folder, "shop.graphql");
    writeFileSync(file, shop);
    const { client } = await start({ server: api.url, schema: file });
    expect(textOf(await client.callTool("shop__version", {}))).toBe('{"version":"7"}');
  });

  test.each([
    [{ graphql: {} }, "does not say where the API is"],
    [{ graphql: "./schema.graphql" }, "must be an address"],
    [{ graphql: { server: "https://x.example", depth: 9 } }, "must be a whole number from 0 to 5"],
    [{ graphql: "https://x.example", openapi: "x.json" }, "has both openapi and graphql"],
  ])("refuses %j", (entry, message) => {
    expect(() => parseConfig(JSON.stringify({ mcpServers: { api: entry } }), { file: "m", env: {} })).toThrow(
      message,
    );
  });
});
