import { expect, onTestFinished, test } from "vitest";
import { listenForCallback } from "../../packages/junctor/src/cli/terminal/browser.ts";

async function listen(port = 0): ReturnType<typeof listenForCallback> {
  const listener = await listenForCallback(port);
  onTestFinished(() => listener[Symbol.asyncDispose]());
  return listener;
}

test("the callback is the first request with the state of the sign-in", async () => {
  const { redirectUrl, next } = await listen();
  const found = next("mine");
  expect((await fetch(redirectUrl)).status).toBe(400);
  expect((await fetch(`${redirectUrl}?state=foreign&code=x`)).status).toBe(400);
  expect((await fetch(`${redirectUrl}?state=mine&code=x`, { method: "POST" })).status).toBe(400);
  expect((await fetch(`${redirectUrl}?state=mine&code=x`)).status).toBe(200);
  expect(await found).toBe(`${redirectUrl}?state=mine&code=x`);
});

test("a second request with the same state is refused", async () => {
  const { redirectUrl, next } = await listen();
  const found = next("mine");
  await fetch(`${redirectUrl}?state=mine&code=first`);
  expect((await fetch(`${redirectUrl}?state=mine&code=second`)).status).toBe(400);
  expect(await found).toContain("code=first");
});

test("a request for another host is refused, so that no name can be made to lead here", async () => {
  const { redirectUrl, next } = await listen();
  const found = next("mine");
  const { port } = new URL(redirectUrl);
  expect((await fetch(`http://localhost:${port}/callback?state=mine&code=x`)).status).toBe(400);
  await fetch(`${redirectUrl}?state=mine&code=x`);
  await found;
});

test("another port is taken when the usual one is in use", async () => {
  const first = await listen();
  const { port } = new URL(first.redirectUrl);
  const second = await listen(Number(port));
  expect(new URL(second.redirectUrl).port).not.toBe(port);
});

test("giving up rejects with the reason", async () => {
  const { next } = await listen();
  const giveUp = new AbortController();
  const found = next("mine", giveUp.signal);
  giveUp.abort(new Error("enough"));
  await expect(found).rejects.toThrow("enough");
});
