import { expect, test } from "vitest";
import { z } from "zod";
import { connect } from "../../packages/client/src/client/connect.ts";
import { createRegistry } from "../../packages/server/src/registry/registry.ts";
import { createServer } from "../../packages/server/src/wire/server.ts";

const input = z.object({
  count: z.coerce.number().int().min(1),
  price: z.coerce.number().nullable(),
  name: z.coerce.string().max(20),
  isNew: z.coerce.boolean(),
  at: z.coerce.date(),
  serial: z.coerce.bigint(),
  sizes: z.array(z.coerce.number()),
  limit: z.coerce.number().default(10),
  length: z.string().transform((text) => text.length),
});

test("our client sends what a coercing tool takes", async () => {
  const registry = createRegistry();
  registry.register("order", { input }, ({ count, price, name, isNew, at, serial, sizes, limit, length }) => {
    return [count, price, name, isNew, at.toISOString(), serial.toString(), sizes, limit, length];
  });
  const server = createServer(registry, { name: "shop", version: "1.0.0" });
  await using client = await connect({ server });
  const { structuredContent } = await client.callTool("order", {
    count: "5",
    price: "1.5",
    name: 7,
    isNew: "yes",
    at: "2026-01-02",
    serial: "12345678901234567890",
    sizes: ["1", 2],
    length: "four",
  });
  const at = "2026-01-02T00:00:00.000Z";
  expect(structuredContent).toEqual([5, 1.5, "7", true, at, "12345678901234567890", [1, 2], 10, 4]);
});
