// Calls every operation of an API with made-up arguments. A server that knows the description by `openapi-backend` judges what arrives.

import { createServer as createHttp } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { connect, createServer, fromOpenApi } from "junctor";
import { sample } from "./sample.mjs";

/** Resolves with how many operations were asked, how many requests fit, and what was wrong with the others. */
export async function callAll(file, spec, folder) {
  const { OpenAPIBackend } = createRequire(join(folder, "package.json"))("openapi-backend");
  // The mock is at the root of its host.
  const definition = { ...spec, servers: [{ url: "/" }], security: [], paths: withIds(spec.paths) };
  const api = new OpenAPIBackend({
    definition,
    quick: true,
    strict: false,
    ajvOpts: { strict: false, validateFormats: false },
  });
  await api.init();
  let verdict;
  const server = createHttp((request, response) => {
    const chunks = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.on("end", () => {
      void judge(api, request, Buffer.concat(chunks)).then((judged) => {
        verdict = judged;
        response.writeHead(200, { "content-type": "text/plain" }).end("ok");
      });
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const base = `http://127.0.0.1:${server.address().port}`;
  const registry = await fromOpenApi(
    { ...spec, servers: undefined, paths: withoutServers(spec.paths) },
    { server: base, deprecated: true, headers: { authorization: "Bearer x" } },
  );
  const client = await connect({ server: createServer(registry, { name: "api", version: "1.0.0" }) });
  const wrong = [];
  let asked = 0;
  let right = 0;
  let unasked = 0;
  for (const tool of await client.listTools()) {
    verdict = undefined;
    const result = await client
      .callTool(tool.name, sample(tool.inputSchema, tool.inputSchema), { validate: false })
      .catch((/** @type {unknown} */ error) => ({ content: [{ text: String(error) }] }));
    const said = result.content[0]?.text ?? "";
    if (verdict?.isUnjudged || (verdict === undefined && said.startsWith("Invalid arguments"))) {
      unasked++;
      continue;
    }
    asked++;
    const fault = verdict === undefined ? said : verdict.fault;
    if (fault === undefined) right++;
    else
      wrong.push(
        `${new URL(`file://${file}`).pathname.split("/api/")[1]} ${tool.name}: ${fault}`.slice(0, 240),
      );
  }
  await client[Symbol.asyncDispose]();
  server.closeAllConnections();
  server.close();
  return { asked, right, unasked, wrong };
}

/** The validator knows an operation by its id. */
function withIds(paths) {
  const operations = new Set(["get", "put", "post", "delete", "options", "head", "patch", "trace"]);
  return Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      // It takes a slash at the end away from what it is asked, and not from the description.
      path.replace(/(?<=.)\/$/, ""),
      Object.fromEntries(
        Object.entries(item).map(([key, value]) => [
          key,
          operations.has(key) ? { ...value, operationId: `${key} ${path}` } : value,
        ]),
      ),
    ]),
  );
}

function withoutServers(paths) {
  return Object.fromEntries(
    Object.entries(paths).map(([path, item]) => [
      path,
      Object.fromEntries(
        Object.entries(item)
          .filter(([key]) => key !== "servers")
          .map(([key, value]) => [
            key,
            isObject(value) && !Array.isArray(value) ? { ...value, servers: undefined } : value,
          ]),
      ),
    ]),
  );
}

const isObject = (value) => typeof value === "object" && value !== null;

async function judge(api, request, bytes) {
  const { method, url, headers } = request;
  const type = headers["content-type"] ?? "";
  const [path, query = ""] = url.split("?");
  try {
    const body = bytes.length === 0 ? undefined : await parseBody(bytes, type);
    const asked = { method, path, query, headers, body };
    const operation = api.router.matchOperation(asked);
    if (operation === undefined) return { fault: `${method} ${path} is not in the description` };
    // It validates JSON; of other bodies that they are of the right type.
    const { errors } = api.validator.validateRequest(
      { ...asked, query: toFlat(query, operation) },
      operation,
    );
    if (!errors?.length) return {};
    // Two of several alternatives fit: the arguments are at fault, and nothing that was made of them.
    const isUnjudged = errors.every(
      (error) => error.keyword === "oneOf" && Array.isArray(error.params.passingSchemas),
    );
    if (isUnjudged) return { isUnjudged };
    const [{ instancePath, message, params }] = errors;
    return { fault: `${instancePath} ${message} ${JSON.stringify(params)}` };
  } catch (error) {
    // It cannot compile every schema that it is given.
    const isItsOwn =
      /Invalid regular expression|cannot be used without|schema is invalid|can.t resolve|strict mode/.test(
        error.message,
      );
    return isItsOwn ? { isUnjudged: true } : { fault: String(error.message) };
  }
}

/** Parts and forms are read by what Node has for them. */
async function parseBody(bytes, type) {
  if (/json/.test(type)) return JSON.parse(bytes.toString("utf8"));
  if (!/form/.test(type)) return bytes.toString("utf8");
  const form = await new Response(bytes, { headers: { "content-type": type } }).formData();
  const fields = {};
  for (const [name, value] of form) {
    const text = typeof value === "string" ? value : await value.text();
    fields[name] = name in fields ? [fields[name], text].flat() : text;
  }
  return fields;
}

/** Brackets in the name of a parameter are part of it, but the validator would nest by them. */
function toFlat(query, { parameters = [] }) {
  if (!parameters.some(({ name }) => name?.includes("["))) return query;
  const flat = {};
  for (const [name, value] of new URLSearchParams(query))
    flat[name] = name in flat ? [flat[name], value].flat() : value;
  return flat;
}
