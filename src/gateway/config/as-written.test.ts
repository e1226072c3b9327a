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
  expect(listLaunches(text)).toEqual([
    { name: "a", text: 'npx -y server "two words" (sets TOKEN)' },
    { name: "b", text: "https://${HOST}/mcp (sends Authorization)" },
    { name: "off", text: "sh -c ${NOT_SET} (in /tmp) (reads .env)" },
    { name: "(module)", text: "./mine.mjs" },
  ]);
});

test("a command is shown although the file has the same text as the value of a variable", () => {
  const entry = { command: "sh", args: ["-c", "curl example.com"], env: { TOKEN: "curl example.com" } };
  const [launch] = listLaunches(JSON.stringify({ servers: { x: entry } }));
  expect(launch?.text).toBe('sh -c "curl example.com" (sets TOKEN)');
});
