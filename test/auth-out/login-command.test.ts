import type { ChildProcess } from "node:child_process";
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
  /** Begins a sign-in and leaves the page, and the process that waits for its end, to the test. */
  readonly beginLogin: (onPage: (page: string, child: ChildProcess) => void) => Promise<Run>;
}

/** The server of the desk lets everybody in but the account `mallory`. */
async function start(registers = true): Promise<Desk> {
  const idp = await startIdentityProvider({ registers });
  onTestFinished(() => idp[Symbol.asyncDispose]());
  const find: IdentityProvider["find"] = async (token) => {
    const found = await idp.find(token);
    return found?.accountId === "mallory" ? undefined : found;
  };
  const server = await startProtectedServer({ issuers: [idp.issuer], find });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const cwd = mkdtempSync(join(tmpdir(), "junctor-login-"));
  onTestFinished(() => rmSync(cwd, { recursive: true, force: true }));
  writeFileSync(join(cwd, "mcp.json"), JSON.stringify({ mcpServers: { safe: { url: server.url } } }), {
    mode: 0o600,
  });
  const env = { XDG_STATE_HOME: join(cwd, "state"), XDG_CACHE_HOME: join(cwd, "cache"), JUNCTOR_SECRET: "" };
  const run = (...args: readonly string[]): Promise<Run> => junctor(args, { cwd, env });
  const loginBy = (
    args: readonly string[],
    onPage: (page: string, child: ChildProcess) => void,
  ): Promise<Run> => {
    let isShown = false;
    return junctor(["login", ...args, "--no-browser"], {
      cwd,
      env,
      onOutput: (output, child) => {
        const [page] = /^http\S+$/m.exec(output) ?? [];
        if (page === undefined || isShown) return;
        isShown = true;
        onPage(page, child);
      },
    });
  };
  const login: Desk["login"] = (...args) =>
    loginBy(args, (page, child) => void idp.browse(page).then((address) => child.stdin?.end(`${address}\n`)));
  const beginLogin: Desk["beginLogin"] = (onPage) => loginBy([server.url], onPage);
  return { idp, server, run, login, beginLogin };
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

test("a new sign-in leaves the login before it in use until it succeeds, also if it is killed", async () => {
  const { server, run, login, beginLogin } = await start();
  await login(server.url);
  let meanwhile: Promise<Run> | undefined;
  const { code } = await beginLogin((_, child) => {
    meanwhile = run("tools", server.url).finally(() => child.kill("SIGKILL"));
  });
  expect(code).toBe("SIGKILL");
  expect((await meanwhile)?.stdout).toContain("read");
  expect((await run("tools", server.url)).stdout).toContain("read");

  const failed = await beginLogin((_, child) => child.stdin?.write("http://127.0.0.1/elsewhere\n"));
  expect(failed.code).not.toBe(0);
  expect((await run("tools", server.url)).stdout).toContain("read");
  const first = server.served.at(-1)?.token;

  expect((await login(server.url)).stdout).toContain("Connected.");
  expect((await run("tools", server.url)).stdout).toContain("read");
  expect(server.served.at(-1)?.token).not.toBe(first);
});

test("a sign-in whose token the server refuses leaves the login before it", async () => {
  const { idp, server, run, login } = await start();
  await login(server.url);
  const first = server.served.at(-1)?.token ?? "";
  idp.account = "mallory";
  const { code } = await login(server.url);
  expect(code).not.toBe(0);
  expect((await run("tools", server.url)).stdout).toContain("read");
  expect(server.served.at(-1)?.token).toBe(first);
});

test("check says LOGIN with the command that mends it, and ok afterwards", async () => {
  const { run, login } = await start();
  const before = await run("check", "--config", "mcp.json");
  expect(before.stdout).toMatch(/^! safe +LOGIN/m);
  expect(before.stdout).toContain("LOGIN: junctor login safe");
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
