// `npm run proof -- field apps`: official servers with views, their bridge, and a server of skills from npm, behind a gateway.
//
// It installs what it needs into proof/field/apps/node_modules (110 MB), needs a registry for that, and no other network. The last line is
// `N passed, M failed`.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { connect, createGateway, listenHttp, modelTools } from "../../../packages/junctor/dist/index.js";

const folder = dirname(fileURLToPath(import.meta.url));
if (!existsSync(join(folder, "node_modules"))) {
  const { status } = spawnSync("npm", ["ci", "--no-audit", "--no-fund"], {
    cwd: folder,
    stdio: ["ignore", 2, 2],
  });
  if (status !== 0) process.exit(1);
}
const { Client, InMemoryTransport, StreamableHTTPClientTransport } =
  await import("@modelcontextprotocol/client");
const { App } = await import("@modelcontextprotocol/ext-apps");
const { AppBridge } = await import("@modelcontextprotocol/ext-apps/app-bridge");

const require = createRequire(join(folder, "main.mjs"));
/** A server from npm, by its bin. @param {string} name */
const server = (name) => {
  const manifest = join(folder, "node_modules/@modelcontextprotocol", `server-${name}`, "package.json");
  const bin = Object.values(/** @type {{ bin: Record<string, string> }} */ (require(manifest)).bin)[0] ?? "";
  return { command: process.execPath, args: [join(dirname(manifest), bin), "--stdio"] };
};
const mcpServers = {
  vanilla: server("basic-vanillajs"),
  react: server("basic-react"),
  debug: server("debug"),
  map: server("map"),
  skills: { command: process.execPath, args: [join(folder, "skills-server.mjs")] },
};

let passed = 0;
let failed = 0;
/** @param {string} what @param {() => Promise<void>} work */
async function prove(what, work) {
  try {
    await work();
    passed++;
    console.log(`ok      ${what}`);
  } catch (error) {
    failed++;
    console.log(`FAILED  ${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

const gateway = await createGateway({ mcpServers }, { firstListMs: 60_000 });
const listener = await listenHttp(gateway.server, { port: 0 });
try {
  await gateway.ready;
  for (const revision of /** @type {const} */ (["2026-07-28", "2025-11-25", "2025-06-18"])) {
    const client = await connect(listener.url, { revision, views: true });
    const tools = await client.listTools();
    /** @param {string} name */
    const find = (name) => {
      const tool = tools.find((each) => each.name === name);
      assert(tool, `${name} is not listed`);
      return tool;
    };

    await prove(`${revision}: two servers with one URI each show their own page`, async () => {
      const direct = await Promise.all(
        ["vanilla", "react"].map(async (name) => {
          const own = await connect(/** @type {never} */ (mcpServers)[name], { views: true });
          const tool = (await own.listTools()).find((each) => each.name === "get-time");
          assert(tool);
          const page = await own.readView(tool);
          await own.close();
          return page;
        }),
      );
      const behind = await Promise.all(
        ["vanilla__get-time", "react__get-time"].map((name) => client.readView(find(name))),
      );
      assert.equal(direct[0]?.uri, direct[1]?.uri);
      assert.notEqual(behind[0]?.uri, behind[1]?.uri);
      assert.equal(behind[0]?.html, direct[0]?.html);
      assert.equal(behind[1]?.html, direct[1]?.html);
      assert.notEqual(behind[0]?.html, behind[1]?.html);
    });

    await prove(`${revision}: a view calls its tool by the name that its server has`, async () => {
      const result = await client.callFromApp(find("react__get-time"), "get-time");
      assert.match(JSON.stringify(result.content), /\d{4}-\d\d-\d\dT/);
      const several = client.callTool("get-time", {}, { validate: false });
      await assert.rejects(several, /vanilla__get-time, react__get-time/);
    });

    await prove(`${revision}: the page of a map keeps its policy`, async () => {
      const view = await client.readView(find("map__show-map"));
      assert(view.csp !== undefined && JSON.stringify(view.csp).includes("openstreetmap"));
    });

    await prove(`${revision}: tools for views alone are not for models`, async () => {
      const names = modelTools(tools).map(({ name }) => name);
      const hidden = tools.filter(({ name }) => !names.includes(name));
      assert(hidden.some(({ name }) => name.startsWith("debug__")));
      const plain = await connect(listener.url, { revision });
      const seen = (await plain.listTools()).map(({ name }) => name);
      await plain.close();
      assert.deepEqual(seen, names);
    });

    await prove(`${revision}: the skills of @olaservo/ext-skills are listed, checked and read`, async () => {
      const [listed] = await client.skills.listSkills();
      assert.equal(listed?.uri, "skill://skills/refunds/SKILL.md");
      const skill = await client.skills.load(listed.uri);
      assert.match(String(await skill.read("examples/late.md")), /week late/);
      const children = await client.skills.readDirectory("skill://skills/refunds");
      assert(children.some(({ mimeType }) => mimeType === "inode/directory"));
    });
    await client.close();
  }

  await prove(
    "the official bridge: an app calls its tool through the gateway, by the official client",
    async () => {
      const capabilities = {
        extensions: { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } },
      };
      const host = new Client({ name: "host", version: "1.0.0" }, { capabilities });
      await host.connect(new StreamableHTTPClientTransport(new URL(listener.url)));
      const bridge = new AppBridge(
        host,
        { name: "host", version: "1.0.0" },
        { serverTools: {}, serverResources: {} },
      );
      const app = new App({ name: "debug", version: "1.0.0" }, {}, { autoResize: false });
      const [inside, outside] = InMemoryTransport.createLinkedPair();
      await bridge.connect(outside);
      await app.connect(inside);
      // A name that one server has: the app does not know that there is a gateway.
      const result = await app.callServerTool({ name: "debug-refresh", arguments: {} });
      assert(Array.isArray(result.content) && result.isError !== true, JSON.stringify(result));
      await host.close();
    },
  );
} finally {
  await listener.close();
  await gateway.close();
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
