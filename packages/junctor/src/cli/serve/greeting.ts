import { metaKeys, newestModernRevision } from "@junctor/core/mcp";
import { junctor } from "../../invocation/index.ts";
import type { ServerStatus } from "../../servers/index.ts";
import { toRows } from "../terminal/index.ts";
import type { ReloadChoice } from "./follow-config.ts";
import type { ServePlan } from "./serve-plan.ts";

/** What a person sees when the demo is up over HTTP: the URL, something to try, something to paste. */
function describeHttp(url: string): string {
  const meta = `"progressToken":1,"${metaKeys.protocolVersion}":"${newestModernRevision}","${metaKeys.clientCapabilities}":{}`;
  const params = `{"name":"countdown","arguments":{"from":5},"_meta":{${meta}}}`;
  const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":${params}}`;
  const headers = [
    "content-type: application/json",
    "accept: application/json, text/event-stream",
    `mcp-protocol-version: ${newestModernRevision}`,
    "mcp-method: tools/call",
    "mcp-name: countdown",
  ];
  const curl = `curl -N ${url} ${headers.map((header) => `-H '${header}'`).join(" ")} -d '${call}'`;
  const snippet = JSON.stringify({ mcpServers: { junctor: { type: "http", url } } }, undefined, 2);
  return [
    `Junctor serves echo, add, countdown and greet on ${url}`,
    "",
    "See countdown stream:",
    "",
    `  ${curl}`,
    `  ${junctor("call")} countdown from=5 --server ${url}`,
    "",
    "Use it from Claude, Cursor or another client (VS Code says servers for mcpServers):",
    "",
    ...snippet.split("\n").map((line) => `  ${line}`),
    "",
    "Ctrl-C stops it.",
    "",
  ].join("\n");
}

/** What the greeting of a gateway says besides its URL. */
interface GatewayGreeting {
  /** How many servers are being started. */
  readonly count: number;
  /** The name of a key that clients may present, if there are any. */
  readonly key: string | undefined;
  readonly file: string;
  /** Which edits of the config are picked up. */
  readonly choice: ReloadChoice;
  /** How many processes serve it, if they are several. */
  readonly workers?: number | undefined;
}

/** What a person sees as soon as a gateway listens: the URL, and something to paste. */
function describeGateway(url: string, greeting: GatewayGreeting): string {
  const { count, key, file, choice, workers } = greeting;
  const many = workers === undefined ? "" : ` with ${workers} workers`;
  const headers =
    key === undefined ? {} : { headers: { Authorization: `Bearer KEY-OF-${key.toUpperCase()}` } };
  const snippet = JSON.stringify(
    { mcpServers: { junctor: { type: "http", url, ...headers } } },
    undefined,
    2,
  );
  const isTcp = url.startsWith("tcp:");
  const isEverywhere = /\/\/(0\.0\.0\.0|\[::\])[:/]/.test(url);
  return [
    `Junctor listens on ${url}${many} and starts ${count === 1 ? "1 server" : `${count} servers`} of ${file}.`,
    "",
    ...(isTcp
      ? []
      : [
          "Use it from Claude, Cursor or another client (VS Code says servers for mcpServers):",
          "",
          ...snippet.split("\n").map((line) => `  ${line}`),
          "",
        ]),
    ...(isEverywhere
      ? [
          "Others reach it by a name of this machine, which must be in junctor.http.allowedHosts of the config.",
          "",
        ]
      : []),
    `${followed[choice]} Ctrl-C stops it.`,
    "",
  ].join("\n");
}

const followed: { readonly [Choice in ReloadChoice]: string } = {
  safe: `Edits of the config are picked up; what they start or allow waits for "${junctor("reload")}".`,
  trust: "Edits of the config are picked up, with everything they start.",
  off: `Edits of the config wait for "${junctor("reload")}".`,
};

/** What a person sees when the servers are up, or their time is over: the status of each. */
export function describeServers(servers: readonly ServerStatus[]): string {
  if (servers.length === 0) return "";
  const up = servers.filter(({ status }) => status === "up").length;
  const used = servers.filter(({ status }) => status !== "disabled").length;
  const head = `${up} of ${used} ${used === 1 ? "server is" : "servers are"} up:`;
  return ["", head, "", ...toRows(servers.map(describeServer)).map((row) => `  ${row}`), "", ""].join("\n");
}

function describeServer({ name, status, tools, revision, trouble }: ServerStatus): readonly string[] {
  const what = status === "up" ? `${tools === 1 ? "1 tool" : `${tools} tools`}, ${revision ?? ""}` : "";
  return [name, status, [what, trouble].filter(Boolean).join("; ")];
}

/** The same for the demo over TCP. */
function describeTcp({ hostname, port }: URL): string {
  const host = hostname.replaceAll(/[[\]]/g, "");
  const client = '"capabilities":{},"clientInfo":{"name":"me","version":"1"}';
  const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",${client}}}`;
  const call =
    '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":2,"b":3}}}';
  return [
    `Junctor serves echo, add, countdown and greet on ${host}:${port}, one JSON message a line.`,
    "Try it from another terminal:",
    "",
    `  printf '%s\\n' '${hello}' '${call}' | nc -N ${host} ${port}`,
    "",
    "Ctrl-C stops it.",
    "",
  ].join("\n");
}

/** Where a person sees what each worker does, in their order. */
export function describePages(urls: readonly string[]): string {
  const lines = urls.map((url, index) => `  worker ${index + 1}: ${url}\n`);
  return lines.length === 0 ? "" : `See what they do:\n\n${lines.join("")}\n`;
}

/** What a person sees as soon as something listens. */
export function describeListening(
  { opened, transport, choice }: Pick<ServePlan, "opened" | "transport" | "choice">,
  url: string,
  workers?: number,
): string {
  if (opened === undefined) {
    const many = workers === undefined ? "" : `${workers} workers serve it.\n\n`;
    return `${transport === "tcp" ? describeTcp(new URL(url)) : describeHttp(url)}${many}`;
  }
  const { servers, keys } = opened.config;
  return describeGateway(url, {
    count: servers.length,
    key: keys[0]?.name,
    file: opened.file,
    choice,
    workers,
  });
}

/** Where a person sees what the gateway does. */
export function describePage(url: string): string {
  return `See what it does: ${url}\n\n`;
}
