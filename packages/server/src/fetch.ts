/** MCP for anything that speaks the web's `Request` and `Response`. Separate from the rest, so that servers on stdio do not load HTTP. */

export { type FetchHandler, type FetchOptions, toFetchHandler } from "./http/index.ts";
