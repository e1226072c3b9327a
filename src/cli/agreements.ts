import { createHash } from "node:crypto";
import { realpathSync } from "node:fs";
import { join, resolve } from "node:path";
import { readPrivateFile, stateFolder, writePrivateFile } from "../gateway/user-files.ts";

/** A config that a person agreed to: where it is, and the hash of what it held. */
interface Agreement {
  readonly path: string;
  readonly sha256: string;
}

/** The oldest agreements are forgotten beyond this number. */
const maxAgreements = 200;
const maxBytes = 1024 * 1024;

/** Whether a person agreed to use this file with this text. */
export function isAgreed(file: string, text: string): boolean {
  const { path, sha256 } = toAgreement(file, text);
  return readAgreements().some((agreed) => agreed.path === path && agreed.sha256 === sha256);
}

/** Remembers that a person agreed. Another text of the same file is no longer agreed to. Throws the system's error. */
export function rememberAgreement(file: string, text: string): void {
  const agreement = toAgreement(file, text);
  const others = readAgreements().filter(({ path }) => path !== agreement.path);
  const agreed = [agreement, ...others].slice(0, maxAgreements);
  writePrivateFile(agreementsFile(), `${JSON.stringify({ agreed }, undefined, 2)}\n`);
}

const agreementsFile = (): string => join(stateFolder(), "agreed-configs.json");

function toAgreement(file: string, text: string): Agreement {
  return { path: realpathSync(resolve(file)), sha256: createHash("sha256").update(text).digest("hex") };
}

/** What cannot be read or is damaged is no agreement: the person is asked again. */
function readAgreements(): readonly Agreement[] {
  const text = readPrivateFile(agreementsFile(), maxBytes);
  if (text === undefined) return [];
  try {
    const { agreed } = JSON.parse(text) as { readonly agreed?: unknown };
    return Array.isArray(agreed) ? agreed.filter(isAgreement) : [];
  } catch {
    return [];
  }
}

function isAgreement(value: unknown): value is Agreement {
  if (typeof value !== "object" || value === null) return false;
  const { path, sha256 } = value as { readonly [key: string]: unknown };
  return typeof path === "string" && typeof sha256 === "string";
}
