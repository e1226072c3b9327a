import { printServerTypes } from "../../author/index.ts";
import { parseDestination, withClient } from "../call/index.ts";
import { note, print, type Run, toSafeLine, UsageError, watchInterrupt } from "../terminal/index.ts";

/** `junctor types` */
export const types: Run<"types"> = async (parsed) => {
  const [named, stray] = parsed.operands;
  if (stray !== undefined)
    throw new UsageError(
      `types takes one server, but got ${JSON.stringify(stray)} as well; the command of a server goes after --`,
    );
  await using destination = await parseDestination(parsed, { server: named });
  using interruption = watchInterrupt();
  const warn = (text: string): void => void note(`junctor: ${toSafeLine(text)}\n`);
  await withClient(destination, interruption, { onWarning: warn }, async (client) => {
    const [tools, prompts, { serverInfo }] = await Promise.all([
      client.listTools(),
      client.listPrompts(),
      client.agreement(),
    ]);
    await print(printServerTypes({ name: serverInfo?.name ?? "the server", tools, prompts }));
    const counts = [`${tools.length} tools`, `${prompts.length} prompts`];
    await note(`${counts.join(", ").replaceAll(/\b1 (tool|prompt)s/g, "1 $1")}\n`);
  });
  return 0;
};
