import type { GatewayLog } from "./log.ts";
import type { Health } from "./upstream/health.ts";

/** Logs how a server is now: what people want to know as it happens, what is wrong with all there is to say. */
export function logHealth(log: GatewayLog, server: string, health: Health): void {
  switch (health.kind) {
    case "up": {
      const { mode } = health.agreement;
      return log.info({ server, revision: mode.revision, connectMs: health.connectMs }, `${server} is up`);
    }
    case "down": {
      // Not the whole error: it names the command, whose arguments may hold a key.
      const { isBroken } = health;
      const inMs = Math.max(0, Math.round(health.nextTryAt - health.since));
      return log.warn(
        {
          server,
          code: health.code,
          reason: health.reason,
          ...(health.said === "" ? {} : { stderr: health.said }),
          inMs,
          isBroken,
        },
        `${server} is down`,
      );
    }
    case "idle":
    case "starting":
    case "stopped":
      return log.debug({ server }, `${server} is ${health.kind}`);
  }
}
