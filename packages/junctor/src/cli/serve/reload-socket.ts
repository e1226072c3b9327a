import { chmodSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { dirname, join, resolve } from "node:path";
import { stateFolder } from "../../config/index.ts";
import type { RunningGateway } from "../../gateway/index.ts";
import { junctor } from "../../invocation/index.ts";
import type { GatewayLog } from "../../log/index.ts";
import { describeError } from "../terminal/index.ts";
import { followConfig, type FollowedConfig, type WaitingEdit } from "./follow-config.ts";
import type { ServePlan } from "./serve-plan.ts";

/** A running gateway of this user, and the part of its config that waits. */
export interface WaitingGateway extends WaitingEdit {
  readonly pid: number;
  /** The absolute path of its config. */
  readonly file: string;
  /** The faults of the config as it is now. */
  readonly wrong: string;
}

/** `take` is about the version that was seen. */
interface ReloadRequest {
  readonly ask: "look" | "take";
  readonly version?: string;
}

type Followed = Pick<FollowedConfig, "inspect" | "agree">;

const maxRequestBytes = 4096;
/** A config of 1 MiB may wait, every character of it escaped. */
const maxAnswerBytes = 16 * 1024 * 1024;
const patienceMs = 60_000;

/** Where the sockets are: a folder that only this user may enter. A tool that can only write files cannot use a socket. */
const socketFolder = (): string => join(stateFolder(), "gateways");

/** Lets `junctor reload` of the same user ask this gateway, until it is disposed. Warns when that is not possible. */
export async function listenForReload(
  file: string,
  followed: Followed,
  onWarning: (text: string) => void,
): Promise<Disposable | undefined> {
  if (process.platform === "win32") return undefined;
  const server = createServer((socket) => {
    socket.setTimeout(patienceMs, () => socket.destroy());
    socket.on("error", () => {}); // The other side is gone.
    void answer(socket, file, followed).catch(() => socket.destroy());
  });
  server.maxConnections = 8;
  const path = join(socketFolder(), `${process.pid}.sock`);
  try {
    await listen(server, path);
    return { [Symbol.dispose]: () => void server.close() };
  } catch (error) {
    onWarning(`"${junctor("reload")}" cannot reach this gateway: ${path}: ${describeError(error)}`);
    return undefined;
  }
}

/**
 * Has a gateway take edits of its config, by itself and by `junctor reload`, until what it resolves with is disposed. Undefined without a
 * config.
 */
export async function followPlan(
  { opened, choice, transport, host, served, isLevelGiven }: ServePlan,
  gateway: Pick<RunningGateway, "apply">,
  log: GatewayLog,
): Promise<FollowedConfig | undefined> {
  if (opened === undefined) return undefined;
  const bound = transport === "stdio" ? "127.0.0.1" : host;
  const following = followConfig({ ...opened, choice, gateway, host: bound, log, keepsLevel: isLevelGiven });
  const reached = await listenForReload(served, following, (text) => log.warn({}, text));
  const stop = (): void => {
    reached?.[Symbol.dispose]();
    following[Symbol.dispose]();
  };
  return { ...following, [Symbol.dispose]: stop };
}

async function listen(server: Server, path: string): Promise<void> {
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  chmodSync(folder, 0o700);
  rmSync(path, { force: true });
  await new Promise<void>((done, fail) => {
    server.once("error", fail);
    server.listen(path, done);
  });
  server.unref();
  chmodSync(path, 0o600);
}

async function answer(socket: Socket, file: string, followed: Followed): Promise<void> {
  const line = await readLine(socket);
  if (line === undefined) return void socket.end();
  socket.end(`${JSON.stringify(await answerTo(JSON.parse(line) as ReloadRequest, file, followed))}\n`);
}

async function answerTo(request: ReloadRequest, file: string, followed: Followed): Promise<object> {
  if (request.ask === "take") return { wrong: await followed.agree(request.version ?? "") };
  const found = { pid: process.pid, file: resolve(file) };
  try {
    return { ...found, ...followed.inspect(), wrong: "" };
  } catch (error) {
    return { ...found, waiting: [], version: "", wrong: describeError(error) };
  }
}

/** The gateways of this user that run with a config. Sockets that ended gateways left behind are removed. */
export async function findGateways(): Promise<readonly WaitingGateway[]> {
  const found = await Promise.all(
    listSockets().map(async (path) => {
      try {
        return (await ask(path, { ask: "look" })) as WaitingGateway;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ECONNREFUSED") rmSync(path, { force: true });
        return undefined;
      }
    }),
  );
  return found.filter((gateway) => gateway !== undefined);
}

/** Has a gateway take its config as it was seen. Resolves with the fault; undefined when it was taken. */
export async function takeEdit({ pid, version }: WaitingGateway): Promise<string | undefined> {
  const path = join(socketFolder(), `${pid}.sock`);
  const { wrong } = (await ask(path, { ask: "take", version })) as { readonly wrong?: string };
  return wrong;
}

function listSockets(): readonly string[] {
  const folder = socketFolder();
  try {
    return readdirSync(folder)
      .filter((name) => /^\d+\.sock$/.test(name))
      .map((name) => join(folder, name));
  } catch {
    return []; // There is no such folder: no gateway ran yet.
  }
}

async function ask(path: string, request: ReloadRequest): Promise<unknown> {
  const socket = connect(path);
  try {
    socket.setTimeout(patienceMs, () => socket.destroy(new Error("the gateway does not answer")));
    socket.write(`${JSON.stringify(request)}\n`);
    const line = await readLine(socket, maxAnswerBytes);
    if (line === undefined) throw new Error("the gateway ended");
    return JSON.parse(line);
  } finally {
    socket.destroy();
  }
}

/** The first line that comes; undefined when there is none. */
async function readLine(socket: Socket, maxBytes = maxRequestBytes): Promise<string | undefined> {
  let text = "";
  socket.setEncoding("utf8");
  for await (const chunk of socket.iterator({ destroyOnReturn: false })) {
    text += String(chunk);
    const end = text.indexOf("\n");
    if (end !== -1) return text.slice(0, end);
    if (text.length > maxBytes) return undefined;
  }
  return undefined;
}
