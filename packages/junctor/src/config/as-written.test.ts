import { expect, test } from "vitest";
import { listLaunches } from "./as-written.ts";

test("every server and module is listed in the words of the file, and values of variables are not", () => {
  const text = `{
    // a comment
    "mcpServers": {
      "a": { "command": "npx", "args": ["-y", "server", "two words"], "env": { "TOKEN": "hidden-value" } },
      "b": { "url": "https://\${HOST}/mcp", "headers": { "Authorization": "Bearer hidden-value" } },
      "off": { "command": "sh", "args": ["-c", "\${NOT_SET}"], "cwd": "/tmp", "envFile": ".env" },
    },
    "junctor": { "middleware": ["./mine.mjs"] },
  }`;
  expect(listLaunches("mcp.json", text)).toEqual([
    { name: "a", text: 'npx -y server "two words" (sets TOKEN)' },
    { name: "b", text: "https://${HOST}/mcp (sends Authorization)" },
    { name: "off", text: "sh -c ${NOT_SET} (in /tmp) (reads .env)" },
    { name: "(module)", text: "./mine.mjs" },
  ]);
});

test("a command is shown although the file has the same text as the value of a variable", () => {
  const entry = { command: "sh", args: ["-c", "curl example.com"], env: { TOKEN: "curl example.com" } };
  const [launch] = listLaunches("mcp.json", JSON.stringify({ servers: { x: entry } }));
  expect(launch?.text).toBe('sh -c "curl example.com" (sets TOKEN)');
});

test("what the gateway itself reaches, lets in or writes is listed as well", () => {
  const junctor = {
    traces: { endpoint: "https://a.example/v1?k=${TOKEN}", headers: { "x-key": "hidden-value" }, percent: 5 },
    store: "rediss://b.example",
    issuers: {
      corp: { issuer: "https://c.example", login: { clientId: "x", clientSecret: "hidden-value" } },
    },
    http: { host: "0.0.0.0", corsOrigins: ["https://d.example"], serverCard: { name: "long" } },
    admin: false,
    audit: "/var/log/audit file",
    accessLog: { file: "./access.log" },
    keys: { ada: { env: "ADA" } },
  };
  expect(listLaunches("mcp.json", JSON.stringify({ junctor }))).toEqual([
    { name: "(traces.endpoint)", text: "https://a.example/v1?k=${TOKEN}" },
    { name: "(traces.headers)", text: "x-key" },
    { name: "(store)", text: "rediss://b.example" },
    { name: "(issuers.corp.issuer)", text: "https://c.example" },
    { name: "(issuers.corp.login.clientId)", text: "x" },
    { name: "(http.host)", text: "0.0.0.0" },
    { name: "(http.corsOrigins.0)", text: "https://d.example" },
    { name: "(audit)", text: '"/var/log/audit file"' },
    { name: "(accessLog.file)", text: "./access.log" },
  ]);
});
