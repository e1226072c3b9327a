import type { Route } from "./routes.ts";
import type { AnyShape, ApiSchema } from "./shape.ts";

const textSchema: ApiSchema = { type: "string" };

const errorSchema: ApiSchema = {
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: { code: textSchema, message: textSchema },
      required: ["code", "message"],
    },
  },
  required: ["error"],
};

/** Routes in the words of OpenAPI 3.1. The schema of an event stream has a member for each kind of event. */
export function describeApi(
  routes: readonly Route[],
  version: string,
): { readonly [member: string]: unknown } {
  const paths: { [path: string]: { [method: string]: object } } = {};
  const schemas: { [name: string]: ApiSchema } = { Error: errorSchema };
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(path, route) };
    for (const shape of [route.answer, route.events, route.body])
      if (shape !== undefined) Object.assign(schemas, shape.definitions);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Junctor admin API", version, license: { name: "Apache-2.0" } },
    security: [{ key: [] }],
    paths,
    components: { schemas, securitySchemes: { key: { type: "http", scheme: "bearer" } } },
  };
}

function toOperation(
  path: string,
  { summary, query, body, answer, events, status = 200, type }: Route,
): object {
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: textSchema,
  }));
  const content =
    events === undefined
      ? { [type ?? "application/json"]: { schema: answer?.schema } }
      : { "text/event-stream": { schema: events.schema } };
  const taken = body && { ...body.schema, additionalProperties: false };
  return {
    summary,
    parameters: [...inPath, ...(query === undefined ? [] : toParameters(query))],
    ...(taken && { requestBody: { content: { "application/json": { schema: taken } } } }),
    responses: {
      [status]: { description: summary, content },
      default: {
        description: "The request was refused; the message says what to do.",
        content: { "application/json": { schema: { $ref: "#/components/schemas/Error" } } },
      },
    },
  };
}

function toParameters({ schema }: AnyShape): readonly object[] {
  const required = schema["required"] as readonly string[];
  const properties = Object.entries(schema["properties"] as { readonly [name: string]: ApiSchema });
  return properties.map(([name, { description, ...member }]) => ({
    name,
    in: "query",
    description,
    required: required.includes(name) && member["default"] === undefined,
    schema: member,
  }));
}
