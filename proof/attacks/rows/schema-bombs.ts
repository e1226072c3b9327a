import { execFile } from "node:child_process";
import { Callers } from "../../../test/gateway/support/load.ts";
import { mirrored, modern, postOf } from "../../../test/support/http-wire.ts";
import { RawSocket } from "../../../test/support/raw-http.ts";
import { fixture, hostile, readCpuMs, startGateway } from "../lib/gateway.ts";
import { attempt, type Line, type Row, type Scale } from "../lib/row.ts";

const names = [
  "nested",
  "wide",
  "required",
  "enumeration",
  "redos",
  "redos-keys",
  "doubling",
  "recursion",
  "self",
  "remote",
  "all-of",
  "one-of",
  "unique",
  "dynamic",
  "prototype",
  "code",
  "format",
  "dialect",
];

const maxCpuMs = 5000;

/** The client checks arguments by the schema, unless the schema is beyond its limits. */
function callBomb(name: string): Promise<Line> {
  const line = {
    what: `a client that checks arguments calls \`${name}\``,
    count: "1 call",
    bound: "ends within 5 s of processor time",
  };
  return attempt(line, async () => {
    const output = await new Promise<string>((resolve, reject) => {
      execFile(process.execPath, [hostile("bomb-client.mjs"), name], { timeout: 60_000 }, (error, stdout) => {
        if (error === null) resolve(stdout);
        else reject(new Error(error.killed === true ? "no end after 60 s" : `ended with ${error.code}`));
      });
    });
    const { ended, cpuMs } = JSON.parse(output) as { readonly ended: string; readonly cpuMs: number };
    return { figure: `${ended}, ${cpuMs} ms of processor time`, isMet: cpuMs < maxCpuMs };
  });
}

function listBombs(names: readonly string[]): Promise<Line> {
  const line = {
    what: "the gateway lists all of them and calls each",
    count: `${names.length} bombs`,
    bound: "the gateway uses less than 5 s of processor time, a good server's tool is listed and called",
  };
  return attempt(line, async () => {
    await using gateway = await startGateway({
      mcpServers: {
        ...Object.fromEntries(
          names.map((name) => [
            name,
            { command: process.execPath, args: [hostile("bombs.mjs"), "--serve", name] },
          ]),
        ),
        good: { command: process.execPath, args: [fixture("children/chaos-server.mjs")] },
      },
    });
    const before = readCpuMs(gateway.pid);
    using socket = new RawSocket(gateway.port);
    const list = modern("tools/list");
    const { messages } = await socket.send(postOf(list, mirrored(list))).complete;
    const tools = (messages[0]?.result?.["tools"] ?? []) as readonly { readonly name: string }[];
    using callers = new Callers(gateway.port, undefined);
    let answered = 0;
    for (const name of names) {
      const { kind } = await callers.call(`${name}__${name}`, {});
      if (kind !== "wrong") answered++;
    }
    const good = await callers.call("good__work", { nonce: "n" });
    const cpuMs = readCpuMs(gateway.pid) - before;
    const listed = tools.filter(({ name }) => name !== "good__work").length;
    return {
      figure: `${listed} listed, ${answered} of ${names.length} calls answered, ${cpuMs} ms of processor time, the good tool is ${good.kind === "result" ? "" : "not "}called`,
      isMet: cpuMs < maxCpuMs && good.kind === "result" && tools.some(({ name }) => name === "good__work"),
    };
  });
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const chosen = scale === "full" ? names : ["redos", "doubling", "nested"];
  const lines = [await listBombs(chosen)];
  for (const name of chosen) lines.push(await callBomb(name));
  return lines;
}

export const row: Row = {
  title: "Schema bombs",
  how: "Servers list tools whose schemas hurt those who compile, follow or apply them; `proof/attacks/servers/bombs.mjs` has all of them.",
  limitMinutes: 15,
  isInShort: true,
  run,
};
