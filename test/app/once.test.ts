import { expect, test } from "vitest";
import { z } from "zod";
import { connect } from "../../packages/client/src/client/connect.ts";
import { accepted } from "../../packages/junctor/src/testing/answers.ts";
import { connectForTest } from "../../packages/junctor/src/testing/connect-for-test.ts";
import { type App, createApp } from "../../packages/server/src/app/index.ts";

const secret = "a secret of at least thirty-two characters";
const legacy = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"] as const;

/** Each is as another process has it: they share the secret, and the card that is charged. */
function createShop(charges: string[]): App {
  return createApp({ name: "shop", version: "1.0.0", secret }).tool(
    "buy",
    { input: z.object({ what: z.string() }) },
    async ({ what }, { ask, once }) => {
      const charge = await once("charge", () => {
        charges.push(what);
        return { number: charges.length };
      });
      const { gift } = await ask("Is it a gift?", z.object({ gift: z.boolean() }));
      const { card } = await ask("What is on the card?", z.object({ card: z.string() }));
      return `${charge.number} ${gift} ${card}`;
    },
  );
}

test.each(["2026-07-28", "2025-11-25", "2025-06-18"] as const)(
  "in %s, work before two questions happens once",
  async (revision) => {
    const charges: string[] = [];
    const answers = { elicit: [accepted({ gift: true }), accepted({ card: "Hello" })] };
    await using client = await connectForTest(createShop(charges), { revision, answers });
    expect(await client.callTool("buy", { what: "a book" })).toMatchObject({
      content: [{ text: "1 true Hello" }],
    });
    expect(charges).toEqual(["a book"]);
  },
);

test.each(legacy.slice(2))(
  "in %s, whose clients cannot be asked, the model gets an error",
  async (revision) => {
    const charges: string[] = [];
    await using client = await connectForTest(createShop(charges), { revision });
    expect(await client.callTool("buy", { what: "a book" })).toMatchObject({ isError: true });
    expect(charges).toEqual(["a book"]);
  },
);

test("a modern call goes on in the next process when its server dies between question and answer", async () => {
  const charges: string[] = [];
  let listener = await createShop(charges).listen({ port: 0, graceMs: 0 });
  const { port, url } = listener;
  let asked = 0;
  const client = await connect(url, {
    // Else the next request might go out on a connection whose end is still on its way.
    headers: { connection: "close" },
    handlers: {
      elicit: async () => {
        await listener.close();
        listener = await createShop(charges).listen({ port });
        return ++asked === 1 ? accepted({ gift: false }) : accepted({ card: "Hi" });
      },
    },
  });
  expect(await client.callTool("buy", { what: "a pen" })).toMatchObject({
    content: [{ text: "1 false Hi" }],
  });
  expect([charges, asked]).toEqual([["a pen"], 2]);
  await client.close();
  await listener.close();
});

test("a legacy call whose server dies between question and answer fails, and is not run again", async () => {
  const charges: string[] = [];
  const listener = await createShop(charges).listen({ port: 0, graceMs: 0 });
  const client = await connect(listener.url, {
    revision: "2025-11-25",
    handlers: {
      elicit: async () => {
        await listener.close();
        return accepted({ gift: false });
      },
    },
  });
  const outcome = await client.callTool("buy", { what: "a pen" }).catch((error: unknown) => error);
  expect(outcome instanceof Error || (outcome as { isError?: boolean }).isError === true).toBe(true);
  expect(charges).toEqual(["a pen"]);
  await client.close();
});

test("a legacy session goes on in another process with the same secret", async () => {
  const first = await createShop([]).listen({ port: 0 });
  const client = await connect(first.url, { revision: "2025-06-18" });
  expect((await client.listTools()).map(({ name }) => name)).toEqual(["buy"]);
  await first.close();
  const second = await createShop([]).listen({ port: first.port });
  const { content, isError } = await client.callTool("buy", { what: "a pen" });
  expect([isError, content]).toMatchObject([
    true,
    [{ text: expect.stringContaining("does not offer") as string }],
  ]);
  await client.close();
  await second.close();
});
