import { Buffer } from "node:buffer";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Duplex } from "node:stream";
import { junctor } from "../invocation/index.ts";

/** The versions of the protocol that a front and a daemon speak before MCP: this one and the one before it. */
export const spoken: Versions = { newest: 1, oldest: 1 };

interface Versions {
  readonly newest: number;
  readonly oldest: number;
}

/** What a program asks of the daemon instead of serving a client. */
export type ControlRequest = (typeof controlRequests)[number];

/** `servers` asks for the state of the servers that a front with the same facts would get; `restart` names a server of any front. */
const controlRequests = ["status", "stop", "probe", "servers", "restart"] as const;

/** What a front says about itself once both sides proved that they know the key. */
export interface Introduction {
  /** The version of the package. */
  readonly build: string;
  readonly pid: number;
  /** Random, the same for as long as the front lives. */
  readonly id: string;
  /** Which program started the front, as `junctor install` wrote it. */
  readonly client?: string;
  readonly profile?: string;
  /** The folder of the project; undefined when it is not known. */
  readonly workspace?: string;
  readonly control?: ControlRequest;
  /** The server that is to be restarted. */
  readonly server?: string;
}

/** What the daemon says first. */
interface DaemonGreeting {
  readonly version: number;
  readonly nonce: string;
  readonly proof: string;
  readonly build: string;
  readonly pid: number;
}

/** The facts about a daemon that proved itself. */
export type DaemonFacts = Pick<DaemonGreeting, "build" | "pid" | "version">;

/** The other side cannot be trusted or understood, or refused us. */
export class HelloError extends Error {
  override readonly name = "HelloError";
  readonly reason: "version" | "proof" | "refused" | "silent";

  constructor(reason: HelloError["reason"], text: string) {
    super(text);
    this.reason = reason;
  }
}

/** How long each line of a hello may take. */
const patienceMs = 2000;
const maxLineBytes = 4 * 1024 * 1024;

interface FrontHello {
  readonly key: Buffer;
  readonly introduction: Introduction;
  /** The values of the variables that the daemon asks for. */
  readonly env: { readonly [name: string]: string | undefined };
  readonly versions?: Versions;
  /** How long the answer to a control request may take; 2 s. */
  readonly answerMs?: number | undefined;
}

/**
 * Says hello to a daemon. Resolves with the facts about it when it is ready for MCP lines, or with its answer to a control
 * request. Rejects with a `HelloError`. The stream is left paused, at the first byte after the hello.
 */
export async function greetDaemon(
  stream: Duplex,
  { key, introduction, env, versions = spoken, answerMs }: FrontHello,
): Promise<{ readonly daemon: DaemonFacts; readonly answer: unknown }> {
  const lines = createLineTaker(stream);
  const nonce = randomBytes(16).toString("hex");
  write(stream, { junctor: versions.newest, oldest: versions.oldest, nonce });
  const greeting = (await lines.next()) as Partial<DaemonGreeting> & { readonly refused?: string };
  if (greeting.refused !== undefined) throw new HelloError("version", greeting.refused);
  const { version = 0, nonce: theirs = "", proof = "", build = "", pid = 0 } = greeting;
  if (!isProof(proof, proofOf(key, "daemon", nonce, theirs)))
    throw new HelloError("proof", "the process at the daemon's socket does not know the key");
  write(stream, { proof: proofOf(key, "front", nonce, theirs), ...introduction });
  let reply = (await lines.next(answerMs)) as DaemonReply;
  if (reply.variables !== undefined) {
    const values = reply.variables.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]]));
    write(stream, { env: Object.fromEntries(values) as object });
    reply = await lines.next(answerMs ?? longPatienceMs);
  }
  if (reply.refused !== undefined) throw new HelloError("refused", reply.refused);
  const daemon = { build, pid, version };
  if (introduction.control !== undefined) return { daemon, answer: reply.answer };
  if (reply.ready !== true) throw new HelloError("silent", "the daemon gives way to another");
  lines.release();
  return { daemon, answer: undefined };
}

/** The daemon's reply to an introduction: it asks for variables, is ready, answers a control request, or refuses. */
interface DaemonReply {
  readonly variables?: readonly string[];
  readonly ready?: boolean;
  readonly answer?: unknown;
  readonly refused?: string;
}

/** A daemon may have to read modules of its config before it can serve. */
const longPatienceMs = 10_000;

/** A front that proved itself, and how to go on with it. */
export interface GreetedFront {
  readonly introduction: Introduction;
  readonly version: number;
  /** Asks for the values of these variables. */
  askFor(variables: readonly string[]): Promise<{ readonly [name: string]: string }>;
  /** Everything is ready: MCP lines follow. */
  ready(): void;
  refuse(text: string): void;
  answer(answer: unknown): void;
}

/** Takes the hello of a front. Rejects with a `HelloError` when it does not know the key or says nothing. */
export async function greetFront(
  stream: Duplex,
  {
    key,
    build,
    versions = spoken,
  }: {
    readonly key: Buffer;
    readonly build: string;
    readonly versions?: Versions;
  },
): Promise<GreetedFront> {
  const lines = createLineTaker(stream, maxHelloBytes);
  const first = (await lines.next()) as {
    readonly junctor?: unknown;
    readonly oldest?: unknown;
    readonly nonce?: unknown;
  };
  const version = pickVersion(versions, { newest: Number(first.junctor), oldest: Number(first.oldest) });
  if (version === undefined) {
    const text = `the daemon (junctor ${build}) speaks versions ${versions.oldest} to ${versions.newest}, and the front ${String(first.oldest)} to ${String(first.junctor)}: run "${junctor("restart")}"`;
    write(stream, { refused: text });
    throw new HelloError("version", text);
  }
  const theirs = String(first.nonce);
  const nonce = randomBytes(16).toString("hex");
  write(stream, { version, nonce, proof: proofOf(key, "daemon", theirs, nonce), build, pid: process.pid });
  const { proof, ...introduction } = (await lines.next()) as Introduction & { readonly proof?: unknown };
  if (!isProof(String(proof), proofOf(key, "front", theirs, nonce)))
    throw new HelloError("proof", "a program that does not know the key asked for the daemon");
  return {
    introduction: toIntroduction(introduction),
    version,
    askFor: async (variables) => {
      lines.maxBytes = maxLineBytes;
      write(stream, { variables });
      const { env } = (await lines.next()) as { readonly env?: unknown };
      return toTexts(env, new Set(variables));
    },
    ready: () => {
      lines.release();
      write(stream, { ready: true });
    },
    refuse: (text) => void stream.end(`${JSON.stringify({ refused: text })}\n`),
    answer: (answer) => void stream.end(`${JSON.stringify({ answer })}\n`),
  };
}

/** A front that has not proved itself must not make the daemon hold much. */
const maxHelloBytes = 16 * 1024;

/** The newest version that both sides speak. */
export function pickVersion(ours: Versions, theirs: Versions): number | undefined {
  const newest = Math.min(ours.newest, theirs.newest);
  return newest >= Math.max(ours.oldest, theirs.oldest) ? newest : undefined;
}

/** The side is part of it, so that neither can send back the proof of the other. */
function proofOf(key: Buffer, side: "front" | "daemon", front: string, daemon: string): string {
  return createHmac("sha256", key).update(`junctor ${side} ${front} ${daemon}`).digest("hex");
}

function isProof(proof: string, expected: string): boolean {
  const [one, other] = [Buffer.from(proof), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}

function toIntroduction(claimed: Introduction): Introduction {
  const text = (value: unknown): string | undefined =>
    typeof value === "string" && value !== "" ? value.slice(0, 4096) : undefined;
  const { client, profile, workspace, server } = claimed;
  const optional = {
    client: text(client),
    profile: text(profile),
    workspace: text(workspace),
    server: text(server),
  };
  const named = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined));
  const control = controlRequests.find((word) => word === claimed.control);
  return {
    build: text(claimed.build) ?? "",
    pid: claimed.pid,
    id: text(claimed.id) ?? "",
    ...named,
    ...(control === undefined ? {} : { control }),
  };
}

function toTexts(value: unknown, wanted: ReadonlySet<string>): { readonly [name: string]: string } {
  if (typeof value !== "object" || value === null) return {};
  return Object.fromEntries(
    Object.entries(value).filter(([name, text]) => wanted.has(name) && typeof text === "string"),
  );
}

function write(stream: Duplex, message: object): void {
  stream.write(`${JSON.stringify(message)}\n`);
}

interface LineTaker {
  maxBytes: number;
  /** The next line, parsed. */
  next(ms?: number): Promise<object>;
  /** Gives the stream back, with the bytes that were read beyond the hello. */
  release(): void;
}

/** Reads lines of JSON one at a time, and leaves what follows them in the stream. */
function createLineTaker(stream: Duplex, maxBytes = maxLineBytes): LineTaker {
  let rest: Buffer = Buffer.alloc(0);
  const taker: LineTaker = {
    maxBytes,
    next: (ms = patienceMs) =>
      new Promise((resolve, reject) => {
        const settle = (act: () => void): void => {
          clearTimeout(timer);
          stream.off("readable", look);
          stream.off("end", ended);
          stream.off("close", ended);
          stream.off("error", ended);
          act();
        };
        const fail = (text: string): void => settle(() => reject(new HelloError("silent", text)));
        const ended = (): void => fail("the other side left during the hello");
        const look = (): void => {
          for (
            let chunk = stream.read() as Buffer | null;
            chunk !== null;
            chunk = stream.read() as Buffer | null
          )
            rest = Buffer.concat([rest, chunk]);
          const end = rest.indexOf(0x0a);
          if (rest.length > 0 && rest[0] !== 0x7b)
            return fail("the other side says something else than hello");
          if (end === -1) return rest.length > taker.maxBytes ? fail("the hello is too long") : undefined;
          const line = rest.toString("utf8", 0, end);
          rest = rest.subarray(end + 1);
          settle(() => {
            try {
              resolve(JSON.parse(line) as object);
            } catch {
              reject(new HelloError("silent", "the other side says something else than hello"));
            }
          });
        };
        const timer = setTimeout(() => fail("the other side does not answer the hello"), ms);
        stream.on("readable", look);
        stream.once("end", ended);
        stream.once("close", ended);
        stream.once("error", ended);
        look();
      }),
    release: () => {
      if (rest.length > 0) stream.unshift(rest);
      rest = Buffer.alloc(0);
    },
  };
  return taker;
}
