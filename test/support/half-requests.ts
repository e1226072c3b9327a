import { once } from "node:events";
import { connect, type Socket } from "node:net";

/** Opens connections that send the beginning of a request and no more. Resolves when each of them is connected or refused. */
export async function sendHalfRequests(
  port: number,
  count: number,
  beginning = "GET /live HTTP/1.1\r\nHost: 127.0.0.1",
): Promise<readonly Socket[]> {
  const sockets = Array.from({ length: count }, () => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {}); // The listener may close it.
    socket.write(beginning);
    return socket;
  });
  await Promise.all(sockets.map((socket) => once(socket, "connect").catch(() => {})));
  return sockets;
}
