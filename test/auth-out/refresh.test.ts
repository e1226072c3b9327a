import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { createFileStore, type FileStore } from "../../packages/junctor/src/credentials/file-store.ts";
import { connect } from "../../packages/junctor/src/index.ts";
import { type IdentityProvider, startIdentityProvider } from "../support/identity-provider.ts";
import { bin, junctor } from "../support/junctor-bin.ts";
import { startProtectedServer } from "../support/protected-server.ts";
import { until } from "../support/until.ts";

const secret = "a secret of more than thirty-two characters";

interface Site {
  readonly idp: IdentityProvider;
  readonly store: FileStore;
  /** Starts a gateway in a process of its own, and gives its URL. */
  readonly serve: (onSpawned?: (child: ChildProcess) => void) => Promise<string>;
  /** Lets the stored token end. */
  readonly expire: () => Promise<void>;
  readonly refreshes: () => readonly { readonly status: number }[];
}

/** A user who is signed in to a server. */
async function start(beforeTokenAnswer?: (grant: string) => Promise<void>): Promise<Site> {
  const idp = await startIdentityProvider(beforeTokenAnswer === undefined ? {} : { beforeTokenAnswer });
  onTestFinished(() => idp[Symbol.asyncDispose]());
  const server = await startProtectedServer({ issuers: [idp.issuer], find: idp.find });
  onTestFinished(() => server[Symbol.asyncDispose]());
  const folder = mkdtempSync(join(tmpdir(), "junctor-refresh-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const store = createFileStore({ folder: join(folder, "state/junctor/credentials"), secrets: [secret] });
  const client = await connect(server.url, { authorization: { open: (url) => idp.browse(url), store } });
  await client.close();
  const config = join(folder, "mcp.json");
  writeFileSync(config, JSON.stringify({ mcpServers: { safe: { url: server.url } } }), { mode: 0o600 });
  const env = {
    XDG_STATE_HOME: join(folder, "state"),
    XDG_CACHE_HOME: join(folder, "cache"),
    JUNCTOR_SECRET: secret,
  };
  const serve: Site["serve"] = async (onSpawned) => {
    const child = spawn(process.execPath, [bin, "serve", "--port", "0", "--config", config], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "ignore"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    onSpawned?.(child);
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
    const gone = once(child, "exit").then(() => Promise.reject(new Error("It ended before it listened")));
    gone.catch(() => {}); // It may end later.
    const listening = until(() => /http:\/\/127\.0\.0\.1:\d+\/mcp/.exec(output)?.[0]);
    return Promise.race([listening, gone]);
  };
  const expire = async (): Promise<void> => {
    for (const [id, value] of store.all())
      if (id.startsWith('["credential"')) await store.write(id, { ...value, expiresAt: 1 });
  };
  const refreshes: Site["refreshes"] = () =>
    idp.tokenRequests.filter(({ grant }) => grant === "refresh_token");
  return { idp, store, serve, expire, refreshes };
}

test("100 parallel calls in two processes, when the token ended, make one refresh", async () => {
  const { serve, expire, refreshes } = await start();
  await expire();
  const gateways = await Promise.all([serve(), serve()]);
  await using first = await connect(gateways[0]);
  await using second = await connect(gateways[1]);
  const calls = Array.from({ length: 100 }, (_, index) =>
    (index % 2 === 0 ? first : second).callTool("safe__read"),
  );
  for (const { content } of await Promise.all(calls))
    expect(content).toEqual([{ type: "text", text: "read" }]);
  expect(refreshes()).toEqual([{ grant: "refresh_token", status: 200 }]);
});

test("a kill between the answer and its storage loses no login", async () => {
  let victim: ChildProcess | undefined;
  const { serve, expire, refreshes, store } = await start((grant) => {
    // The answer is made, and has not left: the process that asked for it is gone when it comes.
    if (grant === "refresh_token") victim?.kill("SIGKILL");
    return Promise.resolve();
  });
  await expire();
  const before = JSON.stringify([...store.all()]);
  // It may be killed before it listens, or after.
  await serve((child) => {
    victim = child;
  }).catch(() => {});
  await until(() => victim?.signalCode === "SIGKILL");
  await until(() => JSON.stringify([...store.all()]) !== before);
  victim = undefined;
  await using client = await connect(await serve());
  expect((await client.callTool("safe__read")).content).toEqual([{ type: "text", text: "read" }]);
  expect(refreshes()).toEqual([{ grant: "refresh_token", status: 200 }]);
});

test("a login that another process renewed, or that ended, is not used twice", async () => {
  const { store, expire, refreshes, idp } = await start();
  await expire();
  const [id = ""] = [...store.all().keys()].filter((each) => each.startsWith('["credential"'));
  const [, url = ""] = JSON.parse(id) as string[];
  const connecting = Array.from({ length: 10 }, async () => {
    await using client = await connect(url, { authorization: { store } });
    return await client.callTool("read");
  });
  await Promise.all(connecting);
  expect(refreshes()).toHaveLength(1);
  expect(idp.tokenRequests.every(({ status }) => status === 200)).toBe(true);
});

test("a network error keeps the login, a refusal forgets it", async () => {
  const { store, expire, idp } = await start();
  await expire();
  const [id = ""] = [...store.all().keys()].filter((each) => each.startsWith('["credential"'));
  const [, url = ""] = JSON.parse(id) as string[];
  const stored = (await store.read(id)) as { issuer: { tokenEndpoint: string } };
  const broken = { ...stored, issuer: { ...stored.issuer, tokenEndpoint: "http://127.0.0.1:9/token" } };
  await store.write(id, broken);
  await expect(connect(url, { authorization: { store } })).rejects.toMatchObject({
    code: "auth.unreachable",
  });
  expect(await store.read(id)).toEqual(broken);
  await store.write(id, { ...stored, refreshToken: "no longer good" });
  await expect(connect(url, { authorization: { store } })).rejects.toMatchObject({
    code: "auth.login_required",
  });
  expect(await store.read(id)).toBeUndefined();
  expect(idp.tokenRequests.at(-1)).toMatchObject({ status: 400 });
});

test("the process that renews refuses what is not a renewal", async () => {
  expect((await junctor(["renew-login"], { stdin: "no JSON" })).code).not.toBe(0);
});
