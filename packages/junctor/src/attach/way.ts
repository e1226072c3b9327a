import { Buffer } from "node:buffer";
import type { Duplex } from "node:stream";
import { LineCutter } from "./line-cutter.ts";
import { type Scanned, scanMessage } from "./message-scan.ts";

/** A request that was written to a gateway and not answered yet. */
export interface OpenRequest {
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
