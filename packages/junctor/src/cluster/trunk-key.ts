import { createHash, hkdfSync } from "node:crypto";
import { connect as connectTls, type TLSSocket, type TlsOptions as NodeTlsOptions } from "node:tls";

/** A key that two replicas with the same secret share. */
export interface TrunkKey {
  /** The name of the key on the wire, which reveals nothing about the key. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** The keys of trunks, from the secrets of the gateway: the first is used, all of them are accepted. */
export function toTrunkKeys(secrets: readonly string[]): readonly TrunkKey[] {
  return secrets.map((secret) => {
    const bytes = Buffer.from(hkdfSync("sha256", secret, "", "junctor/trunk/v1", 32));
    return { name: `junctor-${createHash("sha256").update(bytes).digest("hex").slice(0, 16)}`, bytes };
  });
}

/** TLS 1.3 with a shared key proves both sides and has forward secrecy, without certificates. */
const cipher = { minVersion: "TLSv1.3", ciphers: "TLS_AES_128_GCM_SHA256" } as const;

/** The settings of a listener that lets in replicas with one of these keys, and nothing else. */
export function toTlsSettings(keys: readonly TrunkKey[]): NodeTlsOptions {
  return {
    ...cipher,
    pskCallback: (_socket, name) => keys.find((key) => key.name === name)?.bytes ?? null,
  };
}

/** Connects to the trunk of another replica with one of our keys. Fails when the other side does not have it. */
export function connectWithKey(host: string, port: number, key: TrunkKey): TLSSocket {
  return connectTls({
    ...cipher,
    host,
    port,
    pskCallback: () => ({ psk: key.bytes, identity: key.name }),
    // With the key agreed on there is no certificate. A server that shows one does not have the key, whichever authority signed it.
    checkServerIdentity: (_host, certificate) =>
      Object.keys(certificate ?? {}).length === 0
        ? undefined
        : new Error("a certificate in place of the key"),
  });
}
