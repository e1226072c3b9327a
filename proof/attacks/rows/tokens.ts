import { once } from "node:events";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { both, json, mirrored, modernCall } from "../../../test/support/http-wire.ts";
import { createTestIssuer, type TestClaims, type TestIssuer } from "../../../test/support/issuer.ts";
import { fixture, startGateway } from "../lib/gateway.ts";
import { attempt, type Line, type Row, type Scale, seed, toText } from "../lib/row.ts";
import { type Chance, createChance } from "../simulation/chance.ts";

/** What good tokens are made for. */
const publicUrl = "https://mcp.example.com/mcp";
/** Most groups that a token may have. */
const maxGroups = 1000;

/** An issuer that signs tokens, and vouches for opaque ones: each is the JSON of its claims. */
async function startIssuer(): Promise<TestIssuer & Disposable> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = await createTestIssuer({ url, audience: publicUrl });
  issuer.metadata = { introspection_endpoint: `${url}/introspect` };
  server.on("request", (incoming, response) => {
    const reply = async (): Promise<string> => {
      if (incoming.url !== "/introspect") {
        const answer = await issuer.fetch(`${url}${incoming.url}`, {});
        response.statusCode = answer.status;
        return answer.text();
      }
      const token = new URLSearchParams(await text(incoming)).get("token") ?? "";
      return Buffer.from(token.slice("opaque-".length), "base64url").toString();
    };
    void reply().then((body) => response.setHeader("content-type", json).end(body));
  });
  return { ...issuer, [Symbol.dispose]: () => void server.close() };
}

const usual = (): TestClaims => ({
  sub: "mallory",
  aud: publicUrl,
  exp: Math.floor(Date.now() / 1000) + 3600,
});
const toOpaque = (claims: TestClaims): string =>
  `opaque-${Buffer.from(JSON.stringify({ active: true, ...usual(), ...claims })).toString("base64url")}`;

type Forge = (issuer: TestIssuer, chance: Chance) => Promise<string> | string;

/** Names of groups, with the denied one at the end, where it is lost if only some are kept. */
const withDenied = (count: number): readonly string[] => [
  ...Array.from({ length: count - 1 }, (_, index) => `g${index}`),
  "guests",
];

/** Tokens that the issuer has signed, and that hide a group to which everything is denied. */
const hiding: { readonly [what: string]: Forge } = {
  "more groups than are kept": (issuer, chance) =>
    issuer.sign({ groups: withDenied(maxGroups + 1 + chance.below(500)) }),
  "a group with too long a name": (issuer, chance) =>
    issuer.sign({ groups: ["staff", `guests-${"g".repeat(250 + chance.below(900))}`] }),
  "groups left out": (issuer) =>
    issuer.sign({
      _claim_names: { groups: "src1" },
      _claim_sources: { src1: { endpoint: "https://graph.example.com" } },
    }),
  "the denied group alone": (issuer) => issuer.sign({ groups: ["guests"] }),
  "as many groups as are kept": (issuer) => issuer.sign({ groups: withDenied(maxGroups) }),
  "opaque, with more groups than are kept": (_, chance) =>
    toOpaque({ groups: withDenied(maxGroups + 1 + chance.below(500)) }),
};

const staff = { groups: ["staff"] };

/** Tokens that were not made to be shown by whoever has them. */
const misused: { readonly [what: string]: Forge } = {
  "bound to a key (DPoP)": (issuer) =>
    issuer.sign({ ...staff, cnf: { jkt: "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" } }),
  "bound to a certificate": (issuer) =>
    issuer.sign({ ...staff, cnf: { "x5t#S256": "bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2" } }),
  "bound to what is not known": (issuer) => issuer.sign({ ...staff, cnf: {} }),
  "of the type of DPoP": (issuer) => issuer.sign(staff, { typ: "dpop+jwt" }),
  "an ID token": (issuer) => issuer.sign({ ...staff, nonce: "n" }),
  "a refresh token": (issuer) => issuer.sign({ ...staff, typ: "Refresh" }, { typ: "JWT" }),
  "without an expiry": (issuer) => issuer.sign({ ...staff, exp: undefined }),
  "opaque, bound to a key": () => toOpaque({ ...staff, cnf: { jkt: "a" } }),
  "opaque, a refresh token": () => toOpaque({ ...staff, token_type: "refresh_token" }),
  "opaque, for DPoP": () => toOpaque({ ...staff, token_type: "DPoP" }),
};

/** Tokens with one text where a list of groups is meant. Split at its spaces, it would name the group that may do everything. */
const texts: { readonly [what: string]: Forge } = {
  "one text with spaces": (issuer) => issuer.sign({ groups: "office staff" }),
  "one text with a line end": (issuer) => issuer.sign({ groups: "office\nstaff" }),
  "one text with a comma": (issuer) => issuer.sign({ groups: "office,staff" }),
  "a list with spaces in a name": (issuer) => issuer.sign({ groups: ["office staff"] }),
  "opaque, one text with spaces": () => toOpaque({ groups: "office staff" }),
};

/** One tool is for everybody but a denied group, the other for an allowed group. */
const tools = ["echo__about", "echo__echo"] as const;
type Tool = (typeof tools)[number];

interface Stage {
  readonly issuer: TestIssuer;
  /** Whether a call with the token was served. */
  call(token: string, tool: Tool): Promise<boolean>;
}

/** Sends each of them again and again, each time as a token that the gateway has not seen. */
async function send(
  { issuer, call }: Stage,
  tool: Tool,
  forges: { readonly [what: string]: Forge },
  rounds: number,
): Promise<Pick<Line, "count" | "figure" | "isMet">> {
  const chance = createChance(seed);
  const served: string[] = [];
  for (let round = 0; round < rounds; round++)
    for (const [what, forge] of Object.entries(forges))
      if (await call(await forge(issuer, chance), tool)) served.push(what);
  const first = served[0] === undefined ? "" : `, the first of them with a token that is ${served[0]}`;
  return {
    count: `${toText(rounds * Object.keys(forges).length)} tokens of ${Object.keys(forges).length} kinds from seed ${seed}`,
    figure: `${served.length} served${first}`,
    isMet: served.length === 0,
  };
}

async function run(scale: Scale): Promise<readonly Line[]> {
  const rounds = scale === "full" ? 200 : 5;
  using issuer = await startIssuer();
  const introspection = { clientId: "gateway", clientSecret: "known to the gateway alone" };
  await using gateway = await startGateway({
    mcpServers: { echo: { command: process.execPath, args: [fixture("gateway-echo.mjs")] } },
    junctor: {
      http: { publicUrl },
      issuers: { corp: { issuer: issuer.url, introspection } },
      rules: [
        { allow: ["echo__about"] },
        { allow: ["echo__echo"], when: "'staff' in caller.groups" },
        { deny: ["*"], when: "caller.groups.exists(group, group.startsWith('guests'))" },
      ],
    },
  });
  const call = async (token: string, tool: Tool): Promise<boolean> => {
    const frame = modernCall(tool);
    const headers = {
      "content-type": json,
      accept: both,
      ...mirrored(frame),
      authorization: `Bearer ${token}`,
    };
    const sent = request({ host: "127.0.0.1", port: gateway.port, path: "/mcp", method: "POST", headers });
    sent.end(JSON.stringify(frame));
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    return response.statusCode === 200 && (await text(response)).includes('"content"');
  };
  const stage: Stage = { issuer, call };
  const good = [await issuer.sign(staff), toOpaque(staff)].flatMap((token) =>
    tools.map((tool) => [token, tool] as const),
  );
  return [
    await attempt(
      { what: "tokens that are fine", count: `${good.length} calls`, bound: "all served" },
      async () => {
        const served = await Promise.all(good.map((each) => call(...each)));
        return { figure: `${served.filter(Boolean).length} served`, isMet: served.every(Boolean) };
      },
    ),
    await attempt(
      { what: "tokens that hide a group to which everything is denied", count: "", bound: "0 served" },
      () => send(stage, "echo__about", hiding, rounds),
    ),
    await attempt(
      { what: "tokens that are bound to a client, or are no access tokens", count: "", bound: "0 served" },
      () => send(stage, "echo__echo", misused, rounds),
    ),
    await attempt(
      { what: "groups that name an allowed group only when they are split", count: "", bound: "0 served" },
      () => send(stage, "echo__echo", texts, rounds),
    ),
  ];
}

export const row: Row = {
  title: "Tokens that say too much or too little",
  how: "`junctor serve` takes signed and opaque tokens of one issuer; one tool is for everybody but a denied group, another for one group. Every token is what the issuer itself has signed or vouches for.",
  limitMinutes: 5,
  isInShort: true,
  run,
};
