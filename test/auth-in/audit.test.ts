import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../packages/junctor/src/index.ts";
import { modern, modernPost } from "../support/http-wire.ts";
import { exchange } from "../support/raw-http.ts";
import { until } from "../support/until.ts";
import { startStage } from "./stage.ts";

test("the audit says who called, by which issuer and client, and which rule decided; refused tokens are in it too", async () => {
  const folder = mkdtempSync(join(tmpdir(), "junctor-audit-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const audit = join(folder, "audit.jsonl");
  const rules = [{ allow: ["search", "create_*"] }, { scope: "never", tools: ["create_*"] }];
  const { idp, url, port } = await startStage({ junctor: { rules, audit } });
  await using client = await connect(url, { authorization: { open: (page) => idp.browse(page) } });
  await client.callTool("search");
  await expect(client.callTool("delete_repo")).rejects.toThrow("Unknown tool");
  await expect(client.callTool("create_issue")).rejects.toThrow("more access than was granted (read never)");
  const token = "a-token-that-no-issuer-knows";
  await exchange(port, modernPost(modern("tools/list"), { authorization: `Bearer ${token}` }));
  const text = await until(() => {
    const written = readFileSync(audit, "utf8");
    return written.includes("token.refused") && written.endsWith("\n") ? written : undefined;
  });
  const records = text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { readonly [member: string]: unknown })
    .filter(({ outcome }) => outcome !== "begun");
  const of = (tool: string): unknown => records.find((record) => record["tool"] === tool);
  const who = { caller: "corp:alice", issuer: idp.issuer, clientId: expect.any(String) as string };
  expect(of("search")).toMatchObject({ ...who, decision: "allow", rule: "rules[0]", outcome: "ok" });
  expect(of("delete_repo")).toMatchObject({ ...who, decision: "deny", outcome: "refused" });
  expect(of("create_issue")).toMatchObject({
    ...who,
    decision: "step_up",
    rule: "rules[1]",
    outcome: "refused",
    code: "provider.insufficient_scope",
    delivery: "not_sent",
  });
  expect(of("token.refused")).toMatchObject({
    kind: "event",
    reason: "the token is not known, or it expired",
    token: expect.stringMatching(/^[0-9a-f]{8}$/) as string,
  });
  expect(text).not.toContain(token);
});
