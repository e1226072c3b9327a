export type { AdminSource, EditedConfig } from "./admin-source.ts";
export type {
  AccessReport,
  AdminLogLine,
  ApprovalReport,
  ApprovalReports,
  CheckReport,
  History as CallHistory,
  LogReport,
  ServerReport,
  Servers,
  Status,
  Usage,
  UsageReport,
} from "./answers.ts";
export { createKeptLog, type KeptLog, type LeveledLog } from "./kept-log.ts";
export { type AdminListener, listenAdmin } from "./listen-admin.ts";
export { reportCollision, toUsageRows } from "./reports.ts";
export { ServerDays } from "./server-days.ts";
