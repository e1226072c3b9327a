import { once } from "node:events";
import { createServer as createListener, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import {
  createRegistry,
  createServer,
  elicit,
  inputRequired,
  toFetchHandler,
} from "../../packages/junctor/src/index.ts";
import type { IssuedToken } from "./identity-provider.ts";

export interface ProtectedServerOptions {
  /** The issuers it names. */
  readonly issuers: readonly string[];
  readonly find: (token: string) => Promise<IssuedToken | undefined>;
  /** Scopes that a call of `write` needs. */
  readonly scopesOfWrite?: string;
  /** More of its metadata, or other values. */
  readonly metadata?: { readonly [key: string]: unknown };
  /** Whether each account has a tool `notes_of_ACCOUNT` beside the others. */
  readonly hasNotes?: boolean;
  /** Whether callers without a token may see the lists. */
  readonly listsToAll?: boolean;
  /** Whether it knows the legacy eras only, and so asks in the middle of a call: the tool `greet` does. */
  readonly asks?: boolean;
}

/** An MCP server that wants tokens of an authorization server. */
export interface ProtectedServer extends AsyncDisposable {
  readonly url: string;
  /** Requests that it let through. */
  readonly served: { readonly token: string; readonly body: string }[];
  issuers: readonly string[];
  /** Tokens it takes no more. */
  readonly revoked: Set<string>;
}

export async function startProtectedServer(options: ProtectedServerOptions): Promise<ProtectedServer> {
  const { find, scopesOfWrite, metadata = {} } = options;
  /** What is served to an account. */
  const handlers = new Map<string, ReturnType<typeof toFetchHandler>>();
  const handlerFor = (account: string): ReturnType<typeof toFetchHandler> => {
    let handler = handlers.get(account);
    if (handler === undefined) {
      const registry = createRegistry();
      registry.register("read", { description: "Reads." }, () => "read");
      registry.register("write", { description: "Writes." }, () => "written");
      if (account !== "") registry.register(`notes_of_${account}`, {}, () => `notes of ${account}`);
      if (options.asks === true)
        registry.register("greet", {}, (_, { answers }) => {
          const answer = answers.elicited("it");
          return answer?.action === "accept"
            ? `${String(answer.content?.["name"])} of ${account}`
            : inputRequired({ it: elicit("Who?", { name: { type: "string" } }, ["name"]) });
        });
      const serves = options.asks === true ? "legacy" : "both";
      handler = toFetchHandler(createServer(registry, { name: "protected", version: "1.0.0" }, { serves }));
      handlers.set(account, handler);
    }
    return handler;
  };
  const served: { token: string; body: string }[] = [];
  const revoked = new Set<string>();
  const state = { issuers: options.issuers };

  const answer = async (request: IncomingMessage, origin: string): Promise<Response> => {
    const url = `${origin}/mcp`;
    if (request.url === "/.well-known/oauth-protected-resource/mcp")
      return Response.json({ resource: url, authorization_servers: state.issuers, ...metadata });
    if (request.url !== "/mcp") return new Response("not here", { status: 404 });
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    const at = `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    const isOpen = options.listsToAll === true && !body.includes('"tools/call"');
    const open = { aud: url, isExpired: false, scope: "" };
    const given = revoked.has(token) ? undefined : await find(token);
    const found: IssuedToken | undefined = given ?? (isOpen ? open : undefined);
    if (found === undefined || found.isExpired || found.aud !== url)
      return new Response(null, { status: 401, headers: { "www-authenticate": `Bearer ${at}` } });
    const isMissing = (scope: string): boolean => !(found.scope ?? "").split(" ").includes(scope);
    const wanted = body.includes('"write"') ? (scopesOfWrite?.split(" ") ?? []) : [];
    if (wanted.some(isMissing)) {
      const challenge = `Bearer error="insufficient_scope", scope="${wanted.join(" ")}", ${at}`;
      return new Response(null, { status: 403, headers: { "www-authenticate": challenge } });
    }
    served.push({ token, body });
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers)) headers.set(name, String(value));
    const init = { method: request.method ?? "GET", headers };
    const handler = handlerFor(options.hasNotes === true ? (found.accountId ?? "") : "");
    return handler(new Request(url, body === "" ? init : { ...init, body }));
  };

  const listener = createListener((request, response) => {
    const origin = `http://${request.headers.host}`;
    void answer(request, origin).then(async (reply) => {
      response.writeHead(reply.status, Object.fromEntries(reply.headers));
      if (reply.body !== null) for await (const chunk of reply.body) response.write(chunk);
      response.end();
    });
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  return Object.assign(state, {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}/mcp`,
    served,
    revoked,
    [Symbol.asyncDispose]: async () => {
      listener.closeAllConnections();
      listener.close();
      await once(listener, "close");
    },
  });
}
