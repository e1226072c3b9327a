import { type Command, refuseOperands, note, print } from "../terminal/index.ts";
import { stopDaemon } from "./daemon-control.ts";
import { findRunning, isDaemon, onlyOne } from "./running.ts";
import { gatewayFlags } from "./status.ts";

/** `junctor stop` */
export const stop: Command = {
  name: "stop",
  summary: "End the daemon when its calls are done; a client that needs it starts the next.",
  flags: gatewayFlags,
  examples: ["junctor stop", "junctor stop --config .mcp.json"],
  run: async (parsed) => {
    refuseOperands("stop", parsed);
    const found = await findRunning({ config: parsed.valueOf("config"), pid: parsed.valueOf("pid") });
    const [daemon] = onlyOne(found.filter(isDaemon));
    const gateways = found.flatMap(({ kind, status }) =>
      kind === "gateway" ? [status.worker?.primary ?? status.pid] : [],
    );
    for (const pid of new Set(gateways))
      await note(
        `junctor: the gateway of junctor serve (process ${pid}) goes on: end it in its terminal, or with kill ${pid}\n`,
      );
    if (daemon !== undefined) return stopDaemon(daemon.place);
    await print("no daemon runs\n");
    return 0;
  },
};
