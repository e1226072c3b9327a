// What is taken for a secret in the log: ordinary values of one server stay readable in what another one writes.
import { expect, test } from "vitest";
import { createGateway } from "../../packages/junctor/src/gateway/gateway.ts";
import { type GatewayLog, silentLog } from "../../packages/junctor/src/log/log.ts";

const token = "9f8e7d6c5b4a39281706";

/** Two servers that end at once, each with its last words. */
const exits = (words: string, env: { readonly [name: string]: string } = {}): object => ({
  command: process.execPath,
  args: ["-e", `console.error(${JSON.stringify(words)}); process.exit(1)`],
  env,
});

test("a server's host, port, user and folder are shown in another's log, its token nowhere, and its weak password in its own log alone", async () => {
  const lines: { readonly server?: string; readonly stderr?: string }[] = [];
  const log: GatewayLog = { ...silentLog, isLevelEnabled: () => true };
  for (const level of ["debug", "info", "warn", "error"] as const)
    log[level] = (facts) => void lines.push(facts);
  const words = `connect ECONNREFUSED 127.0.0.1:330600 of postgres, inventory at /srv/notes, sent ${token}`;
  const mcpServers = {
    one: exits(words, {
      MYSQL_HOST: "127.0.0.1",
      MYSQL_PORT: "330600",
      MYSQL_USER: "inventory",
      MYSQL_FOLDER: "/srv/notes",
      MYSQL_PASSWORD: "postgres",
      API: token,
    }),
    two: exits(words),
  };
  await using gateway = await createGateway({ mcpServers }, { log });
  const lastWordsOf = (server: string): string | undefined =>
    lines.find((line) => line.server === server && line.stderr !== undefined)?.stderr;
  await expect.poll(() => lastWordsOf("one") !== undefined && lastWordsOf("two") !== undefined).toBe(true);
  const shown = words.replace(token, "[secret]");
  expect(lastWordsOf("two")).toBe(shown);
  expect(lastWordsOf("one")).toBe(shown.replace("postgres", "[secret]"));
  // A server that was started twice said it twice.
  expect(gateway.status().map(({ said = "" }) => said.split("\n").at(-1))).toEqual([
    shown.replace("postgres", "[secret]"),
    shown,
  ]);
});
