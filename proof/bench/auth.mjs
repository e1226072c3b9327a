// `npm run proof -- bench auth`: the CPU time of a call with a key, with a token that is known, and with rules, in one run.
//
// The gateway answers web-standard requests in this process, so that nothing but its own work is measured. The kinds take
// turns; each turn is long enough for the clock of the system. A token is checked once, then known by its hash.

import { createHash, generateKeyPairSync, randomBytes, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { createGateway, createRegistry, toFetchHandler } from "../../packages/junctor/dist/index.js";

const rounds = 150;
const callsPerTurn = 200;
const warmUps = 30;
const goalUs = 5;

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const issuer = createServer((request, response) => {
  const at = `http://127.0.0.1:${issuer.address().port}`;
  const isKeys = request.url === "/keys";
  const jwk = { ...publicKey.export({ format: "jwk" }), kid: "one", alg: "ES256", use: "sig" };
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify(isKeys ? { keys: [jwk] } : { issuer: at, jwks_uri: `${at}/keys` }));
}).listen(0, "127.0.0.1");
await once(issuer, "listening");
const issuerUrl = `http://127.0.0.1:${issuer.address().port}`;
const publicUrl = "http://127.0.0.1:7780/mcp";
const toPart = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
const now = Math.floor(Date.now() / 1000);
const claims = { iss: issuerUrl, sub: "alice", aud: publicUrl, exp: now + 3600, groups: ["eng"], scope: "a" };
const signed = `${toPart({ alg: "ES256", kid: "one", typ: "at+jwt" })}.${toPart(claims)}`;
const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" });
const token = `${signed}.${signature.toString("base64url")}`;

// As long as the token: a longer header costs whoever makes the request, which is this process too.
const key = randomBytes(token.length).toString("hex").slice(0, token.length);

const rules = [
  { allow: ["*"], when: "'eng' in caller.groups || caller.name == 'ada'" },
  { deny: ["*delete*"], unless: "'admin' in caller.groups" },
  { scope: "write", tools: ["*create*"] },
];

/** A way to call: the gateway it goes to, and the credential. */
async function createWay(credential, more = {}) {
  const registry = createRegistry();
  registry.register("echo", {}, () => "ok");
  const junctor = {
    http: { publicUrl },
    keys: { ada: { sha256: createHash("sha256").update(key).digest("hex") } },
    issuers: { corp: { issuer: issuerUrl } },
    ...more,
  };
  const gateway = await createGateway({ junctor }, { local: { own: registry } });
  await gateway.ready;
  const handler = toFetchHandler(gateway.server, { publicUrl, authenticate: gateway.authenticate });
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: {
      name: "echo",
      arguments: {},
      _meta: {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
      },
    },
  });
  const headers = {
    "content-type": "application/json",
    accept: "application/json",
    authorization: `Bearer ${credential}`,
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "echo",
  };
  const call = async () => {
    const response = await handler(new Request(publicUrl, { method: "POST", headers, body }));
    const text = await response.text();
    if (!text.includes('"ok"')) throw new Error(`${response.status} ${text}`);
  };
  return { call, end: () => Promise.all([handler.close(), gateway.close()]) };
}

const ways = {
  "with a key": await createWay(key),
  "with a key, once more": await createWay(key),
  "with a token": await createWay(token),
  "with a token and rules": await createWay(token, { rules }),
};
// Short turns that follow each other see the same machine; the order changes, so that no kind is always first.
const samples = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
for (let round = -warmUps; round < rounds; round++) {
  const names = Object.keys(ways);
  for (let turn = 0; turn < names.length; turn++) {
    const name = names[(turn + round + warmUps) % names.length];
    const before = process.cpuUsage();
    for (let count = 0; count < callsPerTurn; count++) await ways[name].call();
    const { user, system } = process.cpuUsage(before);
    if (round >= 0) samples[name].push((user + system) / callsPerTurn);
  }
}
const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
const base = samples["with a key"];
console.log(`CPU of a call, Node ${process.version}; medians of ${rounds} turns of ${callsPerTurn} calls`);
let most = 0;
for (const [name, values] of Object.entries(samples)) {
  const added = median(values.map((value, round) => value - base[round]));
  most = Math.max(most, added);
  console.log(
    `  ${name.padEnd(24)}${median(values).toFixed(1)} µs  (${added.toFixed(1)} µs more than with a key)`,
  );
}
console.log(
  most <= goalUs ? `goal met: at most ${goalUs} µs more` : `GOAL MISSED: ${most.toFixed(1)} µs more`,
);
process.exitCode = most <= goalUs ? 0 : 1;
await Promise.all(Object.values(ways).map(({ end }) => end()));
issuer.close();
