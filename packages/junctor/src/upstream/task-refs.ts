import type { Client } from "@junctor/client";
import { fromRemoteTaskId, isRemote, toRemoteTaskId } from "../cluster/index.ts";

/** Tasks of the server, and tasks that the gateway hosts for one that knows only those of 2025-11-25. */
export const prefixes: { readonly own: "m:"; readonly hosted: "h:" } = { own: "m:", hosted: "h:" };

/** A ref with the replica where its task lives; without one where the task is found from any replica. */
export function withAddress(ref: string, at: string | undefined): string {
  return at === undefined ? ref : `@${at}:${ref}`;
}

/** The replica where a task lives, if its ref says so, and its ref there. */
export function splitAddress(ref: string): { readonly at: string | undefined; readonly local: string } {
  const end = ref.startsWith("@") ? ref.indexOf(":") : -1;
  return end < 0 ? { at: undefined, local: ref } : { at: ref.slice(1, end), local: ref.slice(end + 1) };
}

/** The ref of a server's own task, as the server of a client knows it. Another replica knows it by the ref that callers have. */
export function toServerRef(tool: string, ref: string, client: Client): string {
  return isRemote(client) ? toRemoteTaskId(tool, prefixes.own + ref) : ref;
}

/** The reverse of {@link toServerRef}. */
export function fromServerRef(ref: string, client: Client): string {
  return isRemote(client) ? fromRemoteTaskId(ref).slice(prefixes.own.length) : ref;
}
