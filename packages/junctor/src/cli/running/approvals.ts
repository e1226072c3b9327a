import { guardVariable } from "@junctor/client/internal";
import type { ApprovalReport, ApprovalReports } from "../../admin/index.ts";
import { junctor } from "../../invocation/index.ts";
import { askAdmin } from "../serve/index.ts";
import { note, print, type Run, toRows, toSafeLine, UsageError } from "../terminal/index.ts";
import { findRunning, nothingRuns } from "./running.ts";

/** A call that waits, and where it can be answered. */
interface Waiting {
  readonly socket: string;
  readonly approval: ApprovalReport;
}

/** `junctor approvals` */
export const approvals: Run<"approvals"> = async (parsed) => {
  const [verb = "list", id, more] = parsed.operands;
  if (more !== undefined || !["list", "show", "approve", "deny"].includes(verb))
    throw new UsageError(`write ${junctor("approvals")} list, show ID, approve ID or deny ID`);
  // A server that may run commands could agree to its own calls.
  if (process.env[guardVariable] !== undefined)
    throw new UsageError(
      "a server of a gateway cannot answer for a person; run this from a terminal of your own",
    );
  const wanted = { config: parsed.flags.config, pid: parsed.flags.pid };
  const found = await findRunning(wanted);
  if (found.length === 0) throw nothingRuns(wanted);
  const waiting = await collect(
    found.flatMap((running) => (running.kind === "gateway" ? [running.socket] : [])),
  );
  if (verb === "list") return list(waiting, parsed.flags.json);
  if (id === undefined)
    throw new UsageError(`${verb} takes the id of a call; ${junctor("approvals")} lists them`);
  const chosen = waiting.find(({ approval }) => approval.id === id);
  if (chosen === undefined) {
    await note(`junctor: no call waits under ${toSafeLine(id)}: it was answered, or its time is over\n`);
    return 1;
  }
  if (verb === "show") {
    await print(describe(chosen.approval));
    return 0;
  }
  return answer(chosen, verb === "approve" ? "approve" : "deny");
};

/** All calls that wait. Workers share them, so several may report the same call. */
async function collect(sockets: readonly string[]): Promise<readonly Waiting[]> {
  const all = await Promise.all(
    sockets.map(async (socket) => {
      const { approvals: reports } = (await askAdmin(socket, "GET", "/api/approvals")) as ApprovalReports;
      return reports.map((approval) => ({ socket, approval }));
    }),
  );
  return [...new Map(all.flat().map((each) => [each.approval.id, each])).values()];
}

async function list(waiting: readonly Waiting[], isJson: boolean): Promise<number> {
  const reports = waiting.map(({ approval }) => approval);
  if (isJson) await print(reports.map((report) => `${JSON.stringify(report)}\n`).join(""));
  else if (reports.length === 0) await print("No call waits for you.\n");
  else {
    const rows = toRows(
      reports.map(({ id, name, caller, calls, arguments: args }) => [
        id,
        toSafeLine(name),
        toSafeLine(caller ?? "-"),
        `${calls}x`,
        toSafeLine(args).slice(0, 60),
      ]),
    );
    await print(
      `${rows.join("\n")}\n\n${junctor("approvals")} show ID tells more; approve ID or deny ID answers.\n`,
    );
  }
  return 0;
}

/** What comes from servers and models stands behind its label, on one line. */
function describe(approval: ApprovalReport): string {
  const { id, method, name, server, caller, definition, rule, calls, expiresAt } = approval;
  const rows = [
    ["call", `${method} ${JSON.stringify(name)}`],
    ["server", JSON.stringify(server ?? "")],
    ["caller", caller === undefined ? "without a name" : JSON.stringify(caller)],
    ["arguments", approval.arguments],
    ["digest", approval.argumentsDigest],
    ["definition", definition],
    ["rule", `junctor.${rule}`],
    ["equal calls", String(calls)],
    ["until", new Date(expiresAt).toISOString()],
  ];
  return `${id}\n${rows.map(([label = "", value = ""]) => `  ${label.padEnd(12)} ${toSafeLine(value)}\n`).join("")}`;
}

async function answer({ socket, approval }: Waiting, given: "approve" | "deny"): Promise<number> {
  const path = `/api/approvals/${encodeURIComponent(approval.id)}`;
  await askAdmin(socket, "POST", path, { answer: given, calls: approval.calls });
  await print(`${given === "approve" ? "approved" : "denied"}: ${toSafeLine(approval.name)}\n`);
  return 0;
}
