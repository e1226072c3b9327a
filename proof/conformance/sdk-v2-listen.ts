import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { toNodeHandler } from "@modelcontextprotocol/node";
import {
  createMcpHandler,
  type EventStore,
  hostHeaderValidationResponse,
  isLegacyRequest,
  localhostAllowedHostnames,
  localhostAllowedOrigins,
  originValidationResponse,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { createSdkV2Factory } from "./sdk-v2-server.ts";

/** The adapter's own type does not allow what Node's does: optional properties that are present and undefined. */
type NodeRequest = Parameters<ReturnType<typeof toNodeHandler>>[0];

/** Serves the SDK's server over HTTP, both eras at one URL: legacy callers have sessions. */
export async function listenSdkV2(port: number): Promise<{ readonly url: string; close(): Promise<void> }> {
  const modern = createMcpHandler((context) => createModern(context), { legacy: "reject" });
  const createModern = createSdkV2Factory(modern.notify);
  const createLegacy = createSdkV2Factory();
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();

  const serveLegacy = async (request: Request): Promise<Response> => {
    const id = request.headers.get("mcp-session-id");
    const known = id === null ? undefined : sessions.get(id);
    if (known !== undefined) return known.handleRequest(request);
    if (id !== null) return new Response("There is no such session", { status: 404 });
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void sessions.set(session, transport),
      onsessionclosed: (session) => void sessions.delete(session),
      eventStore: createEventStore(),
      retryInterval: 500,
    });
    await (await createLegacy({ era: "legacy" })).connect(transport);
    return transport.handleRequest(request);
  };

  const handle = toNodeHandler({
    fetch: async (request, options) =>
      hostHeaderValidationResponse(request, localhostAllowedHostnames()) ??
      originValidationResponse(request, localhostAllowedOrigins()) ??
      ((await isLegacyRequest(request)) ? serveLegacy(request) : modern.fetch(request, options)),
  });
  const http = createServer((request, response) => void handle(request as NodeRequest, response));
  await new Promise<void>((resolve) => http.listen(port, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`,
    close: async () => {
      await modern.close();
      for (const transport of sessions.values()) await transport.close();
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
}

/** Keeps the events of one session, so that a caller can resume a stream. */
function createEventStore(): EventStore {
  const events: { readonly stream: string; readonly message: Parameters<EventStore["storeEvent"]>[1] }[] = [];
  return {
    storeEvent: async (stream, message) => String(events.push({ stream, message }) - 1),
    getStreamIdForEventId: async (id) => events[Number(id)]?.stream,
    replayEventsAfter: async (lastId, { send }) => {
      const stream = events[Number(lastId)]?.stream ?? "";
      for (const [id, event] of events.entries())
        if (id > Number(lastId) && event.stream === stream) await send(String(id), event.message);
      return stream;
    },
  };
}
