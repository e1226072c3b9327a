import { Buffer } from "node:buffer";

/** More levels of escapes than a real URI has. */
const maxRounds = 4;

/**
 * A URI as it is written, and as a server may read it: with escapes undone, and with the way through folders gone. Who
 * judges a URI judges all of them, or `%65tc` and `docs/../etc` are ways into `etc`.
 */
export function spellingsOf(uri: string): readonly string[] {
  const spellings = new Set([uri]);
  let plain = uri;
  for (let round = 0; round <= maxRounds; round++) {
    const read = toUrl(plain);
    spellings.add(plain).add(walk(plain)).add(read).add(walk(read));
    const unescaped = unescape(plain);
    if (unescaped === plain) break;
    plain = unescaped;
  }
  return [...spellings];
}

/**
 * A URI or a glob with all letters in one case. Scheme and host have no case (RFC 3986, section 6.2.2.1); the path has one, but file systems
 * may fold it. So who keeps a URI from a caller keeps it in every case: a URI that is kept needlessly is the lesser evil.
 */
export function foldCase(text: string): string {
  // Capital letters first, because several small ones may have the same: "ſ" and "s".
  return isAscii.test(text) ? text.toLowerCase() : text.normalize().toUpperCase().toLowerCase();
}

// oxlint-disable-next-line no-control-regex -- all of ASCII
const isAscii = /^[\x00-\x7f]*$/;

/**
 * As a URL is read by the rules of the web, which many servers follow: without tabs, line breaks and outer blanks, scheme and
 * host in small letters, backslashes as slashes. The text itself where it is none.
 */
function toUrl(text: string): string {
  return URL.canParse(text) ? new URL(text).href : text;
}

/** With every escape decoded. Bytes that are no text become the replacement character, which matches nothing. */
function unescape(text: string): string {
  return text.replaceAll(/(?:%[0-9a-f]{2})+/gi, (run) =>
    Buffer.from(run.replaceAll("%", ""), "hex").toString("utf8"),
  );
}

/** With `.`, `..` and empty segments resolved. */
function walk(uri: string): string {
  const [start = ""] = /^[a-z][a-z0-9+.-]*:\/\/[^/\\]*/i.exec(uri) ?? [];
  const steps: string[] = [];
  for (const step of uri.slice(start.length).split(/[/\\]/)) {
    if (step === "..") steps.pop();
    else if (step !== "." && step !== "") steps.push(step);
  }
  return start === "" ? steps.join("/") : [start, ...steps].join("/");
}
