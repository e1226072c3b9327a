import { TextTail } from "../transports/text-tail.ts";

/** What the process of a server wrote besides messages. */
export interface Words {
  /** The end of what it wrote to its standard error stream. */
  readonly said: string;
  /** The first line on its standard output that is no message; empty when there was none. */
  readonly stray: string;
}

/** How much of it is kept. */
const maxBytes = 4096;

/** What the latest process of one server wrote besides messages, also while it is still starting. */
export class ServerWords implements Words {
  #tail = new TextTail(maxBytes);
  #stray = "";

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
  }

  hearStderr(chunk: Uint8Array): void {
    this.#tail.push(chunk);
  }

  hearStray(line: string): void {
    if (this.#stray === "") this.#stray = line;
  }
}
