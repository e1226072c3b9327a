// The floor: lines in, lines out, one parse and one stringify, no protocol and no checks.

import { createInterface } from "node:readline";

/** @typedef {{ id?: number, method: string, params: { arguments: { message: string } } }} Message */

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = /** @type {Message} */ (JSON.parse(line));
  if (id === undefined) continue;
  const result =
    method === "initialize" ? {} : { content: [{ type: "text", text: params.arguments.message }] };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`);
}
