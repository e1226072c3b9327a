import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { root } from "./source-graph.ts";
import { installPacked } from "./support/packed-project.ts";

// What the packages declare, as a strict user compiles it: library checks on. Older versions of TypeScript are tried by
// `npm run proof -- conformance types`.

const project = mkdtempSync(join(tmpdir(), "junctor-types-"));
afterAll(() => rmSync(project, { recursive: true, force: true }));

test("the types of all packages compile in a strict project, declarations of libraries included", () => {
  installPacked(project, ["zod", "@types/node", "undici-types"]);
  writeFileSync(join(project, "package.json"), JSON.stringify({ type: "module" }));
  writeFileSync(
    join(project, "main.ts"),
    `import { connect } from "@junctor/client";
    import { createRegistry, createServer, elicit, inputRequired } from "@junctor/server";
    import { toFetchHandler } from "@junctor/server/fetch";
    import { createGateway } from "junctor";
    import { connectForTest } from "junctor/testing";
    import { z } from "zod";
    const registry = createRegistry();
    registry.register("add", { input: z.object({ a: z.number() }) }, ({ a }) => String(a));
    registry.register("ask", {}, (_, { answers }) =>
      answers.elicited("q")?.action ?? inputRequired({ q: elicit("Who?", { name: { type: "string" } }) }));
    const server = createServer(registry, { name: "types", version: "1.0.0" });
    export const handler = toFetchHandler(server);
    export const tested = connectForTest(registry);
    export const gateway = await createGateway({ mcpServers: {} });
    const client = await connect({ server });
    for (const block of (await client.callTool("add", { a: 1 })).content) if (block.type === "text") console.log(block.text);
    `,
  );
  const flags = ["--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false"];
  const target = ["--module", "nodenext", "--target", "es2022", "--lib", "es2022,esnext.disposable,dom"];
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const words = [tsc, ...flags, ...target, "--types", "node", "main.ts"];
  let said = "";
  try {
    said = execFileSync(process.execPath, words, { cwd: project, encoding: "utf8" });
  } catch (error) {
    said = (error as { readonly stdout: string }).stdout;
  }
  expect(said).toBe("");
});
