import { readdirSync, rmSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import type { Status } from "../../admin/index.ts";
import { stateFolder } from "../../config/index.ts";
import { UsageError } from "../terminal/index.ts";

const patienceMs = 60_000;
const maxAnswerBytes = 64 * 1024 * 1024;

const socketFolder = (): string => join(stateFolder(), "gateways");

/** The socket of a gateway of this user. */
export function adminSocket(pid: number): string {
  return join(socketFolder(), `${pid}.admin.sock`);
}

/** The gateways of this user that answer. Sockets that ended gateways left behind are removed. */
export async function findAdmins(): Promise<
  readonly {
    readonly socket: string;
    readonly status: Status;
  }[]
> {
  const found = await Promise.all(
    listSockets().map(async (socket) => {
      try {
        return { socket, status: (await askAdmin(socket, "GET", "/api/status")) as Status };
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ECONNREFUSED") rmSync(socket, { force: true });
        return undefined;
      }
    }),
  );
  return found.filter((target) => target !== undefined);
}

function listSockets(): readonly string[] {
  try {
    return readdirSync(socketFolder())
      .filter((name) => /^\d+\.admin\.sock$/.test(name))
      .map((name) => join(socketFolder(), name));
  } catch {
    return []; // There is no such folder: no gateway ran yet.
  }
}

/** Makes one request. Rejects with the message of the API when it refuses. */
export async function askAdmin(
  socket: string,
  method: string,
  path: string,
  body?: object,
): Promise<unknown> {
  const incoming = await send(socket, { method, path, body });
  let text = "";
  for await (const chunk of incoming.setEncoding("utf8")) {
    text += String(chunk);
    if (text.length > maxAnswerBytes) throw new Error("the gateway answers with too much");
  }
  const answer = JSON.parse(text) as { readonly error?: { readonly message: string } };
  if (answer.error !== undefined) throw new UsageError(answer.error.message);
  return answer;
}

/** The events of a stream, until the gateway ends or the signal aborts. */
export async function* readAdminEvents(
  socket: string,
  path: string,
  signal: AbortSignal,
): AsyncGenerator<{ readonly kind: string; readonly data: unknown }> {
  const incoming = await send(socket, { method: "GET", path, signal });
  let rest = "";
  for await (const chunk of incoming.setEncoding("utf8")) {
    const frames = (rest + String(chunk)).split("\n\n");
    rest = frames.pop() ?? "";
    for (const frame of frames) {
      const [, kind, data] = /^event: (\w+)\ndata: (.*)$/.exec(frame) ?? [];
      if (kind !== undefined && data !== undefined) yield { kind, data: JSON.parse(data) as unknown };
    }
  }
}

interface AdminSend {
  readonly method: string;
  readonly path: string;
  readonly body?: object | undefined;
  /** Without one, an answer that does not begin in time is an error. */
  readonly signal?: AbortSignal;
}

function send(socketPath: string, { method, path, body, signal }: AdminSend): Promise<IncomingMessage> {
  const headers = { host: "localhost", "content-type": "application/json" };
  return new Promise((resolve, reject) => {
    const outgoing = request({ socketPath, method, path, headers, ...(signal && { signal }) }, resolve);
    if (signal === undefined)
      outgoing.setTimeout(patienceMs, () => outgoing.destroy(new Error("the gateway does not answer")));
    outgoing.on("error", reject);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
