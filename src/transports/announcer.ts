import type { RawJson } from "../json/raw.ts";
import type { Announce } from "../mcp/session.ts";

/**
 * Sends announcements as they come. What is announced again while a slow reader has not taken it is sent once more, and
 * not as often as it was announced, so that a stalled reader costs next to nothing.
 */
export function createAnnouncer(
  send: (method: string, params: RawJson | undefined) => Promise<void>,
): Announce {
  /** What was not taken yet, and whether it was announced again since. */
  const untaken = new Map<string, boolean>();
  const sendUntilTaken = async (key: string, method: string, params: RawJson | undefined): Promise<void> => {
    do {
      untaken.set(key, false);
      // A channel that is closed has no one left to tell.
      await send(method, params).catch(() => {});
    } while (untaken.get(key) === true);
    untaken.delete(key);
  };
  return (method, params) => {
    const key = `${method} ${params?.text ?? ""}`;
    if (untaken.has(key)) untaken.set(key, true);
    else void sendUntilTaken(key, method, params);
  };
}
