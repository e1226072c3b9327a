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
export interface Proof {
  readonly authenticate: Authenticate;
  /** The judge of tokens; undefined without issuers. */
  readonly tokens: Tokens | undefined;
  readonly issuers: GatewayConfig["issuers"];
  /** Callers by the hashes of their keys. */
  readonly keys: ReadonlyMap<string, Caller>;
  /** Whether no caller can prove anything. */
  readonly isOpen: boolean;
  /** Callers that came in by a token, with the names of their issuers. The proofs of all configs of a gateway have one such list. */
  readonly signedIn: Map<string, string>;
  readonly repeats: Repeats;
}

export interface ProofOptions {
  readonly clock: Clock;
  readonly log: GatewayLog;
  /** Called for tokens that are refused: for the first with each reason, then ever more rarely. */
  readonly onRefused?: (refused: RefusedToken) => void;
}

/** The most callers with tokens that are remembered, to end what they have open when their issuer is taken away. */
const maxSeen = 10_000;

/** The proof that a config asks for. With the same issuers as an earlier config, what was learnt of them is kept. */
export function createProof(config: GatewayConfig, options: ProofOptions, earlier?: Proof): Proof {
  const { issuers } = config;
  const { repeats, signedIn } = earlier ?? {
    repeats: new Repeats({ clock: options.clock }),
    signedIn: new Map<string, string>(),
  };
  const hasCertificates = config.http.tls?.clientCa !== undefined;
  const keys = new Map(
    config.keys.map(({ sha256, name, groups, scopes }) => [sha256, { name, ...defined({ groups, scopes }) }]),
  );
  const isSame = isDeepStrictEqual(earlier?.issuers, issuers);
  const tokens = isSame ? earlier?.tokens : createTokens(config, options, repeats);
  const note = (caller: Authenticated): Authenticated => {
    if (typeof caller !== "object" || !("issuer" in caller) || signedIn.has(caller.name)) return caller;
    if (signedIn.size >= maxSeen) signedIn.clear();
    signedIn.set(caller.name, caller.issuer ?? "");
    return caller;
  };
  const authenticate = (
    header: Parameters<Authenticate>[0],
    request: AuthRequest = main,
  ): ReturnType<Authenticate> => {
    const token = parseBearer(header("authorization"));
    if (token === undefined && hasCertificates && request.certificate !== undefined)
      return note(toCertificateCaller(request.certificate));
    if (token === undefined || token === "malformed") {
      if (tokens === undefined) return undefined;
      return token === undefined
        ? tokens.answers.challenge(request.path)
        : tokens.answers.malformed(request.path);
    }
    // A digest is looked up, never compared piece by piece, so how long it takes says nothing about a key.
    const digest = digestOf(token.bearer);
    const caller = keys.get(digest);
    if (caller !== undefined || tokens === undefined) return caller;
    const checked = tokens.check(token.bearer, digest, request);
    return checked instanceof Promise ? checked.then(note) : checked;
  };
  const answers = {
    documentAt: (path: string, isServed: (path: string) => boolean) =>
      tokens?.resources.documentAt(path, isServed),
    challengeFor: (scopes: readonly string[], path: string) =>
      tokens?.answers.challengeFor(scopes, path) ??
      toChallenge({ error: "insufficient_scope", metadataUrl: undefined, scopes }),
  };
  return {
    authenticate: Object.assign(authenticate, answers),
    tokens,
    issuers,
    keys,
    isOpen: keys.size === 0 && tokens === undefined && !hasCertificates,
    signedIn,
    repeats,
  };
}

/** The callers whose proof is no longer good after an edit of the config; undefined for those without a name. */
export function findSignedOut(before: Proof, after: Proof): readonly (string | undefined)[] {
  // Without keys and issuers every caller came in.
  if (before.isOpen) return after.isOpen ? [] : [undefined];
  const gone = [...before.keys].filter(([hash, { name }]) => after.keys.get(hash)?.name !== name);
  const lost = before.issuers.filter(
    (issuer) => !after.issuers.some((each) => isDeepStrictEqual(each, issuer)),
  );
  const signedOut = [...after.signedIn].filter(([, issuer]) => lost.some((each) => each.issuer === issuer));
  for (const [name] of signedOut) after.signedIn.delete(name);
  return [...gone.map(([, { name }]) => name), ...signedOut.map(([name]) => name)];
}

function createTokens(
  { issuers, http: { publicUrl } }: GatewayConfig,
  { clock, log, onRefused }: ProofOptions,
  repeats: Repeats,
): Tokens | undefined {
  if (issuers.length === 0 || publicUrl === undefined) return undefined;
  return new Tokens({
    publicUrl,
    path: endpointPath,
    issuers: Object.fromEntries(issuers.map(({ name, ...options }) => [name, options])),
    fetch: (url, init) => fetch(url, init),
    clock,
    onRefused: (refused) => {
      const isNew = repeats.isNew(refused.reason);
      const times = repeats.note(refused.reason);
      if (times === undefined) return;
      onRefused?.(refused);
      log[isNew ? "warn" : "info"]({ ...refused, times }, "a token was refused");
    },
    onUnreachable: (issuer, error) => {
      const reason = error instanceof Error ? error.message : String(error);
      const cause = `${issuer} ${reason}`;
      const isNew = repeats.isNew(cause);
      if (repeats.note(cause) !== undefined)
        log[isNew ? "warn" : "info"]({ issuer, reason }, "an issuer of tokens cannot be asked");
    },
  });
}

/** Where a gateway listens. */
const endpointPath = "/mcp";
const main: AuthRequest = { path: endpointPath };

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
