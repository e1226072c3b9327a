import { createGateway, type Gateway } from "../../../packages/junctor/src/gateway/gateway.ts";
import type { GatewayOptions } from "../../../packages/junctor/src/gateway/options.ts";
import type { GatewayLog } from "../../../packages/junctor/src/log/log.ts";
import type { ListenHttpOptions } from "../../../packages/server/src/http/http-options.ts";
import { listenHttp } from "../../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../../packages/server/src/http/node.ts";

/** Something the gateway logged. */
export interface LogLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly facts: { readonly [name: string]: unknown };
  readonly text: string;
}

/** A gateway behind a port of its own. Disposing it closes both. */
export interface TestGateway extends AsyncDisposable {
  readonly gateway: Gateway;
  readonly listener: HttpListener;
  readonly url: string;
  /** Everything it logged, in order. */
  readonly log: readonly LogLine[];
  /** What a child wrote to its standard error stream, line by line. */
  stderrOf(server: string): readonly string[];
  /** The processes a server was started as, in order; of a server that says its pid on standard error. */
  pidsOf(server: string): readonly number[];
}

export interface TestGatewayOptions extends GatewayOptions {
  readonly http?: ListenHttpOptions;
}

/** Starts a gateway from a config and serves it. Resolves when its lists are there. */
export async function startTestGateway(
  config: object,
  options: TestGatewayOptions = {},
): Promise<TestGateway> {
  const { http, ...rest } = options;
  const log: LogLine[] = [];
  const gateway = await createGateway(config, { log: toLog(log), firstListMs: 12_000, ...rest });
  const { authenticate } = gateway;
  const listener = await listenHttp(gateway.server, {
    port: 0,
    graceMs: 200,
    mounts: gateway.mounts,
    onWarning: (text) => void log.push({ level: "warn", facts: {}, text }),
    ...(authenticate === undefined ? {} : { authenticate }),
    ...http,
  });
  await gateway.ready;
  const stderrOf = (server: string): readonly string[] =>
    log.flatMap(({ facts, text }) =>
      text === "stderr" && facts["server"] === server ? [String(facts["stderr"])] : [],
    );
  return {
    gateway,
    listener,
    url: listener.url,
    log,
    stderrOf,
    pidsOf: (server) =>
      stderrOf(server).flatMap((line) =>
        line.startsWith("pid ") ? [Number(line.slice("pid ".length))] : [],
      ),
    [Symbol.asyncDispose]: async () => {
      await listener.close();
      await gateway.close();
    },
  };
}

function toLog(lines: LogLine[]): GatewayLog {
  const at =
    (level: LogLine["level"]) =>
    (facts: object, text: string): void =>
      void lines.push({ level, facts: facts as LogLine["facts"], text });
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}
