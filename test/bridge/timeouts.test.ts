// A call that takes longer than it may while its user thinks.

import { expect, test } from "vitest";
import { startHttpFront } from "./support/front.ts";
import { type EraName, startUpstream, type Way } from "./support/upstream.ts";

const cells = (["legacy", "modern"] as const).flatMap((client: EraName) =>
  (["http", "stdio"] as const).map((way: Way) => [client, way] as const),
);

test.each(cells)("a %s client that thinks for too long, and a legacy server over %s", async (era, way) => {
  await using upstream = await startUpstream("legacy", way);
  await using front = await startHttpFront({
    mcpServers: { up: upstream.entry },
    junctor: { servers: { up: { timeoutMs: 3000, maxTotalMs: 3000 } } },
  });
  let asked: AbortSignal | undefined;
  await using client = await front.connect(era, {
    handlers: {
      elicit: async (_, signal) => {
        asked = signal;
        await expect.poll(() => upstream.count("cancelled", "n1")).toBe(1);
        return { action: "accept", content: { nonce: "late" } };
      },
    },
  });
  const call = client.callTool("up__ask", { nonce: "n1", rounds: [["form"], ["form"]] });
  expect(
    JSON.stringify(await call.catch((error: unknown) => ({ isError: true, text: String(error) }))),
  ).toMatch(/3000/);
  expect(asked).toBeDefined();
  expect(upstream.count("run", "n1")).toBe(1);
  expect(upstream.count("done", "n1")).toBe(0);
});
