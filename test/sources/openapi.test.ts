// APIs as tools: what is read of a description, what is sent, what comes back, and what is refused.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { type Client, connect } from "../../packages/client/src/index.ts";
import { toAgreedPart } from "../../packages/junctor/src/config/edits.ts";
import { parseConfig } from "../../packages/junctor/src/config/index.ts";
import { createGateway } from "../../packages/junctor/src/gateway/index.ts";
import { fromOpenApi, type OpenApiOptions } from "../../packages/junctor/src/sources/index.ts";
import { createServer as createMcpServer } from "../../packages/server/src/index.ts";

const folder = realpathSync(mkdtempSync(join(tmpdir(), "junctor-openapi-")));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

/** An API that answers as a test wants, and what it was asked. */
async function startApi(
  answer: (seen: Seen, response: ServerResponse) => void = (seen, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ ok: true, url: seen.url }));
  },
): Promise<{ readonly url: string; readonly seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { method = "", url = "", headers } = request;
      const one = { method, url, headers, body: Buffer.concat(chunks).toString("utf8") };
      seen.push(one);
      answer(one, response);
    });
  });
  servers.push(server);
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

async function open(spec: object | string, options: OpenApiOptions = {}): Promise<Client> {
  const registry = await fromOpenApi(spec, options);
  return connect({ server: createMcpServer(registry, { name: "api", version: "1" }) });
}

const spec = (paths: object, more: object = {}): object => ({
  openapi: "3.0.3",
  info: { title: "t", version: "1" },
  paths,
  ...more,
});
const textOf = (result: { readonly content: readonly object[] }): string =>
  result.content.map((block) => ("text" in block ? String(block.text) : "")).join("\n");

describe("an operation", () => {
  test("is a tool with a name, hints, typed arguments and the schema of its answer", async () => {
    const pet = {
      type: "object",
      required: ["name"],
      properties: {
        id: { type: "integer", readOnly: true },
        name: { type: "string" },
        kind: { type: "string", nullable: true, enum: ["cat", "dog"] },
        parent: { $ref: "#/components/schemas/Pet" },
      },
    };
    const json = { "application/json": { schema: { $ref: "#/components/schemas/Pet" } } };
    const client = await open(
      spec(
        {
          "/pets/{id}": {
            parameters: [{ name: "id", in: "path", required: true, schema: { type: "integer" } }],
            put: {
              operationId: "pets/replace",
              summary: "Replaces a pet",
              requestBody: { required: true, content: json },
              responses: { 200: { description: "ok", content: json } },
            },
            get: { summary: "One pet", responses: {} },
            delete: { operationId: "gone", deprecated: true, responses: {} },
          },
        },
        { components: { schemas: { Pet: pet } } },
      ),
    );
    const tools = await client.listTools();
    expect(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint])).toEqual([
      ["get_pets_id", true],
      ["pets_replace", false],
    ]);
    expect(tools[1]).toMatchObject({
      description: "Replaces a pet",
      inputSchema: {
        required: ["id", "body"],
        properties: { id: { type: "integer" }, body: { $ref: "#/$defs/Pet" } },
        $defs: {
          Pet: {
            required: ["name"],
            properties: {
              name: { type: "string" },
              kind: { type: ["string", "null"], enum: ["cat", "dog", null] },
              parent: { $ref: "#/$defs/Pet" },
            },
          },
        },
      },
      outputSchema: { type: "object", properties: { id: { type: "integer" } } },
    });
    expect(JSON.stringify(tools[1]?.inputSchema)).not.toContain("readOnly");
  });

  test("sends parameters in their styles and places", async () => {
    const api = await startApi();
    const query = (name: string, more: object): object => ({ name, in: "query", schema: {}, ...more });
    const parameters = [
      { name: "id", in: "path", required: true, schema: { type: "string" } },
      { name: "list", in: "path", required: true, style: "matrix", explode: true, schema: { type: "array" } },
      { name: "point", in: "path", required: true, style: "label", schema: { type: "object" } },
      query("plain", {}),
      query("many", {}),
      query("csv", { explode: false }),
      query("piped", { style: "pipeDelimited", explode: false }),
      query("filter[name]", {}),
      query("deep", { style: "deepObject", explode: true }),
      query("json", { content: { "application/json": { schema: {} } } }),
      { name: "X-Trace", in: "header", schema: { type: "string" } },
      { name: "Authorization", in: "header", schema: { type: "string" } },
      { name: "theme", in: "cookie", schema: { type: "string" } },
    ];
    const client = await open(
      spec({ "/a/{id}/{list}/{point}": { get: { operationId: "all", parameters } } }),
      {
        server: `${api.url}/v1/`,
        headers: { authorization: "Bearer mine" },
        query: { key: "k 1" },
        fixed: { plain: "always" },
      },
    );
    const [tool] = await client.listTools();
    expect(Object.keys(tool?.inputSchema.properties ?? {})).not.toContain("plain");
    expect(Object.keys(tool?.inputSchema.properties ?? {})).not.toContain("Authorization");
    await client.callTool("all", {
      id: "a/b ?#%é",
      list: [1, "x y"],
      point: { x: 1, y: 2 },
      many: ["a&b", "c"],
      csv: ["a,b", "c"],
      piped: ["a", "b"],
      filter_name: "=",
      deep: { a: { b: 1 }, c: [2] },
      json: { d: 1 },
      "X-Trace": "t",
      theme: "dark; x=1",
    });
    const [{ url, headers } = { url: "", headers: {} as Seen["headers"] }] = api.seen;
    expect(url).toBe(
      "/v1/a/a%2Fb%20%3F%23%25%C3%A9/;list=1;list=x%20y/.x,1,y,2?plain=always&many=a%26b&many=c&csv=a%2Cb,c&piped=a%7Cb&filter%5Bname%5D=%3D&deep[a][b]=1&deep[c][]=2&json=%7B%22d%22%3A1%7D&key=k%201",
    );
    expect(headers).toMatchObject({
      authorization: "Bearer mine",
      "x-trace": "t",
      cookie: "theme=dark%3B%20x%3D1",
    });
  });

  test.each([
    ["..", "means another path"],
    [".", "means another path"],
    ["", "is empty"],
  ])("refuses %j in a path", async (id, message) => {
    const api = await startApi();
    const parameters = [{ name: "id", in: "path", required: true, schema: { type: "string" } }];
    const client = await open(spec({ "/a/{id}/x": { get: { operationId: "one", parameters } } }), {
      server: api.url,
    });
    const result = await client.callTool("one", { id });
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain(message);
    expect(api.seen).toEqual([]);
  });

  test("sends bodies as JSON, forms, parts and bytes", async () => {
    const api = await startApi();
    const body = (type: string, schema: object): object => ({
      requestBody: { required: true, content: { [type]: { schema } } },
    });
    const file = {
      type: "object",
      properties: { name: { type: "string" }, data: { type: "string", format: "binary" } },
    };
    const client = await open(
      spec({
        "/json": { post: { operationId: "json", ...body("application/vnd.x+json", { type: "object" }) } },
        "/form": {
          post: { operationId: "form", ...body("application/x-www-form-urlencoded", { type: "object" }) },
        },
        "/parts": { post: { operationId: "parts", ...body("multipart/form-data", file) } },
        "/bytes": {
          post: {
            operationId: "bytes",
            ...body("application/octet-stream", { type: "string", format: "binary" }),
          },
        },
      }),
      { server: api.url },
    );
    await client.callTool("json", { body: { a: 1 } });
    await client.callTool("form", { body: { a: "x y&z", b: [1, 2] } });
    await client.callTool("parts", { body: { name: 'n"\r\nx', data: btoa("bytes") } });
    await client.callTool("bytes", { body: btoa("raw") });
    const [json, form, parts, bytes] = api.seen;
    expect([json?.headers["content-type"], json?.body]).toEqual(["application/vnd.x+json", '{"a":1}']);
    expect([form?.headers["content-type"], form?.body]).toEqual([
      "application/x-www-form-urlencoded",
      "a=x+y%26z&b=1&b=2",
    ]);
    expect(parts?.body).toContain(
      'name="data"; filename="data"\r\ncontent-type: application/octet-stream\r\n\r\nbytes\r\n',
    );
    expect([bytes?.headers["content-type"], bytes?.body]).toEqual(["application/octet-stream", "raw"]);
  });

  test("of Swagger 2 has its base, formats of lists and form", async () => {
    const api = await startApi();
    const host = new URL(api.url).host;
    const client = await open(
      {
        swagger: "2.0",
        host,
        basePath: "/v2",
        schemes: ["http"],
        paths: {
          "/pets": {
            get: {
              operationId: "find",
              parameters: [
                {
                  name: "tags",
                  in: "query",
                  type: "array",
                  items: { type: "string" },
                  collectionFormat: "multi",
                },
                { name: "ids", in: "query", type: "array", items: { type: "integer" } },
              ],
            },
            post: {
              operationId: "upload",
              consumes: ["multipart/form-data"],
              parameters: [{ name: "file", in: "formData", type: "file", required: true }],
            },
          },
        },
      },
      { hosts: [host] },
    );
    await client.callTool("find", { tags: ["a", "b"], ids: [1, 2] });
    await client.callTool("upload", { body: { file: btoa("f") } });
    expect(api.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
      "GET /v2/pets?tags=a&tags=b&ids=1,2",
      "POST /v2/pets",
    ]);
    expect(api.seen[1]?.headers["content-type"]).toMatch(/^multipart\/form-data; boundary=/);
  });

  test("has a short name that nobody else has, whatever its id", async () => {
    const long = "x".repeat(200);
    const ids = [long, `${long}y`, "Same", "same", "имя операции", "名前", "a b/c.d", "_", "🙂"];
    const paths = Object.fromEntries(
      ids.map((operationId, index) => [`/p${index}`, { get: { operationId } }]),
    );
    const names = (await (await open(spec(paths))).listTools()).map(({ name }) => name);
    expect(names).toHaveLength(ids.length);
    expect(new Set(names.map((name) => name.toLowerCase())).size).toBe(ids.length);
    for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,48}$/);
    expect(names).toContain("a_b_c_d");
    expect(names).toContain("get_p5");
  });
});

describe("an answer", () => {
  const one = spec({ "/x": { get: { operationId: "x", responses: {} } } });

  test("is structured, text, an image or bytes by its type, and an error by its status", async () => {
    const answers: {
      readonly [path: string]: readonly [status: number, type: string, body: string | Buffer];
    } = {
      "/json": [200, "application/json", '{"a":1}'],
      "/list": [200, "application/json", "[1]"],
      "/broken": [200, "application/json", "{a"],
      "/html": [200, "text/html", "<p>hi"],
      "/png": [200, "image/png", Buffer.from([137, 80])],
      "/zip": [200, "application/zip", Buffer.from([1, 2])],
      "/none": [204, "", ""],
      "/wrong": [422, "application/json", '{"why":"no"}'],
      "/key": [401, "text/plain", "who?"],
    };
    const api = await startApi(({ url }, response) => {
      const [status, type, body] = answers[url] ?? [404, "text/plain", "none"];
      response.writeHead(status, type === "" ? {} : { "content-type": type }).end(body);
    });
    const paths = Object.fromEntries(
      Object.keys(answers).map((path) => [path, { get: { operationId: path.slice(1) } }]),
    );
    const components = { securitySchemes: { k: { type: "apiKey", in: "header", name: "X-Key" } } };
    const client = await open(spec(paths, { components }), { server: api.url });
    const call = (name: string) => client.callTool(name, {});
    expect(await call("json")).toMatchObject({ structuredContent: { a: 1 }, content: [{ text: '{"a":1}' }] });
    expect(await call("list")).toMatchObject({ structuredContent: { result: [1] } });
    expect(await call("broken")).toMatchObject({ content: [{ text: "{a" }] });
    expect(await call("html")).toMatchObject({ content: [{ text: "<p>hi" }] });
    expect(await call("png")).toMatchObject({ content: [{ type: "image", mimeType: "image/png" }] });
    expect(await call("zip")).toMatchObject({ content: [{ type: "resource", resource: { blob: "AQI=" } }] });
    expect(textOf(await call("none"))).toBe("Status 204, without a body.");
    expect(await call("wrong")).toMatchObject({
      isError: true,
      content: [{ text: 'The API answered with status 422.\n{"why":"no"}' }],
    });
    expect(textOf(await call("key"))).toContain('"headers": { "X-Key": "${KEY}" }');
  });

  test("that does not fit its description is given as text, and as structured content where it fits", async () => {
    const api = await startApi((_, response) => {
      response.setHeader("content-type", "application/json");
      response.end('{"id":"7","name":"a","others":[1,"b"],"more":true}');
    });
    const properties = {
      id: { type: "integer" },
      name: { type: "string" },
      others: { type: "array", items: { type: "string" } },
    };
    const responses = {
      200: { content: { "application/json": { schema: { type: "object", required: ["id"], properties } } } },
    };
    const client = await open(spec({ "/x": { get: { operationId: "x", responses } } }), { server: api.url });
    expect(await client.callTool("x", {})).toMatchObject({
      content: [{ text: '{"id":"7","name":"a","others":[1,"b"],"more":true}' }],
      structuredContent: { name: "a", others: ["b"], more: true },
    });
  });

  test("says where the next page is", async () => {
    const api = await startApi((_, response) => {
      response.writeHead(200, {
        "content-type": "application/json",
        link: '</x?page=2>; rel="next", </x?page=9>; rel="last"',
      });
      response.end("{}");
    });
    const client = await open(one, { server: api.url });
    expect(textOf(await client.callTool("x", {}))).toBe("{}\nMore pages: next: page=2; last: page=9");
  });

  test("with Retry-After is tried once more for a read, when the wait is short, and otherwise reported", async () => {
    let asked = 0;
    const api = await startApi((_, response) => {
      asked++;
      response.writeHead(asked === 1 ? 429 : 503, { "retry-after": asked === 1 ? "0" : "3600" }).end();
    });
    const client = await open(one, { server: api.url });
    expect(textOf(await client.callTool("x", {}))).toContain("It may be tried again after 3600 seconds.");
    expect(asked).toBe(2);
  });

  test("of 50 MB, or one that never ends, is given up, and the next call is served", async () => {
    const api = await startApi(({ url }, response) => {
      if (url === "/ok") return void response.end("ok");
      if (url === "/slow") return void response.write("x");
      response.writeHead(200, { "content-type": "text/plain" });
      const chunk = "y".repeat(1024 * 1024);
      let left = 50;
      const write = (): void => {
        while (left-- > 0) if (!response.write(chunk)) return void response.once("drain", write);
        response.end();
      };
      write();
    });
    const paths = {
      "/big": { get: { operationId: "big" } },
      "/slow": { get: { operationId: "slow" } },
      "/ok": { get: { operationId: "ok" } },
    };
    const client = await open(spec(paths), { server: api.url, timeoutMs: 1500 });
    expect(textOf(await client.callTool("big", {}))).toContain("answered with more than 8388608 bytes");
    expect(textOf(await client.callTool("slow", {}))).toContain("took more than 1500 ms");
    expect(textOf(await client.callTool("ok", {}))).toBe("ok");
  });

  test("that redirects gets no credentials to another origin, and a write is not sent again", async () => {
    const other = await startApi();
    const api = await startApi(
      (_, response) => void response.writeHead(307, { location: `${other.url}/there` }).end(),
    );
    const paths = { "/r": { get: { operationId: "read" }, post: { operationId: "write" } } };
    const client = await open(spec(paths), {
      server: api.url,
      hosts: [new URL(other.url).host],
      headers: { authorization: "Bearer secret" },
    });
    await client.callTool("read", {});
    expect(other.seen.map(({ headers }) => headers.authorization)).toEqual([undefined]);
    expect(api.seen[0]?.headers.authorization).toBe("Bearer secret");
    expect(textOf(await client.callTool("write", {}))).toContain("which is not followed");
    expect(other.seen).toHaveLength(1);
  });
});

describe("a description from elsewhere", () => {
  test("leads to no private address and sends no key where only it says so", async () => {
    const api = await startApi();
    const inside = spec({ "/x": { get: { operationId: "x" } } }, { servers: [{ url: api.url }] });
    const result = await (await open(inside)).callTool("x", {});
    expect(result.isError).toBe(true);
    expect(textOf(result)).toContain("must not be asked");
    const metadata = spec(
      { "/x": { get: { operationId: "x" } } },
      { servers: [{ url: "https://169.254.169.254/latest" }] },
    );
    expect(textOf(await (await open(metadata)).callTool("x", {}))).toContain(
      "is not an address of the public Internet",
    );
    await expect(open(inside, { headers: { authorization: "Bearer x" } })).rejects.toThrow(
      'write "server": ',
    );
    const away = spec({ "/x": { get: { operationId: "x", servers: [{ url: "http://127.0.0.1:1/" }] } } });
    expect(
      textOf(await (await open(away, { server: api.url, headers: { a: "b" } })).callTool("x", {})),
    ).toContain("must not be asked");
    expect(api.seen).toEqual([]);
  });

  test("reads files below its own folder only, and names what it left out", async () => {
    const inner = join(folder, "inner");
    mkdirSync(join(inner, "parts"), { recursive: true });
    writeFileSync(join(folder, "outside.json"), '{"type":"string"}');
    symlinkSync(join(folder, "outside.json"), join(inner, "link.json"));
    writeFileSync(
      join(inner, "parts/pet.yaml"),
      "type: object\nproperties:\n  next: { $ref: pet.yaml }\n  owner: { $ref: '../api.json#/components/schemas/Owner' }\n",
    );
    const body = ($ref: string): object => ({
      post: { requestBody: { content: { "application/json": { schema: { $ref } } } } },
    });
    const file = join(inner, "api.json");
    writeFileSync(
      file,
      JSON.stringify(
        spec(
          {
            "/good": body("./parts/pet.yaml"),
            "/passwd": body("/etc/passwd"),
            "/up": body("../outside.json"),
            "/link": body("link.json"),
            "/metadata": body("http://169.254.169.254/latest/meta-data"),
            "/private": body("https://127.0.0.1/x.json"),
            "/nowhere": body("#/components/schemas/None"),
          },
          { components: { schemas: { Owner: { type: "object" } } } },
        ),
      ),
    );
    const warnings: string[] = [];
    const registry = await fromOpenApi(file, { onWarning: (text) => void warnings.push(text) });
    const client = await connect({ server: createMcpServer(registry, { name: "api", version: "1" }) });
    const tools = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(["post_good"]);
    expect(tools[0]?.inputSchema).toMatchObject({
      $defs: { "pet.yaml": { properties: { next: { $ref: "#/$defs/pet.yaml" } } } },
    });
    expect(
      warnings.map((text) =>
        text.replace(/^Left out POST (\S+): its reference .* cannot be read: /, "$1: ").slice(0, 60),
      ),
    ).toEqual([
      "/passwd: it is outside of the folder of the specification",
      "/up: it is outside of the folder of the specification",
      "/link: it is outside of the folder of the specification",
      "/metadata: 169.254.169.254 must not be asked: http:// is not",
      "/private: 127.0.0.1 must not be asked: 127.0.0.1 is not an a",
      "Left out POST /nowhere: its reference #/components/schemas/N",
    ]);
  });

  test("that is huge, circular or no description has one clear error or few bytes", async () => {
    const write = (name: string, text: string): string => {
      const file = join(folder, name);
      writeFileSync(file, text);
      return file;
    };
    await expect(fromOpenApi(write("page.json", "<html>"))).rejects.toThrow("it is HTML or XML");
    await expect(fromOpenApi(write("old.json", '{"swagger":"1.2"}'))).rejects.toThrow("but says version 1.2");
    await expect(fromOpenApi(write("list.json", "[]"))).rejects.toThrow("is not OpenAPI 3.0");
    await expect(fromOpenApi(write("big.yaml", `a: "${"x".repeat(3e6)}"`))).rejects.toThrow(
      "Convert it to JSON",
    );
    await expect(fromOpenApi(write("big.json", `{"a":"${"x".repeat(34e6)}"}`))).rejects.toThrow(
      "at most 33554432 are read",
    );
    const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${"bcdefghijk"
      .split("")
      .map(
        (name, index) =>
          `${name}: &${name} [${Array.from({ length: 9 }, () => `*${"abcdefghij"[index]}`).join(",")}]`,
      )
      .join("\n")}`;
    await expect(fromOpenApi(write("bomb.yaml", bomb))).rejects.toThrow("Excessive alias count");
    const many = Object.fromEntries(Array.from({ length: 20_001 }, (_, index) => [`/${index}`, { get: {} }]));
    await expect(fromOpenApi(spec(many))).rejects.toThrow("at most 20000 may be tools");
    // Each refers to all: together they would be a million schemas.
    const names = Array.from({ length: 300 }, (_, index) => `S${index}`);
    const properties = Object.fromEntries(
      names.map((name) => [name, { $ref: `#/components/schemas/${name}` }]),
    );
    const schemas = Object.fromEntries(
      names.map((name) => [name, { type: "object", description: "d".repeat(5000), properties }]),
    );
    const loop = { A: { $ref: "#/components/schemas/B" }, B: { $ref: "#/components/schemas/A" } };
    const content = (name: string): object => ({
      requestBody: { content: { "application/json": { schema: { $ref: `#/components/schemas/${name}` } } } },
    });
    const parameters = [{ $ref: "#/components/parameters/P" }];
    const components = {
      schemas: { ...schemas, ...loop },
      parameters: { P: { $ref: "#/components/parameters/P" } },
    };
    const warnings: string[] = [];
    const circular = spec(
      { "/all": { post: { operationId: "all", ...content("S0") } }, "/p": { get: { parameters } } },
      { components },
    );
    const registry = await fromOpenApi(circular, { onWarning: (text) => void warnings.push(text) });
    const [tool] = await (
      await connect({ server: createMcpServer(registry, { name: "a", version: "1" }) })
    ).listTools();
    expect(JSON.stringify(tool).length).toBeLessThan(100_000);
    expect(warnings).toEqual(["Left out GET /p: its reference #/components/parameters/P leads in a circle"]);
  });
});

describe("a gateway", () => {
  test("serves an API under its rules, with its name in front", async () => {
    const api = await startApi();
    const file = join(folder, "gateway.json");
    writeFileSync(
      file,
      JSON.stringify(
        spec({
          "/a": { get: { operationId: "one", tags: ["x"] }, post: { operationId: "two", tags: ["x"] } },
          "/b": { get: { operationId: "three" } },
        }),
      ),
    );
    const gateway = await createGateway({
      mcpServers: {
        shop: {
          openapi: { spec: file, server: api.url, tags: ["x"] },
          headers: { "X-Key": "secret-key-123" },
        },
      },
      junctor: { remember: false, servers: { shop: { deny: ["two"] } } },
    });
    await gateway.ready;
    const client = await connect({ server: gateway.server });
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["shop__one"]);
    await client.callTool("shop__one", {});
    expect(api.seen[0]?.headers["x-key"]).toBe("secret-key-123");
    await gateway.close();
  });

  test("tells what is wrong in a description without hurting others", async () => {
    const gateway = await createGateway({
      mcpServers: {
        bad: { openapi: join(folder, "missing.json") },
        good: { tools: { echo: { run: ["echo", "hi"] } } },
      },
      junctor: { remember: false },
    });
    await gateway.ready;
    const client = await connect({ server: gateway.server });
    expect((await client.listTools()).map(({ name }) => name)).toEqual(["good__echo"]);
    expect(gateway.status().find(({ name }) => name === "bad")?.reason).toContain("no such file");
    await gateway.close();
  });

  const parse = (entry: object) =>
    parseConfig(JSON.stringify({ mcpServers: { api: entry } }), {
      file: "mcp.json",
      env: {},
      folder: "/where",
    });

  test("waits for a person before it reaches another API or sends another key", () => {
    const before = parse({ openapi: { spec: "./a.json", server: "https://a.example" } });
    const edits = [
      { openapi: { spec: "./a.json", server: "https://b.example" } },
      { openapi: "./a.json" },
      { openapi: { spec: "./a.json", server: "https://a.example" }, headers: { "X-Key": "abc" } },
    ];
    for (const edit of edits)
      expect(toAgreedPart(parse(edit), before, {}).config.servers).toEqual(before.servers);
    expect(toAgreedPart(parse(edits[0] ?? {}), before, {}).waiting).toEqual([
      "api (api: /where/a.json (asks https://b.example))",
    ]);
  });

  test.each([
    [{ openapi: "ftp://x.example/a.json" }, "is neither a file nor an https:// address"],
    [{ openapi: { server: "https://x.example" } }, "does not say where the description is"],
    [{ openapi: { spec: "a.json", server: "https://x.example?k=1" } }, "must be an address without a query"],
    [{ openapi: { spec: "a.json", tag: ["x"] } }, "did you mean tags?"],
    [{ openapi: { spec: "a.json", methods: ["fetch"] } }, "must be one of"],
    [{ openapi: "a.json", command: "x" }, "has both openapi and command"],
  ])("refuses %j", (entry, message) => {
    expect(() => parse(entry)).toThrow(message);
  });
});
