import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type IdentityProvider, startIdentityProvider } from "../support/identity-provider.ts";
import { junctor, type Run } from "../support/junctor-bin.ts";
import { type ProtectedServer, startProtectedServer } from "../support/protected-server.ts";

interface Desk {
  readonly idp: IdentityProvider;
  readonly server: ProtectedServer;
  /** Runs a command in a folder with a config and with user folders of its own. */
  readonly run: (...args: readonly string[]) => Promise<Run>;
  /** Signs in, as a person with a browser on another machine does. */
  readonly login: (...args: readonly string[]) => Promise<Run>;
}

async function start(registers = true): Promise<Desk> {
  const idp = await startIdentityProvider({ registers });
  onTestFinished(() => idp[Symbol.asyncDispose]());
  const server = await startProtectedServer({ issuers: [idp.issuer], find: idp.find });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const cwd = mkdtempSync(join(tmpdir(), "junctor-login-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  writeFileSync(join(cwd, "mcp.json"), JSON.stringify({ mcpServers: { safe: { url: server.url } } }), {
    mode: 0o600,
  });
  const env = { XDG_STATE_HOME: join(cwd, "state"), XDG_CACHE_HOME: join(cwd, "cache"), JUNCTOR_SECRET: "" };
  const run = (...args: readonly string[]): Promise<Run> => junctor(args, { cwd, env });
  const login = (...args: readonly string[]): Promise<Run> => {
    let isPasted = false;
    return junctor(["login", ...args, "--no-browser"], {
      cwd,
      env,
      onOutput: (output, child) => {
        const [page] = /^http\S+$/m.exec(output) ?? [];
        if (page === undefined || isPasted) return;
        isPasted = true;
        void idp.browse(page).then((address) => child.stdin?.write(`${address}\n`));
      },
    });
  };
  return { idp, server, run, login };
}

test("a server is used with a login, by name and by URL, until the logout", async () => {
  const { server, run, login } = await start();
  const refused = await run("tools", server.url);
  expect(refused.stderr).toContain(`it wants you to sign in: junctor login ${server.url}`);

  expect((await login("safe", "--config", "mcp.json")).stdout).toContain("Connected.");
  expect((await run("tools", server.url)).stdout).toContain("read");
  const called = await run("call", "safe__read", "--config", "mcp.json");
  expect(called.stdout).toContain("read");
  const listed = await run("logins");
  expect(listed.stdout).toContain(server.url);
  expect(listed.stdout).toContain("renewed by itself");
  for (const { token } of server.served) expect(listed.stdout + listed.stderr).not.toContain(token);

  expect((await run("logout", server.url)).stdout).toBe(`Logged out of ${server.url}.\n`);
  expect((await run("tools", server.url)).code).toBe(3);
});

test("check says LOGIN with the command that mends it, and ok afterwards", async () => {
  const { run, login } = await start();
  const before = await run("check", "--config", "mcp.json");
  expect(before.stdout).toMatch(/^! safe +LOGIN/m);
  expect(before.stdout).toContain("npx --no-install junctor login safe");
  await login("safe", "--config", "mcp.json");
  const after = await run("check", "--config", "mcp.json");
  expect(after.stdout).toMatch(/^✓ safe +up/m);
});

test("check says SETUP where an authorization server registers no clients", async () => {
  const { run } = await start(false);
  const { stdout } = await run("check", "--config", "mcp.json");
  expect(stdout).toMatch(/^! safe +SETUP/m);
  expect(stdout).toContain("callback http://127.0.0.1:33418/callback");
  expect(stdout).toContain('"safe": { "oauth": { "clientId"');
});
