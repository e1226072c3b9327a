import { fileURLToPath } from "node:url";
import { createGateway, listenHttp, type ServerOptions } from "junctor";
import { createEverythingServer } from "./everything-server.ts";
import type { SuiteRevision } from "./suite.ts";

type Serves = NonNullable<ServerOptions["serves"]>;

/** A gateway between the suite and our everything-server. */
export interface Through {
  /** How the gateway reaches the server behind it. */
  readonly transport: "stdio" | "http";
  /** Which eras that server serves. */
  readonly serves: Serves;
}

/** Every gateway the suite is run through. */
export const everyThrough: readonly Through[] = (["stdio", "http"] as const).flatMap((transport) =>
  (["both", "legacy", "modern"] as const).map((serves) => ({ transport, serves })),
);

/** Reads `--through stdio|http` and `--serves both|legacy|modern`. */
export function parseThrough(transport: string | undefined, serves = "both"): readonly Through[] {
  if (transport === undefined) return [];
  if (transport !== "stdio" && transport !== "http") throw new TypeError("--through takes stdio or http");
  if (serves !== "both" && serves !== "legacy" && serves !== "modern")
    throw new TypeError("--serves takes both, legacy or modern");
  return [{ transport, serves }];
}

/** Whether the suite of a revision says something here: of a server of one era, only clients of the other do. */
export function isBridged(revision: SuiteRevision, through: Through | undefined): boolean {
  if (through === undefined || through.serves === "both") return true;
  return (through.serves === "legacy") === (revision === "2026-07-28");
}

/** The scenarios that no gateway can pass, and why. */
export function inexpressible(
  { serves }: Through,
  revision: SuiteRevision,
): { readonly [scenario: string]: string } {
  if (revision === "2025-11-25")
    return { "server-sse-polling": "to close a stream on purpose is between two neighbours, not end to end" };
  if (serves !== "legacy") return {};
  const reason =
    "it wants a question under a key of the tool's choice, and questions of legacy servers have no keys";
  return {
    "input-required-result-basic-elicitation": reason,
    "input-required-result-ignore-extra-params": reason,
  };
}

/** A gateway on a free port, with the everything-server behind it under its own names. */
export async function startThrough({
  transport,
  serves,
}: Through): Promise<AsyncDisposable & { readonly url: string }> {
  const behind =
    transport === "http" ? await listenHttp(createEverythingServer({ serves }), { port: 0 }) : undefined;
  const config = {
    mcpServers: { everything: behind === undefined ? toChild(serves) : { url: behind.url } },
    // The suite walks away from calls that wait for an answer; each holds a line until it expires.
    junctor: { servers: { everything: { prefix: false, maxConnections: 64 } } },
  };
  const gateway = await createGateway(config, { firstListMs: 12_000 });
  await gateway.ready;
  const listener = await listenHttp(gateway.server, { port: 0 });
  return {
    // By name: the suite tests the defence against DNS rebinding only where it knows the host to be this one.
    url: `http://localhost:${listener.port}/mcp`,
    [Symbol.asyncDispose]: async () => {
      await listener.close();
      await gateway.close();
      await behind?.close();
    },
  };
}

function toChild(serves: Serves): object {
  const module = fileURLToPath(new URL("serve.js", import.meta.url));
  return { command: process.execPath, args: [module, "--stdio", "--serves", serves] };
}
