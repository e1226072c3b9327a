import { Worker } from "node:worker_threads";

/** Where batches are posted, and how long a post may take. */
interface OtlpDestination {
  readonly endpoint: string;
  readonly headers: { readonly [name: string]: string };
  readonly timeoutMs: number;
}

/** The answer of the collector: a status, or the code of the fault that kept it from answering. */
type PostAnswer = { readonly status: number } | { readonly fault: string };

/**
 * The program of the thread. It is text, because a file would have to be found from `src` and from `dist`. A collector that
 * redirects is an error: the headers may hold a key, which is for that collector alone.
 */
const program = `
const { parentPort, workerData } = require("node:worker_threads");
const { endpoint, headers, timeoutMs } = workerData;
parentPort.on("message", async (body) => {
  try {
    const signal = AbortSignal.timeout(timeoutMs);
    const response = await fetch(endpoint, { method: "POST", headers, body, redirect: "error", signal });
    await response.arrayBuffer();
    parentPort.postMessage({ status: response.status });
  } catch (error) {
    parentPort.postMessage({ fault: error.cause?.code ?? error.name });
  }
});
`;

/**
 * Posts batches of spans from a thread of its own, which is started by the first batch. In the thread of the calls an HTTP client would
 * make every call dearer: Node's code for sockets is then compiled for more kinds of sockets. One batch at a time.
 */
export class OtlpThread implements AsyncDisposable {
  readonly #destination: OtlpDestination;
  #worker: Worker | undefined;

  constructor(destination: OtlpDestination) {
    this.#destination = destination;
  }

  async post(body: string): Promise<PostAnswer> {
    let worker: Worker;
    try {
      worker = this.#worker ??= this.#start();
    } catch (error) {
      return { fault: `no thread can be started: ${(error as Error).message}` };
    }
    worker.ref(); // The process stays alive for a batch, and not for the thread.
    return new Promise((resolve) => {
      const end = (answer: PostAnswer): void => {
        worker.off("message", end).off("exit", onExit);
        worker.unref();
        resolve(answer);
      };
      const onExit = (): void => end({ fault: "the thread that sends spans ended" });
      worker.on("message", end).on("exit", onExit);
      // eslint-disable-next-line unicorn/require-post-message-target-origin -- A thread is no window.
      worker.postMessage(body);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker?.terminate();
  }

  #start(): Worker {
    const workerData = this.#destination;
    const worker = new Worker(program, { eval: true, workerData, execArgv: [], env: {} });
    worker.on("error", () => {}); // "exit" follows.
    worker.on("exit", () => {
      this.#worker = undefined;
    });
    return worker;
  }
}
