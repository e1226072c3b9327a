import type { AdminSource } from "./admin-source.ts";

/** Something a person should look at. */
interface Problem {
  readonly severity: "error" | "warning";
  readonly where: string;
  readonly message: string;
  readonly server?: string;
}

/** Everything that is wrong or odd: with the config, its servers, and their definitions. */
export function problemsView(source: AdminSource): object {
  const { gateway, edits } = source;
  const problems: Problem[] = [...source.warnings(), ...gateway.unmatchedRules()].map(
    ({ path, message }) => ({
      severity: "warning",
      where: path,
      message,
    }),
  );
  for (const status of gateway.status()) {
    const { name: server, trouble, leftOut = [], unapproved = [] } = status;
    const advice = trouble === undefined ? undefined : source.advise(status);
    const add = (severity: Problem["severity"], where: string, message: string): void =>
      void problems.push({ severity, where, message, server });
    // One that failed and is being started again is still a problem.
    if (trouble !== undefined && (status.status !== "starting" || status.reason !== undefined))
      add(status.status === "up" ? "warning" : "error", server, [trouble, advice].filter(Boolean).join(". "));
    for (const { part, name, reason } of leftOut) add("warning", `${server}: ${part} ${name}`, reason);
    for (const { part, name, why, isHeldBack } of unapproved)
      add(
        "warning",
        `${server}: ${part} ${name}`,
        `it is ${why} and not approved${isHeldBack ? ", so callers cannot use it" : ""}; junctor trust approves it`,
      );
  }
  for (const { key, advice } of gateway.controls.collisions())
    problems.push({ severity: "warning", where: key, message: advice });
  return { problems, ...waitingOf(edits, problems) };
}

function waitingOf(edits: AdminSource["edits"], problems: Problem[]): object {
  try {
    const { waiting, version } = edits?.inspect() ?? { waiting: [], version: "" };
    return waiting.length === 0 ? {} : { waiting: { edits: waiting, version } };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    problems.push({
      severity: "error",
      where: "config",
      message: `the edited config is not used: ${message}`,
    });
    return {};
  }
}
