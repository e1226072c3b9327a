import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSeal } from "../../packages/core/src/mcp/seal.ts";
import { type Listening, listen } from "../support/http-tools.ts";
import { HttpWire, modernCall, modernMeta } from "../support/http-wire.ts";
import type { Message } from "../support/raw-http.ts";

const _meta = modernMeta({ elicitation: {}, sampling: {}, roots: {} });
const accepted = { name: { action: "accept", content: { name: "Ada" } } };
const keys: { readonly [header: string]: string } = { "Bearer a": "alice", "Bearer b": "bob" };
const secret = "a secret that both replicas of the test know";

let at: Listening;
let replica: Listening;
beforeAll(async () => {
  const authenticate = (header: (name: string) => string | undefined): string | undefined =>
    keys[header("authorization") ?? ""];
  [at, replica] = await Promise.all([
    listen({ authenticate }, { seal: createSeal({ secret }) }),
    listen({ authenticate }, { seal: createSeal({ secret }) }),
  ]);
});
afterAll(async () => {
  await at[Symbol.asyncDispose]();
  await replica[Symbol.asyncDispose]();
});

async function ask(
  params: { readonly [member: string]: unknown },
  { port = at.port, key = "a", name = "greet", args = {} } = {},
): Promise<Message> {
  using wire = new HttpWire(port, "2026-07-28");
  wire.headers["authorization"] = `Bearer ${key}`;
  return await wire.ask(modernCall(name, args, { _meta, ...params }));
}

async function askForState(): Promise<string> {
  const { result } = await ask({});
  return String(result!["requestState"]);
}

describe("input_required", () => {
  test("ends the request with its questions and a state", async () => {
    const { result } = await ask({});
    expect(result).toMatchObject({
      resultType: "input_required",
      inputRequests: { name: { method: "elicitation/create", params: { message: "What is your name?" } } },
      requestState: expect.stringMatching(/^v1\./) as string,
    });
    expect(Object.keys(result!)).not.toContain("ttlMs");
  });

  test("is answered by the request made again", async () => {
    const requestState = await askForState();
    const { result } = await ask({ requestState, inputResponses: accepted });
    expect(result).toMatchObject({ resultType: "complete", content: [{ text: "Hello, Ada!" }] });
  });

  test("is answered on another replica that saw nothing before", async () => {
    const requestState = await askForState();
    const { result } = await ask({ requestState, inputResponses: accepted }, { port: replica.port });
    expect(result).toMatchObject({ content: [{ text: "Hello, Ada!" }] });
  });

  test.each(["decline", "cancel"])("can be answered with %s", async (action) => {
    const requestState = await askForState();
    const { result } = await ask({ requestState, inputResponses: { name: { action } } });
    expect(result).toMatchObject({ content: [{ text: `No: ${action}` }] });
  });

  test("asks again when the answer is missing, and takes no notice of others", async () => {
    const requestState = await askForState();
    const { result } = await ask({ requestState, inputResponses: { other: { action: "accept" } } });
    expect(result).toMatchObject({ resultType: "input_required", inputRequests: { name: {} } });
  });

  test.each([null, 7, "x", []])("never succeeds with answers that are %j", async (inputResponses) => {
    const requestState = await askForState();
    expect((await ask({ requestState, inputResponses })).error).toMatchObject({ code: -32602 });
  });

  test("works for what the client's model and folders are asked for too", async () => {
    const sampled = { poem: { role: "assistant", content: { type: "text", text: "…" }, model: "m" } };
    expect((await ask({ inputResponses: sampled }, { name: "poem" })).result).toMatchObject({
      content: [{ text: "m wrote it" }],
    });
    const roots = { roots: { roots: [{ uri: "file:///a" }] } };
    expect((await ask({ inputResponses: roots }, { name: "where" })).result).toMatchObject({
      content: [{ text: "file:///a" }],
    });
  });
});

describe("a state that came back", () => {
  const refused = { code: -32602, message: expect.stringContaining("requestState") as string };

  test("is refused with any character of it changed", async () => {
    const state = await askForState();
    const at = Array.from({ length: 24 }, (_, index) => Math.floor((index * state.length) / 24));
    const answers = at.map((place) => {
      const other = state[place] === "A" ? "B" : "A";
      const requestState = state.slice(0, place) + other + state.slice(place + 1);
      return ask({ requestState, inputResponses: accepted });
    });
    for (const answer of await Promise.all(answers)) expect(answer.error).toMatchObject(refused);
  });

  test.each(["", "v1.", "v1.AAAA", "x".repeat(70_000), 7, null, {}])(
    "is refused as %j",
    async (requestState) => {
      expect((await ask({ requestState, inputResponses: accepted })).error).toMatchObject(refused);
    },
  );

  test("is refused from another caller", async () => {
    const requestState = await askForState();
    const answer = await ask({ requestState, inputResponses: accepted }, { key: "b" });
    expect(answer.error).toMatchObject(refused);
  });

  test("is refused for another tool", async () => {
    const requestState = await askForState();
    const answer = await ask({ requestState, inputResponses: accepted }, { name: "poem" });
    expect(answer.error).toMatchObject(refused);
  });

  test("is refused with other arguments", async () => {
    const requestState = await askForState();
    const answer = await ask({ requestState, inputResponses: accepted }, { args: { other: 1 } });
    expect(answer.error).toMatchObject(refused);
  });

  test("is refused when its time is over", async () => {
    let now = 0;
    await using late = await listen({}, { seal: createSeal({ now: () => now }) });
    const first = await ask({}, { port: late.port });
    const requestState = String(first.result!["requestState"]);
    now = 10 * 60_000;
    const answer = await ask({ requestState, inputResponses: accepted }, { port: late.port });
    expect(answer.error).toMatchObject(refused);
  });
});
