// A client that speaks to the daemon's socket itself, without a front: the difference is what a front adds.

import { createHmac, randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";

/** Says hello to the only daemon of a run folder. Resolves with a socket that is ready for MCP lines. */
export async function joinDaemon(run) {
  const key = readFileSync(join(run, "key"));
  const name = readdirSync(run).find((each) => each.startsWith("d-"));
  const socket = connect(join(run, name));
  const say = (message) => socket.write(`${JSON.stringify(message)}\n`);
  const nonce = randomBytes(16).toString("hex");
  say({ junctor: 1, oldest: 1, nonce });
  const greeting = await nextLine(socket);
  const proof = createHmac("sha256", key).update(`junctor front ${nonce} ${greeting.nonce}`).digest("hex");
  say({ proof, build: greeting.build, pid: process.pid, id: nonce, client: "direct" });
  const { variables } = await nextLine(socket);
  say({ env: Object.fromEntries(variables.map((each) => [each, process.env[each] ?? ""])) });
  await nextLine(socket);
  return socket;
}

/** Each line of the hello waits for the one before, so a chunk is a line. */
function nextLine(socket) {
  return new Promise((resolve, reject) => {
    socket.once("error", reject);
    const read = () => {
      const chunk = socket.read();
      if (chunk === null) return;
      socket.off("readable", read);
      socket.off("error", reject);
      resolve(JSON.parse(chunk));
    };
    socket.on("readable", read);
  });
}
