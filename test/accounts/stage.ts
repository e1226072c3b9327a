import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inspect } from "node:util";
import { onTestFinished, vi } from "vitest";
import { createMemoryStore, type CredentialStore } from "../../packages/client/src/sign-in/credential.ts";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import type { Gateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { connect, type Client, type ConnectOptions } from "../../packages/junctor/src/index.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import type { HttpListener } from "../../packages/server/src/http/node.ts";
import { freePort } from "../support/free-ports.ts";
import {
  type IdentityProvider,
  type IdentityProviderOptions,
  startIdentityProvider,
} from "../support/identity-provider.ts";
import {
  type ProtectedServer,
  type ProtectedServerOptions,
  startProtectedServer,
} from "../support/protected-server.ts";
import { patience, until } from "../support/until.ts";
import { connectByKey } from "../support/visitor.ts";

export const keys = {
  ada: "key-of-ada-0123456789",
  bob: "key-of-bob-0123456789",
} as const;

/** A gateway whose callers have accounts of their own at one server, `safe`. */
export interface AccountStage {
  /** The authorization server of the server. */
  readonly idp: IdentityProvider;
  readonly server: ProtectedServer;
  readonly gateway: Gateway;
  readonly listener: HttpListener;
  readonly url: string;
  readonly store: CredentialStore;
  /** All that the gateway wrote: its log and its audit. */
  readonly written: () => string;
  readonly events: () => readonly { readonly [key: string]: unknown }[];
  /** The issuer of callers, where there is one. */
  readonly corp: IdentityProvider | undefined;
  /** The config, to update the gateway with parts of it. */
  readonly config: { readonly mcpServers: object; readonly junctor: { readonly [key: string]: unknown } };
  /** A client of one of the callers. */
  readonly as: (caller: keyof typeof keys, options?: ConnectOptions) => Promise<Client>;
}

interface StageOptions {
  readonly idp?: IdentityProviderOptions;
  readonly server?: Partial<ProtectedServerOptions>;
  readonly junctor?: { readonly [key: string]: unknown };
  readonly safe?: object;
  /** Without keys, callers have no names. */
  readonly hasKeys?: boolean;
  /** Whether callers may come with tokens of an issuer, `corp`. */
  readonly hasIssuer?: boolean;
  readonly store?: CredentialStore;
}

export async function startStage(options: StageOptions = {}): Promise<AccountStage> {
  const { hasKeys = true, store = createMemoryStore() } = options;
  const idp = await startIdentityProvider(options.idp);
  onTestFinished(() => idp[Symbol.asyncDispose]());
  const server = await startProtectedServer({
    issuers: [idp.issuer],
    find: idp.find,
    hasNotes: true,
    ...options.server,
  });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const folder = mkdtempSync(join(tmpdir(), "junctor-accounts-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const lines: string[] = [];
  const write = (facts: object, text: string): void => void lines.push(inspect([facts, text], { depth: 9 }));
  const file = join(folder, "audit.jsonl");
  const corp = options.hasIssuer === true ? await startIdentityProvider({ tokens: "jwt" }) : undefined;
  if (corp !== undefined) onTestFinished(() => corp[Symbol.asyncDispose]());
  const port = corp === undefined ? 0 : await freePort();
  const publicUrl = `http://127.0.0.1:${port}/mcp`;
  const ofCorp = { http: { publicUrl }, issuers: { corp: { issuer: corp?.issuer, scopes: ["read"] } } };
  const config = {
    mcpServers: { safe: { url: server.url } },
    junctor: {
      audit: { file },
      servers: { safe: { credentials: "perCaller", ...options.safe } },
      ...(hasKeys ? { keys: { ada: { env: "ADA" }, bob: { env: "BOB" } } } : {}),
      ...(corp === undefined ? {} : ofCorp),
      ...options.junctor,
    },
  };
  const gateway = await createGateway(config, {
    credentials: store,
    env: { ADA: keys.ada, BOB: keys.bob },
    log: { debug: write, info: write, warn: write, error: write },
  });
  onTestFinished(() => gateway.close());
  const { authenticate, pages } = gateway;
  const listener = await listenHttp(gateway.server, {
    port,
    ...(corp === undefined ? {} : { publicUrl }),
    ...(authenticate === undefined ? {} : { authenticate }),
    ...(pages === undefined ? {} : { pages }),
    onWarning: (text, error) => write({ error }, text),
  });
  onTestFinished(() => listener.close());
  const text = (): string => (existsSync(file) ? readFileSync(file, "utf8") : "");
  return {
    idp,
    server,
    gateway,
    listener,
    url: listener.url,
    store,
    corp,
    config,
    written: () => lines.join("\n") + text(),
    events: () =>
      text()
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as { readonly [key: string]: unknown })
        .filter(({ kind }) => kind === "event"),
    as: async (caller, more = {}) => {
      const headers = { authorization: `Bearer ${keys[caller]}` };
      const client = await connect(listener.url, { headers, ...more });
      onTestFinished(() => client.close());
      return client;
    },
  };
}

/** Waits until a check holds. The audit is written a moment after what it tells of. */
export async function eventually(check: () => void | Promise<void>): Promise<void> {
  await vi.waitFor(check, patience);
}

/** The text of a result. */
export async function textOf(client: Client, tool: string): Promise<string> {
  const { content } = await client.callTool(tool);
  return content.map((item) => ("text" in item ? item.text : "")).join("");
}

/** The names of the tools that a client sees. */
export async function namesOf(client: Client): Promise<readonly string[]> {
  return (await client.listTools()).map(({ name }) => name);
}

/** The link that a caller gets whose client shows no pages. */
export async function askForLink(client: Client): Promise<string> {
  return linkIn(await textOf(client, "safe__connect"));
}

/** Connects the account of a caller, and gives its client. */
export async function connectAs(
  stage: AccountStage,
  caller: keyof typeof keys,
  account: string,
): Promise<Client> {
  const client = await stage.as(caller);
  stage.idp.account = account;
  await connectByKey(await askForLink(client), keys[caller], stage.idp);
  await until(async () => (await namesOf(client)).includes("safe__read"));
  return client;
}

/** Where the credential of a caller is stored. */
export function idOf({ server }: AccountStage, owner: unknown): string {
  return JSON.stringify([
    "credential",
    server.url,
    typeof owner === "string" ? owner : JSON.stringify(owner),
  ]);
}

/** The link in a text that tells to connect an account. */
export function linkIn(text: string): string {
  const [link] = /http:\/\/127\.0\.0\.1:\d+\/connect\/[\w.-]+/.exec(text) ?? [];
  if (link === undefined) throw new Error(`There is no link in: ${text}`);
  return link;
}
