// How numbers and times are written on the page.

export function describeMs(ms: number | null | undefined): string {
  if (ms === undefined || ms === null) return "–";
  if (ms === 0) return "0 ms";
  if (ms < 10) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 10_000) return `${Number((ms / 1000).toFixed(1))} s`;
  return describeAge(ms);
}

/** A duration in its largest units: "4 s", "3 min", "2 h 5 min", "1 d 3 h". */
export function describeAge(ms: number): string {
  const s = Math.round(ms / 1000);
  if (s < 60) return `${s} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return min < 10 && s % 60 > 0 ? `${min} min ${s % 60} s` : `${min} min`;
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
  if (perSecond >= 10) return String(Math.round(perSecond));
  return String(Number(perSecond.toFixed(perSecond < 1 ? 2 : 1)));
}

export function describeTime(at: number): string {
  return new Date(at).toLocaleTimeString(undefined, { hour12: false });
}

export function describeCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

export function toPrettyJson(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? "undefined";
}

/** A value that should be a string, as text. */
export function toText(value: unknown): string {
  return typeof value === "string" ? value : toPrettyJson(value ?? "");
}
