import { fileURLToPath } from "node:url";
import { createGateway, listenHttp, type ServerOptions } from "junctor";
import { createEverythingServer } from "./everything-server.ts";
import { listenSdkV2 } from "./sdk-v2-listen.ts";
import type { SuiteRevision } from "./suite.ts";

type Serves = NonNullable<ServerOptions["serves"]>;

/** A gateway between the suite and an everything-server. */
export interface Through {
  /** What that server is written with. */
  readonly kit: "junctor" | "sdk-v2";
  /** How the gateway reaches the server behind it. */
  readonly transport: "stdio" | "http";
  /** Which eras that server serves. */
  readonly serves: Serves;
}

const transports = ["stdio", "http"] as const;

/** Every gateway the suite is run through. */
export const everyThrough: readonly Through[] = transports.flatMap((transport) => [
  ...(["both", "legacy", "modern"] as const).map(
    (serves) => ({ kit: "junctor", transport, serves }) satisfies Through,
  ),
  { kit: "sdk-v2", transport, serves: "both" },
]);

/** Reads `--through stdio|http`, `--serves both|legacy|modern` and `--sdk-v2`. */
export function parseThrough(values: {
  readonly through?: string | undefined;
  readonly serves?: string | undefined;
  readonly "sdk-v2": boolean;
}): readonly Through[] {
  const { through, serves = "both", "sdk-v2": isSdkV2 } = values;
  const chosen = transports.filter((transport) => (through ?? transport) === transport);
  if (chosen.length === 0) throw new TypeError("--through takes stdio or http");
  if (isSdkV2 && serves === "both") return chosen.map((transport) => ({ kit: "sdk-v2", transport, serves }));
  if (isSdkV2) throw new TypeError("The server of --sdk-v2 serves both eras");
  if (through === undefined) return [];
  if (serves !== "both" && serves !== "legacy" && serves !== "modern")
    throw new TypeError("--serves takes both, legacy or modern");
  return chosen.map((transport) => ({ kit: "junctor", transport, serves }));
}

/** The server behind the gateway, for the report. */
export function describeServer({ kit, serves }: Through): string {
  return kit === "sdk-v2" ? "server of the official SDK v2" : `server of ${serves} eras`;
}

/** Whether the suite of a revision says something here: of a server of one era, only clients of the other do. */
export function isBridged(revision: SuiteRevision, through: Through | undefined): boolean {
  if (through === undefined || through.serves === "both") return true;
  return (through.serves === "legacy") === (revision === "2026-07-28");
}

/** The scenarios that no gateway can pass, and why. */
export function inexpressible(
  { serves, transport }: Through,
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
    ...(transport === "stdio" ? { "input-required-result-capability-check": toldEverything } : {}),
  };
}

const toldEverything =
  "one process is for all callers and is told all that can be asked through a gateway, so it cannot leave out a question";

/** A gateway on a free port, with the everything-server behind it under its own names. */
export async function startThrough(through: Through): Promise<AsyncDisposable & { readonly url: string }> {
  const behind = await startBehind(through);
  const gateway = await createGateway(toGatewayConfig(through, behind?.url), { firstListMs: 12_000 });
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

/** The everything-server, if gateways reach it over HTTP. One on stdio is started by a gateway. */
export async function startBehind({ kit, transport, serves }: Through): Promise<Behind | undefined> {
  if (transport === "stdio") return undefined;
  return kit === "sdk-v2" ? listenSdkV2(0) : listenHttp(createEverythingServer({ serves }), { port: 0 });
}

interface Behind {
  readonly url: string;
  close(): Promise<void>;
}

/** The config of a gateway in front of the everything-server, which is at this URL or a child. */
export function toGatewayConfig(
  through: Through,
  url: string | undefined,
): { readonly mcpServers: object; readonly junctor: object } {
  return {
    mcpServers: { everything: url === undefined ? toChild(through) : { url } },
    junctor: { servers: { everything: { prefix: false, ...toSettings(through) } } },
  };
}

function toSettings({ kit, transport }: Through): object {
  // The suite walks away from calls that wait for an answer, and the next call waits until such a call is given up. It wants
  // tools that need a task to be refused to callers that know none, which the gateway would serve.
  if (kit === "junctor") return { answerWithinMs: 200, tasks: "relay" };
  // A process of the SDK speaks one era, so callers of two eras need a process each.
  return transport === "stdio" ? { sharing: "perSession" } : {};
}

function toChild({ kit, serves }: Through): object {
  const module = fileURLToPath(new URL("serve.js", import.meta.url));
  const which = kit === "sdk-v2" ? ["--sdk-v2"] : ["--serves", serves];
  return { command: process.execPath, args: [module, "--stdio", ...which] };
}
