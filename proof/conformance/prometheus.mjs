// `npm run proof -- conformance prometheus`: the metrics of a running gateway, held to `promtool check metrics` and scraped by a real Prometheus;
// the alert rules and the scrape config of docs/monitoring are checked too. Debian's package is installed if it is missing and that
// is possible; else this says so and ends well.

import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root, setup } from "../../scripts/setup.mjs";
import { freePort } from "../bench/lib/free-port.mjs";

const monitoring = join(root, "docs/monitoring");
const has = (program) => spawnSync(program, ["--version"]).status === 0;

if (!has("promtool") || !has("prometheus")) {
  spawnSync("apt-get", ["update", "-q"]);
  spawnSync("apt-get", ["install", "-qy", "--no-install-recommends", "prometheus"], {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  });
}
if (!has("promtool") || !has("prometheus")) {
  console.log("Prometheus is not here and cannot be installed: the check of the metrics is skipped");
  process.exit(0);
}

setup();
const folder = mkdtempSync(join(tmpdir(), "junctor-prometheus-"));
const children = [];
try {
  const echo = join(root, "test/fixtures/gateway-stateful.mjs");
  const adminPort = await freePort();
  const config = join(folder, "mcp.json");
  writeFileSync(
    config,
    JSON.stringify({
      mcpServers: {
        store: { command: process.execPath, args: [echo] },
        dead: { command: process.execPath, args: ["-e", "process.exit(3)"] },
      },
      junctor: { admin: { port: adminPort } },
    }),
  );
  const port = await freePort();
  const gateway = start(process.execPath, [
    join(root, "packages/junctor/dist/cli/main.js"),
    "serve",
    "--config",
    config,
    "--port",
    String(port),
  ]);
  await until(
    "the gateway is ready",
    async () => (await fetch(`http://127.0.0.1:${port}/ready`)).ok,
    gateway,
  );
  for (let count = 0; count < 20; count++) await call(port, "store__echo", { text: "x" });
  await call(port, "store__nothing", {});
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  const checked = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" });
  if (checked.status !== 0) throw new Error(`promtool check metrics:\n${checked.stdout}${checked.stderr}`);
  console.log(
    `promtool check metrics: ${text.split("\n").filter((line) => line !== "" && !line.startsWith("#")).length} samples, no complaint`,
  );
  console.log(
    execFileSync("promtool", ["check", "rules", join(monitoring, "alerts.yml")], { encoding: "utf8" }).trim(),
  );
  console.log(
    execFileSync("promtool", ["check", "config", "--syntax-only", join(monitoring, "prometheus.yml")], {
      encoding: "utf8",
    }).trim(),
  );

  const scrape = readFileSync(join(monitoring, "prometheus.yml"), "utf8")
    .replaceAll("127.0.0.1:7781", `127.0.0.1:${adminPort}`)
    .replace("scrape_interval: 15s", "scrape_interval: 1s")
    .replace("alerts.yml", join(monitoring, "alerts.yml"));
  writeFileSync(join(folder, "prometheus.yml"), scrape);
  const webPort = await freePort();
  const prometheus = start("prometheus", [
    `--config.file=${join(folder, "prometheus.yml")}`,
    `--storage.tsdb.path=${join(folder, "data")}`,
    `--web.listen-address=127.0.0.1:${webPort}`,
  ]);
  const query = async (expression) => {
    const response = await fetch(
      `http://127.0.0.1:${webPort}/api/v1/query?query=${encodeURIComponent(expression)}`,
    );
    return (await response.json()).data?.result ?? [];
  };
  await until(
    "Prometheus has scraped the gateway",
    async () => (await query('up{job="junctor"} == 1')).length === 1,
    prometheus,
  );
  const [calls] = await query('sum(mcp_server_operation_duration_seconds_count{tool="store__echo"})');
  if (Number(calls?.value[1]) !== 20)
    throw new Error(`Prometheus has ${calls?.value[1]} calls of store__echo, not 20`);
  const [down] = await query('junctor_upstream_up{server="dead"}');
  if (down?.value[1] !== "0") throw new Error("Prometheus does not have the server that is down");
  console.log("Prometheus scraped it: 20 calls of store__echo, and the server that is down");
  // Every expression of the dashboard is one that Prometheus understands.
  const dashboard = JSON.parse(readFileSync(join(monitoring, "grafana-dashboard.json"), "utf8"));
  const expressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));
  for (const expression of expressions) {
    const response = await fetch(
      `http://127.0.0.1:${webPort}/api/v1/query?query=${encodeURIComponent(expression.replaceAll("$__rate_interval", "1m"))}`,
    );
    if (!response.ok)
      throw new Error(`the dashboard has an expression that Prometheus refuses: ${expression}`);
  }
  console.log(`Grafana dashboard: ${expressions.length} expressions, all understood`);
} finally {
  for (const child of children) child.kill();
  rmSync(folder, { recursive: true, force: true });
}

function start(command, args) {
  const child = spawn(command, args, { stdio: "ignore" });
  children.push(child);
  return child;
}

/** Waits for a condition, as long as the program it depends on runs. */
async function until(what, isTrue, child) {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`${what}: the program ended with ${child.exitCode}`);
    if (await isTrue().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function call(port, name, args) {
  const meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  const response = await fetch(`http://127.0.0.1:${port}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": "tools/call",
      "mcp-name": name,
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name, arguments: args, _meta: meta },
    }),
  });
  await response.text();
}
