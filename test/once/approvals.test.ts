import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../packages/client/src/client/connect.ts";
import { legacyRevisions, modernRevisions } from "../../packages/core/src/mcp/revision.ts";
import { parseConfigValue } from "../../packages/junctor/src/config/parse-config.ts";
import { createGateway, startGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { listenHttp } from "../../packages/server/src/http/listen-http.ts";
import { createReplica } from "../cluster/support/gateway-process.ts";
import { startReplicas } from "../cluster/support/replicas.ts";
import { freePorts } from "../support/free-ports.ts";
import { junctor } from "../support/junctor-bin.ts";
import { startShop } from "./support/shop.ts";

const asking = (of: string): object => ({ rules: [{ ask: ["shop__*"], of }] });

async function serve(junctor: object) {
  const shop = await startShop();
  const config = { mcpServers: { shop: shop.entry }, junctor };
  const parsed = parseConfigValue(config, { file: "config", env: {}, folder: "." });
  const gateway = await startGateway(parsed, { unnamed: "trusted" });
  const listener = await listenHttp(gateway.server, { port: 0, graceMs: 100, onWarning: () => {} });
  onTestFinished(async () => {
    await listener.close();
    await gateway.close();
    await shop[Symbol.asyncDispose]();
  });
  return { shop, gateway, url: listener.url };
}

const withForms = ["2025-06-18", "2025-11-25", "2026-07-28"] as const;

test.each(withForms)("in %s the user is asked, and a call is made after the yes alone", async (revision) => {
  const { shop, url } = await serve(asking("caller"));
  const asked: string[] = [];
  let isYes = false;
  const elicit = ({ message }: { readonly message: string }): object => {
    asked.push(message);
    return { action: "accept", content: { approve: isYes } };
  };
  await using client = await connect(url, { revision, handlers: { elicit: elicit as never } });
  const no = await client.callTool("shop__charge", { order: "a" });
  expect(no).toMatchObject({ isError: true });
  expect(JSON.stringify(no)).toContain("the user did not agree");
  expect(shop.charged.size).toBe(0);
  isYes = true;
  const yes = await client.callTool("shop__charge", { order: "a" });
  expect(JSON.stringify(yes)).toContain("charge 1 of a");
  expect(shop.charged.get("a")).toBe(1);
  expect(asked[0]).toContain('Operation: tools/call "shop__charge" of the server "shop"');
  expect(asked[0]).toContain('Arguments, as they will be sent: {"order":"a"}');
});

test.each([...legacyRevisions, ...modernRevisions])(
  "in %s a client without forms is refused where its user must agree",
  async (revision) => {
    const { shop, url } = await serve(asking("caller"));
    await using client = await connect(url, { revision });
    const end = await client.callTool("shop__charge", { order: "a" });
    expect(JSON.stringify(end)).toContain("this client cannot ask its user");
    expect(shop.charged.size).toBe(0);
  },
);

test.each([...legacyRevisions, ...modernRevisions])(
  "in %s a call waits for the operator, who agrees or denies",
  async (revision) => {
    const { shop, gateway, url } = await serve(asking("operator"));
    await using client = await connect(url, { revision });
    for (const isYes of [true, false]) {
      const call = client.callTool("shop__charge", { order: String(isYes) });
      while (gateway.controls.approvals().length === 0)
        await new Promise((resolve) => setTimeout(resolve, 5));
      expect(shop.charged.has(String(isYes))).toBe(false);
      const [waiting] = gateway.controls.approvals();
      expect(waiting).toMatchObject({ name: "shop__charge", arguments: `{"order":"${isYes}"}`, calls: 1 });
      gateway.controls.answerApproval(waiting?.id ?? "", isYes);
      expect(JSON.stringify(await call)).toContain(isYes ? "charge 1 of true" : "denied it");
    }
    expect([...shop.charged]).toEqual([["true", 1]]);
  },
);

test("a question at one replica is answered at another", async () => {
  await using shop = await startShop();
  await using both = await startReplicas(2, {
    mcpServers: { shop: shop.entry },
    junctor: asking("operator"),
  });
  const [first, second] = both.replicas;
  await using client = await connect(first?.url ?? "");
  const call = client.callTool("shop__charge", { order: "a" });
  const there = second!.gateway.controls;
  while (there.approvals().length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  there.answerApproval(there.approvals()[0]?.id ?? "", true);
  expect(JSON.stringify(await call)).toContain("charge 1 of a");
  expect(first?.gateway.controls.approvals()).toEqual([]);
  expect(shop.charged.get("a")).toBe(1);
});

test("an answer of the user counts at any replica, and once at all of them", async () => {
  await using shop = await startShop();
  await using both = await startReplicas(2, { mcpServers: { shop: shop.entry }, junctor: asking("caller") });
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
  };
  const post = async (at: number, more: object): Promise<Record<string, unknown>> => {
    const params = { name: "shop__charge", arguments: { order: "a" }, _meta: meta, ...more };
    const answer = await fetch(both.replicas[at]!.url, {
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
    return ((await answer.json()) as { readonly result: Record<string, unknown> }).result;
  };
  const { requestState } = await post(0, {});
  const answered = {
    requestState,
    inputResponses: { approve: { action: "accept", content: { approve: true } } },
  };
  const ends = await Promise.all(Array.from({ length: 20 }, (_, at) => post(at % 2, answered)));
  const made = ends.filter((end) => JSON.stringify(end).includes("charge 1 of a"));
  expect(made).toHaveLength(1);
  expect(shop.charged.get("a")).toBe(1);
});

test("rules that ask cost the others nothing: what they do not name is not asked about", async () => {
  const { shop, url } = await serve({ rules: [{ ask: ["other__*"] }] });
  await using client = await connect(url);
  await client.callTool("shop__charge", { order: "a" });
  expect(shop.charged.get("a")).toBe(1);
});

test("a rule that nobody can answer is reported", async () => {
  const config = { mcpServers: {}, junctor: { admin: false, ...asking("operator") } };
  const { warnings } = parseConfigValue(config, { file: "config", env: {}, folder: "." });
  expect(warnings.map(({ message }) => message).join()).toContain("asks somebody who cannot answer");
  const wrong = { mcpServers: {}, junctor: { rules: [{ deny: ["x"], of: "operator" }] } };
  await expect(createGateway(wrong)).rejects.toThrow('belongs to a rule with "ask"');
});

test("`junctor approvals` lists, shows, approves and denies", async () => {
  await using shop = await startShop();
  const folder = mkdtempSync(join(tmpdir(), "junctor-yes-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const config = join(folder, "mcp.json");
  const home = {
    XDG_STATE_HOME: join(folder, "state"),
    XDG_CACHE_HOME: join(folder, "cache"),
    XDG_RUNTIME_DIR: folder,
    HOME: folder,
  };
  writeFileSync(config, JSON.stringify({ mcpServers: { shop: shop.entry }, junctor: asking("operator") }));
  const [port = 0, trunkPort = 0] = await freePorts(2);
  const parts = { port, trunkPort, trunkPorts: [], folder, config, env: home, args: [] };
  await using gateway = createReplica({ name: "g", ...parts });
  await gateway.start();
  await using client = await connect(`http://127.0.0.1:${port}/mcp`);
  const approvals = (...args: readonly string[]) => junctor(["approvals", ...args], { env: home });
  expect(await approvals()).toMatchObject({ code: 0, stdout: "No call waits for you.\n" });
  for (const verb of ["approve", "deny"]) {
    const call = client.callTool("shop__charge", { order: `${verb}\u001b[2J` });
    await shown(approvals);
    const [line = ""] = (await approvals("list", "--json")).stdout.split("\n");
    const { id } = JSON.parse(line) as { readonly id: string };
    const { stdout } = await approvals("show", id);
    expect(stdout).toContain('call         tools/call "shop__charge"');
    expect(stdout).not.toContain("\u001b");
    expect(shop.charged.has(`${verb}\u001b[2J`)).toBe(false);
    expect((await approvals(verb, id)).code).toBe(0);
    expect(JSON.stringify(await call)).toContain(verb === "approve" ? "charge 1 of" : "denied it");
    expect((await approvals(verb, id)).code).toBe(1);
  }
  expect((await approvals("agree")).code).toBe(2);
}, 60_000);

async function shown(approvals: () => Promise<{ readonly stdout: string }>): Promise<void> {
  while (!(await approvals()).stdout.includes("shop__charge"));
}
