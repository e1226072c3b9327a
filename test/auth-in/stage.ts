import { onTestFinished } from "vitest";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { freePort } from "../support/free-ports.ts";
import {
  type IdentityProvider,
  type IdentityProviderOptions,
  startIdentityProvider,
} from "../support/identity-provider.ts";

/** A gateway that takes tokens of a real authorization server. */
export interface AuthStage {
  readonly idp: IdentityProvider;
  readonly gateway: Gateway;
  readonly url: string;
  readonly port: number;
  readonly log: string[];
  /** Calls that reached a tool: its name, and the name of the caller. */
  readonly calls: (readonly [tool: string, caller: string | undefined])[];
}

interface StageOptions {
  readonly idp?: IdentityProviderOptions;
  readonly issuer?: object;
  readonly junctor?: object;
}

export const apiKey = "0123456789abcdef-key";

export async function startStage({ idp: settings, issuer, junctor }: StageOptions = {}): Promise<AuthStage> {
  const idp = await startIdentityProvider({ tokens: "jwt", ...settings });
  onTestFinished(() => idp[Symbol.asyncDispose]());
  const port = await freePort(); // Tokens are made for the URL, which must be known before it is served.
  const url = `http://127.0.0.1:${port}/mcp`;
  const calls: AuthStage["calls"][number][] = [];
  const registry = createRegistry();
  for (const tool of ["search", "create_issue", "delete_repo"])
    registry.register(tool, {}, (_, { caller }) => {
      calls.push([tool, caller]);
      return `${tool} for ${caller}`;
    });
  const log: string[] = [];
  const line = (facts: object, text: string): void => void log.push(`${text} ${JSON.stringify(facts)}`);
  const config = {
    junctor: {
      http: { publicUrl: url },
      issuers: { corp: { issuer: idp.issuer, scopes: ["read"], ...issuer } },
      keys: { ada: { env: "ADA" } },
      ...junctor,
    },
  };
  const gateway = await createGateway(config, {
    local: { github: registry },
    env: { ADA: apiKey },
    log: { debug: line, info: line, warn: line, error: line },
  });
  onTestFinished(() => gateway[Symbol.asyncDispose]());
  await gateway.ready;
  const { authenticate } = gateway;
  const listener = await listenHttp(gateway.server, { port, publicUrl: url, authenticate: authenticate! });
  onTestFinished(() => listener[Symbol.asyncDispose]());
  return { idp, gateway, url, port, log, calls };
}
