import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";

const file = fileURLToPath(new URL("../fixtures/children/quick.mjs", import.meta.url));

test("a server that does not answer a ping is given up after the time that was given", async () => {
  const a = { command: process.execPath, args: [file, "--hang=ping"] };
  await using gateway = await createGateway({
    mcpServers: { a },
    junctor: { servers: { a: { start: "eager" } } },
  });
  await expect.poll(() => gateway.status()[0]?.status).toBe("up");
  const usual = gateway.measure("a").then(() => "the usual time");
  const short = gateway.measure("a", 50);
  expect(await Promise.race([usual, short])).toBeUndefined();
});
