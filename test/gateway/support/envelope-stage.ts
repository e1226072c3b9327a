import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createGateway } from "../../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../../packages/server/src/http/listen-http.ts";
import { serveStream } from "../../../packages/server/src/listen/tcp.ts";
import { both, initializeOf, json } from "../../support/http-wire.ts";
import { RawSocket } from "../../support/raw-http.ts";
import { meta } from "./envelope-cases.ts";

const fixture = fileURLToPath(new URL("../../fixtures/gateway-echo.mjs", import.meta.url));
/** Begins the nonce of calls that nobody could mind. */
const honest = "honest";
const key = "a-key-of-more-than-sixteen-characters";

/** How something is forbidden. */
export interface PolicySpec {
  readonly name: string;
  readonly junctor: object;
  readonly headers: readonly (readonly [string, string])[];
  readonly caller?: string;
  readonly hasFacets: boolean;
}

const hidden = { secret: { hide: true }, rm_all: { hide: true }, old: { name: "renamed" } };
const renamed = { old: { name: "renamed" } };
export const policies: readonly PolicySpec[] = [
  {
    name: "hidden by the config",
    junctor: { servers: { one: { tools: hidden }, two: { tools: hidden } } },
    headers: [],
    hasFacets: false,
  },
  {
    name: "denied by a glob of the server",
    junctor: {
      servers: {
        one: { deny: ["sec*", "rm_*"], tools: renamed },
        two: { deny: ["s?cret", "*_all"], tools: hidden },
      },
    },
    headers: [],
    hasFacets: false,
  },
  {
    name: "denied by a glob of the gateway",
    junctor: { deny: ["*secret*", "*rm_*"], servers: { one: { tools: renamed }, two: { tools: hidden } } },
    headers: [],
    hasFacets: true,
  },
  {
    name: "denied to a key",
    junctor: {
      keys: { alice: { env: "ALICE", deny: ["*secret*", "*rm_*"] } },
      servers: { one: { tools: renamed }, two: { tools: hidden } },
    },
    headers: [["authorization", `Bearer ${key}`]],
    caller: "alice",
    hasFacets: true,
  },
];

/** A client at one front of the gateway, in one era: sends text, resolves with the text of the answer. */
export interface Front {
  readonly name: string;
  readonly isModern: boolean;
  readonly isHttp: boolean;
  send(body: string, headers: readonly (readonly [string, string])[]): Promise<string>;
}

export interface Stage {
  readonly fronts: ReadonlyMap<string, Front>;
  /** What arrived behind the gateway since it was last asked. */
  arrived(): readonly string[];
  close(): Promise<void>;
}

export async function setStage(policy: PolicySpec): Promise<Stage> {
  const folder = mkdtempSync(join(tmpdir(), "junctor-matrix-"));
  const files = ["one", "two"].map((name) => join(folder, name));
  for (const file of files) writeFileSync(file, "");
  const http = spawn(process.execPath, [fixture, "--http", "--era=modern", `--record=${files[1]}`], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const [port] = (await once(http.stdout, "data")) as [Buffer];
  const gateway = await createGateway(
    {
      mcpServers: {
        one: { command: process.execPath, args: [fixture, `--record=${files[0]}`] },
        two: { url: `http://127.0.0.1:${Number(port.toString())}/mcp` },
      },
      junctor: policy.junctor,
    },
    { env: { ALICE: key } },
  );
  const { authenticate } = gateway;
  const listener = await listenHttp(gateway.server, {
    port: 0,
    ...(authenticate === undefined ? {} : { authenticate }),
  });
  await gateway.ready;
  expect(gateway.status().map(({ status }) => status)).toEqual(["up", "up"]);

  const sockets: RawSocket[] = [];
  const pipes: PassThrough[] = [];
  const fronts = [
    httpFront("http modern", true, undefined),
    await legacyHttpFront(),
    pipeFront("stdio modern", true),
    await legacyPipeFront(),
  ];
  const offsets = files.map(() => 0);
  return {
    fronts: new Map(fronts.map((front) => [front.name, front])),
    arrived: () =>
      files.flatMap((file, index) => {
        const { text, end } = readFrom(file, offsets[index]!);
        offsets[index] = end;
        const raw = text
          .split("\n")
          .flatMap((line) => (line === "" ? [] : [(JSON.parse(line) as { raw: string }).raw]));
        return raw.filter((message) => !message.includes(`"nonce":"${honest}-`));
      }),
    close: async () => {
      for (const socket of sockets) socket[Symbol.dispose]();
      for (const pipe of pipes) pipe.end();
      await listener.close();
      await gateway.close();
      http.kill("SIGKILL");
      rmSync(folder, { recursive: true, force: true });
    },
  };

  function httpFront(name: string, isModern: boolean, session: string | undefined): Front {
    return {
      name,
      isModern,
      isHttp: true,
      send: async (body, headers) => {
        const socket = new RawSocket(listener.port);
        sockets.push(socket);
        const own = session === undefined ? [] : ([["mcp-session-id", session]] as const);
        const usual = [["content-type", json] as const, ["accept", both] as const, ...policy.headers, ...own];
        const reply = await socket.send({ headers: [...usual, ...headers], body }).complete;
        socket[Symbol.dispose]();
        sockets.pop();
        return reply.isStream ? reply.events.map(({ data }) => data ?? "").join("\n") : reply.body;
      },
    };
  }

  async function legacyHttpFront(): Promise<Front> {
    const socket = new RawSocket(listener.port);
    sockets.push(socket);
    const headers = [["content-type", json] as const, ["accept", both] as const, ...policy.headers];
    const body = JSON.stringify(initializeOf("2025-03-26"));
    const reply = await socket.send({ headers, body }).complete;
    return httpFront("http legacy", false, reply.headers["mcp-session-id"]);
  }

  function pipeFront(name: string, isModern: boolean): Front {
    const input = new PassThrough();
    const output = new PassThrough();
    pipes.push(input);
    void serveStream(
      gateway.server,
      input,
      output,
      policy.caller === undefined ? {} : { caller: policy.caller },
    );
    let text = "";
    let heard = (): void => {};
    output.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      heard();
    });
    let marks = 0;
    return {
      name,
      isModern,
      isHttp: false,
      // Not everything is answered. When honest calls that were sent after it are, it has been dealt with.
      send: async (body) => {
        text = "";
        input.write(`${body}\n`);
        const _meta = isModern
          ? { [meta("protocolVersion")]: "2026-07-28", [meta("clientCapabilities")]: {} }
          : {};
        // Several times, because what goes over HTTP may be overtaken.
        const own = /"id":(\d+)/.exec(body)?.[1];
        for (let round = 0; round < 4 && !text.includes(`"id":${own},`); round++) {
          for (const server of ["one", "two"]) {
            const id = `${honest}-${++marks}`;
            const params = { name: `${server}__open`, arguments: { nonce: id }, _meta };
            input.write(`${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params })}\n`);
            await new Promise<void>((resolve) => {
              heard = () => text.includes(`"id":"${id}"`) && resolve();
              heard();
            });
          }
        }
        const lines = text.split("\n");
        // The answer to what was sent before may come only now.
        const isForeign = (line: string): boolean => {
          const id = /"id":("?[\w-]+)/.exec(line)?.[1];
          return id !== undefined && !body.includes(`:${id}`);
        };
        return lines.filter((line) => !isForeign(line)).join("\n");
      },
    };
  }

  async function legacyPipeFront(): Promise<Front> {
    const front = pipeFront("stdio legacy", false);
    await front.send(JSON.stringify(initializeOf("2025-03-26")), []);
    return front;
  }
}

function readFrom(file: string, offset: number): { readonly text: string; readonly end: number } {
  const descriptor = openSync(file, "r");
  try {
    const pieces: Buffer[] = [];
    let end = offset;
    for (;;) {
      const piece = Buffer.alloc(64 * 1024);
      const length = readSync(descriptor, piece, 0, piece.length, end);
      if (length === 0) return { text: Buffer.concat(pieces).toString("utf8"), end };
      pieces.push(piece.subarray(0, length));
      end += length;
    }
  } finally {
    closeSync(descriptor);
  }
}
