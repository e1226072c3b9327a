import type { Provider } from "@junctor/core/provider";
import { readCassette, replayProvider } from "../author/index.ts";

/**
 * A provider that answers as a server did when `junctor record`, or the option `record` of `connectForTest`, wrote the file. Throws a
 * `TypeError` that names the line for a file that is not a cassette.
 *
 * @example
 * await using app = await connectForTest(openCassette("weather.jsonl"));
 * const result = await app.callTool("forecast", { city: "Oslo" });
 */
export function openCassette(file: string): Provider {
  return replayProvider(readCassette(file));
}
