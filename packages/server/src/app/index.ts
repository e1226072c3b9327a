export { createApp } from "./app.ts";
export { bearer } from "./bearer.ts";
export type { App, AppContext, AppOptions } from "./types.ts";
