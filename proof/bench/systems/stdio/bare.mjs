// The limit: lines in, lines out, one parse and one stringify, no protocol and no checks.

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (/** @type {string} */ text) => {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  // What was asked together is answered together.
  let said = "";
  for (const line of lines) said += answerTo(line);
  if (said !== "") process.stdout.write(said);
});

/** @typedef {{ id?: number, method: string, params: { arguments: { message: string } } }} Message */

/** @param {string} line */
function answerTo(line) {
  const { id, method, params } = /** @type {Message} */ (JSON.parse(line));
  if (id === undefined) return "";
  const result =
    method === "tools/call" ? { content: [{ type: "text", text: params.arguments.message }] } : {};
  return `${JSON.stringify({ jsonrpc: "2.0", id, result })}\n`;
}
