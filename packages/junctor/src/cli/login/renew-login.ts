import { text } from "node:stream/consumers";
import { createGuardedFetch, renewStored } from "@junctor/client/internal";
import { systemClock } from "@junctor/core/async";
import type { Renewal } from "../../credentials/index.ts";
import { type Run } from "../terminal/index.ts";
import { openLogins } from "./logins-store.ts";

/** `junctor renew-login`: the process that `renewByProcess` starts. */
export const renewLogin: Run<"renew-login"> = async () => {
  // The program that started us may be interrupted together with us; the new token must be stored all the same.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
  const { server: url, id, token, named, privateKey } = JSON.parse(await text(process.stdin)) as Renewal;
  const server = new URL(url);
  const { store } = openLogins();
  const fetch = createGuardedFetch({ server, named });
  const terms = { server, fetch, clock: systemClock, store, privateKey };
  await renewStored(terms, id, ({ accessToken }) => accessToken === token);
  return 0;
};
