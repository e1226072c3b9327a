// JSON with members that no revision of the protocol knows, and a server that writes down what it gets.
import { createServer, type IncomingMessage, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { seededJsonTexts } from "./seeded-json.ts";

export type Members = { readonly [member: string]: unknown };

/** The same JSON with unknown members in its objects; `isClosed` says which objects take none, by their path. */
export function sprinkle<T extends Members>(
  given: T,
  random: () => number,
  isClosed: (path: string) => boolean = () => false,
): T {
  let count = 0;
  const visit = (value: unknown, path: string): unknown => {
    if (Array.isArray(value)) return value.map((element) => visit(element, `${path}.*`));
    if (typeof value !== "object" || value === null) return value;
    if (isClosed(path)) return value;
    const members = Object.entries(value).map(
      ([key, each]) => [key, visit(each, path === "" ? key : `${path}.${key}`)] as const,
    );
    const extras = Array.from({ length: Math.floor(random() * 3) }, () => {
      const [text = "null"] = seededJsonTexts(Math.floor(random() * 2 ** 31), 1);
      return [`x-${count++}`, toPlain(text)] as const;
    });
    const all = [...members, ...extras];
    return Object.fromEntries(random() < 0.5 ? all : all.toReversed());
  };
  return visit(given, "") as T;
}

/** The value of a text as it is after it was written once: numbers that no double holds are not what is tested. */
function toPlain(text: string): unknown {
  return JSON.parse(JSON.stringify(JSON.parse(text)));
}

/** Where two JSON values differ, as paths. */
export function differences(expected: unknown, got: unknown, path = ""): readonly string[] {
  if (isMembers(expected) && isMembers(got)) {
    const keys = [...new Set([...Object.keys(expected), ...Object.keys(got)])];
    return keys.flatMap((key) => {
      const at = path === "" ? key : `${path}.${key}`;
      if (!Object.hasOwn(got, key)) return [`lost ${at}`];
      if (!Object.hasOwn(expected, key)) return [`added ${at}`];
      return differences(expected[key], got[key], at);
    });
  }
  if (Array.isArray(expected) && Array.isArray(got) && expected.length === got.length)
    return expected.flatMap((each, index) => differences(each, got[index], `${path}.${index}`));
  return JSON.stringify(expected) === JSON.stringify(got) ? [] : [`changed ${path}`];
}

function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export interface Request {
  readonly id?: string | number;
  readonly method: string;
  readonly params?: Members;
}

/** Answers a request with a result; undefined for a method that it does not have. */
export type Answer = (server: string, request: Request) => Members | undefined;

/** An HTTP server that speaks JSON-RPC by hand: the last part of the path names the server that is meant. */
export async function listenRaw(answer: Answer): Promise<{ readonly url: string; readonly server: Server }> {
  const server = createServer((request, response) => {
    void readAll(request).then((body) => {
      if (request.method !== "POST") return response.writeHead(405).end();
      const message = JSON.parse(body) as Request;
      const isPipe = request.url?.startsWith("/pipe/") === true;
      // A notification, or an answer to a question of ours, of which there is none.
      if (message.id === undefined || message.method === undefined)
        return response.writeHead(isPipe ? 200 : 202).end();
      const result = answer(request.url?.split("/").at(-1) ?? "", message);
      const reply =
        result === undefined
          ? { error: { code: -32601, message: `Method not found: ${message.method}` } }
          : { result };
      return response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...reply }));
    });
  });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server };
}

async function readAll(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request) body += String(chunk);
  return body;
}
