import type { Target } from "../client/connect.ts";

/** The server a command line means, and how to reach it. Dispose it when it is no longer needed. */
export interface Destination extends AsyncDisposable {
  readonly target: Target;
  readonly headers: { readonly [name: string]: string };
  readonly timeoutMs: number | undefined;
}
