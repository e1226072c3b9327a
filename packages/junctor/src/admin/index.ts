export type { AdminSource, EditedConfig } from "./admin-source.ts";
export type {
  AccessReport,
  AdminLogLine,
  CheckReport,
  LogReport,
  ServerReport,
  Servers,
  Status,
} from "./answers.ts";
export { createKeptLog, type KeptLog, type LeveledLog } from "./kept-log.ts";
export { type AdminListener, listenAdmin } from "./listen-admin.ts";
export { reportCollision } from "./reports.ts";
