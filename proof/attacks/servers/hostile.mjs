// A legacy server that makes trouble: `node hostile.mjs KIND [--http]`. With a kind that is none of these, such as `quiet`, it makes none. Without `--http` it is on standard streams; with it, on a
// free port, which it prints.
//
// Floods, from the first list on; over HTTP on the stream of the session (GET):
//   requests, notifications, progress, questions, pings, logs, changes, resources, answers, garbage
// Answers to calls of its tool `work`; everything else is answered well:
//   huge       text without end            slow        a byte each 100 ms
//   nested     100,000 arrays in arrays    mis-encoded UTF-16 where UTF-8 is meant
//   doubled    two members `result`        line        one line of 17 MiB
//   utf8       bytes that are no UTF-8     truncated   half an answer, then the end
//   html       a page instead of a message streamed    progress without end on the stream of the call
//   other-id   an answer to another call
// tools=N: lists N tools, other ones each time, and says after every list that they changed.

import { createServer } from "node:http";

const [, , kind = "requests", ...flags] = process.argv;
const isHttp = flags.includes("--http");
const text = "There is more to say about this than fits on a line.";
const toText = (message) => JSON.stringify({ jsonrpc: "2.0", ...message });
const form = { message: text, requestedSchema: { type: "object", properties: { a: { type: "string" } } } };
let count = 0;

const floods = {
  requests: () => ({ id: `r${count}`, method: "roots/list" }),
  pings: () => ({ id: `p${count}`, method: "ping" }),
  questions: () => ({ id: `q${count}`, method: "elicitation/create", params: form }),
  notifications: () => ({ method: "notifications/unheard", params: { text } }),
  progress: () => ({
    method: "notifications/progress",
    params: { progressToken: 1e9 + count, progress: count, message: text },
  }),
  logs: () => ({ method: "notifications/message", params: { level: "error", data: { text, count } } }),
  changes: () => ({ method: "notifications/tools/list_changed" }),
  resources: () => ({ method: "notifications/resources/updated", params: { uri: `x://${count}` } }),
  answers: () => ({ id: 1e9 + count, result: { text } }),
  garbage: () => undefined,
};

/** 64 KiB of it. */
function piece(frame) {
  let all = "";
  while (all.length < 65_536) {
    count++;
    const message = floods[kind]();
    all += frame(message === undefined ? `}${text}` : toText(message));
  }
  return all;
}

const capabilities = { tools: { listChanged: true }, logging: {}, resources: { subscribe: true } };
const size = kind.startsWith("tools=") ? Number(kind.slice("tools=".length)) : 0;
let lists = 0;

/** The result of a request, or undefined for what is not known. */
function serve({ method, params }) {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities,
        serverInfo: { name: "hostile", version: "1.0.0" },
      };
    case "tools/list": {
      lists++;
      const work = { name: "work", inputSchema: { type: "object" } };
      const others = Array.from({ length: size }, (_, index) => ({
        name: `tool_${lists}_${index}`,
        description: text,
        inputSchema: { type: "object", properties: { a: { type: "string", description: text } } },
      }));
      return { tools: [work, ...others] };
    }
    case "tools/call":
      return { content: [{ type: "text", text: "worked" }] };
    case "resources/list":
      return { resources: [] };
    case "resources/templates/list":
      return { resourceTemplates: [] };
    case "ping":
    case "logging/setLevel":
    case "resources/subscribe":
    case "resources/unsubscribe":
      return {};
    default:
      return undefined;
  }
}

const answerOf = (message) => {
  const result = serve(message);
  return toText(
    result === undefined
      ? { id: message.id, error: { code: -32601, message: "Method not found" } }
      : { id: message.id, result },
  );
};

/** A bad answer in pieces; `undefined` where the kind is no such answer. The last piece may be a promise that never ends. */
function* badAnswer({ id }) {
  const head = `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[{"type":"text","text":"`;
  switch (kind) {
    case "huge":
      yield head;
      for (;;) yield "x".repeat(1 << 20);
    case "slow":
      for (const letter of `${head}${"x".repeat(1e6)}`) yield letter;
      return;
    case "nested":
      return yield `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${"[".repeat(1e5)}${"]".repeat(1e5)}}`;
    case "mis-encoded":
      return yield Buffer.from(`${head}worked"}]}}`, "utf16le");
    case "doubled":
      return yield `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":{"content":[]},"result":{"content":[{"type":"text","text":"b"}]}}`;
    case "line":
      return yield `${head}${"x".repeat(17 << 20)}"}]}}`;
    case "utf8":
      return yield Buffer.concat([
        Buffer.from(head),
        Buffer.from([0xff, 0xfe, 0xc0, 0x80]),
        Buffer.from(`"}]}}`),
      ]);
    case "truncated":
      return yield head;
    case "html":
      return yield "<!doctype html><title>Sign in</title>";
    case "other-id":
      return yield toText({ id: 987_654, result: { content: [] } });
  }
}
const isBadAnswer = [
  "huge",
  "slow",
  "nested",
  "mis-encoded",
  "doubled",
  "line",
  "utf8",
  "truncated",
  "html",
  "other-id",
].includes(kind);

/** Writes piece after piece, each when the last was taken. */
async function pour(pieces, stream) {
  for (const each of pieces) {
    if (stream.destroyed) return;
    await new Promise((resolve) => stream.write(each, resolve));
    if (kind === "slow") await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function* floodOf(frame) {
  for (;;) yield piece(frame);
}

if (isHttp) serveHttp();
else serveStdio();

function serveStdio() {
  const line = (message) => `${message}\n`;
  let isFlooding = false;
  // Bad answers come one after the other: two on one line would be another kind of bad.
  let written = Promise.resolve();
  let rest = "";
  process.stdin.setEncoding("utf8").on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop();
    for (const each of lines) take(JSON.parse(each));
  });
  process.stdin.on("end", () => process.exit(0));
  const take = (message) => {
    if (message.id === undefined || message.method === undefined) return;
    if (message.method === "tools/call" && isBadAnswer) {
      written = written
        .then(() => pour(badAnswer(message), process.stdout))
        .then(() => {
          if (kind === "truncated") process.exit(0);
          process.stdout.write("\n");
        });
      return;
    }
    if (message.method === "tools/call" && kind === "streamed")
      return void pour(progressOf(message, line), process.stdout);
    process.stdout.write(line(answerOf(message)));
    if (message.method !== "tools/list") return;
    if (size > 0) process.stdout.write(line(toText({ method: "notifications/tools/list_changed" })));
    if (isFlooding || !(kind in floods)) return;
    isFlooding = true;
    void pour(floodOf(line), process.stdout);
  };
}

function* progressOf({ params }, frame) {
  const progressToken = params._meta?.progressToken ?? 1;
  for (let progress = 1; ; progress++) {
    const one = frame(
      toText({ method: "notifications/progress", params: { progressToken, progress, message: text } }),
    );
    yield one.repeat(1);
  }
}

function serveHttp() {
  const event = (message) => `event: message\ndata: ${message}\n\n`;
  const streams = new Set();
  const server = createServer((request, response) => {
    response.on("error", () => {});
    const session = { "mcp-session-id": "hostile" };
    if (request.method === "GET") {
      response.writeHead(200, { "content-type": "text/event-stream", ...session });
      response.flushHeaders();
      streams.add(response);
      response.on("close", () => streams.delete(response));
      if (kind in floods) void pour(floodOf(event), response);
      return;
    }
    if (request.method === "DELETE") return void response.writeHead(200).end();
    let body = "";
    request.setEncoding("utf8").on("data", (chunk) => (body += chunk));
    request.on("end", () => {
      const message = JSON.parse(body);
      if (message.id === undefined || message.method === undefined) return void response.writeHead(202).end();
      if (message.method === "tools/call" && isBadAnswer) return answerBadly(message, response);
      if (message.method === "tools/call" && kind === "streamed") {
        response.writeHead(200, { "content-type": "text/event-stream", ...session });
        return void pour(progressOf(message, event), response);
      }
      response.writeHead(200, { "content-type": "application/json", ...session }).end(answerOf(message));
      if (message.method === "tools/list" && size > 0)
        for (const stream of streams)
          stream.write(event(toText({ method: "notifications/tools/list_changed" })));
    });
  });
  const answerBadly = (message, response) => {
    const type = kind === "html" ? "text/html" : "application/json";
    response.writeHead(200, { "content-type": type });
    void pour(badAnswer(message), response).then(() =>
      kind === "truncated" ? response.destroy() : response.end(),
    );
  };
  server.listen(0, "127.0.0.1", () => process.stdout.write(`${server.address().port}\n`));
  process.on("disconnect", () => process.exit(0));
}
