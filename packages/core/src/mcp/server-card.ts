import { packageVersion } from "../options/index.ts";

/** What a server says of itself to everyone, before anyone connects. SEP-2127 is a draft: addresses and form may change. */
export interface ServerCard {
  /** In reverse order of a domain, such as `com.example/gateway`. */
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  /** That of Junctor when left out. */
  readonly version?: string;
}

export const cardType = "application/mcp-server-card+json";
const schema = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json";

/** Whether a text can name a server in its card: a domain in reverse order, a slash and a name. */
export function isCardName(name: string): boolean {
  return namePattern.test(name);
}

const namePattern = /^([a-z0-9-]+(?:\.[a-z0-9-]+)+)\/([\w.-]+)$/i;

/** The card of a server and a catalog with it alone. They name no tools, no extensions and no servers behind a gateway. */
export function toCardPages(
  { name, title, description, version = packageVersion }: ServerCard,
  url: string,
  supportedProtocolVersions: readonly string[],
): { readonly card: object; readonly catalog: object } {
  const [, domain, short] = namePattern.exec(name) ?? [];
  if (domain === undefined || typeof description !== "string")
    throw new TypeError('serverCard: write { name: "com.example/gateway", description: "…" }');
  const card = {
    $schema: schema,
    name,
    version,
    ...(title === undefined ? {} : { title }),
    description,
    remotes: [{ type: "streamable-http", url, supportedProtocolVersions }],
    _meta: { "dev.junctor/draft": "SEP-2127" },
  };
  const identifier = `urn:air:${domain.split(".").toReversed().join(".")}:mcp:${short}`;
  const entry = { identifier, type: cardType, url: `${url.replace(/\/$/, "")}/server-card` };
  return { card, catalog: { specVersion: "1.0", entries: [entry] } };
}
