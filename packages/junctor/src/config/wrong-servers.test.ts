import { describe, expect, test } from "vitest";
import { ConfigError } from "../../../core/src/errors/index.ts";
import { parseConfig } from "./parse-config.ts";

// Every wrong config, and the one thing that is said about it.

const env = { SECRET: "do-not-show-me" };
const files = new Map([
  ["/etc/x/bad.env", "A=1\nnot this\n"],
  ["/etc/x/open.env", 'A="1\n'],
]);
const readText = (file: string): string => {
  const text = files.get(file);
  if (text === undefined) throw Object.assign(new Error("no such file"), { code: "ENOENT" });
  return text;
};
const entry = (text: string): string => `{ "mcpServers": { "x": ${text} } }`;
const section = (text: string): string => `{ "mcpServers": { "x": { "command": "a" } }, "junctor": ${text} }`;
const settings = (text: string): string => section(`{ "servers": { "x": ${text} } }`);

/** What is said about a config, line by line, without the name of the file. */
function complaintOf(text: string): string {
  try {
    parseConfig(text, { file: "f", env, folder: "/etc/x", readText });
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replaceAll(/^f(?::\d+:\d+)?: /gm, "");
    throw error;
  }
  return "nothing is wrong";
}

describe("the top level", () => {
  test.each([
    [
      "[]",
      'is not an object: write { "mcpServers": { "NAME": { "command": "npx", "args": ["-y", "a-server"] } } }',
    ],
    [
      "null",
      'is not an object: write { "mcpServers": { "NAME": { "command": "npx", "args": ["-y", "a-server"] } } }',
    ],
    [
      '"text"',
      'is not an object: write { "mcpServers": { "NAME": { "command": "npx", "args": ["-y", "a-server"] } } }',
    ],
    [
      "{}",
      'has no servers: write { "mcpServers": { "NAME": { "command": "npx", "args": ["-y", "a-server"] } } }',
    ],
    [
      '{ "theme": "dark" }',
      'has no servers: write { "mcpServers": { "NAME": { "command": "npx", "args": ["-y", "a-server"] } } }',
    ],
    ['{ "mcpServer": {} }', "mcpServer: is not known here: did you mean mcpServers?"],
    ['{ "mcp_servers": {} }', "mcp_servers: is not known here: did you mean mcpServers?"],
    ['{ "mcpServers": {}, "Junctor": {} }', "Junctor: is not known here: did you mean junctor?"],
    [
      '{ "mcpServers": [] }',
      'mcpServers: must be an object, not an array: write "mcpServers": { "NAME": { "command": "npx" } }',
    ],
    [
      '{ "servers": "x" }',
      'servers: must be an object, not a string: write "servers": { "NAME": { "command": "npx" } }',
    ],
    [
      '{ "mcpServers": { "x": { "command": "a" } }, "servers": { "x": { "command": "a" } } }',
      "servers.x: has the name of mcpServers.x: rename or remove one of them",
    ],
    [
      '{ "mcpServers": {}, "junctor": [] }',
      'junctor: must be an object, not an array: write "junctor": { "separator": "__" }',
    ],
  ])("%s", (text, message) => {
    expect(complaintOf(text)).toBe(message);
  });
});

describe("a server", () => {
  test.each([
    [
      entry('"npx"'),
      'mcpServers.x: must be an object: write { "command": "npx", "args": ["-y", "a-server"] } or { "url": "https://example.com/mcp" }',
    ],
    [
      entry("null"),
      'mcpServers.x: must be an object: write { "command": "npx", "args": ["-y", "a-server"] } or { "url": "https://example.com/mcp" }',
    ],
    [
      '{ "mcpServers": { "": { "command": "a" } } }',
      'mcpServers[""]: has no name: write one between the quotes',
    ],
    [
      entry("{}"),
      'mcpServers.x: has neither command nor url: write { "command": "npx", "args": ["-y", "a-server"] } or { "url": "https://example.com/mcp" }',
    ],
    [
      entry('{ "args": [] }'),
      'mcpServers.x: has neither command nor url: write { "command": "npx", "args": ["-y", "a-server"] } or { "url": "https://example.com/mcp" }',
    ],
    [
      entry('{ "command": "a", "url": "http://a" }'),
      "mcpServers.x: has both command and url: keep the one the server is reached by",
    ],
    [
      entry('{ "command": "a", "serverUrl": "http://a" }'),
      "mcpServers.x: has both command and serverUrl: keep the one the server is reached by",
    ],
    [entry('{ "comand": "a" }'), "mcpServers.x.comand: is not known here: did you mean command?"],
    [entry('{ "cmd": "a" }'), "mcpServers.x.cmd: is not known here: did you mean command?"],
    [entry('{ "urll": "http://a" }'), "mcpServers.x.urll: is not known here: did you mean url?"],
    [
      entry('{ "command": "a", "arguments": [] }'),
      "mcpServers.x.arguments: is not known here: did you mean args?",
    ],
    [entry('{ "command": "a", "Env": {} }'), "mcpServers.x.Env: is not known here: did you mean env?"],
    [entry('{ "command": "" }'), 'mcpServers.x.command: is empty: write "command": "npx"'],
    [
      entry('{ "command": ["npx", "a"] }'),
      'mcpServers.x.command: must be a string, not an array: write "command": "npx" and what follows it into "args": ["--port", "1"]',
    ],
    [
      entry('{ "command": "a", "args": "--port 1" }'),
      'mcpServers.x.args: must be an array of strings, not a string: write "args": ["--port", "1"]',
    ],
    [
      entry('{ "command": "a", "args": ["--port", 1] }'),
      'mcpServers.x.args[1]: must be a string, not a number: write "args": ["--port", "1"]',
    ],
    [
      entry('{ "command": "a", "args": [null] }'),
      'mcpServers.x.args[0]: must be a string: write "args": ["--port", "1"]',
    ],
    [
      entry('{ "command": "a", "env": ["A=1"] }'),
      'mcpServers.x.env: must be an object, not an array: write "env": { "NAME": "value" }',
    ],
    [
      entry('{ "command": "a", "env": { "A": true } }'),
      'mcpServers.x.env.A: must be a string, not a boolean: write "value"',
    ],
    [
      entry('{ "command": "a", "env": { "A=B": "1" } }'),
      'mcpServers.x.env["A=B"]: is not the name of a variable: write "env": { "NAME": "value" }',
    ],
    [
      entry('{ "command": "a", "cwd": 1 }'),
      'mcpServers.x.cwd: must be a string, not a number: write "cwd": "./folder"',
    ],
    [entry('{ "command": "a", "cwd": "" }'), 'mcpServers.x.cwd: is empty: write "cwd": "./folder"'],
    [
      entry('{ "command": "a", "envFile": "missing.env" }'),
      "mcpServers.x.envFile: cannot be read (there is no such file): create the file, or remove envFile",
    ],
    [
      entry('{ "command": "a", "envFile": "bad.env" }'),
      "mcpServers.x.envFile: line 2 of the file is not NAME=VALUE: correct it, or put a # before it",
    ],
    [
      entry('{ "command": "a", "envFile": "open.env" }'),
      "mcpServers.x.envFile: line 1 of the file has a quote without its pair: close it in the same line",
    ],
    [
      entry('{ "command": "a", "type": "http" }'),
      'mcpServers.x.type: does not fit a server with a command: write "stdio", or leave it out',
    ],
    [
      entry('{ "url": "http://a", "type": "stdio" }'),
      'mcpServers.x.type: does not fit a server with a url: write "http", or leave it out',
    ],
    [
      entry('{ "url": "http://a", "transport": "stdio" }'),
      'mcpServers.x.transport: does not fit a server with a url: write "http", or leave it out',
    ],
    [
      entry('{ "command": "a", "type": "studio" }'),
      'mcpServers.x.type: must be one of "stdio", "http", "sse": did you mean "stdio"?',
    ],
    [
      entry('{ "url": "http://a", "type": "websocket" }'),
      'mcpServers.x.type: must be one of "stdio", "http", "sse"',
    ],
    [
      entry('{ "command": "a", "type": 1 }'),
      'mcpServers.x.type: must be a string, not a number: write "stdio"',
    ],
    [
      entry('{ "command": "a", "disabled": "yes" }'),
      "mcpServers.x.disabled: must be true or false, not a string: write true",
    ],
    [
      entry('{ "command": "a", "enabled": 0 }'),
      "mcpServers.x.enabled: must be true or false, not a number: write true",
    ],
    [
      entry('{ "url": "localhost:3000/mcp" }'),
      'mcpServers.x.url: must begin with http:// or https://: write "https://example.com/mcp"',
    ],
    [
      entry('{ "url": "ftp://a" }'),
      'mcpServers.x.url: must begin with http:// or https://: write "https://example.com/mcp"',
    ],
    [entry('{ "url": "http://" }'), 'mcpServers.x.url: is not a URL: write "https://example.com/mcp"'],
    [
      entry('{ "url": "https://me:pw@example.com/mcp" }'),
      'mcpServers.x.url: has a name or password in it, which is not sent: write "headers": { "Authorization": "Bearer ${TOKEN}" }',
    ],
    [
      entry('{ "url": 1 }'),
      'mcpServers.x.url: must be a string, not a number: write "https://example.com/mcp"',
    ],
    [
      entry('{ "url": "http://a", "httpUrl": "http://b" }'),
      "mcpServers.x.httpUrl: names the URL again: keep url or httpUrl",
    ],
    [
      entry('{ "url": "http://a", "headers": "X: 1" }'),
      'mcpServers.x.headers: must be an object, not a string: write "headers": { "Authorization": "Bearer ${TOKEN}" }',
    ],
    [
      entry('{ "url": "http://a", "headers": { "X": 1 } }'),
      'mcpServers.x.headers.X: must be a string, not a number: write "Bearer ${TOKEN}"',
    ],
    [
      entry('{ "url": "http://a", "headers": { "X Y": "1" } }'),
      'mcpServers.x.headers["X Y"]: is not the name of a header: use letters, digits and -',
    ],
    [
      entry('{ "url": "http://a", "headers": { "X": "1\\n2" } }'),
      "mcpServers.x.headers.X: has a line break or a character no header can carry: remove it",
    ],
    [
      entry('{ "url": "http://a", "headers": { "X": "1", "x": "2" } }'),
      "mcpServers.x.headers.x: is written twice, in upper and lower case: keep one of them",
    ],
    [
      '{ "mcpServers": { "my server": { "command": 1 } } }',
      'mcpServers["my server"].command: must be a string, not a number: write "command": "npx"',
    ],
    [
      '{ "mcpServers": { "a b": { "command": "a" }, "a-b": { "command": "a" } } }',
      'mcpServers.a-b: has the same prefix as "a b": write "junctor": { "servers": { "a-b": { "prefix": "…" } } }',
    ],
    [
      '{ "mcpServers": { "a.b": { "command": "a" }, "a_b": { "command": "a" } } }',
      'mcpServers.a_b: has the same prefix as "a.b": write "junctor": { "servers": { "a_b": { "prefix": "…" } } }',
    ],
  ])("%s", (text, message) => {
    expect(complaintOf(text)).toBe(message);
  });
});

describe("a variable", () => {
  test.each([
    [
      entry('{ "command": "${command:pick}" }'),
      "mcpServers.x.command: ${command:…} is not a variable: write ${NAME} or ${NAME:-default}, or $${ for the characters ${",
    ],
    [
      entry('{ "command": "${NO-secret}" }'),
      "mcpServers.x.command: ${NO…} is not a variable: write ${NAME} or ${NAME:-default}, or $${ for the characters ${",
    ],
    [
      entry('{ "command": "${}" }'),
      "mcpServers.x.command: ${…} is not a variable: write ${NAME} or ${NAME:-default}, or $${ for the characters ${",
    ],
    [
      entry('{ "command": "${NO" }'),
      "mcpServers.x.command: has a ${ without a }: write ${NAME}, or $${ for the characters ${",
    ],
    [
      entry('{ "command": "${NO:-${OTHER}}" }'),
      "mcpServers.x.command: has a variable in the default of NO: write ${NO:-default} with a plain text",
    ],
    [
      entry('{ "command": "a", "args": ["${1}"] }'),
      "mcpServers.x.args[0]: ${1…} is not a variable: write ${NAME} or ${NAME:-default}, or $${ for the characters ${",
    ],
    [
      entry('{ "url": "${SECRET}" }'),
      'mcpServers.x.url: must begin with http:// or https://: write "https://example.com/mcp"',
    ],
    [section('{ "separator": "${SECRET}" }'), 'junctor.separator: must be one of "__", "_", "-", ".", "/"'],
    [
      section('{ "http": { "port": "${SECRET}" } }'),
      "junctor.http.port: must be a whole number from 0 to 65535: write 7780",
    ],
    [
      settings('{ "prefix": "${SECRET} " }'),
      'junctor.servers.x.prefix: cannot be a prefix: use up to 32 of the characters A-Z a-z 0-9 _ . -, begin with a letter or digit, and do not write or end in what could be taken for the separator "__"',
    ],
    [
      section('{ "redact": ["/${SECRET}(/"] }'),
      'junctor.redact[0]: is not a regular expression (Unterminated group): write one such as "/sk-[a-z0-9]+/i"',
    ],
  ])("%s", (text, message) => {
    expect(complaintOf(text)).toBe(message);
  });
});
