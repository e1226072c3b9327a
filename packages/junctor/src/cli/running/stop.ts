import { junctor } from "../../invocation/index.ts";
import { note, print, refuseOperands, type Run } from "../terminal/index.ts";
import { stopDaemon } from "./daemon-control.ts";
import { findRunning, isDaemon, onlyOne } from "./running.ts";

/** `junctor stop` */
export const stop: Run<"stop"> = async (parsed) => {
  refuseOperands("stop", parsed);
  const found = await findRunning({ config: parsed.flags.config, pid: parsed.flags.pid });
  const [daemon] = onlyOne(found.filter(isDaemon));
  const gateways = found.flatMap(({ kind, status }) =>
    kind === "gateway" ? [status.worker?.primary ?? status.pid] : [],
  );
  for (const pid of new Set(gateways))
    await note(
      `junctor: the gateway of ${junctor("serve")} (process ${pid}) goes on: end it in its terminal, or with kill ${pid}\n`,
    );
  if (daemon !== undefined) return stopDaemon(daemon.place);
  await print("no daemon runs\n");
  return 0;
};
