import { expect, test } from "vitest";
import { listSettings } from "./origins.ts";

const env = { TOKEN: "gims-do-not-show-me", KEY: "0123456789abcdefXYZ", MS: "5" };

const text = `{
  "mcpServers": {
    "files": {
      "command": "files",
      "env": { "API_TOKEN": "\${TOKEN}" },
      "excludeTools": ["rm"]
    },
    "web": { "url": "https://example.com/mcp", "autoApprove": [] }
  },
  "junctor": {
    "defaults": { "timeoutMs": "\${MS}" },
    "servers": { "web": { "timeoutMs": 7, "oauth": { "clientId": "x", "clientSecret": "abc" } } },
    "keys": { "ada": { "env": "KEY" } },
    "http": { "port": 7000 }
  }
}`;

const settings = listSettings(text, { file: "f", env, folder: "/etc/x" });
const settingAt = (path: string): object | undefined => settings.find((each) => each.path === path);

test.each([
  ["mcpServers.files.command", { value: "files", from: "file", line: 4 }],
  ["mcpServers.files.env", { value: { API_TOKEN: "[secret]" }, from: "file", line: 5, variables: ["TOKEN"] }],
  ["mcpServers.files.excludeTools", { value: ["rm"], from: "file", line: 6, isForeign: true }],
  ["junctor.servers.files.timeoutMs", { value: 5, from: "defaults", line: 11, variables: ["MS"] }],
  ["junctor.servers.web.timeoutMs", { value: 7, from: "file", line: 12 }],
  ["junctor.servers.web.oauth.clientSecret", { value: "[secret]", from: "file", line: 12 }],
  ["junctor.servers.web.start", { value: "eager", from: "default" }],
  ["junctor.http.port", { value: 7000, from: "file", line: 14 }],
  ["junctor.firstListMs", { value: 20_000, from: "default" }],
])("%s is shown with where its value came from", (path, expected) => {
  expect(settingAt(path)).toEqual({ path, ...expected });
});

test("a key is named by its variable and never shown", () => {
  expect(settingAt("junctor.keys.ada.env")).toMatchObject({ from: "file", line: 13, variables: ["KEY"] });
  for (const secret of Object.values(env).slice(0, 2)) expect(JSON.stringify(settings)).not.toContain(secret);
});
