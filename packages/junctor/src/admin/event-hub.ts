import type { ServerResponse } from "node:http";
import { sseHeaders } from "@junctor/server/internal";
import type { CallChanges } from "../telemetry/index.ts";
import type { AdminSource } from "./admin-source.ts";
import { type AdminEvents, type AdminLogLine, adminEvents, type ChartPoints } from "./answers.ts";
import { reportCall, reportParked, reportServers, reportStatus } from "./reports.ts";
import { AdminError } from "./request.ts";

/** The kinds of events that a reader may select. `hello` and `dropped` are always sent. */
export const eventKinds: readonly string[] = Object.keys(adminEvents.schema["properties"] as object).filter(
  (kind) => kind !== "hello" && kind !== "dropped",
);

const maxReaders = 16;
const gatherMs = 250;
const statusMs = 2000;
const keepAliveMs = 15_000;
/** The most lines of one event. */
const maxGathered = 100;
const maxPointTools = 100;

interface Reader {
  readonly sink: EventSink;
  readonly kinds: ReadonlySet<string>;
}

/** The changes since the last events. */
class Gathered {
  readonly lines: AdminLogLine[] = [];
  readonly servers = new Set<string>();
  skippedLines = 0;
  isCatalogNew = false;

  line(line: AdminLogLine): void {
    if (this.lines.length < maxGathered) this.lines.push(line);
    else this.skippedLines++;
  }
}

/** Sends events to readers. While there is no reader, it listens to nothing. */
export class EventHub implements Disposable {
  readonly #source: AdminSource;
  readonly #readers = new Set<Reader>();
  #gathered = new Gathered();
  #lastParked = "";
  #stops: readonly (() => void)[] = [];

  constructor(source: AdminSource) {
    this.#source = source;
  }

  /** Answers with an event stream of these kinds; of all kinds if none is named. */
  open(
    response: ServerResponse,
    headers: { readonly [name: string]: string },
    kinds: readonly string[],
  ): void {
    if (this.#readers.size >= maxReaders)
      throw new AdminError("admin.too_many", `${maxReaders} event streams are open; close one first`);
    const sink = new EventSink(response, headers, () => {
      this.#readers.delete(reader);
      if (this.#readers.size === 0) this.#stopListening();
    });
    const reader: Reader = { sink, kinds: new Set(kinds.length === 0 ? eventKinds : kinds) };
    this.#readers.add(reader);
    if (this.#readers.size === 1) this.#listen();
    void sink.send("hello", JSON.stringify({ version: this.#source.version, at: this.#source.clock.date() }));
  }

  /** A server's health or lists changed. */
  serverChanged(server: string): void {
    if (this.#readers.size > 0) this.#gathered.servers.add(server);
  }

  [Symbol.dispose](): void {
    this.#stopListening();
    for (const { sink } of this.#readers) sink.end();
  }

  #listen(): void {
    const { telemetry, log, gateway, clock } = this.#source;
    const changes = telemetry.calls.watch();
    const every = (ms: number, work: () => void): (() => void) => {
      const timer = setInterval(work, ms).unref();
      return () => clearInterval(timer);
    };
    const newest = (): ChartPoints => ({
      endAt: clock.date(),
      series: telemetry.charts.newest(maxPointTools),
    });
    this.#stops = [
      () => changes[Symbol.dispose](),
      log.listen((line) => this.#gathered.line(line)),
      gateway.provider.onChange?.(() => {
        this.#gathered.isCatalogNew = true;
      }) ?? (() => {}),
      telemetry.onStep(() => this.#send("point", newest())),
      every(gatherMs, () => this.#flush(changes)),
      every(statusMs, () => this.#send("status", reportStatus(this.#source))),
      every(keepAliveMs, () => {
        for (const { sink } of this.#readers) sink.keepAlive();
      }),
    ];
  }

  #stopListening(): void {
    for (const stop of this.#stops) stop();
    this.#stops = [];
    this.#gathered = new Gathered();
  }

  #flush(changes: CallChanges): void {
    const { lines, servers, skippedLines, isCatalogNew } = this.#gathered;
    this.#gathered = new Gathered();
    const { calls, skipped } = changes.take();
    if (calls.length > 0) {
      const date = this.#source.clock.date();
      this.#send("calls", { calls: calls.map((call) => reportCall(call, date)), skipped });
    }
    if (lines.length > 0) this.#send("log", { lines, skipped: skippedLines });
    const all = servers.size === 0 ? [] : reportServers(this.#source, false);
    for (const name of servers)
      this.#send("server", all.find((view) => view.name === name) ?? { name, status: "removed" });
    if (isCatalogNew) this.#send("catalog", {});
    if (isCatalogNew || servers.size > 0) this.#send("problems", {});
    this.#sendParked();
  }

  #sendParked(): void {
    const parked = this.#source.gateway.controls.parked();
    const state = JSON.stringify(parked.map((call) => ({ ...call, ageMs: 0, leftMs: 0 })));
    if (state === this.#lastParked) return;
    this.#lastParked = state;
    this.#send("parked", reportParked(this.#source));
  }

  #send<Kind extends keyof AdminEvents>(kind: Kind, data: AdminEvents[Kind]): void {
    const readers = [...this.#readers].filter(({ kinds }) => kinds.has(kind));
    if (readers.length === 0) return;
    const json = JSON.stringify(data);
    for (const { sink } of readers) void sink.send(kind, json);
  }
}

/** The most bytes that wait for a reader that is behind. */
const maxWaiting = 1024 * 1024;

/** An event stream to one reader. Events for a reader that is too far behind are dropped and counted. */
export class EventSink {
  readonly #response: ServerResponse;
  #dropped = 0;

  /** `onClosed` is called once, when the reader is gone or the stream was ended. */
  constructor(response: ServerResponse, headers: { readonly [name: string]: string }, onClosed: () => void) {
    this.#response = response;
    response.writeHead(200, { ...headers, ...sseHeaders });
    response.flushHeaders();
    response.once("close", onClosed);
  }

  get isOpen(): boolean {
    return !this.#response.writableEnded && !this.#response.destroyed;
  }

  /** Sends an event whose data is JSON text. Resolves when the reader has taken it. A vital event is never dropped. */
  send(kind: string, json: string, isVital = false): Promise<void> | void {
    if (!this.isOpen) return;
    if (!isVital && this.#response.writableLength > maxWaiting) {
      this.#dropped++;
      return;
    }
    const missed = this.#dropped === 0 ? "" : `event: dropped\ndata: {"events":${this.#dropped}}\n\n`;
    this.#dropped = 0;
    if (this.#response.write(`${missed}event: ${kind}\ndata: ${json}\n\n`)) return;
    return new Promise((resolve) => {
      this.#response.once("drain", resolve);
      this.#response.once("close", resolve);
    });
  }

  keepAlive(): void {
    if (this.isOpen && this.#response.writableLength === 0) this.#response.write(": keepalive\n\n");
  }

  end(): void {
    this.#response.end();
  }
}
