import { createServer } from "node:http";
import { answer } from "./answer.mjs";

createServer((request, response) => {
  // No session, so no stream to wait on and nothing to end.
  if (request.method !== "POST") return void response.writeHead(405).end();
  /** @type {Buffer[]} */
  const chunks = [];
  request.on("data", (/** @type {Buffer} */ chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = answer(Buffer.concat(chunks).toString());
    if (body === undefined) return void response.writeHead(202).end();
    response
      .writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(body) })
      .end(body);
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
