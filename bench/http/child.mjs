/**
 * Every server says on which port it listens, answers each message of its parent with the CPU time it has used so far,
 * and ends with its parent.
 *
 * @param {number} port
 */
export function announce(port) {
  process.on("message", () => process.send?.(process.cpuUsage()));
  process.on("disconnect", () => process.exit());
  process.send?.({ port });
}

/**
 * Listens on a free port of the loopback interface.
 *
 * @param {import("node:http").Server} server
 */
export function listen(server) {
  server.listen(0, "127.0.0.1", () => {
    const address = server.address();
    if (address !== null && typeof address === "object") announce(address.port);
  });
}
