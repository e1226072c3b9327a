import { Buffer } from "node:buffer";
import type { Duplex, Readable, Writable } from "node:stream";
import { announcementsFor, answersOfBatch, cancelledId, idsOfBatch, LegacyState } from "./legacy-state.ts";
import { LineCutter, scanMessage, type Scanned } from "./lines.ts";

interface PumpOptions {
  /** The client's requests. */
  readonly input: Readable;
  /** What the client reads. */
  readonly output: Writable;
  /** Opens a way to a gateway: the daemon, or one in this process. `attempt` counts those that were lost at once. */
  readonly open: (attempt: number) => Promise<Duplex>;
}

/** Requests that change nothing at any server, or only what is repeated anyway: they may be sent a second time. */
const repeatable = new Set([
  "initialize",
  "ping",
  "server/discover",
  "tools/list",
  "prompts/list",
  "resources/list",
  "resources/templates/list",
  "resources/subscribe",
  "resources/unsubscribe",
  "logging/setLevel",
  "subscriptions/listen",
]);

/** While no gateway takes them, so many bytes of requests are held; then the client is not read. */
const maxHeldBytes = 4 * 1024 * 1024;

/**
 * Passes lines between a client and a gateway, and knows no more of them than their ids. When the gateway is lost, requests
 * that were not written go to the next one; calls that were are answered with `outcome_unknown`, and are never sent again.
 * Resolves when the client has left and everything it asked for is answered. Rejects when no gateway can be had.
 */
export async function runFront({ input, output, open }: PumpOptions): Promise<void> {
  const cutter = new LineCutter();
  const legacy = new LegacyState();
  const ways = new Set<FrontWay>();
  /** The way that new requests take; undefined while one is being opened. */
  let current: FrontWay | undefined;
  /** Lines of the client that no gateway has taken. */
  let held: Buffer[] = [];
  let isInputOver = false;
  let isAttaching = false;
  /** The daemon was stopped, and is not needed before the client asks for something. */
  let isResting = false;
  let ownIds = 0;
  let end: (error?: unknown) => void = () => {};
  const done = new Promise<void>((resolve, reject) => {
    end = (error) => (error === undefined ? resolve() : reject(error));
  });
  const nextId = (): string => `"junctor-front-${++ownIds}"`;

  const tell = (bytes: Buffer | string, way?: FrontWay): void => {
    if (!output.write(bytes)) way?.stream.pause();
  };
  const write = (way: FrontWay, bytes: Buffer): void => {
    if (!way.stream.write(bytes)) input.pause();
  };
  const send = (way: FrontWay, line: Buffer, { id, method, isBatch }: Scanned): void => {
    if (isBatch)
      for (const [each, name] of idsOfBatch(line)) way.note(each, { method: name, line: undefined });
    else if (id !== undefined && method !== undefined)
      way.note(id, { method, line: repeatable.has(method) ? line : undefined });
    write(way, line);
  };
  const hold = (line: Buffer): void => {
    held.push(line);
    if (isResting) void attach();
    if (held.reduce((sum, { length }) => sum + length, 0) > maxHeldBytes) input.pause();
  };
  /** A way that gives way to another ends when nothing is underway on it. */
  const retire = (way: FrontWay): void => {
    if (way.isDraining && way.underway === 0) way.stream.end();
  };
  const finish = (): void => {
    // The last answers leave before the process does.
    if (ways.size === 0) output.write("", () => end());
  };

  const answerQuestion = (id: string, line: Buffer): void => {
    const asked = [...ways].find((way) => way.questions.delete(id));
    // Answers to questions of a gateway that is gone have no reader.
    if (asked === undefined) return;
    write(asked, line);
    retire(asked);
  };
  const cancel = (line: Buffer): void => {
    const id = cancelledId(line);
    const at = held.findIndex((each) => scanMessage(each).id === id);
    if (at !== -1) return void held.splice(at, 1);
    const asked = id === undefined ? current : [...ways].find((way) => way.has(id));
    if (asked === undefined) return;
    // A request that was cancelled needs no answer.
    if (id !== undefined) asked.settle(id);
    write(asked, line);
    retire(asked);
  };
  const fromClient = (line: Buffer): void => {
    const scanned = scanMessage(line);
    const { id, method, isAnswer } = scanned;
    if (isAnswer && id !== undefined && method === undefined) return answerQuestion(id, line);
    if (method === "notifications/cancelled") return cancel(line);
    legacy.note(scanned, line);
    if (current === undefined) hold(line);
    else send(current, line, scanned);
  };
  const fromGateway = (way: FrontWay, line: Buffer, { id, method, isAnswer, isBatch }: Scanned): void => {
    if (isBatch) for (const each of answersOfBatch(line)) way.settle(each);
    else if (isAnswer && id !== undefined) {
      const request = way.settle(id);
      if (request?.onAnswer !== undefined) return request.onAnswer(line);
      // A stream of announcements that goes on at the next gateway has ended at this one.
      if (request === undefined && way.isDraining) return;
      if (request?.method === "initialize" && request.line !== undefined) legacy.begin(request.line, line);
    } else if (id !== undefined && method !== undefined) way.questions.add(id);
    tell(line, way);
    retire(way);
  };

  /** Sends everything that waits; false when the way is lost. */
  const begin = (way: FrontWay): boolean => {
    if (way.isLost) return false;
    current = way;
    const lines = held;
    held = [];
    for (const line of lines) send(way, line, scanMessage(line));
    input.resume();
    if (isInputOver) way.stream.end();
    return true;
  };
  /** Repeats the handshake of a legacy client at another gateway. False when that one is lost, too. */
  const repeat = async (way: FrontWay): Promise<boolean> => {
    const id = nextId();
    const handshake = legacy.handshake(id);
    if (handshake === undefined || way.isLost) return !way.isLost;
    const answer = await new Promise<Buffer | undefined>((resolve) => {
      way.note(id, { method: "initialize", line: undefined, onAnswer: resolve });
      way.stream.write(handshake);
    });
    if (answer === undefined) return false;
    legacy.learn(answer);
    for (const [each, line] of legacy.afterHandshake(nextId)) {
      if (each !== undefined) way.note(each, { method: "", line: undefined, onAnswer: () => {} });
      way.stream.write(line);
    }
    for (const text of legacy.announcements()) tell(`${text}\n`);
    return true;
  };
  const attach = async (): Promise<void> => {
    if (isAttaching) return;
    isAttaching = true;
    isResting = false;
    try {
      for (let attempt = 0, isBegun = false; !isBegun; attempt++) {
        const way = createWay(await open(attempt));
        isBegun = (!legacy.isOpen || (await repeat(way))) && begin(way);
      }
    } catch (error) {
      end(error);
    } finally {
      isAttaching = false;
    }
  };
  const resend = (line: Buffer): void => {
    held.push(line);
    if (scanMessage(line).method !== "subscriptions/listen") return;
    for (const text of announcementsFor(line)) tell(`${text}\n`);
  };
  /** The daemon ends: what is underway ends there, everything else goes to the next. */
  const drain = (way: FrontWay, isRest: boolean): void => {
    if (way.isDraining) return;
    way.isDraining = true;
    isResting = isRest && way === current;
    // Streams of announcements go on at the next gateway.
    const listens = way.takeOpen(({ method }) => method === "subscriptions/listen");
    for (const [, { line }] of listens) if (line !== undefined) resend(line);
    if (way === current) current = undefined;
    retire(way);
    if (!isResting && !isInputOver) void attach();
  };
  const giveUp = (id: string, { line, onAnswer }: OpenRequest): void => {
    if (onAnswer !== undefined) onAnswer(undefined);
    else if (line !== undefined) resend(line);
    else tell(toLost(id));
  };
  const lose = (way: FrontWay): void => {
    ways.delete(way);
    if (way.isInLongLine) tell("\n");
    for (const id of way.questions) tell(toCancelled(id));
    const later = held;
    held = [];
    for (const [id, request] of way.takeOpen()) giveUp(id, request);
    held.push(...later);
    if (way === current) current = undefined;
    if (isInputOver && held.length === 0) return finish();
    if (current !== undefined) begin(current);
    else if (!isResting) void attach();
  };
  const createWay = (stream: Duplex): FrontWay => {
    const way: FrontWay = new FrontWay(stream, {
      onLine: (line, scanned) => fromGateway(way, line, scanned),
      onPiece: (piece) => tell(piece, way),
      onDrain: (isRest) => drain(way, isRest),
      onRoom: () => input.resume(),
      onLost: () => lose(way),
    });
    ways.add(way);
    return way;
  };

  const read = (chunk: Buffer): void => {
    for (const { bytes, isRemote } of cutter.push(chunk)) {
      if (isRemote) fromClient(bytes);
      // A gateway refuses a line that is too long, and answers that itself.
      else if (current === undefined) hold(bytes);
      else write(current, bytes);
    }
  };
  const endInput = (): void => {
    if (isInputOver) return;
    isInputOver = true;
    const rest = cutter.flush();
    if (rest !== undefined) fromClient(Buffer.concat([rest, Buffer.from("\n")]));
    current?.stream.end();
    if (!isAttaching && held.length === 0) finish();
  };
  input.on("data", read);
  for (const event of ["end", "close", "error"]) input.once(event, endInput);
  output.on("drain", () => ways.forEach((way) => way.stream.resume()));
  for (const event of ["error", "close"]) output.once(event, () => end());
  void attach();
  try {
    await done;
  } finally {
    for (const way of ways) way.stream.destroy();
    input.destroy();
  }
}

/** The answer to a call whose gateway was lost, as the gateway itself gives it for a server that is lost. */
function toLost(id: string): string {
  const message =
    "The Junctor daemon ended before it answered; the call may have been carried out and was not sent again";
  const data = { code: "upstream.lost", server: "junctor", delivery: "outcome_unknown" };
  const error = JSON.stringify({ code: -32603, message, data });
  return `{"jsonrpc":"2.0","id":${id},"error":${error}}\n`;
}

/** Takes back a question: the gateway that asked is gone. */
function toCancelled(id: string): string {
  const reason = "the gateway that asked is gone";
  return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":${id},"reason":${JSON.stringify(reason)}}}\n`;
}

/** A request that was written to a gateway and not answered yet. */
interface OpenRequest {
  readonly method: string;
  /** The line, for requests that change nothing and may be sent again. */
  readonly line: Buffer | undefined;
  /** Takes the answer instead of the client; undefined when the gateway is lost. */
  readonly onAnswer?: ((line: Buffer | undefined) => void) | undefined;
}

interface WayEvents {
  /** A message for the client. */
  readonly onLine: (line: Buffer, scanned: Scanned) => void;
  /** A piece of a line that is too long to be held. */
  readonly onPiece: (piece: Buffer) => void;
  /** The daemon ends: another takes its place, or `isRest`, none does until there is work. */
  readonly onDrain: (isRest: boolean) => void;
  /** The gateway takes more. */
  readonly onRoom: () => void;
  readonly onLost: () => void;
}

const control = Buffer.from('{"junctor":');

/** The way to one gateway, in the daemon or in this process, and what is underway on it. */
export class FrontWay {
  readonly stream: Duplex;
  readonly #cutter = new LineCutter();
  /** By the JSON of their ids. Some clients send every request with the same id, so there may be several. */
  readonly #open = new Map<string, OpenRequest[]>();
  /** Ids of the gateway's requests that the client has not answered. */
  readonly questions: Set<string> = new Set();
  /** Whether nothing new is sent on it. */
  isDraining = false;
  isLost = false;

  constructor(stream: Duplex, { onLine, onPiece, onDrain, onRoom, onLost }: WayEvents) {
    this.stream = stream;
    stream.on("data", (chunk: Buffer) => {
      for (const { bytes, isRemote } of this.#cutter.push(chunk)) {
        if (!isRemote) onPiece(bytes);
        else if (bytes.length === 1) continue;
        else if (bytes.subarray(0, control.length).equals(control)) onDrain(bytes.includes('"stop"'));
        else onLine(bytes, scanMessage(bytes));
      }
    });
    stream.on("drain", onRoom);
    const lose = (): void => {
      if (this.isLost) return;
      this.isLost = true;
      stream.destroy();
      onLost();
    };
    stream.on("end", lose);
    stream.on("close", lose);
    stream.on("error", lose);
  }

  /** Whether the client has seen a part of a line whose end will not come. */
  get isInLongLine(): boolean {
    return this.#cutter.isInLongLine;
  }

  /** How many requests are not answered, and how many questions. */
  get underway(): number {
    return this.#open.size + this.questions.size;
  }

  /** Notes a request that is written. */
  note(id: string, request: OpenRequest): void {
    const same = this.#open.get(id);
    if (same === undefined) this.#open.set(id, [request]);
    else same.push(request);
  }

  /** A request was answered, or the client gave it up. */
  settle(id: string): OpenRequest | undefined {
    const same = this.#open.get(id);
    const request = same?.shift();
    if (same?.length === 0) this.#open.delete(id);
    return request;
  }

  has(id: string): boolean {
    return this.#open.has(id);
  }

  /** Takes out every request that is not answered, or those that a predicate chooses. */
  takeOpen(
    isWanted: (request: OpenRequest) => boolean = () => true,
  ): readonly (readonly [string, OpenRequest])[] {
    const taken: [string, OpenRequest][] = [];
    for (const [id, requests] of this.#open) {
      const kept = requests.filter((request) => !isWanted(request));
      taken.push(...requests.filter(isWanted).map((request): [string, OpenRequest] => [id, request]));
      if (kept.length === 0) this.#open.delete(id);
      else this.#open.set(id, kept);
    }
    return taken;
  }
}
