import { TextTail } from "@junctor/core/channel";
import type { StartProgress } from "@junctor/core/mcp";

/** What the process of a server wrote besides messages. */
export interface Words {
  /** The end of what it wrote to its standard error stream. */
  readonly said: string;
  /** The first line on its standard output that is no message; empty when there was none. */
  readonly stray: string;
  /** A number that grows while the process shows signs of progress: text on its standard error stream, or processor time. */
  readonly progress?: number;
}

/** How much of it is kept. */
const maxBytes = 4096;

/** So much processor time is a sign of progress, as it is to a client that waits for a start. */
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

  /** It runs, and this is how busy it is. */
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
