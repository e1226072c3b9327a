import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { isAtLeast } from "../../packages/core/src/mcp/revision.ts";
import { type CuttingProxy, startCuttingProxy } from "../support/cutting-proxy.ts";
import { type Listening, listen } from "../support/http-tools.ts";
import { type Dialect, dialects, type OfficialClient } from "./official-client.ts";

describe.each<Dialect>(dialects)("$name, over HTTP", ({ revision, connect }) => {
  const isModern = revision === "2026-07-28";
  let proxy: CuttingProxy;
  let at: Listening;
  let client: OfficialClient;

  beforeEach(async () => {
    proxy = await startCuttingProxy();
    at = await listen({ allowedHosts: [`127.0.0.1:${proxy.port}`], retryMs: 5 });
    proxy.target = at.port;
    client = await connect(proxy.port);
  });
  afterEach(async () => {
    await client.close();
    await at[Symbol.asyncDispose]();
    await proxy[Symbol.asyncDispose]();
    client.assertValid();
  });

  test("agrees on the revision, and has a session where there are sessions", () => {
    expect(client.revision).toBe(revision);
    expect(client.sessionId === undefined).toBe(isModern);
  });

  test("lists and calls", async () => {
    expect(await client.listTools()).toEqual(expect.arrayContaining(["echo", "recite", "greet"]));
    const messages = Array.from({ length: 20 }, (_, index) => `naïve 🦊 ${index}`);
    expect(await Promise.all(messages.map((message) => client.call("echo", { message })))).toEqual(messages);
  });

  test("sees a stream as it happens", async () => {
    const seen: unknown[] = [];
    const onprogress = ({ message }: { readonly message?: string | undefined }): void => {
      seen.push(message);
      at.steps.allow();
    };
    at.steps.allow();
    expect(await client.call("recite", {}, { onprogress })).toBe("one two three");
    expect(seen).toEqual(["one ", "two ", "three"]);
  });

  test("cancels", async () => {
    const controller = new AbortController();
    const call = client.call("wait", { key: "k" }, { signal: controller.signal, onprogress: () => {} });
    await expect.poll(() => at.waits.get("k")).toBe("running");
    controller.abort();
    await expect(call).rejects.toThrow(/abort/i);
    await expect.poll(() => at.waits.get("k")).toBe("aborted");
  });

  test("is asked for its model and its roots", async () => {
    expect(await client.call("poem")).toBe("m wrote it");
    expect(await client.call("where")).toBe("file:///home");
  });

  test.runIf(isAtLeast(revision, "2025-06-18"))("is asked to fill in a form", async () => {
    expect(await client.call("greet")).toBe("Hello, Ada!");
  });

  test("is told of changes", async () => {
    await client.watch();
    // A legacy client opens its stream when it likes; what changed before is told then.
    at.registry.register("sprout", {}, () => "grown");
    await expect.poll(() => client.notices).toContain("notifications/tools/list_changed");
    expect(await client.call("sprout")).toBe("grown");
  });

  test.skipIf(isModern)("reads a stream whole though its socket is cut again and again", async () => {
    const seen: unknown[] = [];
    const onprogress = ({ message }: { readonly message?: string | undefined }): void => {
      seen.push(message);
      at.steps.allow();
    };
    for (const piece of ["piece 3", "piece 11", "piece 12", "piece 25"]) proxy.cutAfter(`"${piece}"`);
    at.registry.register("paced", {}, async function* () {
      for (let index = 1; index <= 25; index++) {
        yield { type: "progress", progress: index, message: `piece ${index}` };
        await at.steps.step();
      }
      return "done";
    });
    expect(await client.call("paced", {}, { onprogress })).toBe("done");
    expect(proxy.cuts).toBe(4);
    expect(seen).toEqual(Array.from({ length: 25 }, (_, index) => `piece ${index + 1}`));
  });

  test.runIf(isModern)("loses a call whose socket is cut, and the tool is aborted", async () => {
    proxy.cutAfter("notifications/progress");
    const controller = new AbortController();
    const call = client.call("wait", { key: "k" }, { signal: controller.signal, onprogress: () => {} });
    await expect.poll(() => at.waits.get("k")).toBe("aborted");
    controller.abort(); // This client notices a broken stream only when its own patience ends.
    await expect(call).rejects.toThrow(/abort/i);
  });

  test.runIf(revision === "2025-11-25")("is sent away and comes back for its result", async () => {
    const call = client.call("poll");
    at.steps.allow();
    expect(await call).toBe("worth the wait");
  });
});
