import { answer } from "./answer.mjs";

let rest = "";
process.stdin.setEncoding("utf8");
process.stdin.on("data", (/** @type {string} */ text) => {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  // What was asked together is answered together.
  let said = "";
  for (const line of lines) {
    const answered = answer(line);
    if (answered !== undefined) said += `${answered}\n`;
  }
  if (said !== "") process.stdout.write(said);
});
process.stdin.on("end", () => process.exit());
