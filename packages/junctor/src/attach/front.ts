import { Buffer } from "node:buffer";
import type { Duplex, Readable, Writable } from "node:stream";
import { createDeferred, type Deferred } from "@junctor/core/async";
import { LineCutter, scanMessage, type Scanned, withId } from "./lines.ts";

interface FrontOptions {
  /** The client's requests. */
  readonly input: Readable;
  /** What the client reads. */
  readonly output: Writable;
  /** Connects to a gateway: the daemon, or one in this process. `attempt` counts the connections that were lost right away. */
  readonly open: (attempt: number) => Promise<Duplex>;
}

/** Requests that may be sent twice: they change nothing at any server, or only what is repeated anyway. */
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

/** The most bytes of requests that are held while no gateway takes them; beyond that, the client is not read. */
const maxHeldBytes = 4 * 1024 * 1024;

/**
 * Passes lines between a client and a gateway, and looks at little more than their ids. When the gateway is lost, requests
 * that were not written go to the next one; calls that were are answered with `outcome_unknown`, and are never sent again.
 * Resolves when the client has left and everything it asked for is answered. Rejects when no gateway can be reached.
 */
export async function runFront(options: FrontOptions): Promise<void> {
  await new Front(options).run();
}

class Front {
  readonly #input: Readable;
  readonly #output: Writable;
  readonly #open: FrontOptions["open"];
  readonly #cutter = new LineCutter();
  readonly #legacy = new LegacyState();
  readonly #connections = new Set<FrontConnection>();
  readonly #done: Deferred<void> = createDeferred();
  /** The connection that new requests take; undefined while one is being opened. */
  #current: FrontConnection | undefined;
  /** Lines of the client that no gateway has taken. */
  #held: Buffer[] = [];
  #isInputOver = false;
  #isAttaching = false;
  /** The daemon was stopped, and is not needed before the client asks for something. */
  #isResting = false;
  #ownIds = 0;

  constructor({ input, output, open }: FrontOptions) {
    this.#input = input;
    this.#output = output;
    this.#open = open;
  }

  async run(): Promise<void> {
    this.#input.on("data", (chunk: Buffer) => this.#read(chunk));
    for (const event of ["end", "close", "error"]) this.#input.once(event, () => this.#endInput());
    this.#output.on("drain", () => this.#connections.forEach(({ stream }) => stream.resume()));
    for (const event of ["error", "close"]) this.#output.once(event, () => this.#done.resolve());
    void this.#attach();
    try {
      await this.#done.promise;
    } finally {
      for (const { stream } of this.#connections) stream.destroy();
      this.#input.destroy();
    }
  }

  #read(chunk: Buffer): void {
    for (const { bytes, isWhole } of this.#cutter.push(chunk)) {
      if (isWhole) this.#takeFromClient(bytes);
      // A gateway refuses a line that is too long, and answers that itself.
      else if (this.#current === undefined) this.#hold(bytes);
      else this.#write(this.#current, bytes);
    }
  }

  #endInput(): void {
    if (this.#isInputOver) return;
    this.#isInputOver = true;
    const rest = this.#cutter.flush();
    if (rest !== undefined) this.#takeFromClient(Buffer.concat([rest, Buffer.from("\n")]));
    this.#current?.stream.end();
    if (!this.#isAttaching && this.#held.length === 0) this.#finish();
  }

  #takeFromClient(line: Buffer): void {
    const scanned = scanMessage(line);
    const { id, method, isAnswer } = scanned;
    if (isAnswer && id !== undefined && method === undefined) return this.#answerQuestion(id, line);
    if (method === "notifications/cancelled") return this.#cancel(line);
    this.#legacy.note(scanned, line);
    if (this.#current === undefined) this.#hold(line);
    else this.#send(this.#current, line, scanned);
  }

  #takeFromGateway(
    connection: FrontConnection,
    line: Buffer,
    { id, method, isAnswer, isBatch }: Scanned,
  ): void {
    if (isBatch) for (const each of answersOfBatch(line)) connection.settle(each);
    else if (isAnswer && id !== undefined) {
      const request = connection.settle(id);
      if (request?.onAnswer !== undefined) return request.onAnswer(line);
      // The end of a stream of announcements that goes on at the next gateway.
      if (request === undefined && connection.isDraining) return;
      if (request?.method === "initialize" && request.line !== undefined)
        this.#legacy.begin(request.line, line);
    } else if (id !== undefined && method !== undefined) connection.questions.add(id);
    this.#writeToClient(line, connection);
    this.#retire(connection);
  }

  #answerQuestion(id: string, line: Buffer): void {
    const connection = [...this.#connections].find(({ questions }) => questions.delete(id));
    // Answers to questions of a gateway that is gone have no reader.
    if (connection === undefined) return;
    this.#write(connection, line);
    this.#retire(connection);
  }

  #cancel(line: Buffer): void {
    const id = cancelledId(line);
    const at = this.#held.findIndex((held) => scanMessage(held).id === id);
    if (at !== -1) return void this.#held.splice(at, 1);
    const target =
      id === undefined ? this.#current : [...this.#connections].find((connection) => connection.has(id));
    if (target === undefined) return;
    // A request that was cancelled needs no answer.
    if (id !== undefined) target.settle(id);
    this.#write(target, line);
    this.#retire(target);
  }

  #writeToClient(bytes: Buffer | string, connection?: FrontConnection): void {
    if (!this.#output.write(bytes)) connection?.stream.pause();
  }

  #write(connection: FrontConnection, bytes: Buffer): void {
    if (!connection.stream.write(bytes)) this.#input.pause();
  }

  #send(connection: FrontConnection, line: Buffer, { id, method, isBatch }: Scanned): void {
    if (isBatch)
      for (const [each, name] of idsOfBatch(line)) connection.note(each, { method: name, line: undefined });
    else if (id !== undefined && method !== undefined)
      connection.note(id, { method, line: repeatable.has(method) ? line : undefined });
    this.#write(connection, line);
  }

  #hold(line: Buffer): void {
    this.#held.push(line);
    if (this.#isResting) void this.#attach();
    if (this.#held.reduce((sum, { length }) => sum + length, 0) > maxHeldBytes) this.#input.pause();
  }

  /** Ends a connection that another replaced, once nothing is underway on it. */
  #retire(connection: FrontConnection): void {
    if (connection.isDraining && connection.underway === 0) connection.stream.end();
  }

  #finish(): void {
    // The last answers leave before the process does.
    if (this.#connections.size === 0) this.#output.write("", () => this.#done.resolve());
  }

  async #attach(): Promise<void> {
    if (this.#isAttaching) return;
    this.#isAttaching = true;
    this.#isResting = false;
    try {
      for (let attempt = 0, isBegun = false; !isBegun; attempt++) {
        const connection = this.#connect(await this.#open(attempt));
        isBegun =
          (!this.#legacy.isOpen || (await this.#repeatHandshake(connection))) && this.#begin(connection);
      }
    } catch (error) {
      this.#done.reject(error);
    } finally {
      this.#isAttaching = false;
    }
  }

  #connect(stream: Duplex): FrontConnection {
    const connection: FrontConnection = new FrontConnection(stream, {
      onLine: (line, scanned) => this.#takeFromGateway(connection, line, scanned),
      onPiece: (piece) => this.#writeToClient(piece, connection),
      onDrain: (isRest) => this.#drain(connection, isRest),
      onRoom: () => this.#input.resume(),
      onLost: () => this.#lose(connection),
    });
    this.#connections.add(connection);
    return connection;
  }

  /** Repeats the handshake of a legacy client at another gateway. False when that one is lost, too. */
  async #repeatHandshake(connection: FrontConnection): Promise<boolean> {
    const nextId = (): string => `"junctor-front-${++this.#ownIds}"`;
    const id = nextId();
    const handshake = this.#legacy.handshake(id);
    if (handshake === undefined || connection.isLost) return !connection.isLost;
    const answer = await new Promise<Buffer | undefined>((resolve) => {
      connection.note(id, { method: "initialize", line: undefined, onAnswer: resolve });
      connection.stream.write(handshake);
    });
    if (answer === undefined) return false;
    this.#legacy.learn(answer);
    for (const [each, line] of this.#legacy.afterHandshake(nextId)) {
      if (each !== undefined) connection.note(each, { method: "", line: undefined, onAnswer: () => {} });
      connection.stream.write(line);
    }
    for (const text of this.#legacy.announcements()) this.#writeToClient(`${text}\n`);
    return true;
  }

  /** Sends everything that waits; false when the connection is lost. */
  #begin(connection: FrontConnection): boolean {
    if (connection.isLost) return false;
    this.#current = connection;
    const lines = this.#held;
    this.#held = [];
    for (const line of lines) this.#send(connection, line, scanMessage(line));
    this.#input.resume();
    if (this.#isInputOver) connection.stream.end();
    return true;
  }

  /** The daemon ends: what is underway ends there, everything else goes to the next. */
  #drain(connection: FrontConnection, isRest: boolean): void {
    if (connection.isDraining) return;
    connection.isDraining = true;
    this.#isResting = isRest && connection === this.#current;
    // Streams of announcements go on at the next gateway.
    const listens = connection.takeOpen(({ method }) => method === "subscriptions/listen");
    for (const [, { line }] of listens) if (line !== undefined) this.#resend(line);
    if (connection === this.#current) this.#current = undefined;
    this.#retire(connection);
    if (!this.#isResting && !this.#isInputOver) void this.#attach();
  }

  #lose(connection: FrontConnection): void {
    this.#connections.delete(connection);
    if (connection.isInLongLine) this.#writeToClient("\n");
    for (const id of connection.questions) this.#writeToClient(toCancelled(id));
    const later = this.#held;
    this.#held = [];
    for (const [id, request] of connection.takeOpen()) this.#giveUp(id, request);
    this.#held.push(...later);
    if (connection === this.#current) this.#current = undefined;
    if (this.#isInputOver && this.#held.length === 0) return this.#finish();
    if (this.#current !== undefined) this.#begin(this.#current);
    else if (!this.#isResting) void this.#attach();
  }

  #giveUp(id: string, { line, onAnswer }: OpenRequest): void {
    if (onAnswer !== undefined) onAnswer(undefined);
    else if (line !== undefined) this.#resend(line);
    else this.#writeToClient(toLost(id));
  }

  #resend(line: Buffer): void {
    this.#held.push(line);
    if (scanMessage(line).method !== "subscriptions/listen") return;
    for (const text of announcementsFor(line)) this.#writeToClient(`${text}\n`);
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

/** Withdraws a question: the gateway that asked is gone. */
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

interface ConnectionEvents {
  /** A message for the client. */
  readonly onLine: (line: Buffer, scanned: Scanned) => void;
  /** A piece of a line that is too long to be held. */
  readonly onPiece: (piece: Buffer) => void;
  /** The daemon ends. Another takes its place at once, or with `isRest`, when there is work. */
  readonly onDrain: (isRest: boolean) => void;
  /** The gateway takes more. */
  readonly onRoom: () => void;
  readonly onLost: () => void;
}

const control = Buffer.from('{"junctor":');

/** The connection to one gateway, in the daemon or in this process, and what is underway on it. */
class FrontConnection {
  readonly stream: Duplex;
  readonly #cutter = new LineCutter();
  /** By the JSON of their ids. Some clients send every request with the same id, so there may be several. */
  readonly #open = new Map<string, OpenRequest[]>();
  /** Ids of the gateway's requests that the client has not answered. */
  readonly questions: Set<string> = new Set();
  /** Whether nothing new is sent on it. */
  isDraining = false;
  isLost = false;

  constructor(stream: Duplex, { onLine, onPiece, onDrain, onRoom, onLost }: ConnectionEvents) {
    this.stream = stream;
    stream.on("data", (chunk: Buffer) => {
      for (const { bytes, isWhole } of this.#cutter.push(chunk)) {
        if (!isWhole) onPiece(bytes);
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

/** The most subscriptions that are repeated; a client with more misses changes after the daemon was lost. */
const maxSubscriptions = 1024;

/** The facts of a legacy session that are repeated to the next gateway, so that the client notices nothing. */
class LegacyState {
  /** The `initialize` request of the client, once it was answered. */
  #initialize: Buffer | undefined;
  #initialized: Buffer | undefined;
  #level: Buffer | undefined;
  /** By their URIs. */
  readonly #subscriptions = new Map<string, Buffer>();
  /** The kinds of lists whose changes the gateway announces. */
  #announces: readonly string[] = [];

  /** Whether the client believes that it has a session. */
  get isOpen(): boolean {
    return this.#initialize !== undefined;
  }

  /** The handshake was answered. */
  begin(initialize: Buffer, answer: Buffer): void {
    this.#initialize = initialize;
    this.#subscriptions.clear();
    this.#level = undefined;
    this.learn(answer);
  }

  /** Takes from the answer to a handshake which changes of lists are announced. */
  learn(answer: Buffer): void {
    const { result } = parse(answer) as {
      result?: { capabilities?: { [kind: string]: { listChanged?: boolean } } };
    };
    const capabilities = result?.capabilities ?? {};
    this.#announces = ["tools", "prompts", "resources"].filter(
      (kind) => capabilities[kind]?.listChanged === true,
    );
  }

  /** Looks at what the client sends, and keeps what must be repeated. */
  note({ method }: Scanned, line: Buffer): void {
    if (method === "notifications/initialized") this.#initialized = line;
    else if (method === "logging/setLevel") this.#level = line;
    else if (method === "resources/subscribe") {
      if (this.#subscriptions.size < maxSubscriptions) this.#subscriptions.set(uriOf(line), line);
    } else if (method === "resources/unsubscribe") this.#subscriptions.delete(uriOf(line));
  }

  /** The handshake, under an id of our own. */
  handshake(id: string): Buffer | undefined {
    return this.#initialize && withOwnId(this.#initialize, id);
  }

  /** What follows the handshake: the notice that it is done, and requests, each with an id of our own. */
  afterHandshake(nextId: () => string): readonly (readonly [string | undefined, Buffer])[] {
    const requests = [this.#level, ...this.#subscriptions.values()].flatMap((line) => {
      const id = nextId();
      return line === undefined ? [] : [[id, withOwnId(line, id)] as const];
    });
    return [
      ...(this.#initialized === undefined ? [] : [[undefined, this.#initialized] as const]),
      ...requests,
    ];
  }

  /** The announcements for the client after another gateway took over: anything may have changed meanwhile. */
  announcements(): readonly string[] {
    const lists = this.#announces.map((kind) =>
      JSON.stringify({ jsonrpc: "2.0", method: `notifications/${kind}/list_changed` }),
    );
    const resources = Array.from(this.#subscriptions.keys(), (uri) =>
      JSON.stringify({ jsonrpc: "2.0", method: "notifications/resources/updated", params: { uri } }),
    );
    return [...lists, ...resources];
  }
}

/** The announcements for a modern caller that listens: its lists may have changed. */
function announcementsFor(listen: Buffer): readonly string[] {
  const { id, params } = parse(listen) as {
    id?: unknown;
    params?: { notifications?: { [name: string]: unknown } };
  };
  const wanted = params?.notifications ?? {};
  return ["tools", "prompts", "resources"]
    .filter((kind) => wanted[`${kind}ListChanged`] === true)
    .map((kind) =>
      JSON.stringify({
        jsonrpc: "2.0",
        method: `notifications/${kind}/list_changed`,
        params: { _meta: { "io.modelcontextprotocol/subscriptionId": id } },
      }),
    );
}

/** The id that a cancellation is about, as JSON. */
function cancelledId(line: Buffer): string | undefined {
  const { params } = parse(line) as { params?: { requestId?: unknown } };
  return params?.requestId === undefined ? undefined : JSON.stringify(params.requestId);
}

/** The ids of the requests in a batch, as JSON, with their methods. */
function idsOfBatch(line: Buffer): readonly (readonly [string, string])[] {
  const batch = parse(line);
  if (!Array.isArray(batch)) return [];
  return batch.flatMap((each: unknown) => {
    const { id, method } = (each ?? {}) as { id?: unknown; method?: unknown };
    return id === undefined || typeof method !== "string" ? [] : [[JSON.stringify(id), method] as const];
  });
}

/** The ids of the answers in a batch, as JSON. */
function answersOfBatch(line: Buffer): readonly string[] {
  const batch = parse(line);
  if (!Array.isArray(batch)) return [];
  return batch.flatMap((each: unknown) => {
    const { id, method } = (each ?? {}) as { id?: unknown; method?: unknown };
    return id === undefined || method !== undefined ? [] : [JSON.stringify(id)];
  });
}

function withOwnId(line: Buffer, id: string): Buffer {
  const { idAt } = scanMessage(line);
  return idAt === undefined ? line : withId(line, idAt, id);
}

function uriOf(line: Buffer): string {
  const { params } = parse(line) as { params?: { uri?: unknown } };
  return String(params?.uri);
}

/** A line that is not JSON counts as an empty object; the gateway answers it. */
function parse(line: Buffer): object {
  try {
    return (JSON.parse(line.toString("utf8")) ?? {}) as object;
  } catch {
    return {};
  }
}
