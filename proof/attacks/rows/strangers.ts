import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { both, json, mirrored, modernCall } from "../../../test/support/http-wire.ts";
import { fixture, startGateway } from "../lib/gateway.ts";
import { type Line, type Row, type Scale, toText } from "../lib/row.ts";

const strangers = 256;
const callers = 39;
const mostPerSecond = 20;
/** Stretches in which questions are counted: in shorter ones a busy machine delays some until others come. */
const stretchMs = 5000;
/** How long the issuer takes for an answer. */
const answerMs = 100;
/** What good tokens are made for. */
const publicUrl = "https://mcp.example.com/mcp";

interface SlowIssuer extends Disposable {
  readonly origin: string;
  /** When it was asked about each token. */
  readonly askedAt: number[];
}

/** An issuer that vouches for every token whose name begins with `good`. */
async function startIssuer(): Promise<SlowIssuer> {
  const askedAt: number[] = [];
  const server = createServer((incoming, response) => {
    askedAt.push(performance.now());
    void text(incoming).then((body) => {
      const token = new URLSearchParams(body).get("token") ?? "";
      const isActive = token.startsWith("good");
      const claims = { sub: token, aud: publicUrl, exp: Math.floor(Date.now() / 1000) + 3600 };
      const answer = JSON.stringify({ active: isActive, ...(isActive ? claims : {}) });
      setTimeout(() => response.writeHead(200, { "content-type": json }).end(answer), answerMs);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { origin, askedAt, [Symbol.dispose]: () => void server.close() };
}

/** Most questions in any stretch of the time, for each second of it. */
function mostASecond(askedAt: readonly number[], sinceMs: number, untilMs: number): number {
  const stretch = Math.min(stretchMs, untilMs - sinceMs);
  const counts = askedAt.map((at) => askedAt.filter((each) => each >= at && each < at + stretch).length);
  return (Math.max(0, ...counts) / stretch) * 1000;
}

async function run(scale: Scale): Promise<readonly Line[]> {
  /** How often the callers come again. */
  const seconds = scale === "full" ? 45 : 3;
  using issuer = await startIssuer();
  const introspection = {
    clientId: "gateway",
    clientSecret: "known to the gateway alone",
    url: issuer.origin,
  };
  const frame = modernCall("echo__echo");
  const post = { "content-type": json, accept: both, ...mirrored(frame) };
  const strangersAt: readonly Addresses[] = [() => "127.0.0.1", (index) => `127.0.2.${index}`];
  const lines: Line[] = [];
  for (const [round, addressOf] of strangersAt.entries()) lines.push(...(await attackFrom(addressOf, round)));
  return lines;

  /** Strangers at these addresses of a new gateway send made-up tokens all the time, while callers come that the gateway does not know yet, and come again. */
  async function attackFrom(addressOf: Addresses, round: number): Promise<readonly Line[]> {
    await using gateway = await startGateway({
      mcpServers: { echo: { command: process.execPath, args: [fixture("gateway-echo.mjs")] } },
      junctor: { http: { publicUrl }, issuers: { corp: { issuer: issuer.origin, introspection } } },
    });
    const end = new AbortController();
    const agent = new Agent({ keepAlive: true });
    /** The status of a call, or why there is none. */
    const call = async (token: string, localAddress: string): Promise<number | string> => {
      const headers = { ...post, authorization: `Bearer ${token}` };
      const sent = request({
        agent,
        host: "127.0.0.1",
        port: gateway.port,
        path: "/mcp",
        method: "POST",
        localAddress,
        headers,
      });
      sent.end(JSON.stringify(frame));
      try {
        const [response] = (await once(sent, "response")) as [IncomingMessage];
        await text(response);
        return response.statusCode ?? 0;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code ?? String(error);
      }
    };
    let madeUp = 0;
    const letIn: string[] = [];
    const since = performance.now();
    const first = issuer.askedAt.length;
    const attack = async (stranger: number): Promise<void> => {
      while (!end.signal.aborted) {
        const token = `made-up-${round}-${madeUp++}`;
        if ((await call(token, addressOf(stranger))) === 200) letIn.push(token);
      }
    };
    const attacks = Array.from({ length: strangers }, (_, index) => attack(index));
    const names = Array.from({ length: callers }, (_, index) => `good-${round}-${index}`);
    while (issuer.askedAt.length === first) await new Promise((resolve) => setTimeout(resolve, 10));

    const fresh = await Promise.all(names.map((token, index) => call(token, `127.0.1.${index + 1}`)));
    const known: (number | string)[] = [];
    for (let second = 0; second < seconds; second++) {
      known.push(...(await Promise.all(names.map((token) => call(token, addressOf(0))))));
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
    const until = performance.now();
    end.abort();
    agent.destroy();
    await Promise.all(attacks);
    const where = round === 0 ? "one address" : `${strangers} addresses`;
    const rate = mostASecond(issuer.askedAt.slice(first), since, until);
    const asked = toText(issuer.askedAt.length - first);
    return [
      {
        what: `strangers at ${where}: callers with good tokens that the gateway does not know yet, each at an address of its own`,
        count: `${callers} callers`,
        bound: `${callers} of ${callers} served`,
        figure: served(fresh),
        isMet: areServed(fresh),
      },
      {
        what: `strangers at ${where}: the same callers again, once a second, from an address of the strangers`,
        count: `${toText(known.length)} calls`,
        bound: "all served",
        figure: served(known),
        isMet: areServed(known),
      },
      {
        what: `strangers at ${where}: made-up tokens, each as soon as the one before it is refused`,
        count: `${strangers} strangers, ${toText(madeUp)} tokens in ${toText((until - since) / 1000)} s`,
        bound: `none let in; the issuer asked at most ${mostPerSecond} times a second in any ${stretchMs / 1000} s`,
        figure: `${letIn.length} let in; ${rate.toFixed(1)} times a second, ${asked} in all`,
        isMet: letIn.length === 0 && rate <= mostPerSecond,
      },
    ];
  }
}

/** The address of each stranger, by its number. */
type Addresses = (stranger: number) => string;

function served(statuses: readonly (number | string)[]): string {
  const others = statuses.filter((status) => status !== 200);
  const first = others.length === 0 ? "" : `; the first of the others got ${others[0]}`;
  return `${toText(statuses.length - others.length)} of ${toText(statuses.length)} served${first}`;
}

function areServed(statuses: readonly (number | string)[]): boolean {
  return statuses.every((each) => each === 200);
}

export const row: Row = {
  title: "Strangers with made-up tokens",
  how: `\`junctor serve\` asks an issuer about opaque tokens; each answer takes ${answerMs} ms. ${strangers} strangers send made-up tokens all the time, first from one address and then from as many, while ${callers} callers use good ones.`,
  limitMinutes: 15,
  isInShort: true,
  run,
};
