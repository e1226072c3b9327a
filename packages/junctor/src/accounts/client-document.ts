import type { PageAnswer } from "@junctor/server/internal";
import { callbackPath, documentPath, identityPath, type Links } from "./links.ts";
import type { PerCallerServer } from "./per-caller-server.ts";

interface DocumentParts {
  readonly links: Links;
  readonly servers: () => readonly PerCallerServer[];
  readonly issuerNames: () => readonly string[];
}

/** What authorization servers read of the gateway as a client. */
export function toDocument({ links, servers, issuerNames }: DocumentParts): PageAnswer {
  const { origin = "" } = links;
  const callbacks = servers().map(({ config: { name } }) => `${callbackPath}${encodeURIComponent(name)}`);
  const paths = [...callbacks, ...issuerNames().map((name) => `${identityPath}${name}`)];
  const document = {
    client_id: `${origin}${documentPath}`,
    client_name: "Junctor",
    client_uri: origin,
    redirect_uris: paths.map((path) => `${origin}${path}`),
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: links.isLocal ? "native" : "web",
  };
  const headers = { "content-type": "application/json", "cache-control": "max-age=300" };
  return { status: 200, headers, body: JSON.stringify(document) };
}
