import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { isAtLeast } from "../../packages/core/src/mcp/revision.ts";
import { demoServer, type Dialect, type Progress, type SdkClient } from "./sdk-client.ts";
import { v1Dialects } from "./sdk-v1.ts";
import { v2Dialects } from "./sdk-v2.ts";

describe.each<Dialect>([...v1Dialects, ...v2Dialects])("$name, with junctor serve --stdio", (dialect) => {
  const hasForms = isAtLeast(dialect.revision, "2025-06-18");
  let client: SdkClient;

  beforeAll(async () => void (client = await dialect.connect(demoServer)));
  afterEach(() => client.tap.assertValid());
  afterAll(async () => void (await client.close()));

  test("agrees on the revision", () => {
    expect(client.revision).toBe(dialect.revision);
    expect(client.serverInfo).toMatchObject({ name: "junctor-demo" });
  });

  test("lists the demo tools", async () => {
    const names = (await client.listTools()).map(({ name }) => name);
    expect(names).toEqual(["echo", "add", "countdown", "greet"]);
  });

  test("gets its echo", async () => {
    const { content } = await client.callTool("echo", { message: "hello" });
    expect(content).toEqual([{ type: "text", text: "hello" }]);
  });

  test("adds", async () => {
    const { content } = await client.callTool("add", { a: 2, b: 40 });
    expect(content).toEqual([{ type: "text", text: "42" }]);
  });

  test("sees the countdown as it happens", async () => {
    const seen: Progress[] = [];
    const onprogress = (progress: Progress): void => void seen.push(progress);
    const { content } = await client.callTool("countdown", { from: 2 }, { onprogress });
    expect(content).toEqual([{ type: "text", text: "2 1 liftoff" }]);
    // The last piece and the result may arrive together, and then the SDK's clients drop the progress.
    expect(seen.slice(0, 2).map(({ message }) => message)).toEqual(["2 ", "1 "]);
  });

  test.runIf(hasForms)("is greeted by the name the user gives", async () => {
    client.user.elicited = () => ({ action: "accept", content: { name: "Grace" } });
    const { content } = await client.callTool("greet");
    expect(content).toEqual([{ type: "text", text: "Hello, Grace!" }]);
  });

  test.skipIf(hasForms)("gets an error that greeting needs a form, which the revision lacks", async () => {
    expect(await client.callTool("greet")).toMatchObject({ isError: true });
  });

  test("ends the command in order by leaving", async () => {
    const leaving = await dialect.connect(demoServer);
    expect(await leaving.close()).toEqual({ code: 0, signal: null });
  });
});
