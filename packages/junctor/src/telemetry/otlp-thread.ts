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
 * The program of the thread. It is text, because a file would have to be found from `src` and from `dist`. It follows no
 * redirects: the headers may hold a key, which is for that collector alone. `fetch` would take three times as long.
 */
const program = `
const { parentPort, workerData } = require("node:worker_threads");
const { endpoint, headers, timeoutMs } = workerData;
const { Agent, request } = require(endpoint.startsWith("https:") ? "node:https" : "node:http");
const agent = new Agent({ keepAlive: true });
const post = (body, tell) => {
  let answer;
  const options = { method: "POST", agent, headers: { ...headers, "content-length": body.length } };
  const posted = request(endpoint, options, (response) => {
    answer = { status: response.statusCode };
    response.resume();
  });
  const timer = setTimeout(() => {
    answer ??= { fault: "no answer in " + timeoutMs / 1000 + " s" };
    posted.destroy();
  }, timeoutMs);
  posted.on("error", (error) => {
    answer ??= { fault: error.code ?? error.message };
  });
  posted.on("close", () => {
    clearTimeout(timer);
    tell(answer ?? { fault: "no answer" });
  });
  posted.end(body);
};
parentPort.on("message", (body) => {
  const tell = (answer) => parentPort.postMessage(answer);
  try {
    post(body, tell);
  } catch (error) {
    tell({ fault: error.message });
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
    const bytes = new TextEncoder().encode(body); // Has memory of its own, which the thread is given.
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
      worker.postMessage(bytes, [bytes.buffer]);
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
