// `junctor search` and `junctor add` by names of a registry, with a registry of this machine that speaks `/v0.1`.
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findServer, searchRegistry } from "../../packages/junctor/src/registry/index.ts";
import { junctor } from "../support/junctor-bin.ts";

const folder = mkdtempSync(join(tmpdir(), "junctor-registry-"));
const official = "io.modelcontextprotocol.registry/official";

const npm = {
  registryType: "npm",
  registryBaseUrl: "https://registry.npmjs.org",
  identifier: "@acme/files",
  version: "1.2.0",
  transport: { type: "stdio" },
};
const entries: { readonly [name: string]: object } = {
  "io.github.acme/files": {
    packages: [
      {
        ...npm,
        runtimeArguments: [{ type: "named", name: "--prefer-offline" }],
        packageArguments: [
          { type: "positional", valueHint: "folder", isRequired: true, description: "What to serve" },
          { type: "named", name: "--mode", value: "{mode}", variables: { mode: { default: "read" } } },
        ],
        environmentVariables: [
          { name: "ACME_TOKEN", isRequired: true, isSecret: true, description: "From acme.example" },
          { name: "ACME_LEVEL", default: "info" },
          { name: "ACME_OTHER" },
        ],
      },
    ],
  },
  "io.github.acme/py": {
    packages: [
      { registryType: "pypi", identifier: "acme-py", version: "0.3.1", transport: { type: "stdio" } },
    ],
  },
  "io.github.acme/image": {
    packages: [
      {
        registryType: "oci",
        identifier: "ghcr.io/acme/image:2.0.0",
        transport: { type: "stdio" },
        environmentVariables: [{ name: "KEY", value: "v" }],
      },
    ],
  },
  "io.github.acme/net": {
    packages: [
      { registryType: "nuget", identifier: "Acme.Net", version: "1.0.0", transport: { type: "stdio" } },
    ],
  },
  "io.github.acme/bundle": {
    packages: [
      {
        registryType: "mcpb",
        identifier: "https://acme.example/a.mcpb",
        version: "1.0.0",
        transport: { type: "stdio" },
      },
    ],
  },
  "com.acme/remote": {
    packages: [{ registryType: "cargo", identifier: "x", version: "1.0.0", transport: { type: "stdio" } }],
    remotes: [
      {
        type: "streamable-http",
        url: "https://{region}.acme.example/mcp",
        variables: { region: { isRequired: true } },
        headers: [{ name: "X-Key", isRequired: true, isSecret: true }],
      },
    ],
  },
  "io.github.evil/option": { packages: [{ ...npm, identifier: "--call=touch trap" }] },
  "io.github.evil/git": { packages: [{ ...npm, identifier: "git+https://evil.example/x" }] },
  "io.github.evil/source": { packages: [{ ...npm, registryBaseUrl: "https://evil.example" }] },
  "io.github.evil/latest": { packages: [{ ...npm, version: "latest" }] },
  "io.github.evil/plain": { remotes: [{ type: "sse", url: "http://169.254.169.254/" }] },
  "io.github.evil/variables": {
    packages: [{ ...npm, packageArguments: [{ type: "positional", value: "${HOME}" }] }],
    remotes: [],
  },
  "io.github.evil/nothing": {},
  "io.github.old/gone": { packages: [npm] },
};

let server: Server;
let url: string;
beforeAll(async () => {
  server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? "", "http://x");
    const send = (status: number, value: unknown): void => {
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    };
    const toAnswer = (name: string) => ({
      server: { name, description: `About ${name}`, version: "1.2.0", ...entries[name] },
      _meta: { [official]: { status: name.endsWith("/gone") ? "deleted" : "active", isLatest: true } },
    });
    if (pathname === "/v0.1/servers") {
      const found = Object.keys(entries).filter((name) => name.includes(searchParams.get("search") ?? ""));
      return send(200, { servers: found.map(toAnswer), metadata: { count: found.length } });
    }
    const [, name = "", version] = /^\/v0\.1\/servers\/([^/]+)\/versions\/([^/]+)$/.exec(pathname) ?? [];
    const known = decodeURIComponent(name);
    if (known === "io.github.evil/other") return send(200, toAnswer("io.github.acme/files"));
    const isThere = Object.hasOwn(entries, known) && (version === "latest" || version === "1.2.0");
    return isThere ? send(200, toAnswer(known)) : send(404, { title: "Not Found", status: 404 });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
  rmSync(folder, { recursive: true, force: true });
});

const { signal } = new AbortController();
const find = (name: string, values: object = {}) =>
  findServer(url, { name }, new Map(Object.entries(values)), signal);

test("a package runs with its version, its arguments and what it was given", async () => {
  const { launch, missing } = await find("io.github.acme/files", { folder: "/data", ACME_TOKEN: "${T}" });
  expect([launch, missing]).toEqual([
    {
      command: "npx",
      args: ["-y", "@acme/files@1.2.0", "/data", "--mode", "read"],
      env: { ACME_TOKEN: "${T}", ACME_LEVEL: "info" },
    },
    [],
  ]);
  const flags = await find("io.github.acme/files", {
    folder: "x",
    "prefer-offline": "",
    ACME_TOKEN: "t",
    mode: "write",
  });
  expect(flags.launch).toMatchObject({
    args: ["-y", "--prefer-offline", "@acme/files@1.2.0", "x", "--mode", "write"],
  });
  expect((await find("io.github.acme/files")).missing.map(({ name, isSecret }) => [name, isSecret])).toEqual([
    ["folder", false],
    ["ACME_TOKEN", true],
  ]);
});

test.each([
  ["io.github.acme/py", { command: "uvx", args: ["acme-py@0.3.1"], env: {} }],
  [
    "io.github.acme/image",
    {
      command: "docker",
      args: ["run", "-i", "--rm", "-e", "KEY", "ghcr.io/acme/image:2.0.0"],
      env: { KEY: "v" },
    },
  ],
  ["io.github.acme/net", { command: "dnx", args: ["Acme.Net@1.0.0", "--yes"], env: {} }],
  ["io.github.evil/variables", { command: "npx", args: ["-y", "@acme/files@1.2.0", "$${HOME}"], env: {} }],
])("%s is run by the program of its kind", async (name, launch) => {
  expect((await find(name)).launch).toEqual(launch);
});

test("an address is filled in, and sent the headers it wants", async () => {
  const { launch } = await find("com.acme/remote", { region: "eu", "X-Key": "${K}" });
  expect(launch).toEqual({ url: "https://eu.acme.example/mcp", headers: { "X-Key": "${K}" } });
});

test.each([
  ["io.github.acme/bundle", 'packages of the kind "mcpb" cannot be run here'],
  ["io.github.evil/option", "is not the name of a package"],
  ["io.github.evil/git", "is not the name of a package"],
  ["io.github.evil/source", "is from https://evil.example"],
  ["io.github.evil/latest", "has no exact version"],
  ["io.github.evil/plain", "is not an https:// address"],
  ["io.github.evil/nothing", "names no package and no address"],
  ["io.github.evil/other", "answered with another server"],
  ["io.github.old/gone", "was taken out of the registry"],
  ["io.github.acme/none", "has no server io.github.acme/none"],
])("%s is refused", async (name, message) => {
  await expect(find(name)).rejects.toThrow(message);
});

test("a server that is not a registry, or has a private address behind its name, has one clear error", async () => {
  await expect(searchRegistry("ftp://x", "a", signal)).rejects.toThrow("is not the address of a registry");
  await expect(searchRegistry(`${url}/elsewhere`, "a", signal)).rejects.toThrow("answered with status 404");
});

test("search lists names with versions, without those that were taken out", async () => {
  const { code, stdout } = await junctor(["search", "acme", "--registry", url]);
  expect(code).toBe(0);
  expect(stdout).toContain("io.github.acme/files   1.2.0  About io.github.acme/files");
  expect((await junctor(["search", "gone", "--registry", url])).code).toBe(1);
});

test("add shows what runs, asks for what is missing, and writes it when it may", async () => {
  const config = join(folder, "junctor.json");
  const add = (...more: readonly string[]) =>
    junctor([
      "add",
      "io.github.acme/files@1.2.0",
      "--registry",
      url,
      "--config",
      config,
      "--no-check",
      ...more,
    ]);
  const asked = await add("--yes");
  expect(asked.code).toBe(2);
  expect(asked.stderr).toContain(
    "--set folder=VALUE (What to serve); --env ACME_TOKEN=${VARIABLE} (From acme.example)",
  );
  const given = ["--set", "folder=/data", "--env", "ACME_TOKEN=${T:-none}"];
  expect((await add(...given)).stderr).toContain("write --yes if it may be added");
  const done = await add("--yes", ...given);
  expect(done.stderr).toContain(
    "It runs: npx -y @acme/files@1.2.0 /data --mode read (sets ACME_TOKEN, ACME_LEVEL)",
  );
  expect(done.code).toBe(0);
  expect(JSON.parse(readFileSync(config, "utf8"))).toMatchObject({
    mcpServers: {
      files: {
        command: "npx",
        args: ["-y", "@acme/files@1.2.0", "/data", "--mode", "read"],
        env: { ACME_TOKEN: "${T:-none}" },
      },
    },
  });
  const wrong = await junctor(["add", "a/b/c", "--registry", url, "--config", config]);
  expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("is not a name of a registry")]);
});
