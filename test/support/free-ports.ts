import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Below the ports that the system gives to outgoing connections and to servers that ask for any port, and above those that
 * the benchmarks take: nobody gets one of these by chance.
 */
const lowest = 20_000;
const highest = 32_000;

/**
 * TCP ports of loopback that are free and stay ours as long as this process runs, also while nothing listens there: a test
 * that runs at the same time could otherwise take one between two listeners, and answer in their place.
 */
export async function freePorts(count: number): Promise<readonly number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    if ((await isReserved(port)) && (await isFree(port))) ports.push(port);
  }
  return ports;
}

export async function freePort(): Promise<number> {
  const [port = 0] = await freePorts(1);
  return port;
}

/** Holds the UDP port of the same number, which nobody uses: the system gives it to one process only, and frees it at its end. */
async function isReserved(port: number): Promise<boolean> {
  const socket = createSocket("udp4");
  try {
    socket.bind({ port, address: "127.0.0.1", exclusive: true });
    await once(socket, "listening");
  } catch {
    socket.close();
    return false;
  }
  socket.unref();
  return true;
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  try {
    probe.listen(port, "127.0.0.1");
    await once(probe, "listening");
  } catch {
    return false;
  }
  await once(probe.close(), "close");
  return true;
}
