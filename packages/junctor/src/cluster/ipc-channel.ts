import { Buffer } from "node:buffer";
import { deserialize, serialize } from "node:v8";

/** One end of the channel between the primary and a worker: a child process, or `process` itself. */
export interface IpcPort {
  send?(message: object, callback: (error: Error | null) => void): boolean;
  on(event: "message", listener: (message: unknown) => void): unknown;
  once(event: "disconnect", listener: () => void): unknown;
}

/** One named exchange of messages on such a channel. Other messages on it are ignored. */
export interface IpcChannel<Sent> {
  /** Sends a message without an answer. It is lost when the other side is gone. */
  tell(message: Sent): void;
  /** Resolves with the answer of the other side. Rejects when that fails or is gone, or when 4,096 others wait for one. */
  ask(message: Sent): Promise<unknown>;
}

const maxWaiting = 4096;
/** The code of the error when that is reached. */
const fullCode = "store.full";

/** The form on the wire. The content is packed, because JSON would lose `undefined`, `Infinity` and the like. */
interface Frame {
  /** The name of the exchange. */
  readonly junctor: string;
  readonly kind: "tell" | "ask" | "answer" | "failure";
  readonly id: number;
  readonly content: string;
}

/**
 * Opens the exchange of this name. `answer` takes each message of the other side; its result is the answer to one that asks, and
 * an error that it throws reaches the other side with its message and `code`.
 */
export function openIpcChannel<Sent, Taken>(
  port: IpcPort,
  name: string,
  answer: (message: Taken) => unknown,
): IpcChannel<Sent> {
  const waiting = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  let lastId = 0;
  let isGone = false;
  const send = (kind: Frame["kind"], id: number, content: unknown): void => {
    const onSent = (error: Error | null): void => {
      if (error !== null) fail(id, error);
    };
    const frame: Frame = { junctor: name, kind, id, content: serialize(content).toString("base64") };
    port.send?.(frame, onSent);
  };
  const fail = (id: number, error: Error): void => {
    waiting.get(id)?.reject(error);
    waiting.delete(id);
  };
  const settle = ({ kind, id, content }: Frame): void => {
    const value: unknown = deserialize(Buffer.from(content, "base64"));
    if (kind === "failure") return fail(id, toError(value as IpcFailure));
    waiting.get(id)?.resolve(value);
    waiting.delete(id);
  };
  const take = async ({ kind, id, content }: Frame): Promise<void> => {
    try {
      const value = await answer(deserialize(Buffer.from(content, "base64")) as Taken);
      if (kind === "ask") send("answer", id, value);
    } catch (error) {
      if (kind === "ask") send("failure", id, toFailure(error));
    }
  };
  port.on("message", (message) => {
    if (!isFrame(message) || message.junctor !== name) return;
    if (message.kind === "answer" || message.kind === "failure") settle(message);
    else void take(message);
  });
  port.once("disconnect", () => {
    isGone = true;
    for (const id of waiting.keys()) fail(id, new Error("the other process is gone"));
  });
  return {
    tell: (message) => send("tell", 0, message),
    ask: (message) =>
      new Promise((resolve, reject) => {
        if (isGone) return reject(new Error("the other process is gone"));
        if (waiting.size >= maxWaiting)
          return reject(
            toError({ message: "too many questions wait for the other process", code: fullCode }),
          );
        const id = ++lastId;
        waiting.set(id, { resolve, reject });
        send("ask", id, message);
      }),
  };
}

interface IpcFailure {
  readonly message: string;
  readonly code: string | undefined;
}

function toFailure(error: unknown): IpcFailure {
  if (!(error instanceof Error)) return { message: String(error), code: undefined };
  const { message, code } = error as NodeJS.ErrnoException;
  return { message, code };
}

function toError({ message, code }: IpcFailure): Error {
  return Object.assign(new Error(message), { code });
}

/** Both processes are ours, and of one version. */
function isFrame(message: unknown): message is Frame {
  return typeof message === "object" && message !== null && "junctor" in message && "content" in message;
}
