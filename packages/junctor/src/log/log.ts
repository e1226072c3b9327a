import { StringDecoder } from "node:string_decoder";
import { type Clock, systemClock } from "@junctor/core/async";
import { TextTail } from "@junctor/core/channel";
import { rewriteStrings, rewriteTexts } from "@junctor/core/json";
import type { StartProgress } from "@junctor/core/mcp";

/** Where the gateway says what happens: the part of pino it uses. */
export interface GatewayLog {
  debug(facts: object, text: string): void;
  info(facts: object, text: string): void;
  warn(facts: object, text: string): void;
  error(facts: object, text: string): void;
  /** Whether lines of a level are written at all. Where it is missing, all are. It saves the work of formatting lines that are dropped. */
  isLevelEnabled?(level: GatewayLogLevel): boolean;
}

export type GatewayLogLevel = "debug" | "info" | "warn" | "error";

/** Drops everything. */
export const silentLog: GatewayLog = {
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  isLevelEnabled: () => false,
};

/** Takes secrets out of the strings of JSON text; with a server, also the secrets of that server. */
export type HideSecrets = (json: string, server?: string) => string;

/** The secrets of a config: those that are hidden everywhere, and by server those that are hidden in texts about it. */
interface Secrets {
  readonly secrets: readonly string[];
  readonly ownSecrets: { readonly [server: string]: readonly string[] };
}

/** A log without secrets: they are removed from messages and from all members of the logged objects. */
export function createSafeLog(log: GatewayLog, hide: HideSecrets): GatewayLog {
  const isEnabled = (level: GatewayLogLevel): boolean => log.isLevelEnabled?.(level) ?? true;
  const safely =
    (level: GatewayLogLevel) =>
    (facts: object, text: string): void => {
      if (!isEnabled(level)) return;
      const { server } = facts as { readonly server?: unknown };
      const hideIn = typeof server === "string" ? (json: string) => hide(json, server) : hide;
      const json = JSON.stringify([facts, text]);
      const [shownFacts, shownText] = hideEverywhere(json, (each) => hideIn(each)) as [object, string];
      log[level](shownFacts, shownText);
    };
  return {
    debug: safely("debug"),
    info: safely("info"),
    warn: safely("warn"),
    error: safely("error"),
    isLevelEnabled: isEnabled,
  };
}

/** Stands for a secret. */
export const secretMark = "[secret]";

/** Takes secrets out of the strings of JSON text; of a secret of several lines, each line. */
export function createHide(secrets: (server?: string) => readonly string[]): HideSecrets {
  const hideIn = (value: string, server: string | undefined): string =>
    secrets(server)
      .flatMap((secret) => [secret, ...secret.split("\n")])
      .filter((part) => part.length >= minLength)
      .reduce((shown, part) => shown.replaceAll(part, secretMark), value);
  return (json, server) => rewriteStrings(json, (value) => hideIn(value, server));
}

/** The secrets of a config that are hidden everywhere; with a server, also those that are hidden in texts about it. */
export function secretsAt({ secrets, ownSecrets }: Secrets, server?: string): readonly string[] {
  const own = server !== undefined && Object.hasOwn(ownSecrets, server) ? ownSecrets[server] : undefined;
  return own === undefined ? secrets : joinSecrets(secrets, own);
}

/** Every secret of a config, whatever it is shown in. */
export function allSecrets({ secrets, ownSecrets }: Secrets): readonly string[] {
  return joinSecrets(secrets, Object.values(ownSecrets).flat());
}

/** The secrets of two configs, each server's with its own. */
export function joinOwnSecrets(
  one: Secrets["ownSecrets"],
  other: Secrets["ownSecrets"],
): Secrets["ownSecrets"] {
  const servers = new Set([...Object.keys(one), ...Object.keys(other)]);
  return Object.fromEntries(
    [...servers].map((name) => [name, joinSecrets(one[name] ?? [], other[name] ?? [])]),
  );
}

/** Each secret once, the longest first: a secret may be the beginning of another, of which the rest would be shown. */
export function joinSecrets(one: readonly string[], other: readonly string[]): readonly string[] {
  return [...new Set([...one, ...other])].toSorted((a, b) => b.length - a.length);
}

/** Shorter texts would hide half of every line. */
const minLength = 6;

/** A JSON text without secrets in its strings, its keys and its numbers. For texts that are written to a file. */
export function hideEverywhere(json: string, hide: (json: string) => string): unknown {
  const hideAll = (texts: readonly string[]): string[] => JSON.parse(hide(JSON.stringify(texts))) as string[];
  return JSON.parse(rewriteTexts(json, hideAll));
}

/** The same data without secrets in its strings. */
export function hideInData<T>(data: T, hide: (json: string) => string): T {
  return data === undefined ? data : (JSON.parse(hide(JSON.stringify(data))) as T);
}

/** A secret may be a phrase or a word. Such a value may well be part of a name or a URI in a list, and must stay there. */
export function isStrongSecret(value: string): boolean {
  return value.length >= 8 && /\d/.test(value) && /[A-Za-z]/.test(value) && !/[/\\\s]/.test(value);
}

/** Longest piece of a line that is logged. */
const maxLineLength = 2000;

/** The most lines of one child that are logged in a second; a child that floods must not flood the log. */
const maxLinesPerSecond = 50;

/** Logs what a child writes to its standard error stream, line by line. */
export function createStderrLog(
  server: string,
  log: GatewayLog,
  clock: Clock = systemClock,
): (chunk: Uint8Array) => void {
  const decoder = new StringDecoder("utf8");
  let rest = "";
  let second = 0;
  let lines = 0;
  const write = (line: string): void => {
    const now = Math.floor(clock.now() / 1000);
    if (now !== second) {
      if (lines > maxLinesPerSecond)
        log.debug({ server, dropped: lines - maxLinesPerSecond }, "lines of stderr left out");
      second = now;
      lines = 0;
    }
    if (++lines <= maxLinesPerSecond) log.debug({ server, stderr: line.slice(0, maxLineLength) }, "stderr");
  };
  return (chunk) => {
    const pieces = `${rest}${decoder.write(Buffer.from(chunk))}`.split(/\r?\n/);
    rest = (pieces.pop() ?? "").slice(-maxLineLength);
    for (const piece of pieces) if (piece.trim() !== "") write(piece);
  };
}

/** What the process of a server wrote besides messages. */
export interface Words {
  /** The end of what it wrote to its standard error stream. */
  readonly said: string;
  /** The first line on its standard output that is not a message; empty when there was none. */
  readonly stray: string;
  /** A number that grows while the process shows signs of progress: text on its standard error stream, or processor time. */
  readonly progress?: number;
}

/** How much of it is kept. */
const maxBytes = 4096;

/** Processor time that counts as a sign of progress, as it is to a client that waits for a start. */
const progressMs = 100;

/** What the latest process of one server wrote besides messages, also while it is still starting. */
export class ServerWords implements Words {
  #tail = new TextTail(maxBytes);
  #stray = "";
  #measure: (() => StartProgress) | undefined;

  get progress(): number {
    const { stderrBytes, processorMs } = this.#measure?.() ?? { stderrBytes: 0, processorMs: 0 };
    return stderrBytes + Math.floor(processorMs / progressMs);
  }

  get said(): string {
    return this.#tail.text.trim();
  }

  get stray(): string {
    return this.#stray;
  }

  /** Another process is started. */
  begin(): void {
    this.#tail = new TextTail(maxBytes);
    this.#stray = "";
    this.#measure = undefined;
  }

  /** It runs; `measure` says how busy it is. */
  watch(measure: () => StartProgress): void {
    this.#measure = measure;
  }

  hearStderr(chunk: Uint8Array): void {
    this.#tail.push(chunk);
  }

  hearStray(line: string): void {
    if (this.#stray === "") this.#stray = line;
  }
}
