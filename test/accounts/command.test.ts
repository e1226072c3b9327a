import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { connect } from "../../packages/junctor/src/index.ts";
import { type IdentityProvider, startIdentityProvider } from "../support/identity-provider.ts";
import { bin, junctor, type Run } from "../support/junctor-bin.ts";
import { type ProtectedServer, startProtectedServer } from "../support/protected-server.ts";
import { until } from "../support/until.ts";
import { connectByKey } from "../support/visitor.ts";
import { askForLink, keys, namesOf, textOf } from "./stage.ts";

interface Desk {
  readonly idp: IdentityProvider;
  readonly server: ProtectedServer;
  readonly run: (...args: readonly string[]) => Promise<Run>;
  /** Starts a gateway in a process of its own, and gives its URL and all that it writes. */
  readonly serve: () => Promise<{ readonly url: string; readonly written: () => string }>;
}

async function start(junctorSection: object = {}, registers = true): Promise<Desk> {
  const idp = await startIdentityProvider({ registers });
  onTestFinished(() => idp[Symbol.asyncDispose]());
  const server = await startProtectedServer({ issuers: [idp.issuer], find: idp.find });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const cwd = mkdtempSync(join(tmpdir(), "junctor-accounts-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true, maxRetries: 5 }));
  const section = {
    keys: { ada: { env: "ADA" } },
    servers: { safe: { credentials: "perCaller" } },
    ...junctorSection,
  };
  const config = { mcpServers: { safe: { url: server.url } }, junctor: section };
  writeFileSync(join(cwd, "mcp.json"), JSON.stringify(config), { mode: 0o600 });
  const env = {
    XDG_STATE_HOME: join(cwd, "state"),
    XDG_CACHE_HOME: join(cwd, "cache"),
    JUNCTOR_SECRET: "a secret of more than thirty-two characters",
    ADA: keys.ada,
  };
  const serve: Desk["serve"] = async () => {
    const child = spawn(process.execPath, [bin, "serve", "--port", "0", "--config", "mcp.json"], {
      cwd,
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    let output = "";
    const hear = (text: string): void => void (output += text);
    child.stdout.setEncoding("utf8").on("data", hear);
    child.stderr.setEncoding("utf8").on("data", hear);
    const url = await until(() => /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(output)?.[0]);
    return { url, written: () => output };
  };
  return { idp, server, run: (...args) => junctor(args, { cwd, env }), serve };
}

test("an account that was connected to one gateway is used by the next, and is gone after the logout", async () => {
  const { idp, run, serve } = await start();
  const { url, written } = await serve();
  const headers = { authorization: `Bearer ${keys.ada}` };
  await using client = await connect(url, { headers });
  expect(await namesOf(client)).toEqual(["safe__connect"]);
  const link = await askForLink(client);
  expect((await connectByKey(link, keys.ada, idp)).text).toContain("Connected");
  expect(await textOf(client, "safe__read")).toBe("read");
  expect((await run("logins")).stdout).toMatch(/\bada\b/);
  await using second = await connect((await serve()).url, { headers });
  expect(await textOf(second, "safe__read")).toBe("read");
  expect((await run("logout", "safe", "--caller", "bob", "--config", "mcp.json")).stdout).toContain(
    "There was no login of bob for safe",
  );
  const { stdout } = await run("logout", "safe", "--caller", "ada", "--config", "mcp.json");
  expect(stdout).toContain("Took the account of ada at safe away");
  for (const each of [client, second])
    await expect.poll(() => textOf(each, "safe__read"), { interval: 500 }).toContain("/connect/");
  expect(written()).not.toContain(keys.ada);
});

test("check says that callers connect their own accounts, and what stands in the way of that", async () => {
  const fine = await start();
  const checked = await fine.run("check", "--config", "mcp.json");
  expect(checked.stdout).toMatch(/^✓ safe +up .*each caller connects its own account/m);
  expect(checked.code).toBe(0);
  const { stdout } = await (await start({}, false)).run("check", "--config", "mcp.json");
  expect(stdout).toMatch(/^! safe +SETUP/m);
  expect(stdout).toContain("callback http://127.0.0.1:7780/oauth/callback/safe");
  const nowhere = await start({ http: { host: "0.0.0.0" } });
  expect((await nowhere.run("check", "--config", "mcp.json")).stdout).toContain('"publicUrl"');
}, 60_000);
