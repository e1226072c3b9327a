// How each gateway is started in front of the same upstreams, and which of them it can front.

import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** @typedef {{ kind: "stdio", count: number } | { kind: "http", count: number, url: string }} Upstreams */
/** @typedef {import("../lib/subjects.mjs").Launch} Launch */
/** @typedef {{ eras: readonly import("../load/envelope.mjs").Era[], maxUpstreams: number, kinds: readonly Upstreams["kind"][], launch(port: number, upstreams: Upstreams): Launch }} Gateway */

const echoFile = pathOf("../systems/upstreams/echo-stdio.mjs");
/** Its processes are the upstreams', not the gateway's. */
const exceptCommand = "upstreams/echo-stdio.mjs";
const anyEra = /** @type {const} */ (["legacy", "modern"]);
const anyKind = /** @type {const} */ (["stdio", "http"]);

const folder = mkdtempSync(join(tmpdir(), "junctor-bench-"));
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));

/** @type {Record<string, Gateway>} */
export const gateways = {
  junctor: {
    eras: anyEra,
    maxUpstreams: Infinity,
    kinds: anyKind,
    launch: (port, upstreams) => ({
      args: [
        pathOf("../../../packages/junctor/dist/cli/main.js"),
        "serve",
        "--config",
        configOf(upstreams),
        "--port",
        String(port),
      ],
      exceptCommand,
    }),
  },
  "mcp-proxy": {
    eras: anyEra,
    maxUpstreams: 1,
    kinds: anyKind,
    launch: (port, upstreams) => ({
      args:
        upstreams.kind === "http"
          ? [pathOf("../systems/gateways/mcp-proxy-http.mjs"), String(port), `${upstreams.url}u0`]
          : [
              pathOf("../node_modules/mcp-proxy/dist/bin/mcp-proxy.mjs"),
              "--port",
              String(port),
              "--host",
              "127.0.0.1",
              "--",
              process.execPath,
              echoFile,
            ],
      exceptCommand,
    }),
  },
  supergateway: {
    eras: ["legacy"],
    maxUpstreams: 1,
    kinds: ["stdio"],
    launch: (port) => ({
      args: [
        pathOf("../node_modules/supergateway/dist/index.js"),
        "--stdio",
        `"${process.execPath}" "${echoFile}"`,
        "--outputTransport",
        "streamableHttp",
        "--stateful",
        "--port",
        String(port),
        "--logLevel",
        "none",
      ],
      exceptCommand,
    }),
  },
  "mcp-hub": {
    // It speaks HTTP+SSE of 2024-11-05 to its clients.
    eras: ["legacy"],
    maxUpstreams: Infinity,
    kinds: anyKind,
    launch: (port, upstreams) => ({
      args: [
        pathOf("../node_modules/mcp-hub/dist/cli.js"),
        "--port",
        String(port),
        "--config",
        configOf(upstreams),
      ],
      env: { HOME: folder, XDG_STATE_HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder },
      transport: "sse",
      exceptCommand,
    }),
  },
  bare: {
    eras: anyEra,
    maxUpstreams: Infinity,
    kinds: anyKind,
    launch: (port, upstreams) => ({
      args: [
        pathOf("../systems/gateways/bare.mjs"),
        String(port),
        upstreams.kind,
        String(upstreams.count),
        upstreams.kind === "http" ? upstreams.url : echoFile,
      ],
      exceptCommand,
    }),
  },
};

/** An `mcpServers` file with servers u0, u1, … @param {Upstreams} upstreams */
function configOf(upstreams) {
  const file = join(
    folder,
    `${upstreams.kind}-${upstreams.count}-${Math.random().toString(36).slice(2)}.json`,
  );
  /** @type {Record<string, object>} */
  const mcpServers = {};
  for (let index = 0; index < upstreams.count; index++) {
    mcpServers[`u${index}`] =
      upstreams.kind === "http"
        ? { type: "http", url: `${upstreams.url}u${index}` }
        : { command: process.execPath, args: [echoFile] };
  }
  // As the others: without an admin API. The section "telemetry" has the cost of that.
  writeFileSync(file, JSON.stringify({ mcpServers, junctor: { admin: false } }));
  return file;
}

/** @param {string} file */
function pathOf(file) {
  return fileURLToPath(new URL(file, import.meta.url));
}
