import { createKeptLog } from "../admin/kept-log.ts";
import { systemClock } from "../async/clock.ts";
import { createDeferred } from "../async/deferred.ts";
import { type Command, configFlags } from "./command.ts";
import { type FollowedConfig, followConfig } from "./follow-config.ts";
import { describeGateway, describeHttp, describePage, describeServers, describeTcp } from "./greeting.ts";
import { untilSignal } from "./interrupt.ts";
import { createLog } from "./log.ts";
import { listenForReload } from "./reload-socket.ts";
import { readSecrets } from "./secrets.ts";
import { type ServedListener, serveGateway, type Surroundings } from "./serve-gateway.ts";
import { readServePlan, type ServePlan } from "./serve-plan.ts";

/** `junctor serve` */
export const serve: Command = {
  name: "serve",
  summary:
    "Serve MCP servers behind one endpoint; without a config, the demo tools echo, add, countdown, greet.",
  flags: {
    ...configFlags,
    host: { value: "HOST", help: "the address to listen on (default 127.0.0.1)" },
    port: { value: "PORT", help: "the HTTP port (default 7780; 0 picks a free one)" },
    stdio: { help: "on standard input and output instead, for a client that starts us" },
    tcp: { value: "PORT", help: "on a TCP port instead, one JSON message a line" },
    profile: { value: "NAME", help: "a profile of the config alone, without /mcp/NAME paths" },
    reload: { value: "HOW", help: "edits of the config: safe ones at once (safe), all (trust), none (off)" },
    "log-level": { value: "LEVEL", help: "trace, debug, info, warn, error or silent (default info)" },
  },
  examples: [
    "junctor serve                                 the config found here, or the demo tools, on http://127.0.0.1:7780/mcp",
    "junctor serve --config .mcp.json              every server of the file behind one URL",
    "junctor serve --config .mcp.json --stdio      the same for a client that starts us",
  ],
  run: async (parsed) => {
    const plan = await readServePlan(parsed);
    return serveGateway(plan, surroundingsOf(plan));
  },
};

/** The surroundings of a process that serves alone: signals, the config file and the terminal. */
function surroundingsOf(plan: ServePlan): Surroundings {
  const { opened, served, host, choice, transport } = plan;
  const log = createKeptLog(createLog(plan.level), systemClock);
  const onWarning = (text: string): void => log.warn({}, text);
  const asked = createDeferred<void>();
  let followed: FollowedConfig | undefined;
  const agree = (): void => void followed?.agree();
  const signalled = untilSignal(() => (opened === undefined ? undefined : agree));
  const stopped = Promise.race([signalled, asked.promise]);
  return {
    log,
    secrets: readSecrets({ env: process.env, served, onWarning }),
    stopped,
    stop: asked.resolve,
    follow: async (gateway) => {
      if (opened === undefined) return undefined;
      const bound = transport === "stdio" ? "127.0.0.1" : host;
      const following = followConfig({ ...opened, choice, gateway, host: bound, log });
      followed = following;
      const reached = await listenForReload(served, following, onWarning);
      const stop = (): void => {
        reached?.[Symbol.dispose]();
        following[Symbol.dispose]();
      };
      return { edits: following, [Symbol.dispose]: stop };
    },
    greet: (listening) => greet(plan, listening, stopped),
  };
}

/** Says where it listens, and how the servers are when that is known. */
async function greet(plan: ServePlan, listening: ServedListener, stopped: Promise<void>): Promise<void> {
  const { opened, transport } = plan;
  const { url, gateway, page } = listening;
  const write = (text: string): void => void process.stdout.write(text);
  if (opened === undefined) write(transport === "http" ? describeHttp(url) : describeTcp(new URL(url)));
  else {
    const { servers, keys } = opened.config;
    const greeting = {
      count: servers.length,
      key: keys[0]?.name,
      file: opened.file,
      choice: plan.choice,
    };
    write(describeGateway(url, greeting));
    const isStopped = await Promise.race([gateway.ready.then(() => false), stopped.then(() => true)]);
    if (!isStopped) write(describeServers(gateway.status()));
  }
  if (page !== undefined) write(describePage(page));
}
