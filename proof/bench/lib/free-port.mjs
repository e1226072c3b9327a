import { createServer } from "node:net";

// Below the range the kernel takes the ports of outgoing sockets from: with one of those, another socket could have it
// before the system under test listens. The ports above are those of the tests.
const lowest = 10_000;
const highest = 20_000;

/** @type {Set<number>} */
const given = new Set();

/** A loopback port nobody listens on; not the same one twice. */
export async function freePort() {
  for (;;) {
    const port = lowest + Math.floor(Math.random() * (highest - lowest));
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

/**
 * @param {number} port
 * @returns {Promise<boolean>}
 */
function isFree(port) {
  return new Promise((resolve) => {
    const probe = createServer().on("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}
