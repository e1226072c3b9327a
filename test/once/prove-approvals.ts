import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createReplica } from "../cluster/support/gateway-process.ts";
import { freePorts } from "../support/free-ports.ts";
import { bin } from "../support/junctor-bin.ts";
import { createRandom } from "./prove.ts";
import { type Shop, startShop } from "./support/shop.ts";

const revisions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const;
const answers = ["approve", "deny", "cancel", "silent"] as const;
type Revision = (typeof revisions)[number];
type Answer = (typeof answers)[number];

/** Runs everything, prints what it found, and resolves with whether nothing ran that nobody agreed to, and nothing twice. */
export async function proveApprovals({
  kills,
  seed,
}: {
  readonly kills: number;
  readonly seed: number;
}): Promise<boolean> {
  await using shop = await startShop();
  const matrix = await askEverywhere(shop);
  const killed = await killBetween(shop, kills, seed);
  return matrix && killed;
}

function makeFolder(shop: Shop, junctor: object): { readonly folder: string; readonly config: string } {
  const folder = mkdtempSync(join(tmpdir(), "junctor-yes-"));
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { shop: shop.entry }, junctor }), { mode: 0o600 });
  return { folder, config };
}

/** Each revision over each transport, with each answer of the user. Those without forms must be refused. */
async function askEverywhere(shop: Shop): Promise<boolean> {
  const rules = [{ ask: ["shop__*"], waitMs: 1500 }];
  const { folder, config } = makeFolder(shop, { admin: false, rules });
  const [port = 0, trunkPort = 0] = await freePorts(2);
  const parts = { port, trunkPort, trunkPorts: [], folder, config, env: {}, args: [] };
  const gateway = createReplica({ name: "g", ...parts });
  await gateway.start();
  const wrong: string[] = [];
  let cells = 0;
  try {
    for (const transport of ["http", "stdio", "attach"] as const)
      for (const revision of revisions)
        for (const answer of answers) {
          const order = `${transport}-${revision}-${answer}`;
          const url = `http://127.0.0.1:${port}/mcp`;
          const text = await converse({ transport, revision, answer, order, url, config, folder });
          const canAsk = revision >= "2025-06-18";
          const expected = !canAsk
            ? "cannot ask its user"
            : { approve: `of ${order}`, deny: "did not agree", cancel: "did not agree", silent: "in time" }[
                answer
              ];
          const runs = shop.charged.get(order) ?? 0;
          cells++;
          if (!text.includes(expected)) wrong.push(`${order}: ${text}`);
          if (runs !== (canAsk && answer === "approve" ? 1 : 0)) wrong.push(`${order}: ran ${runs} times`);
        }
  } finally {
    await gateway.end();
    await run(["stop"], folder).catch(() => "");
    rmSync(folder, { recursive: true, force: true });
  }
  console.log(
    `${cells} calls in ${revisions.length} revisions over HTTP, stdio and attach: ${wrong.length} wrong`,
  );
  for (const text of wrong.slice(0, 8)) console.log(`  ${text}`);
  return wrong.length === 0;
}

interface Conversation {
  readonly transport: "http" | "stdio" | "attach";
  readonly revision: Revision;
  readonly answer: Answer;
  readonly order: string;
  readonly url: string;
  readonly config: string;
  readonly folder: string;
}

const client = join(import.meta.dirname, "../../test/fixtures/approval-client.mjs");

/** One call by a client in a process of its own. */
function converse({ config, folder, ...rest }: Conversation): Promise<string> {
  const command = [process.execPath, bin];
  const target = {
    http: rest.url,
    stdio: {
      command: command[0],
      args: [bin, "serve", "--stdio", "--config", config, "--log-level", "error"],
    },
    attach: { command: command[0], args: [bin, "attach", "--config", config] },
  }[rest.transport];
  return run([], folder, [client, JSON.stringify({ ...rest, target })]);
}

/** Runs `junctor`, or another program, in a home of its own, and resolves with what it wrote. */
function run(args: readonly string[], folder: string, program: readonly string[] = [bin]): Promise<string> {
  const env = {
    ...process.env,
    HOME: folder,
    XDG_STATE_HOME: join(folder, "state"),
    XDG_CACHE_HOME: join(folder, "cache"),
    XDG_RUNTIME_DIR: folder,
  };
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...program, ...args], { env, stdio: ["ignore", "pipe", "pipe"] });
    let text = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
    child.on("error", reject);
    child.on("close", () => resolve(text));
  });
}

/** Asks, kills the gateway at a random moment, answers with the old question, again and again, and counts. */
async function killBetween(shop: Shop, kills: number, seed: number): Promise<boolean> {
  const { folder, config } = makeFolder(shop, {
    admin: false,
    rules: [{ ask: ["shop__*"] }],
    idempotency: { file: "calls.once" },
  });
  const [port = 0, trunkPort = 0] = await freePorts(2);
  const parts = { port, trunkPort, trunkPorts: [], folder, config, env: {}, args: [] };
  const gateway = createReplica({ name: "g", ...parts });
  await gateway.start();
  const random = createRandom(seed);
  const tally = { made: 0, refused: 0, wrong: [] as string[] };
  try {
    for (let number = 0; number < kills; number++) {
      const order = `kill-${number}`;
      const isYes = random() < 0.75;
      const asked = await post(port, order, {});
      const requestState = (asked["result"] as Record<string, unknown> | undefined)?.["requestState"];
      const content = { approve: isYes };
      const answer = { requestState, inputResponses: { approve: { action: "accept", content } } };
      if (random() < 0.3) await restart(gateway);
      const first = post(port, order, answer).catch(() => undefined);
      await pause(random() * 12);
      const killing = restart(gateway);
      await first;
      await killing;
      const again = [await post(port, order, answer), await post(port, order, answer)];
      const runs = shop.charged.get(order) ?? 0;
      if (runs > (isYes ? 1 : 0)) tally.wrong.push(`${order}: ran ${runs} times, the answer was ${isYes}`);
      if (again.some((end) => end["result"] === undefined && end["error"] === undefined))
        tally.wrong.push(`${order}: no end`);
      if (runs === 1) tally.made++;
      else tally.refused++;
    }
  } finally {
    await gateway.end();
    rmSync(folder, { recursive: true, force: true });
  }
  const { made, refused, wrong } = tally;
  console.log(
    `${kills} questions with a gateway that is killed around the answer, each answered three times: ` +
      `${made} calls made once, ${refused} never made, ${wrong.length} wrong`,
  );
  for (const text of wrong.slice(0, 8)) console.log(`  ${text}`);
  return wrong.length === 0;
}

async function restart(gateway: {
  end(signal: NodeJS.Signals): Promise<void>;
  start(): Promise<void>;
}): Promise<void> {
  await gateway.end("SIGKILL");
  await gateway.start();
}

async function post(port: number, order: string, more: object): Promise<Record<string, unknown>> {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
    "io.modelcontextprotocol/clientInfo": { name: "proof", version: "1" },
  };
  const params = { name: "shop__charge", arguments: { order }, _meta: meta, ...more };
  const answer = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": "shop__charge",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
  });
  return (await answer.json()) as Record<string, unknown>;
}
