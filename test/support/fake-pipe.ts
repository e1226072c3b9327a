import { PassThrough } from "node:stream";
import type { Message } from "./raw-http.ts";

/** What a fake server does about a message: an answer to it, messages of its own, or nothing. */
export type Reaction =
  | { readonly result: object }
  | { readonly error: { readonly code: number; readonly message: string; readonly data?: unknown } }
  | undefined;

/** A server at the other end of two byte streams that does what its test says, and remembers what it heard. */
export class FakePipe {
  readonly target: { readonly readable: PassThrough; readonly writable: PassThrough };
  readonly received: Message[] = [];
  readonly #react: (message: Message, pipe: FakePipe) => Reaction;
  readonly #waiting = new Set<() => void>();
  #rest = "";

  constructor(react: (message: Message, pipe: FakePipe) => Reaction) {
    this.#react = react;
    this.target = { readable: new PassThrough(), writable: new PassThrough() };
    this.target.writable.setEncoding("utf8").on("data", (text: string) => this.#hear(text));
  }

  get methods(): readonly (string | undefined)[] {
    return this.received.map(({ method }) => method);
  }

  /** Writes messages, all in one piece. */
  send(...messages: readonly (object | string)[]): void {
    const lines = messages.map((message) =>
      typeof message === "string" ? message : JSON.stringify(message),
    );
    this.target.readable.write(lines.map((line) => `${line}\n`).join(""));
  }

  /** Ends the output, as a server that exits does. */
  end(): void {
    this.target.readable.end();
  }

  /** Resolves with the first message that fits, from those to come or those that came. */
  until(fits: (message: Message) => boolean): Promise<Message> {
    return new Promise((resolve) => {
      const check = (): void => {
        const found = this.received.find(fits);
        if (found === undefined) return;
        this.#waiting.delete(check);
        resolve(found);
      };
      this.#waiting.add(check);
      check();
    });
  }

  heard(method: string): Promise<Message> {
    return this.until((message) => message.method === method);
  }

  #hear(text: string): void {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const message = JSON.parse(line) as Message;
      this.received.push(message);
      const reaction = this.#react(message, this);
      if (reaction !== undefined) this.send({ jsonrpc: "2.0", id: message.id, ...reaction });
      for (const check of this.#waiting) check();
    }
  }
}
