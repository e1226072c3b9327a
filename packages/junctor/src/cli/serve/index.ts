export { askAdmin, findAdmins, readAdminEvents } from "./admin-client.ts";
export { FollowedGateways } from "./follow-config.ts";
export { describeChange, diffDefinitions, showUnseen } from "./lock-diff.ts";
export { createFileLog, createLog, isAtLeast, toReadable } from "./log.ts";
export { findGateways, listenForReload, takeEdit, type WaitingGateway } from "./reload-socket.ts";
export { Observed } from "./serve-admin.ts";
