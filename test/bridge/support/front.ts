import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "../../../packages/client/src/client/client.ts";
import { connect } from "../../../packages/client/src/client/connect.ts";
import type { QuestionHandlers } from "../../../packages/client/src/client/handlers.ts";
import { createEraCache } from "../../../packages/client/src/client/negotiate.ts";
import { createGateway, type Gateway } from "../../../packages/junctor/src/gateway/gateway.ts";
import type { GatewayOptions } from "../../../packages/junctor/src/gateway/options.ts";
import { listenHttp } from "../../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../../packages/server/src/http/node.ts";
import { createFolder, type EraName, fixture, type Way } from "./upstream.ts";

/** A gateway and the way to it. */
export interface Front extends AsyncDisposable {
  connect(era: EraName, options?: FrontClientOptions): Promise<Client>;
}

export interface FrontClientOptions {
  readonly handlers?: QuestionHandlers;
  readonly key?: string;
}

export const revisionOf = (era: EraName): "2025-11-25" | "2026-07-28" =>
  era === "legacy" ? "2025-11-25" : "2026-07-28";

/** A gateway behind a port of its own. */
export interface HttpFront extends Front {
  readonly gateway: Gateway;
  readonly listener: HttpListener;
}

export async function startHttpFront(config: object, options: GatewayOptions = {}): Promise<HttpFront> {
  const gateway = await createGateway(config, { firstListMs: 12_000, ...options });
  const { authenticate } = gateway;
  const listener = await listenHttp(gateway.server, {
    port: 0,
    graceMs: 100,
    ...(authenticate === undefined ? {} : { authenticate }),
  });
  await gateway.ready;
  return {
    gateway,
    listener,
    connect: (era, { handlers = {}, key } = {}) =>
      connect(`http://127.0.0.1:${listener.port}/mcp`, {
        revision: revisionOf(era),
        handlers,
        eras: createEraCache(),
        ...(key === undefined ? {} : { headers: { authorization: `Bearer ${key}` } }),
      }),
    [Symbol.asyncDispose]: async () => {
      await listener[Symbol.asyncDispose]();
      await gateway.close();
    },
  };
}

/** Gateways on standard streams: each client has one of its own. */
export function createStdioFront(config: object): Front {
  const folder = createFolder();
  const file = join(folder.path, "config.json");
  writeFileSync(file, JSON.stringify(config));
  return {
    connect: (era, { handlers = {} } = {}) =>
      connect(
        { command: process.execPath, args: [fixture("bridge-gateway.mjs"), file] },
        { revision: revisionOf(era), handlers, eras: createEraCache() },
      ),
    [Symbol.asyncDispose]: async () => folder[Symbol.dispose](),
  };
}

export const startFront = (way: Way, config: object): Promise<Front> =>
  way === "http" ? startHttpFront(config) : Promise.resolve(createStdioFront(config));
