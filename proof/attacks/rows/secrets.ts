import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  initializeOf,
  legacyCall,
  mirrored,
  modern,
  modernCall,
  postOf,
} from "../../../test/support/http-wire.ts";
import { RawSocket } from "../../../test/support/raw-http.ts";
import type { Frame } from "../../../test/support/wire-schema.ts";
import { startEcho } from "../lib/echo.ts";
import { childrenOf, fixture, makeFolder, startGateway } from "../lib/gateway.ts";
import { attempt, type Line, type Row } from "../lib/row.ts";

/** Where each secret is planted. Each is a text of its own, so that a leak says where it came from. */
const secrets = {
  "client key": "sk-client-7f3a91c2d4e5",
  JUNCTOR_SECRET: "seal-secret-41d09c7be2a8f35e6d7c",
  "header of a server": "hdr-token-93ac0f27be51",
  "path of a URL": "path-token-5b1de8f09a73",
  "query of a URL": "query-token-e20f6a8c4d19",
  "variable of a server": "env-token-0d7c52e8fb36",
  "variable in arguments": "arg-token-6e91b3da70c4",
} as const;

/** Reads every file below a folder. */
function readAll(folder: string): string {
  if (!existsSync(folder)) return "";
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"))
    .join("\n");
}

async function plant(): Promise<readonly Line[]> {
  const folder = makeFolder();
  const record = join(folder, "record.jsonl");
  const echo = await startEcho();
  const refusing = await startEcho("--refuse=401");
  const broken = await startEcho("--refuse=500");
  const tokens = `/${secrets["path of a URL"]}?token=${secrets["query of a URL"]}`;
  const headers = { authorization: `Bearer ${secrets["header of a server"]}` };
  const env = { UPSTREAM_SECRET: "${UPSTREAM_TOKEN}" };
  const node = { command: process.execPath, env };
  const audit = join(folder, "audit.jsonl");
  const config = {
    mcpServers: {
      good: { ...node, args: [fixture("gateway-echo.mjs"), `--record=${record}`, "--", "${ARG_TOKEN}"] },
      failing: { ...node, args: [fixture("gateway-echo.mjs"), "--fail", "${ARG_TOKEN}"] },
      absent: { command: "/nowhere/${ARG_TOKEN}", args: [] },
      http: { url: `${echo.origin}/mcp${tokens.slice(tokens.indexOf("?"))}`, headers },
      refusing: { url: `${refusing.origin}${tokens}`, headers },
      broken: { url: `${broken.origin}${tokens}`, headers },
      closed: { url: `http://127.0.0.1:9${tokens}`, headers },
    },
    junctor: { keys: { ada: { env: "ADA_KEY" } }, audit, firstListMs: 4000 },
  };
  const given = {
    ADA_KEY: secrets["client key"],
    JUNCTOR_SECRET: secrets.JUNCTOR_SECRET,
    UPSTREAM_TOKEN: secrets["variable of a server"],
    ARG_TOKEN: secrets["variable in arguments"],
  };
  await using gateway = await startGateway(config, { env: given, logLevel: "trace" });
  const answers = await exercise(gateway.port);
  const bin = fileURLToPath(new URL("../../../packages/junctor/dist/cli/main.js", import.meta.url));
  const file = join(gateway.folder, "gateway.json");
  const check = spawnSync(process.execPath, [bin, "check", "--config", file], {
    env: { ...process.env, ...given, XDG_CACHE_HOME: join(folder, "c"), XDG_STATE_HOME: join(folder, "s") },
    encoding: "utf8",
    timeout: 60_000,
  });
  const proc = (name: string): string => readFileSync(`/proc/${gateway.pid}/${name}`, "latin1");
  const guardian = childrenOf(gateway.pid).find(({ command }) => command.includes("junctor-guardian"))?.pid;
  const outputs: readonly (readonly [string, string, readonly string[]])[] = [
    ["what callers were answered: results, lists, errors, headers", answers, []],
    ["the log at level trace, and the greeting", gateway.output(), []],
    ["the audit", existsSync(audit) ? readFileSync(audit, "utf8") : "", []],
    ["files of the gateway's own (lists, states)", readAll(join(gateway.folder, "cache")), []],
    ["`junctor check`, which shows the status of every server", `${check.stdout}${check.stderr}`, []],
    ["`/proc/PID/environ` of the gateway, which its children can read", proc("environ"), []],
    ["`/proc/PID/cmdline` of the gateway", proc("cmdline"), []],
    [
      "`/proc/PID/environ` of the guardian",
      guardian === undefined ? "" : readFileSync(`/proc/${guardian}/environ`, "latin1"),
      [],
    ],
    [
      "what a server behind it was sent: nothing but its own",
      existsSync(record) ? readFileSync(record, "utf8") : "",
      ["variable of a server", "variable in arguments"],
    ],
  ];
  echo.end();
  refusing.end();
  broken.end();
  return outputs.map(([what, text, allowed]) => {
    const found = Object.entries(secrets).filter(
      ([name, value]) => text.includes(value) && !allowed.includes(name),
    );
    return {
      what,
      count: `${Object.keys(secrets).length} secrets in ${(text.length / 1024).toFixed(0)} KB`,
      bound: "0 found",
      figure: found.length === 0 ? "0 found" : `found: ${found.map(([name]) => name).join(", ")}`,
      isMet: found.length === 0,
    };
  });
}

/** Calls, lists and mistakes of both eras; gives all that came back. */
async function exercise(port: number): Promise<string> {
  const all: string[] = [];
  const send = async (
    frame: Frame,
    headers: { readonly [name: string]: string | undefined },
  ): Promise<void> => {
    using socket = new RawSocket(port);
    const reply = await socket.send(postOf(frame, headers)).complete.catch(() => undefined);
    if (reply === undefined) return;
    all.push(JSON.stringify(reply.headers), reply.isStream ? JSON.stringify(reply.messages) : reply.body);
  };
  const key = { authorization: `Bearer ${secrets["client key"]}` };
  const servers = ["good", "failing", "absent", "http", "refusing", "broken", "closed", "unknown"];
  const frames: readonly Frame[] = [
    ...["tools/list", "resources/list", "prompts/list", "server/discover"].map((method) => modern(method)),
    ...servers.flatMap((server) =>
      // `about` tells a server's own environment, which its caller may ask for, so it is not called.
      ["echo", "die", "scold", "nothing"].map((tool) => modernCall(`${server}__${tool}`)),
    ),
    modern("resources/read", { uri: "note://none" }),
    modern("no/such/method"),
  ];
  for (const frame of frames) {
    await send(frame, { ...mirrored(frame), ...key });
    await send(frame, mirrored(frame)); // Without a key.
  }
  using socket = new RawSocket(port);
  const begun = await socket.send(postOf(initializeOf("2025-11-25"), key)).complete;
  const session = { ...key, "mcp-session-id": begun.headers["mcp-session-id"] };
  for (const server of servers) await send(legacyCall(1, `${server}__die`), session);
  return all.join("\n");
}

async function run(): Promise<readonly Line[]> {
  let lines: readonly Line[] = [];
  const failed = await attempt({ what: "secrets", count: "0", bound: "0 found" }, async () => {
    lines = await plant();
    return { figure: "", isMet: true };
  });
  return failed.isMet ? lines : [failed];
}

export const row: Row = {
  title: "Secrets",
  how:
    "Seven secrets are planted in the environment, in headers, in path and query of URLs and in arguments of servers. Servers of every kind of misfortune " +
    "(refusing, broken, absent, printing their environment, dying) are called by both eras, with and without a key. Then everything that leaves the " +
    "gateway is searched for each of them.",
  limitMinutes: 5,
  isInShort: true,
  run,
};
