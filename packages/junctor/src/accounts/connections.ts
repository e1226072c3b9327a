import type { CredentialEvent } from "@junctor/client/internal";
import type { Clock } from "@junctor/core/async";
import type { Seal } from "@junctor/core/mcp";
import type { Authenticate } from "@junctor/server";
import type { Pages } from "@junctor/server/internal";
import { hasCertificates, isOpen, type GatewayConfig } from "../config/index.ts";
import type { Logins } from "../credentials/index.ts";
import type { GatewayLog } from "../log/index.ts";
import { logCredential } from "../upstream/index.ts";
import { createConnectPages } from "./connect-pages.ts";
import type { Links, Ticket } from "./links.ts";
import type { PerCallerServers } from "./per-caller-servers.ts";
import { createVisitors } from "./visitor.ts";
import { LinkVisits } from "./visits.ts";

interface ConnectionsOptions {
  readonly links: Links;
  readonly seal: Seal;
  readonly clock: Clock;
  readonly log: GatewayLog;
  readonly logins: Logins;
  readonly config: () => GatewayConfig;
  readonly fleet: { readonly perCaller: PerCallerServers };
  readonly admit: Authenticate;
  readonly onCredential: (server: string, event: CredentialEvent) => void;
}

/** The pages on which callers connect their accounts. `revoke` ends the visits and the accounts of a caller. */
export interface Connections {
  readonly pages: Pages;
  revoke(caller: string | undefined): void;
}

export function createConnections(options: ConnectionsOptions): Connections {
  const { links, seal, clock, log, logins, config, admit, onCredential } = options;
  const { perCaller } = options.fleet;
  const visits = new LinkVisits(clock);
  const issuers = (): GatewayConfig["issuers"] => config().issuers;
  const pages = createConnectPages({
    links,
    visits,
    visitors: createVisitors({ links, logins, clock, admit, issuers }),
    logins,
    seal,
    clock,
    servers: () => perCaller.all,
    issuerNames: () => issuers().map(({ name }) => name),
    onEvent: (server, event) => {
      logCredential(log, server, event);
      onCredential(server, event);
    },
  });
  return {
    pages,
    revoke: (caller) => {
      visits.revoke(caller);
      perCaller.revoke(caller);
    },
  };
}

/** Whether the config knows a caller by something that it can show on a page, and the caller was not revoked. */
export function isProvable(
  config: GatewayConfig,
  { caller, issuer, subject }: Pick<Ticket, "caller" | "issuer" | "subject">,
  isRevoked: (caller: string) => boolean,
): boolean {
  if (caller === undefined) return isOpen(config);
  if (isRevoked(caller)) return false;
  if (caller.startsWith("cert:")) return hasCertificates(config);
  if (issuer === undefined) return config.keys.some(({ name }) => name === caller);
  return config.issuers.some((each) => each.issuer === issuer && caller === `${each.name}:${subject}`);
}
