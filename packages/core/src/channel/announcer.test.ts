import { expect, test } from "vitest";
import { type Deferred, createDeferred } from "../async/queue.ts";
import { RawJson } from "../json/raw.ts";
import { createAnnouncer } from "./serve-channel.ts";

test("what is announced again while the reader is slow is sent once more", async () => {
  const sent: { text: string; taken: Deferred<void> }[] = [];
  const announce = createAnnouncer((method, params) => {
    const taken = createDeferred<void>();
    sent.push({ text: `${method} ${params?.text ?? ""}`, taken });
    return taken.promise;
  });
  const [a, b] = ["a", "b"].map((uri) => RawJson.fromValue({ uri }));
  announce("changed", undefined);
  for (let time = 0; time < 1000; time++) {
    announce("changed", undefined);
    announce("updated", a);
    announce("updated", b);
  }
  const once = ["changed ", 'updated {"uri":"a"}', 'updated {"uri":"b"}'];
  expect(sent.map(({ text }) => text)).toEqual(once);
  sent.forEach(({ taken }) => taken.resolve());
  await expect.poll(() => sent.map(({ text }) => text), { interval: 1 }).toEqual([...once, ...once]);
});

test("announcements go on after one that could not be sent", async () => {
  const sent: string[] = [];
  const announce = createAnnouncer(async (method) => {
    sent.push(method);
    if (method === "first") throw new Error("closed");
  });
  announce("first", undefined);
  announce("second", undefined);
  await expect.poll(() => sent, { interval: 1 }).toEqual(["first", "second"]);
});
