import { readFileSync, statSync } from "node:fs";
import type { Server as HttpServer, ServerOptions as HttpServerOptions } from "node:http";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import { createSecureContext, type DetailedPeerCertificate, type PeerCertificate, TLSSocket } from "node:tls";
import { TlsError } from "@junctor/core/errors";
import type { ClientCertificate } from "./authenticate.ts";
import type { OnWarning } from "./endpoint.ts";

/** The files for TLS of a listener. They are read again when they change. */
export interface TlsOptions {
  /** The path of the certificate and its chain, as PEM. */
  readonly cert: string;
  /** The path of its key, as PEM. */
  readonly key: string;
  /** The path of the authorities whose certificates clients may present, as PEM. Without it clients are not asked for one. */
  readonly clientCa?: string;
  /** How often we check whether a file changed; 2 s. */
  readonly lookEveryMs?: number;
}

/** The contents of the files, as a TLS server takes them. */
interface TlsFiles {
  readonly cert: Buffer;
  readonly key: Buffer;
  readonly ca?: Buffer;
}

/** Reads the files, and checks that they fit together. Throws `TlsError`. */
function readTlsFiles({ cert, key, clientCa }: TlsOptions): TlsFiles {
  try {
    const files = {
      cert: readFileSync(cert),
      key: readFileSync(key),
      ...(clientCa === undefined ? {} : { ca: readFileSync(clientCa) }),
    };
    createSecureContext(files);
    return files;
  } catch (error) {
    throw new TlsError(error);
  }
}

/** A listener that speaks TLS. */
export function createTlsListener(settings: HttpServerOptions, tls: TlsOptions): HttpServer {
  return createHttpsServer({
    ...settings,
    ...readTlsFiles(tls),
    handshakeTimeout: settings.headersTimeout ?? 10_000,
    // A client without a certificate may have a key or a token.
    requestCert: tls.clientCa !== undefined,
    rejectUnauthorized: false,
  });
}

/** Updates a listener whenever one of the files has changed. Files that do not fit are not used. Returns a function that stops it. */
export function followTlsFiles(listener: HttpServer, options: TlsOptions, onWarning: OnWarning): () => void {
  const server = listener as HttpsServer;
  const paths = [options.cert, options.key, options.clientCa].filter((path) => path !== undefined);
  const stateOf = (): string => paths.map(stampOf).join(" ");
  let used = stateOf();
  /** The state that did not fit, and whether a warning was given. */
  let failed = "";
  let hasWarned = false;
  const look = (): void => {
    const state = stateOf();
    if (state === used) return;
    try {
      server.setSecureContext(readTlsFiles(options));
      used = state;
    } catch (error) {
      // No warning at the first failure: the files are written one after the other, and a new one does not fit an old one.
      if (failed === state && !hasWarned)
        onWarning("The new certificate is not used, and the old one is still", error);
      hasWarned = failed === state;
      failed = state;
    }
  };
  const timer = setInterval(look, options.lookEveryMs ?? 2000);
  timer.unref();
  return () => clearInterval(timer);
}

/** Identifies the state of a file. It differs when the file was changed or replaced, also behind a link. */
function stampOf(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats === undefined ? "missing" : `${stats.ino}-${stats.mtimeMs}-${stats.size}`;
}

/** Certificates by socket, because a client authenticates once per connection. */
const known = new WeakMap<object, ClientCertificate | "none">();

/** The certificate that the client of a socket proved to own, if an authority that we trust signed it. */
export function certificateOf(socket: object): ClientCertificate | undefined {
  if (!(socket instanceof TLSSocket)) return undefined;
  let certificate = known.get(socket);
  if (certificate === undefined) {
    certificate = (socket.authorized ? toCertificate(socket.getPeerCertificate()) : undefined) ?? "none";
    known.set(socket, certificate);
  }
  return certificate === "none" ? undefined : certificate;
}

/** The certificate of a client; undefined if it does not have exactly one common name. */
function toCertificate(peer: PeerCertificate | DetailedPeerCertificate): ClientCertificate | undefined {
  const { subject, issuer, valid_to: until, fingerprint256 = "" } = peer as Partial<PeerCertificate>;
  const name: unknown = subject?.CN;
  const expiresAt = Date.parse(until ?? "");
  if (typeof name !== "string" || name === "" || Number.isNaN(expiresAt)) return undefined;
  const units = [(subject as { readonly OU?: string | readonly string[] }).OU ?? []].flat();
  const thumbprint = Buffer.from(fingerprint256.replaceAll(":", ""), "hex").toString("base64url");
  return { name, units, issuer: String(issuer?.CN ?? ""), expiresAt, thumbprint };
}
