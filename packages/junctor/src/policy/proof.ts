import { isDeepStrictEqual } from "node:util";
import { type Clock, Repeats } from "@junctor/core/async";
import type { Caller } from "@junctor/core/mcp";
import { defined } from "@junctor/core/options";
import type { Authenticate, Authenticated, AuthRequest } from "@junctor/server";
import { type ClientCertificate, toChallenge } from "@junctor/server/internal";
import type { GatewayConfig } from "../config/index.ts";
import type { GatewayLog } from "../log/index.ts";
import { parseBearer, digestOf, type RefusedToken, Tokens } from "../tokens/index.ts";

/** How the callers of a gateway prove who they are: by keys, and by tokens of issuers. */
interface Proof {
  readonly authenticate: Authenticate;
  /** Undefined while the config has no issuers. */
  readonly tokens: Tokens | undefined;
  /** Takes another config. Gives the names of callers whose proof is no longer good; undefined for those without a name. */
  apply(config: GatewayConfig): readonly (string | undefined)[];
}

export interface ProofParts {
  readonly clock: Clock;
  readonly log: GatewayLog;
  /** Called for tokens that are refused: for the first with each reason, then ever more rarely. */
  readonly onRefused?: (refused: RefusedToken) => void;
}

/** Callers by the hashes of their keys. */
type Keys = ReadonlyMap<string, Caller>;

/** Most callers with tokens that are remembered, to end what they have open when their issuer is taken away. */
const maxSeen = 10_000;

export function createProof(first: GatewayConfig, parts: ProofParts): Proof {
  const repeats = new Repeats({ clock: parts.clock });
  // Where the endpoint is does not change while it runs, and an edit must not choose which tokens are for it.
  const { publicUrl, tls } = first.http;
  const hasCertificates = tls?.clientCa !== undefined;
  const toTokens = ({ issuers }: GatewayConfig): Tokens | undefined => {
    if (issuers.length === 0 || publicUrl === undefined) return undefined;
    const byName = Object.fromEntries(issuers.map(({ name, ...options }) => [name, options]));
    return new Tokens({
      publicUrl,
      path: endpointPath,
      issuers: byName,
      fetch: (url, init) => fetch(url, init),
      clock: parts.clock,
      onRefused: (refused) => {
        const isNew = repeats.isNew(refused.reason);
        const times = repeats.note(refused.reason);
        if (times === undefined) return;
        parts.onRefused?.(refused);
        parts.log[isNew ? "warn" : "info"]({ ...refused, times }, "a token was refused");
      },
      onUnreachable: (issuer, error) => {
        const reason = error instanceof Error ? error.message : String(error);
        const cause = `${issuer} ${reason}`;
        const isNew = repeats.isNew(cause);
        if (repeats.note(cause) !== undefined)
          parts.log[isNew ? "warn" : "info"]({ issuer, reason }, "an issuer of tokens cannot be asked");
      },
    });
  };
  let keys = toKeys(first);
  let { issuers } = first;
  let tokens = toTokens(first);
  /** Names of callers with tokens, by the names of their issuers. */
  const seen = new Map<string, string>();
  const note = (caller: Authenticated): Authenticated => {
    if (typeof caller !== "object" || !("issuer" in caller) || seen.has(caller.name)) return caller;
    if (seen.size >= maxSeen) seen.clear();
    seen.set(caller.name, caller.issuer ?? "");
    return caller;
  };
  const authenticate = (header: Parameters<Authenticate>[0], request: AuthRequest = main): Proven => {
    const token = parseBearer(header("authorization"));
    if (token === undefined && hasCertificates && request.certificate !== undefined)
      return note(toCertificateCaller(request.certificate));
    if (token === undefined || token === "malformed") {
      if (tokens === undefined) return undefined;
      return token === undefined
        ? tokens.answers.challenge(request.path)
        : tokens.answers.malformed(request.path);
    }
    // A digest is looked up, never compared piece by piece, so how long it takes tells nothing of a key.
    const digest = digestOf(token.bearer);
    const caller = keys.get(digest);
    if (caller !== undefined || tokens === undefined) return caller;
    const checked = tokens.check(token.bearer, digest, request);
    return checked instanceof Promise ? checked.then(note) : checked;
  };
  const isOpen = (): boolean => keys.size === 0 && tokens === undefined && !hasCertificates;
  const answers = {
    documentAt: (path: string, isServed: (path: string) => boolean) =>
      tokens?.resources.documentAt(path, isServed),
    challengeFor: (scopes: readonly string[], path: string) =>
      tokens?.answers.challengeFor(scopes, path) ??
      toChallenge({ error: "insufficient_scope", metadataUrl: undefined, scopes }),
  };
  return {
    authenticate: Object.assign(authenticate, answers),
    get tokens() {
      return tokens;
    },
    apply: (config) => {
      const [before, wasOpen] = [keys, isOpen()];
      keys = toKeys(config);
      const lost = issuers.filter(
        (issuer) => !config.issuers.some((each) => isDeepStrictEqual(each, issuer)),
      );
      if (!isDeepStrictEqual(issuers, config.issuers)) tokens = toTokens(config);
      ({ issuers } = config);
      // Without keys and issuers every caller came in.
      if (wasOpen) return isOpen() ? [] : [undefined];
      const gone = [...before].filter(([hash, { name }]) => keys.get(hash)?.name !== name);
      const signedOut = [...seen].filter(([, issuer]) => lost.some((each) => each.issuer === issuer));
      for (const [name] of signedOut) seen.delete(name);
      return [...gone.map(([, { name }]) => name), ...signedOut.map(([name]) => name)];
    },
  };
}

type Proven = ReturnType<Authenticate>;

/** Where a gateway listens. */
const endpointPath = "/mcp";
const main: AuthRequest = { path: endpointPath };

function toKeys({ keys }: GatewayConfig): Keys {
  return new Map(
    keys.map(({ sha256, name, groups, scopes }) => [sha256, { name, ...defined({ groups, scopes }) }]),
  );
}

/** One caller for one certificate, so that all that is kept by caller is found again. */
const callers = new WeakMap<ClientCertificate, Caller>();

/** The caller of a client certificate: `cert:COMMON-NAME`, with its organizational units as groups. */
function toCertificateCaller(certificate: ClientCertificate): Caller {
  let caller = callers.get(certificate);
  if (caller === undefined) {
    const { name, units, issuer, expiresAt } = certificate;
    caller = { name: `cert:${name}`, issuer, subject: name, groups: units, expiresAt };
    callers.set(certificate, caller);
  }
  return caller;
}
