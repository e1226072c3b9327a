export type { AdminSource, EditedConfig } from "./admin-source.ts";
export { createKeptLog, type KeptLog, type LeveledLog } from "./kept-log.ts";
export { type AdminListener, listenAdmin } from "./listen-admin.ts";
