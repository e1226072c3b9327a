import * as v2 from "@modelcontextprotocol/client";
import { expect, onTestFinished, test } from "vitest";
import { RpcError } from "../../packages/junctor/src/index.ts";
import { until } from "../support/until.ts";
import { connectByKey } from "../support/visitor.ts";
import { type AccountStage, keys, startStage } from "./stage.ts";

const canShow = { elicitation: { url: {} } };

/** A client of the official SDK, as ada. `visit` is called with each page that it is to show. */
async function connectOfficial(
  { url }: AccountStage,
  revision: "2026-07-28" | "2025-11-25",
  visit: (url: string) => "accept" | "decline",
): Promise<v2.Client> {
  const mode =
    revision === "2026-07-28"
      ? { versionNegotiation: { mode: { pin: revision } } }
      : { supportedProtocolVersions: [revision] };
  const client = new v2.Client({ name: "sdk-v2", version: "1.0.0" }, { capabilities: canShow, ...mode });
  client.setRequestHandler("elicitation/create", ({ params }) => ({
    action: visit((params as { readonly url: string }).url),
  }));
  const requestInit = { headers: { authorization: `Bearer ${keys.ada}` } };
  await client.connect(new v2.StreamableHTTPClientTransport(new URL(url), { requestInit }));
  onTestFinished(() => client.close());
  return client;
}

test("a modern client shows the page in the middle of a call, and the same call ends with the account", async () => {
  const stage = await startStage({ server: { listsToAll: true } });
  const pages: string[] = [];
  const client = await connectOfficial(stage, "2026-07-28", (url) => {
    pages.push(url);
    void connectByKey(url, keys.ada, stage.idp);
    return "accept";
  });
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toContain("safe__read");
  expect(stage.server.served.filter(({ body }) => body.includes("tools/call"))).toEqual([]);
  const { content } = await client.callTool({ name: "safe__read", arguments: {} });
  expect(content).toEqual([{ type: "text", text: "read" }]);
  expect(pages).toHaveLength(1);
  expect(new URL(pages[0] ?? "").origin).toBe(new URL(stage.url).origin);
});

test("a modern call of a tool that is not listed yet leads to the page as well", async () => {
  const stage = await startStage();
  const elicitUrl = ({
    url,
  }: {
    readonly [name: string]: unknown;
  }): { readonly action: "accept"; content: object } => {
    void connectByKey(String(url), keys.ada, stage.idp);
    return { action: "accept", content: {} };
  };
  const client = await stage.as("ada", { handlers: { elicitUrl } });
  expect((await client.callTool("safe__read")).content).toEqual([{ type: "text", text: "read" }]);
});

test("a person who does not want to is not asked again, and nothing is sent", async () => {
  const stage = await startStage();
  let asked = 0;
  const client = await connectOfficial(stage, "2026-07-28", () => {
    asked++;
    return "decline";
  });
  const { content, isError } = await client.callTool({ name: "safe__connect", arguments: {} });
  expect(isError).toBe(true);
  expect(JSON.stringify(content)).toContain("the user does not want to connect it");
  expect([asked, stage.server.served.length]).toEqual([1, 0]);
});

test("a client of 2025-11-25 is told of the page by error -32042, and that its user is done, and then calls again", async () => {
  const stage = await startStage();
  const client = await connectOfficial(stage, "2025-11-25", () => "accept");
  const done: string[] = [];
  client.setNotificationHandler("notifications/elicitation/complete", ({ params }) => {
    done.push(params.elicitationId);
  });
  const lists: number[] = [];
  client.setNotificationHandler("notifications/tools/list_changed", () => void lists.push(1));
  const call = (): ReturnType<v2.Client["callTool"]> =>
    client.callTool({ name: "safe__read", arguments: {} });
  const error: unknown = await call().catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(v2.UrlElicitationRequiredError);
  const { elicitations } = error as v2.UrlElicitationRequiredError;
  expect(elicitations).toMatchObject([
    { mode: "url", message: expect.stringContaining("your own account") as string },
  ]);
  const { url, elicitationId } = elicitations[0] as { readonly url: string; readonly elicitationId: string };
  expect((await connectByKey(url, keys.ada, stage.idp)).text).toContain("Connected");
  await until(() => done.length > 0 && lists.length > 0);
  expect(done).toEqual([elicitationId]);
  expect((await call()).content).toEqual([{ type: "text", text: "read" }]);
});

test.each(["2025-06-18", "2025-03-26"] as const)(
  "a client of %s, which has no such pages, is told the link in words",
  async (revision) => {
    const stage = await startStage();
    const client = await stage.as("ada", { revision });
    const result = await client.callTool("safe__read").catch((error: unknown) => error);
    expect(result instanceof RpcError ? "an error" : JSON.stringify(result)).toContain("/connect/");
  },
);
