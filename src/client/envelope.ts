import { prependMembers } from "../json/join.ts";
import { RawJson } from "../json/raw.ts";
import { metaKeys } from "../mcp/meta-keys.ts";
import type { ModernRevision } from "../mcp/revision.ts";
import type { ClientCapabilities, Implementation, LogLevel } from "../mcp/types.ts";

/** What changes from one request to the next. */
interface EnvelopeExtras {
  readonly progressToken?: number | undefined;
  readonly logLevel?: LogLevel | undefined;
  /** Declared instead of the client's own, when the request is made for somebody else. */
  readonly capabilities?: ClientCapabilities | undefined;
  /** More members, as JSON text. */
  readonly meta?: string | undefined;
}

/** Puts `_meta` on params: what every modern request says of its sender, and the progress token of either era. */
export type AddEnvelope = (params: RawJson | undefined, extras: EnvelopeExtras) => RawJson | undefined;

const empty = RawJson.fromText("{}");

/** For modern servers. What never changes is written once. */
export function createModernEnvelope(
  revision: ModernRevision,
  info: Implementation,
  own: ClientCapabilities,
): AddEnvelope {
  const head = `"${metaKeys.protocolVersion}":"${revision}","${metaKeys.clientInfo}":${JSON.stringify(info)}`;
  const ownCapabilities = JSON.stringify(own);
  return (params, { progressToken, logLevel, capabilities, meta }) => {
    const declared = capabilities === undefined ? ownCapabilities : JSON.stringify(capabilities);
    const token = progressToken === undefined ? "" : `,"progressToken":${progressToken}`;
    const level = logLevel === undefined ? "" : `,"${metaKeys.logLevel}":"${logLevel}"`;
    const more = meta === undefined ? "" : `,${meta}`;
    return prependMembers(
      `"_meta":{${head},"${metaKeys.clientCapabilities}":${declared}${token}${level}${more}}`,
      params ?? empty,
    );
  };
}

/** For legacy servers, which know all that from the handshake. */
export const addLegacyEnvelope: AddEnvelope = (params, { progressToken, meta }) => {
  const token = progressToken === undefined ? undefined : `"progressToken":${progressToken}`;
  const members = token === undefined || meta === undefined ? (token ?? meta) : `${token},${meta}`;
  return members === undefined ? params : prependMembers(`"_meta":{${members}}`, params ?? empty);
};
