import { Buffer } from "node:buffer";
import { RawJson } from "./raw.ts";

/**
 * The same JSON without a line break, for wherever a line is a message: stdio, TCP, SSE data. A sender may put
 * line feeds between tokens and so make one element of an array a line, and a message, of its own, which
 * was never authorised. Strings cannot hold the bytes 0x0A and 0x0D, so each one is white space and may become a
 * space; nothing else changes, and JSON that has none is returned as it is.
 *
 * @example
 * socket.write(toOneLine(message).bytes);
 */
export function toOneLine(raw: RawJson): RawJson {
  // Neither we nor JSON.stringify write any.
  if (!raw.isForeign) return raw;
  const { written } = raw;
  if (typeof written === "string") {
    const hasBreak = written.includes("\n") || written.includes("\r");
    return hasBreak ? RawJson.fromText(written.replaceAll(/[\n\r]/g, " ")) : raw;
  }
  if (!written.some((piece) => piece.includes(0x0a) || piece.includes(0x0d))) return raw;
  return RawJson.fromChecked(
    Buffer.from(raw.bytes).map((byte) => (byte === 0x0a || byte === 0x0d ? 0x20 : byte)),
  );
}
