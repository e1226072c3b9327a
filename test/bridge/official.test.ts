// The two cells of the published compatibility matrix that say no, with the official SDKs on both sides of the gateway.

import { fork } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { v1Dialects } from "../interop/sdk-v1.ts";
import { v2Dialects } from "../interop/sdk-v2.ts";
import { startHttpFront } from "./support/front.ts";
import { connectV1Http, connectV2Http } from "./support/official-http.ts";
import { createFolder, fixture, type Way } from "./support/upstream.ts";

type Call = (tool: string) => Promise<string>;

/** The entry of an official server in a config. */
async function startOfficial(sdk: "v1" | "v2", way: Way): Promise<object> {
  const script = fixture("bridge-sdk.mjs");
  if (way === "stdio") return { command: process.execPath, args: [script, sdk] };
  const child = fork(script, [sdk, "--http"], { stdio: ["ignore", "ignore", "inherit", "ipc"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [port] = (await once(child, "message")) as [number];
  return { type: "http", url: `http://127.0.0.1:${port}/mcp` };
}

/** An official client of a gateway in front of one server. */
async function connectOfficial(client: "v1" | "v2", way: Way, entry: object): Promise<Call> {
  const config = { mcpServers: { up: entry } };
  if (way === "http") {
    const front = await startHttpFront(config);
    const official = await (client === "v1" ? connectV1Http : connectV2Http)(front.listener.port);
    onTestFinished(async () => {
      await official.close();
      await front[Symbol.asyncDispose]();
    });
    return (tool) => official.call(`up__${tool}`);
  }
  const folder = createFolder();
  const file = join(folder.path, "config.json");
  writeFileSync(file, JSON.stringify(config));
  const dialects = client === "v1" ? v1Dialects : v2Dialects;
  const dialect = dialects.find(
    ({ revision }) => revision === (client === "v1" ? "2025-11-25" : "2026-07-28"),
  );
  const official = await dialect?.connect({
    command: process.execPath,
    args: [fixture("bridge-gateway.mjs"), file],
  });
  if (official === undefined) throw new Error("There is no such client.");
  onTestFinished(async () => {
    await official.close();
    official.tap.assertValid();
    folder[Symbol.dispose]();
  });
  return async (tool) => {
    const { content } = await official.callTool(`up__${tool}`);
    return content.map(({ text }) => String(text)).join("");
  };
}

const ways: readonly Way[] = ["http", "stdio"];
const cells = (["v1", "v2"] as const).flatMap((client) =>
  (["v1", "v2"] as const).flatMap((server) =>
    ways.flatMap((front) => ways.map((back) => ({ client, server, front, back }))),
  ),
);

describe.each(cells)(
  "SDK $client client over $front, SDK $server server over $back",
  ({ client, server, front, back }) => {
    test("the user is asked, and the model", async () => {
      const call = await connectOfficial(client, front, await startOfficial(server, back));
      expect(await call("greet")).toBe("Hello, Ada!");
      expect(await call("poem")).toBe("Pipes, pipes, pipes.");
      expect(await call("greet_here")).toBe("Hello, Ada!");
    });

    test("several calls that ask at once are each answered", async () => {
      const call = await connectOfficial(client, front, await startOfficial(server, back));
      // By now it is known that this server asks without saying for which call.
      await call("greet");
      const all = await Promise.all(Array.from({ length: 4 }, () => call("greet")));
      expect(all).toEqual(Array.from({ length: 4 }, () => "Hello, Ada!"));
    });
  },
);
