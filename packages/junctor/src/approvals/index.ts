export { type Approval, type ApprovalEvent, Approvals, type ApprovalsOptions, useMs } from "./approvals.ts";
export { type ApprovalOptions, type ApprovalRule, withApproval } from "./with-approval.ts";
