// What a system is told on its command line, and what every server here offers.

const [portText, formText, toolsText] = process.argv.slice(2);

/** The loopback port to listen on. */
export const port = Number(portText);
/** Whether answers without progress should be JSON; some SDKs want to know beforehand. */
export const isJson = formText !== "sse";
/** How many tools there are in all. */
export const toolCount = Number(toolsText ?? 3);

export const host = "127.0.0.1";
export const info = { name: "echo", version: "1.0.0" };
export const frames = 20;
export const filler = "x".repeat(2 ** 20);

/** The tools besides echo, stream and large: for servers with many. */
export const moreTools = Array.from(
  { length: Math.max(0, toolCount - 3) },
  (_, index) => `tool-${index + 3}`,
);

/** @param {string} name */
export function descriptionOf(name) {
  return `Says again what it is told, as ${name} would.`;
}
