// How numbers and times are written on the page.

export function describeMs(ms: number | null | undefined): string {
  if (ms === undefined || ms === null) return "–";
  if (ms === 0) return "0 ms";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(1))} s`;
  return describeAge(ms);
}

/** A duration in its largest units: "4 s", "3 min", "2 h 5 min", "1 d 3 h". */
export function describeAge(ms: number): string {
  const s = Math.max(0, Math.round(ms / 1000));
  if (s < 60) return `${s} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return min < 5 && s % 60 > 0 ? `${min} min ${s % 60} s` : `${min} min`;
  const h = Math.floor(min / 60);
  if (h < 24) return min % 60 > 0 ? `${h} h ${min % 60} min` : `${h} h`;
  return h % 24 > 0 ? `${Math.floor(h / 24)} d ${h % 24} h` : `${Math.floor(h / 24)} d`;
}

export function describeBytes(bytes: number | undefined): string {
  if (bytes === undefined) return "–";
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 ** 2) return `${(bytes / 1024).toFixed(1)} KB`;
  return `${(bytes / 1024 ** 2).toFixed(1)} MB`;
}

export function describeRate(perSecond: number): string {
  if (perSecond >= 100) return String(Math.round(perSecond));
  return String(Number(perSecond.toFixed(perSecond < 1 ? 2 : 1)));
}

/** A number that stands beside others: "721", "6.1 k", "8.1 M". */
export function describeShort(count: number): string {
  if (count < 1000) return String(Math.round(count));
  if (count < 1_000_000) return `${(count / 1000).toFixed(count < 100_000 ? 1 : 0)} k`;
  return `${(count / 1_000_000).toFixed(1)} M`;
}

/** "44,640" */
export function describeNumber(count: number): string {
  return count.toLocaleString("en-US");
}

export function describeTime(at: number): string {
  return new Date(at).toLocaleTimeString("en-GB", { hour12: false });
}

/** With milliseconds: "14:40:09.412". */
export function describeMoment(at: number): string {
  return `${describeTime(at)}.${String(Math.floor(at % 1000)).padStart(3, "0")}`;
}

/** The time within the last 20 hours, else the day: "14:02", "12 Nov". */
export function describeSince(at: number, now: number): string {
  if (now - at < 20 * 3_600_000) return describeTime(at).slice(0, 5);
  return new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

export function describeCount(count: number, noun: string): string {
  return `${describeNumber(count)} ${noun}${count === 1 ? "" : "s"}`;
}

export function toPrettyJson(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? "undefined";
}

/** A value that should be a string, as text. */
export function toText(value: unknown): string {
  return typeof value === "string" ? value : toPrettyJson(value ?? "");
}

/** The server's part of a public name and the rest, to be written in two weights. */
export function splitName(name: string, server: string | undefined): readonly [string, string] {
  if (server === undefined || !name.startsWith(server)) return ["", name];
  const [, rest] = /^(?:__|[._/-])(.+)$/s.exec(name.slice(server.length)) ?? [];
  return rest === undefined ? ["", name] : [server, rest];
}
