import { RawJson } from "@junctor/core/json";
import type { Endpoint } from "./endpoint.ts";
import type { Admission } from "./guard.ts";
import { sendJson } from "./reply.ts";

/** The paths that say how the process is. They need no key, and reveal nothing secret. */
export const healthPaths: readonly string[] = ["/health", "/live", "/ready"];

const words = {
  ok: RawJson.fromText('{"status":"ok"}'),
  starting: RawJson.fromText('{"status":"starting"}'),
  draining: RawJson.fromText('{"status":"draining"}'),
  overloaded: RawJson.fromText('{"status":"overloaded"}'),
} as const;

type HealthRoute = (admission: Admission) => void;

/**
 * The routes `/live` (the process serves), `/ready` (new calls are taken) and `/health` (the process is not leaving). `isReady` says
 * whether the servers behind the endpoint have started.
 */
export function createHealthRoutes(
  endpoint: Endpoint,
  isReady: () => boolean = () => true,
): { readonly [path: string]: { readonly [method: string]: HealthRoute } } {
  const tell: HealthRoute = ({ http: { path }, reply }) => {
    const word = path === "/live" ? "ok" : wordOf(path === "/ready", endpoint, isReady);
    sendJson(reply, word === "ok" ? 200 : 503, words[word]);
  };
  return Object.fromEntries(healthPaths.map((path) => [path, { GET: tell, HEAD: tell }]));
}

function wordOf(isAboutNew: boolean, endpoint: Endpoint, isReady: () => boolean): keyof typeof words {
  if (endpoint.isDraining) return "draining";
  if (!isAboutNew) return "ok";
  if (!isReady()) return "starting";
  return endpoint.shortage > 1 ? "overloaded" : "ok";
}
