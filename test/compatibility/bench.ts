import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Client } from "../../packages/client/src/client/client.ts";
import { connect, type Target } from "../../packages/client/src/client/connect.ts";
import type { QuestionHandlers } from "../../packages/client/src/client/handlers.ts";
import { createEraCache } from "../../packages/client/src/client/negotiate.ts";
import type { Revision } from "../../packages/core/src/mcp/revision.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createFolder, type EraName, fixture } from "../bridge/support/upstream.ts";
import { startStage } from "../cluster/support/stage.ts";
import { type CuttingProxy, startCuttingProxy } from "../support/cutting-proxy.ts";
import { bin } from "../support/junctor-bin.ts";
import type { BackWay, FrontWay } from "./cells.ts";

/** A gateway in front of one server, the fixture `compatibility-server.mjs`. Disposing it ends both. */
export interface Bench extends AsyncDisposable {
  /** Connects a client of a revision; by the proxy, or as one that shows pages, if it says so. */
  connect(revision: Revision, way?: "straight" | "proxy" | "host"): Promise<Client>;
  /** Stands before a gateway over HTTP, for those who ask for it. */
  readonly proxy: CuttingProxy | undefined;
  /** Has the server do something, in however many processes it runs. */
  tell(deed: "go" | "grow" | "touch", nonce: string): void;
  /** How often something happened to the calls of a nonce. */
  count(what: "run" | "cancelled", nonce: string): number;
}

/** What is asked comes back in the answer. */
const handlers: QuestionHandlers = {
  elicit: ({ message }) => ({ action: "accept", content: { name: `Ada ${String(message)}` } }),
  sample: ({ messages }) => ({
    role: "assistant",
    model: "a-model",
    content: { type: "text", text: JSON.stringify(messages) },
  }),
  roots: () => [{ uri: "file:///home" }],
};

export async function startBench(front: FrontWay, back: BackWay, era: EraName): Promise<Bench> {
  const folder = createFolder();
  const told = join(folder.path, "told");
  const log = join(told, "log");
  mkdirSync(told);
  writeFileSync(log, "");
  const server = await startServer(back, ["--serves", era, "--folder", told]);
  const gateway = await startGateway(front, { mcpServers: { up: server.entry } }, folder.path);
  const lines = (): readonly string[] => readFileSync(log, "utf8").split("\n");
  return {
    proxy: gateway.proxy,
    connect: (revision, way = "straight") =>
      connect(gateway.target(revision, way === "proxy"), {
        revision,
        handlers,
        tasks: revision === "2026-07-28",
        // A gateway that is started on a busy machine is silent for a while.
        probeTimeoutMs: 30_000,
        eras: createEraCache(),
        views: way === "host",
        // What HTTP was in that revision.
        ...(front === "HTTP" && revision === "2024-11-05" ? { transport: "sse" } : {}),
      }),
    tell: (deed, nonce) => writeFileSync(join(told, `${deed}.${nonce}`), ""),
    count: (what, nonce) => lines().filter((line) => line === `${what} ${nonce}`).length,
    [Symbol.asyncDispose]: async () => {
      await gateway.close();
      await server.close();
      folder[Symbol.dispose]();
    },
  };
}

interface Server {
  /** As it stands in a config. */
  readonly entry: object;
  close(): Promise<void>;
}

async function startServer(way: BackWay, args: readonly string[]): Promise<Server> {
  const script = fixture("compatibility-server.mjs");
  if (way === "stdio")
    return { entry: { command: process.execPath, args: [script, ...args] }, close: () => Promise.resolve() };
  const child = fork(script, [...args, "--http"], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  const [port] = (await once(child, "message")) as [number];
  const origin = `http://127.0.0.1:${port}`;
  return {
    entry: way === "HTTP" ? { type: "http", url: `${origin}/mcp` } : { type: "sse", url: `${origin}/sse` },
    close: async () => {
      const exited = once(child, "exit");
      child.kill("SIGKILL");
      await exited;
    },
  };
}

interface RunningGateway {
  readonly proxy: CuttingProxy | undefined;
  target(revision: Revision, isProxied: boolean): Target;
  close(): Promise<void>;
}

/** A gateway behind a port, or the command for one: on standard streams each client starts its own. */
async function startGateway(way: FrontWay, config: object, folder: string): Promise<RunningGateway> {
  if (way === "stdio") {
    const file = join(folder, "config.json");
    writeFileSync(file, JSON.stringify(config));
    const args = [bin, "serve", "--config", file, "--stdio"];
    return {
      proxy: undefined,
      target: () => ({ command: process.execPath, args }),
      close: () => Promise.resolve(),
    };
  }
  const proxy = await startCuttingProxy();
  if (isBalanced) return startBalanced(config, proxy);
  const gateway = await createGateway(config, { firstListMs: 12_000 });
  const allowedHosts = [`127.0.0.1:${proxy.port}`];
  const listener = await listenHttp(gateway.server, { port: 0, graceMs: 100, allowedHosts });
  proxy.target = listener.port;
  await gateway.ready;
  return {
    proxy,
    target: (revision, isProxied) => {
      const port = isProxied ? proxy.port : listener.port;
      return `http://127.0.0.1:${port}/${revision === "2024-11-05" ? "sse" : "mcp"}`;
    },
    close: async () => {
      await listener[Symbol.asyncDispose]();
      await gateway.close();
      await proxy[Symbol.asyncDispose]();
    },
  };
}

/** Whether clients over HTTP come to three replicas behind a balancer: `npm run proof -- conformance compatibility --cluster`. */
const isBalanced = process.env["JUNCTOR_COMPATIBILITY"] === "cluster";

async function startBalanced(config: object, proxy: CuttingProxy): Promise<RunningGateway> {
  const { mcpServers } = config as { readonly mcpServers: object };
  const http = { allowedHosts: [`127.0.0.1:${proxy.port}`] };
  const stage = await startStage({ mcpServers, junctor: { http } });
  proxy.target = stage.balancer.port;
  return {
    proxy,
    target: (revision, isProxied) => {
      const port = isProxied ? proxy.port : stage.balancer.port;
      return `http://127.0.0.1:${port}/${revision === "2024-11-05" ? "sse" : "mcp"}`;
    },
    close: async () => {
      await stage[Symbol.asyncDispose]();
      await proxy[Symbol.asyncDispose]();
    },
  };
}
