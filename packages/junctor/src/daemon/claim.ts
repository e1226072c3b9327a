import { lstatSync, renameSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import type { Clock } from "@junctor/core/async";
import type { RunPlace } from "../attach/index.ts";

interface ClaimOptions {
  /** Where fronts look; called before each claim, because the folder may have been removed. */
  readonly openPlace: () => RunPlace;
  readonly clock: Clock;
  readonly onSocket: (socket: Socket) => void;
  /** Another daemon has the socket now. */
  readonly onReplaced: () => void;
}

/** The place at which fronts find this daemon. */
interface SocketClaim {
  /** Resolves once no other daemon took the place within a moment; never when one did. */
  readonly settled: Promise<void>;
  /** Gives up the place, unless another daemon has it, and accepts no front from now on. */
  release(): void;
}

const firstLookMs = 100;
const lookMs = 1000;
/** More fronts wait in the system's queue. */
const maxFronts = 512;

/**
 * Takes the socket of a config. There is no lock that could be left behind: a daemon listens on a socket of its own, moves that
 * over the common name, and looks from time to time whether the name is still its own. Of several that start at once the last to
 * move its socket stays, and the others hear it. A socket that was removed is made again. On Windows the first listener has the pipe.
 */
export async function claimSocket(options: ClaimOptions): Promise<SocketClaim> {
  const { openPlace, clock, onSocket, onReplaced } = options;
  let place = openPlace();
  const servers: Server[] = [];
  let claims = 0;
  let ours: number | undefined;
  let isReleased = false;
  let stopTimer: (() => void) | undefined;

  const claim = async (): Promise<void> => {
    place = openPlace();
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: false }, onSocket);
    server.maxConnections = maxFronts;
    servers.push(server);
    if (process.platform === "win32") return listen(server, place.socket);
    const own = join(place.folder, `s-${process.pid}-${claims++}.sock`);
    rmSync(own, { force: true });
    await listen(server, own);
    ours = lstatSync(own).ino;
    renameSync(own, place.socket);
  };
  const look = async (): Promise<boolean> => {
    if (process.platform === "win32") return true;
    const there = lstatSync(place.socket, { throwIfNoEntry: false });
    if (there === undefined && !isReleased) await claim().catch(() => {});
    else if (there !== undefined && there.ino !== ours) return false;
    return true;
  };
  const lookLater = (ms: number, settle?: () => void): void => {
    stopTimer = clock.timer(ms, () => {
      void look().then((isOurs) => {
        if (isReleased) return;
        if (!isOurs) return onReplaced();
        settle?.();
        lookLater(lookMs);
      });
    });
  };
  await claim();
  const settled = new Promise<void>((resolve) => lookLater(firstLookMs, resolve));
  return {
    settled,
    release: () => {
      if (isReleased) return;
      isReleased = true;
      stopTimer?.();
      const isOurs =
        process.platform !== "win32" && lstatSync(place.socket, { throwIfNoEntry: false })?.ino === ours;
      if (isOurs) rmSync(place.socket, { force: true });
      for (const server of servers) server.close();
    },
  };
}

function listen(server: Server, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(path, () => {
      server.off("error", reject);
      server.on("error", () => {}); // A front that left before it was accepted.
      resolve();
    });
  });
}
