import { describe, expect, test } from "vitest";
import { ConfigError } from "../../../core/src/errors/index.ts";
import { parseConfig } from "./parse-config.ts";

// Every wrong config, and the one thing that is said about it.

const env = {
  SECRET: "gims-do-not-show-me",
  KEY: "0123456789abcdefXYZ",
  SHORT: "tooshort",
  SPACED: "0123456789 abcdefXYZ",
};
const section = (text: string): string => `{ "mcpServers": { "x": { "command": "a" } }, "junctor": ${text} }`;
const settings = (text: string): string => section(`{ "servers": { "x": ${text} } }`);

/** What is said about a config, line by line, without the name of the file. */
function complaintOf(text: string): string {
  try {
    parseConfig(text, { file: "f", env, folder: "/etc/x" });
  } catch (error) {
    if (error instanceof ConfigError) return error.message.replaceAll(/^f(?::\d+:\d+)?: /gm, "");
    throw error;
  }
  return "nothing is wrong";
}

describe("the junctor section", () => {
  test.each([
    [
      section('{ "seperator": "_" }'),
      "junctor.seperator: is not known here: did you mean separator? (There may be servers, defaults, separator, keys, issuers, rules, profiles, allow, deny, middleware, audit, limits, perCaller, idempotency, redact, drafts, http, admin, traces, accessLog, log, daemon, firstListMs, maxStarts, history, remember, lock, store, trunk, drainMs.)",
    ],
    [
      section('{ "colour": 1 }'),
      "junctor.colour: is not known here: write one of servers, defaults, separator, keys, issuers, rules, profiles, allow, deny, middleware, audit, limits, perCaller, idempotency, redact, drafts, http, admin, traces, accessLog, log, daemon, firstListMs, maxStarts, history, remember, lock, store, trunk, drainMs",
    ],
    [
      section('{ "tools": {} }'),
      'junctor.tools: does not belong here: it is said of servers: write "servers": { "NAME": { "tools": … } }',
    ],
    [
      section('{ "timeoutMs": 1 }'),
      'junctor.timeoutMs: does not belong here: it is said of servers: write "servers": { "NAME": { "timeoutMs": … } }, or "defaults": { "timeoutMs": … } for all',
    ],
    [
      section('{ "defaults": { "prefix": false } }'),
      'junctor.defaults.prefix: does not belong here: it is said of one server: write "servers": { "NAME": { "prefix": … } }',
    ],
    [
      section('{ "defaults": { "strat": "lazy" } }'),
      "junctor.defaults.strat: is not known here: did you mean start? (There may be start, sharing, era, instances, placement, workspace, startTimeoutMs, maxStartMs, timeoutMs, maxTotalMs, answerWithinMs, maxConnections, idleStopMs, allow, deny, trustHints, maxResultTokens, audit, record, sandbox, tasks.)",
    ],
    [
      section('{ "defaults": { "timeoutMs": 0 } }'),
      "junctor.defaults.timeoutMs: must be a whole number from 1 to 2147483647: write 300000",
    ],
    [
      section('{ "defaults": [] }'),
      'junctor.defaults: must be an object, not an array: write "defaults": { "startTimeoutMs": 120000 }',
    ],
    [
      section('{ "firstListMs": 600001 }'),
      "junctor.firstListMs: must be a whole number from 0 to 600000: write 20000",
    ],
    [
      section('{ "drainMs": -1 }'),
      "junctor.drainMs: must be a whole number from 0 to 86400000: write 600000",
    ],
    [
      section('{ "store": "http://:geheim@cache" }'),
      "junctor.store: cannot be used: The URL of the store must be a URL such as redis://host:6379, rediss://user:password@host:6380/0 or unix:///run/redis.sock",
    ],
    [
      section('{ "store": 1 }'),
      'junctor.store: must be a string, not a number: write "redis://cache.example.com:6379"',
    ],
    [
      section('{ "trunk": { "port": 7790 } }'),
      'junctor.trunk: needs host and port: write "trunk": { "host": "10.0.0.5", "port": 7790 }',
    ],
    [
      section('{ "trunk": { "host": "0.0.0.0", "port": 7790 } }'),
      'junctor.trunk: listens on all addresses: write "advertise" too, the one that other replicas use',
    ],
    [section('{ "maxStarts": 0 }'), "junctor.maxStarts: must be a whole number from 1 to 64: write 4"],
    [
      section('{ "lock": true }'),
      'junctor.lock: must be an object, not a boolean: write "enforce", or { "mode": "enforce", "skip": ["resources"] }',
    ],
    [
      section('{ "lock": "enforced" }'),
      'junctor.lock: must be one of "off", "warn", "enforce": did you mean "enforce"?',
    ],
    [
      section('{ "lock": { "file": "x.lock" } }'),
      'junctor.lock: has no mode: write "enforce", or { "mode": "enforce", "skip": ["resources"] }',
    ],
    [
      section('{ "lock": { "mode": "warn", "files": "x.lock" } }'),
      "junctor.lock.files: is not known here: did you mean file? (There may be mode, file, skip.)",
    ],
    [
      section('{ "lock": { "mode": "warn", "skip": ["tools"] } }'),
      'junctor.lock.skip[0]: must be one of "prompts", "resources", "templates", "instructions"',
    ],
    [section('{ "remember": "no" }'), "junctor.remember: must be true or false, not a string: write true"],
    [section('{ "separator": ":" }'), 'junctor.separator: must be one of "__", "_", "-", ".", "/"'],
    [section('{ "separator": 1 }'), 'junctor.separator: must be a string, not a number: write "__"'],
    [
      section('{ "redact": ["emial"] }'),
      'junctor.redact[0]: is not one of email, credit-card, aws-key, github-token, jwt, private-key, bearer, openai-key: did you mean "email"?',
    ],
    [
      section('{ "allow": [] }'),
      'junctor.allow: is empty: leave it out to allow all, or write "deny": ["*"] to allow nothing',
    ],
    [
      section('{ "allow": "x__*" }'),
      'junctor.allow: must be an array of strings, not a string: write "allow": ["github__*"]',
    ],
    [
      section('{ "deny": [1] }'),
      'junctor.deny[0]: must be a string, not a number: write "deny": ["github__delete_*"]',
    ],
    [section('{ "deny": [""] }'), 'junctor.deny[0]: is empty: write "deny": ["github__delete_*"]'],
    [
      section('{ "middleware": "./a.mjs" }'),
      'junctor.middleware: must be an array of strings, not a string: write "middleware": ["./mine.mjs"]',
    ],
    [
      section('{ "audit": true }'),
      'junctor.audit: must be an object, not a boolean: write "audit.jsonl", or { "file": "audit.jsonl", "keep": 5 }',
    ],
    [
      section('{ "audit": {} }'),
      'junctor.audit: has no file: write "audit.jsonl", or { "file": "audit.jsonl", "keep": 5 }',
    ],
    [
      section('{ "audit": { "file": "a", "maxBytes": 1 } }'),
      "junctor.audit.maxBytes: must be a whole number from 1024 to 1099511627776: write 67108864",
    ],
    [
      section('{ "audit": { "file": "a", "keep": -1 } }'),
      "junctor.audit.keep: must be a whole number from 0 to 1000: write 5",
    ],
    [
      section('{ "audit": { "file": "a", "keepDays": -1 } }'),
      "junctor.audit.keepDays: must be a whole number from 0 to 3650: write 1",
    ],
    [
      section('{ "audit": { "file": "a", "onFailure": "ignore" } }'),
      'junctor.audit.onFailure: must be one of "closed", "open"',
    ],
    [
      section('{ "audit": { "path": "a", "file": "a" } }'),
      "junctor.audit.path: is not known here: write one of file, maxBytes, keep, keepDays, onFailure, arguments",
    ],
    [
      section('{ "limits": 5 }'),
      'junctor.limits: must be an object, not a number: write "limits": { "callsPerMinute": 60 }',
    ],
    [
      section('{ "limits": { "callsPerMinute": 0 } }'),
      "junctor.limits.callsPerMinute: must be a whole number from 1 to 1000000: write 60",
    ],
    [
      section('{ "limits": { "callsPerMinute": 1.5 } }'),
      "junctor.limits.callsPerMinute: must be a whole number from 1 to 1000000: write 60",
    ],
    [
      section('{ "perCaller": { "calls": 0 } }'),
      "junctor.perCaller.calls: must be a whole number from 1 to 1000000: write 100",
    ],
    [
      section('{ "perCaller": { "session": 5 } }'),
      "junctor.perCaller.session: is not known here: did you mean sessions? (There may be calls, streams, sessions, subscriptions, completionsPerMinute, parked, unreadBytes.)",
    ],
    [
      section('{ "limits": { "callTimeoutMs": "60000" } }'),
      "junctor.limits.callTimeoutMs: must be a number, not a string: write 60000",
    ],
    [
      section('{ "limits": { "callTimeoutMs": 3000000000 } }'),
      "junctor.limits.callTimeoutMs: must be a whole number from 1 to 2147483647: write 60000",
    ],
    [
      section('{ "limits": { "tools": { "*": 5 } } }'),
      'junctor.limits.tools["*"]: must be an object, not a number: write { "callsPerMinute": 60 }',
    ],
    [
      section('{ "limits": { "tools": { "x__*": { "calls": 5 } } } }'),
      'junctor.limits.tools["x__*"].calls: is not known here: write one of callsPerMinute, callTimeoutMs, strict',
    ],
    [
      section('{ "redact": ["/(/"] }'),
      'junctor.redact[0]: is not a regular expression (Unterminated group): write one such as "/sk-[a-z0-9]+/i"',
    ],
    [
      section('{ "redact": ["/a/zz"] }'),
      'junctor.redact[0]: is not a regular expression between slashes: write one such as "/sk-[a-z0-9]+/i"',
    ],
    [
      section('{ "redact": ["/a/gg"] }'),
      "junctor.redact[0]: is not a regular expression (Invalid flags supplied to RegExp constructor 'gg'): write one such as \"/sk-[a-z0-9]+/i\"",
    ],
    [
      section('{ "redact": ["/a/${SECRET}"] }'),
      'junctor.redact[0]: is not a regular expression between slashes: write one such as "/sk-[a-z0-9]+/i"',
    ],
    [
      section('{ "audit": { "flie": "a" } }'),
      "junctor.audit.flie: is not known here: did you mean file? (There may be file, maxBytes, keep, keepDays, onFailure, arguments.)",
    ],
    [
      section('{ "redact": ["sk-.*+"] }'),
      'junctor.redact[0]: is not one of email, credit-card, aws-key, github-token, jwt, private-key, bearer, openai-key: write a regular expression such as "/sk-[a-z0-9]+/i"',
    ],
    [
      section('{ "http": { "port": 70000 } }'),
      "junctor.http.port: must be a whole number from 0 to 65535: write 7780",
    ],
    [
      section('{ "http": { "port": "7780" } }'),
      "junctor.http.port: must be a number, not a string: write 7780",
    ],
    [
      section('{ "http": { "host": "http://127.0.0.1" } }'),
      'junctor.http.host: is not an address: write "127.0.0.1", and the port into "port"',
    ],
    [
      section('{ "http": { "host": "127.0.0.1:80" } }'),
      'junctor.http.host: is not an address: write "127.0.0.1", and the port into "port"',
    ],
    [
      section('{ "http": { "allowedHosts": ["https://a.com"] } }'),
      'junctor.http.allowedHosts[0]: is not a host: write "mcp.example.com" or "mcp.example.com:8443"',
    ],
    [
      section('{ "http": { "corsOrigins": ["*"] } }'),
      'junctor.http.corsOrigins[0]: is not an origin: write "https://app.example.com", with nothing after the host and port',
    ],
    [
      section('{ "http": { "allowedOrigins": ["https://a.com/"] } }'),
      'junctor.http.allowedOrigins[0]: is not an origin: write "https://app.example.com", with nothing after the host and port',
    ],
    [
      section('{ "http": { "prot": 1 } }'),
      "junctor.http.prot: is not known here: did you mean port? (There may be host, port, allowedHosts, allowedOrigins, corsOrigins, publicUrl, tls, serverCard.)",
    ],
    [
      section('{ "http": { "tls": { "cert": "a.pem" } } }'),
      'junctor.http.tls: needs a certificate and its key: write { "cert": "server.pem", "key": "server.key" }',
    ],
    [
      section('{ "http": { "publicUrl": "mcp.example.com" } }'),
      'junctor.http.publicUrl: is not the URL of the endpoint: write "https://mcp.example.com/mcp", with nothing after the path',
    ],
    [
      section('{ "http": { "publicUrl": "https://mcp.example.com/mcp?a=b" } }'),
      'junctor.http.publicUrl: is not the URL of the endpoint: write "https://mcp.example.com/mcp", with nothing after the path',
    ],
    [
      section('{ "http": { "publicUrl": "http://mcp.example.com/mcp" } }'),
      'junctor.http.publicUrl: must begin with https: callers send their keys to it; write "https://mcp.example.com/mcp"',
    ],
    [
      section('{ "log": "debug" }'),
      'junctor.log: must be an object, not a string: write "log": { "level": "debug" }',
    ],
    [
      section('{ "log": { "level": "verbose" } }'),
      'junctor.log.level: must be one of "trace", "debug", "info", "warn", "error", "silent"',
    ],
    [
      section('{ "log": { "level": "warning" } }'),
      'junctor.log.level: must be one of "trace", "debug", "info", "warn", "error", "silent"',
    ],
  ])("%s", (text, message) => {
    expect(complaintOf(text)).toBe(message);
  });
});

describe("a server's settings", () => {
  test("an audit that is not an object, or records something else", () => {
    const complain = (audit: string): string =>
      complaintOf(
        `{ "mcpServers": { "x": { "command": "a" } }, "junctor": { "servers": { "x": { "audit": ${audit} } } } }`,
      );
    expect(complain("true")).toBe(
      'junctor.servers.x.audit: must be an object, not a boolean: write { "arguments": true }',
    );
    expect(complain('{ "arguments": "yes" }')).toBe(
      "junctor.servers.x.audit.arguments: must be true or false, not a string: write true",
    );
    expect(complain('{ "results": true }')).toBe(
      "junctor.servers.x.audit.results: is not known here: write one of arguments",
    );
  });

  test.each([
    [section('{ "servers": { "y": {} } }'), "junctor.servers.y: is not the name of a server: write one of x"],
    [
      '{ "mcpServers": { "github": { "command": "a" } }, "junctor": { "servers": { "githb": {} } } }',
      "junctor.servers.githb: is not the name of a server: did you mean github?",
    ],
    [
      '{ "junctor": { "servers": { "x": {} } } }',
      "junctor.servers.x: is not the name of a server: there is none",
    ],
    [
      section('{ "servers": [] }'),
      'junctor.servers: must be an object, not an array: write "servers": { "NAME": { "start": "lazy" } }',
    ],
    [settings("[]"), 'junctor.servers.x: must be an object, not an array: write { "start": "lazy" }'],
    [
      settings('{ "strat": "lazy" }'),
      "junctor.servers.x.strat: is not known here: did you mean start? (There may be start, sharing, era, instances, placement, workspace, prefix, startTimeoutMs, maxStartMs, timeoutMs, maxTotalMs, answerWithinMs, maxConnections, idleStopMs, allow, deny, tools, group, trustHints, maxResultTokens, audit, record, sandbox, tasks, extensions, oauth, credentials.)",
    ],
    [
      settings('{ "command": "a" }'),
      "junctor.servers.x.command: is not known here: write one of start, sharing, era, instances, placement, workspace, prefix, startTimeoutMs, maxStartMs, timeoutMs, maxTotalMs, answerWithinMs, maxConnections, idleStopMs, allow, deny, tools, group, trustHints, maxResultTokens, audit, record, sandbox, tasks, extensions, oauth, credentials",
    ],
    [
      settings('{ "oauth": { "grant": "client_credentials", "clientId": "x" } }'),
      'junctor.servers.x.oauth.grant: needs a "clientId", and a "clientSecret" or a "privateKey"',
    ],
    [
      settings('{ "oauth": { "issuer": "id.example.com" } }'),
      'junctor.servers.x.oauth.issuer: is not a URL: write "https://id.example.com", as the issuer writes itself',
    ],
    [
      settings('{ "credentials": "perCaller" }'),
      'junctor.servers.x.credentials: is for a server with a "url" and without an Authorization header: callers have no accounts at others',
    ],
    [
      settings('{ "oauth": { "clientSecret": "x" } }'),
      'junctor.servers.x.oauth: has a secret and no "clientId": write both',
    ],
    [
      settings('{ "extensions": { "io.modelcontextprotocol/ui": {} } }'),
      'junctor.servers.x.extensions["io.modelcontextprotocol/ui"]: is an extension that the gateway speaks itself: leave it out',
    ],
    [
      settings('{ "start": "lasy" }'),
      'junctor.servers.x.start: must be one of "eager", "lazy": did you mean "lazy"?',
    ],
    [
      settings('{ "sharing": "perSession", "placement": "single" }'),
      'junctor.servers.x.placement: cannot be "single" while "sharing" is "perSession": processes of one session or call run where these are. Write "each", or leave it out',
    ],
    [
      settings('{ "sharing": "private" }'),
      'junctor.servers.x.sharing: must be one of "shared", "perSession", "exclusive"',
    ],
    [settings('{ "prefix": "" }'), "junctor.servers.x.prefix: cannot be a prefix: write false for none"],
    [
      settings('{ "prefix": true }'),
      'junctor.servers.x.prefix: must be a string, not a boolean: write "gh", or false for none',
    ],
    [
      settings('{ "prefix": "a b" }'),
      'junctor.servers.x.prefix: cannot be a prefix: use up to 32 of the characters A-Z a-z 0-9 _ . -, begin with a letter or digit, and do not write or end in what could be taken for the separator "__"',
    ],
    [
      settings('{ "prefix": "a__b" }'),
      'junctor.servers.x.prefix: cannot be a prefix: use up to 32 of the characters A-Z a-z 0-9 _ . -, begin with a letter or digit, and do not write or end in what could be taken for the separator "__"',
    ],
    [
      settings('{ "startTimeoutMs": 0 }'),
      "junctor.servers.x.startTimeoutMs: must be a whole number from 1 to 2147483647: write 30000",
    ],
    [
      settings('{ "timeoutMs": "5m" }'),
      "junctor.servers.x.timeoutMs: must be a number, not a string: write 300000",
    ],
    [
      settings('{ "maxConnections": 0 }'),
      "junctor.servers.x.maxConnections: must be a whole number from 1 to 1000: write 8",
    ],
    [
      settings('{ "idleStopMs": 1000 }'),
      'junctor.servers.x.idleStopMs: is for servers that start with their first use: write "start": "lazy" too',
    ],
    [
      settings('{ "allow": {} }'),
      'junctor.servers.x.allow: must be an array of strings, not an object: write "allow": ["read_*"]',
    ],
    [
      settings('{ "tools": [] }'),
      'junctor.servers.x.tools: must be an object, not an array: write "tools": { "search": { "name": "find" } }',
    ],
    [
      settings('{ "tools": { "t": "u" } }'),
      'junctor.servers.x.tools.t: must be an object, not a string: write { "name": "find" }, { "hide": true } or { "description": "…" }',
    ],
    [
      settings('{ "tools": { "t": { "rename": "u" } } }'),
      "junctor.servers.x.tools.t.rename: is not known here: did you mean name? (There may be name, description, hide.)",
    ],
    [
      settings('{ "tools": { "t": { "name": "a b" } } }'),
      "junctor.servers.x.tools.t.name: cannot be the name of a tool: write 1 to 64 of the characters A-Z a-z 0-9 _ -",
    ],
    [
      settings('{ "tools": { "t": { "name": "" } } }'),
      'junctor.servers.x.tools.t.name: is empty: write "find"',
    ],
    [
      settings('{ "tools": { "t": { "hide": "yes" } } }'),
      "junctor.servers.x.tools.t.hide: must be true or false, not a string: write true",
    ],
    [
      settings('{ "tools": { "t": { "description": 1 } } }'),
      'junctor.servers.x.tools.t.description: must be a string, not a number: write "what the tool does"',
    ],
    [
      settings('{ "tools": { "t": { "name": "z" }, "u": { "name": "z" } } }'),
      "junctor.servers.x.tools.u.name: is the new name of t too: write another",
    ],
  ])("%s", (text, message) => {
    expect(complaintOf(text)).toBe(message);
  });
});

describe("a key", () => {
  test.each([
    [
      section('{ "keys": ["a"] }'),
      'junctor.keys: must be an object, not an array: write "keys": { "alice": { "env": "NAME_OF_A_VARIABLE" } }',
    ],
    [
      section('{ "keys": { "al": "0123456789abcdef" } }'),
      'junctor.keys.al: must be an object, not a string: write { "env": "NAME_OF_A_VARIABLE" }',
    ],
    [
      section('{ "keys": { "al": {} } }'),
      'junctor.keys.al: has neither env nor sha256: write { "env": "NAME_OF_A_VARIABLE" }',
    ],
    [
      section('{ "keys": { "al": { "key": "0123456789abcdef" } } }'),
      'junctor.keys.al.key: does not belong here: a key is not written into a file: write { "env": "NAME_OF_A_VARIABLE" }, or its "sha256"',
    ],
    [
      section('{ "keys": { "al": { "evn": "KEY" } } }'),
      "junctor.keys.al.evn: is not known here: did you mean env? (There may be env, sha256, allow, deny, groups, scopes, profiles.)",
    ],
    [
      section('{ "keys": { "al": { "env": "KEY", "sha256": "00" } } }'),
      "junctor.keys.al: has both env and sha256: keep one of them",
    ],
    [
      section('{ "keys": { "al": { "env": "NO" } } }'),
      'junctor.keys.al.env: NO is not set: set it; a key has at least 16 characters, such as "openssl rand -hex 32" prints',
    ],
    [
      section('{ "keys": { "al": { "env": "${KEY}" } } }'),
      'junctor.keys.al.env: is not the name of a variable: write { "env": "NAME_OF_A_VARIABLE" }, with nothing around the name',
    ],
    [
      section('{ "keys": { "al": { "env": "SHORT" } } }'),
      'junctor.keys.al.env: the value of SHORT is too short: a key has at least 16 characters, such as "openssl rand -hex 32" prints',
    ],
    [
      section('{ "keys": { "al": { "env": "SPACED" } } }'),
      'junctor.keys.al.env: the value of SPACED has spaces or other characters than ASCII in it: a key has at least 16 characters, such as "openssl rand -hex 32" prints',
    ],
    [
      section('{ "keys": { "al": { "sha256": "abc" } } }'),
      'junctor.keys.al.sha256: is not 64 hex digits: write what "printf %s KEY | sha256sum" prints',
    ],
    [
      section('{ "keys": { "al": { "env": "KEY" }, "bo": { "env": "KEY" } } }'),
      "junctor.keys.bo: is the same key as al: give each its own",
    ],
    [
      section('{ "keys": { "al": { "env": "KEY", "allow": "x" } } }'),
      'junctor.keys.al.allow: must be an array of strings, not a string: write "allow": ["github__*"]',
    ],
    [
      section('{ "keys": { "al": { "env": "KEY", "profiles": [] } } }'),
      "junctor.keys.al.profiles: is empty: leave it out for all profiles, or name some",
    ],
    [
      section('{ "keys": { "al": { "env": "KEY", "profiles": ["y"] } }, "profiles": { "z": {} } }'),
      'junctor.keys.al.profiles: names no profile: there is no "y" in "profiles"',
    ],
  ])("%s", (text, message) => {
    expect(complaintOf(text)).toBe(message);
  });
});

test("every mistake is reported with the line and column of its setting, or of what it is missing from", () => {
  const text = `{
  "mcpServers": {
    "one": { "comand": "x" }, // a comment
    "two words": { "command": "a", "args": ["b", 2] },
  },
  "junctor": {
    "http": {
      "port": 70000, "tls": { "cert": "a.pem" } },
    "servers": { "one": { "allow": ["a", ""] } }
  }
}`;
  expect(() => parseConfig(text, { file: "f", env, folder: "/etc/x" })).toThrow(
    [
      "f:3:14: mcpServers.one.comand: is not known here: did you mean command?",
      'f:4:50: mcpServers["two words"].args[1]: must be a string, not a number: write "args": ["--port", "1"]',
      "f:8:7: junctor.http.port: must be a whole number from 0 to 65535: write 7780",
      'f:8:22: junctor.http.tls: needs a certificate and its key: write { "cert": "server.pem", "key": "server.key" }',
      'f:9:42: junctor.servers.one.allow[1]: is empty: write "allow": ["read_*"]',
    ].join("\n"),
  );
});
